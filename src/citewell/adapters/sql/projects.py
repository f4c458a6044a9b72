"""Projects. The default project is created when it is first read."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, delete, select, update

from citewell.adapters.sql.database import Database, storable
from citewell.adapters.sql.tables import (
    conversations,
    evaluations,
    facts,
    gaps,
    generation_of,
    ingests,
    keys,
    past_chunks,
    projects,
    sessions,
    uploads,
)
from citewell.models import DEFAULT_PROJECT, Project

_DEFAULT = Project.named(DEFAULT_PROJECT)


class SqlProjects:
    """One row for each project."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def projects(self) -> list[tuple[Project, datetime]]:
        query = select(projects).order_by(projects.c.name)
        listed = await self._select(query)
        if any(project == _DEFAULT for project, _ in listed):
            return listed
        await self.create(_DEFAULT)
        return await self._select(query)

    async def project(self, project_id: UUID) -> tuple[Project, datetime] | None:
        query = select(projects).where(projects.c.id == project_id)
        matches = await self._select(query)
        if not matches and project_id == _DEFAULT.id:
            await self.create(_DEFAULT)
            matches = await self._select(query)
        return next(iter(matches), None)

    async def create(self, project: Project) -> bool:
        new = self._database.insert(projects).values(
            id=project.id, name=storable(project.name), created_at=datetime.now(UTC)
        )
        async with self._database.writing() as connection:
            result = await connection.execute(new.on_conflict_do_nothing())
        return result.rowcount == 1

    async def delete(self, project_id: UUID) -> None:
        # A new project of the same name would have the same id: a key to the old one must not open it.
        open_keys = update(keys).where(keys.c.project_id == project_id, keys.c.revoked_at.is_(None))
        its_sessions = select(sessions.c.session_id).where(sessions.c.project_id == project_id)
        async with self._database.writing() as connection:
            await connection.execute(delete(conversations).where(conversations.c.session_id.in_(its_sessions)))
            await connection.execute(open_keys.values(revoked_at=datetime.now(UTC)))
            for table in (sessions, uploads, past_chunks, gaps, ingests, evaluations):
                await connection.execute(delete(table).where(table.c.project_id == project_id))
            await connection.execute(delete(facts).where(facts.c.name.startswith(generation_of(project_id))))
            await connection.execute(delete(projects).where(projects.c.id == project_id))

    async def _select(self, query: Select[Any]) -> list[tuple[Project, datetime]]:
        async with self._database.reading() as connection:
            return [(Project(row.id, row.name), row.created_at) for row in await connection.execute(query)]
