"""What authors learn about a project: unanswered questions, the last evaluation, and the last ingest runs."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any
from unicodedata import normalize
from uuid import UUID

from sqlalchemy import Row, delete, insert, select, update

from citewell.adapters.sql.database import Database, storable
from citewell.adapters.sql.tables import evaluations, gaps, ingests, projects
from citewell.models import Evaluation, Gap, IngestRun

_MAX_GAPS = 1000  # in a project
_MAX_QUESTION_CHARACTERS = 1000  # nobody asks a longer question twice
_IGNORED_AT_THE_ENDS = " \t\n?!.,;:…¿¡？！。؟\"'“”„«»()"
_NEWEST_GAPS = (gaps.c.last_at.desc(), gaps.c.hash)
_MAX_RUNS = 20  # in a project
_SILENT = timedelta(minutes=1)
_NEWEST_RUNS = (ingests.c.started_at.desc(), ingests.c.id)


class SqlGaps:
    """Unanswered questions: one row for each, with how often it was asked."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, project: UUID, question: str) -> None:
        question = storable(question)
        now = datetime.now(UTC)
        latest: dict[str, object] = {"question": _shorten(question), "last_at": now}
        first = self._database.insert(gaps).values(
            project_id=project, hash=_question_hash(question), times=1, first_at=now, **latest
        )
        first_or_again = first.on_conflict_do_update(
            index_elements=["project_id", "hash"], set_={**latest, "times": gaps.c.times + 1}
        )
        in_project = gaps.c.project_id == project
        too_many = select(gaps.c.hash).where(in_project).order_by(*_NEWEST_GAPS).offset(_MAX_GAPS)
        async with self._database.writing() as connection:
            if await connection.scalar(select(projects.c.id).where(projects.c.id == project)):
                await connection.execute(first_or_again)
                await connection.execute(delete(gaps).where(in_project, gaps.c.hash.in_(too_many)))

    async def gaps(self, project: UUID, *, limit: int) -> list[Gap]:
        newest = select(gaps).where(gaps.c.project_id == project).order_by(*_NEWEST_GAPS).limit(limit)
        async with self._database.reading() as connection:
            rows = await connection.execute(newest)
            return [Gap(row.question, row.times, row.first_at, row.last_at) for row in rows]

    async def clear(self, project: UUID) -> None:
        async with self._database.writing() as connection:
            await connection.execute(delete(gaps).where(gaps.c.project_id == project))


def _question_hash(question: str) -> str:
    """Equal for questions that differ in case, spacing or punctuation at the ends.

    A hash, because PostgreSQL cannot index long text.
    """
    plain = " ".join(normalize("NFKC", question).casefold().split())
    return hashlib.sha256((plain.strip(_IGNORED_AT_THE_ENDS) or plain).encode()).hexdigest()


def _shorten(question: str) -> str:
    if len(question) <= _MAX_QUESTION_CHARACTERS:
        return question
    return f"{question[: _MAX_QUESTION_CHARACTERS - 1]}…"


class SqlEvaluations:
    """The last evaluation of each project."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, project: UUID, evaluation: Evaluation) -> None:
        values: dict[str, object] = {
            "at": evaluation.at,
            "questions": evaluation.questions,
            "scores": evaluation.scores,
        }
        new = self._database.insert(evaluations).values(project_id=project, **values)
        async with self._database.writing() as connection:
            await connection.execute(new.on_conflict_do_update(index_elements=["project_id"], set_=values))

    async def last(self, project: UUID) -> Evaluation | None:
        query = select(evaluations).where(evaluations.c.project_id == project)
        async with self._database.reading() as connection:
            row = (await connection.execute(query)).first()
        return None if row is None else Evaluation(row.at, row.questions, row.scores)


class SqlIngests:
    """The last ingest runs of each project: one row for each."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, run: IngestRun) -> None:
        in_project = ingests.c.project_id == run.project
        # Other projects may be written at the same time, by processes that report in time.
        dead = in_project | (ingests.c.updated_at < run.started_at - _SILENT)
        unfinished = update(ingests).where(ingests.c.outcome == "running", dead).values(outcome="interrupted")
        new = insert(ingests).values(id=run.id, project_id=run.project, started_at=run.started_at, **_progress(run))
        too_old = select(ingests.c.id).where(in_project).order_by(*_NEWEST_RUNS).offset(_MAX_RUNS)
        async with self._database.writing() as connection:
            await connection.execute(unfinished)
            await connection.execute(new)
            await connection.execute(delete(ingests).where(ingests.c.id.in_(too_old)))

    async def update(self, run: IngestRun) -> None:
        async with self._database.writing() as connection:
            await connection.execute(update(ingests).where(ingests.c.id == run.id).values(**_progress(run)))

    async def ingests(self, project: UUID) -> list[IngestRun]:
        newest = select(ingests).where(ingests.c.project_id == project).order_by(*_NEWEST_RUNS)
        async with self._database.reading() as connection:
            return [_ingest_run(row) for row in await connection.execute(newest)]


def _progress(run: IngestRun) -> dict[str, object]:
    """The columns that change during a run."""
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


def _ingest_run(row: Row[Any]) -> IngestRun:
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
