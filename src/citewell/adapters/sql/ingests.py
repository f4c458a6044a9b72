"""Runs of ingests in the database: a row for each of a project's last ones."""

from typing import Any
from uuid import UUID

from sqlalchemy import Row, delete, insert, select, update

from citewell.adapters.sql.database import Database, storable
from citewell.adapters.sql.tables import ingests
from citewell.models import IngestRun

_KEPT = 20
_NEWEST_FIRST = (ingests.c.started_at.desc(), ingests.c.id)


class SqlIngests:
    """Keeps the promises of Ingests."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, run: IngestRun) -> None:
        dead = update(ingests).where(ingests.c.outcome == "running").values(outcome="interrupted")
        new = insert(ingests).values(id=run.id, project_id=run.project, started_at=run.started_at, **_standing(run))
        ours = ingests.c.project_id == run.project
        too_old = select(ingests.c.id).where(ours).order_by(*_NEWEST_FIRST).offset(_KEPT)
        async with self._database.writing() as connection:
            await connection.execute(dead)
            await connection.execute(new)
            await connection.execute(delete(ingests).where(ingests.c.id.in_(too_old)))

    async def update(self, run: IngestRun) -> None:
        async with self._database.writing() as connection:
            await connection.execute(update(ingests).where(ingests.c.id == run.id).values(**_standing(run)))

    async def ingests(self, project: UUID) -> list[IngestRun]:
        last = select(ingests).where(ingests.c.project_id == project).order_by(*_NEWEST_FIRST)
        async with self._database.reading() as connection:
            return [_run(row) for row in await connection.execute(last)]


def _standing(run: IngestRun) -> dict[str, object]:
    """What of a run may change."""
    return {
        "updated_at": run.updated_at,
        "finished_at": run.finished_at,
        "stage": run.stage,
        "done": run.done,
        "total": run.total,
        "errors": [storable(error) for error in run.errors],
        "files_processed": run.files_processed,
        "chunks_created": run.chunks_created,
        "outcome": run.outcome,
    }


def _run(row: Row[Any]) -> IngestRun:
    return IngestRun(
        id=row.id,
        project=row.project_id,
        started_at=row.started_at,
        updated_at=row.updated_at,
        finished_at=row.finished_at,
        stage=row.stage,
        done=row.done,
        total=row.total,
        errors=tuple(row.errors),
        files_processed=row.files_processed,
        chunks_created=row.chunks_created,
        outcome=row.outcome,
    )
