"""Questions without an answer in the database: a row for each, and how often it was asked."""

import hashlib
from datetime import UTC, datetime
from unicodedata import normalize
from uuid import UUID

from sqlalchemy import delete, select

from citewell.adapters.sql.database import Database, storable
from citewell.adapters.sql.tables import gaps, projects
from citewell.models import Gap

_MOST = 1000
_LONGEST = 1000  # characters: who writes more than that asks nothing that would be asked twice
_ENDS = " \t\n?!.,;:…¿¡？！。؟\"'“”„«»()"
_NEWEST_FIRST = (gaps.c.last_at.desc(), gaps.c.hash)


class SqlGaps:
    """Keeps the promises of Gaps."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, project: UUID, question: str) -> None:
        asked = storable(question)
        now = datetime.now(UTC)
        last: dict[str, object] = {"question": _shortened(asked), "last_at": now}
        new = self._database.insert(gaps).values(
            project_id=project, hash=_counted(asked), times=1, first_at=now, **last
        )
        again = new.on_conflict_do_update(
            index_elements=["project_id", "hash"], set_={**last, "times": gaps.c.times + 1}
        )
        ours = gaps.c.project_id == project
        too_many = select(gaps.c.hash).where(ours).order_by(*_NEWEST_FIRST).offset(_MOST)
        async with self._database.writing() as connection:
            if await connection.scalar(select(projects.c.id).where(projects.c.id == project)):
                await connection.execute(again)
                await connection.execute(delete(gaps).where(ours, gaps.c.hash.in_(too_many)))

    async def gaps(self, project: UUID, *, limit: int) -> list[Gap]:
        last = select(gaps).where(gaps.c.project_id == project).order_by(*_NEWEST_FIRST).limit(limit)
        async with self._database.reading() as connection:
            return [Gap(row.question, row.times, row.first_at, row.last_at) for row in await connection.execute(last)]

    async def clear(self, project: UUID) -> None:
        async with self._database.writing() as connection:
            await connection.execute(delete(gaps).where(gaps.c.project_id == project))


def _counted(question: str) -> str:
    """Known by a hash: PostgreSQL finds no long text by an index."""
    plain = " ".join(normalize("NFKC", question).casefold().split())
    return hashlib.sha256((plain.strip(_ENDS) or plain).encode()).hexdigest()


def _shortened(question: str) -> str:
    return question if len(question) <= _LONGEST else f"{question[: _LONGEST - 1]}…"
