"""The upload queue: one row for each path of a project, with the file's bytes until they are indexed."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, delete, func, select, true, update

from citewell.adapters.sql.database import Database, storable
from citewell.adapters.sql.tables import projects, uploads
from citewell.models import Project, Upload

_OLDEST_FIRST = (uploads.c.created_at, uploads.c.id)
_WITHOUT_CONTENT = [column for column in uploads.c if column.name != "content"]


class SqlUploads:
    """One row for each upload or deletion that waits, runs or failed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, upload: Upload, *, content: bytes) -> None:
        project = self._database.insert(projects).values(
            id=upload.project.id, name=storable(upload.project.name), created_at=datetime.now(UTC)
        )
        values: dict[str, object] = {
            "id": upload.id,
            "kind": upload.kind,
            "status": upload.status,
            "size": upload.size,
            "content": content,
            "error": upload.error,
            "attempts": upload.attempts,
            "created_at": upload.created_at,
        }
        # Replaces an upload in progress as well: when its worker is done, the new one is still queued.
        new = (
            self._database.insert(uploads)
            .values(**values, project_id=upload.project.id, path=storable(upload.path))
            .on_conflict_do_update(index_elements=["project_id", "path"], set_=values)
        )
        async with self._database.writing() as connection:
            await connection.execute(project.on_conflict_do_nothing())
            await connection.execute(new)

    async def waiting(self) -> list[UUID]:
        unfinished = select(uploads.c.project_id).where(uploads.c.status != "FAILED").group_by(uploads.c.project_id)
        async with self._database.reading() as connection:
            return list(await connection.scalars(unfinished.order_by(func.min(uploads.c.created_at))))

    async def claim(self, project: UUID | None = None, *, only_new: bool = False) -> tuple[Upload, bytes] | None:
        # SQLite has no row locks and needs none: there, one connection writes at a time.
        oldest = (
            select(uploads.c.id)
            .where(uploads.c.status == "PENDING", _of(project))
            .order_by(*_OLDEST_FIRST)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        claim = (
            update(uploads)
            .where(uploads.c.id == oldest.scalar_subquery(), _is_new() if only_new else true())
            .values(status="PROCESSING", attempts=uploads.c.attempts + 1)
            .returning(uploads)
        )
        async with self._database.writing() as connection:
            row = (await connection.execute(claim)).first()
            if row is None:
                return None
            name = await connection.scalar(select(projects.c.name).where(projects.c.id == row.project_id))
        return _upload(row, name or ""), row.content

    async def resume(self, project: UUID | None = None) -> None:
        in_progress = update(uploads).where(uploads.c.status == "PROCESSING", _of(project))
        async with self._database.writing() as connection:
            await connection.execute(in_progress.values(status="PENDING"))

    async def release(self, upload_id: UUID) -> None:
        claimed = update(uploads).where(uploads.c.id == upload_id, uploads.c.status == "PROCESSING")
        async with self._database.writing() as connection:
            await connection.execute(claimed.values(status="PENDING", attempts=uploads.c.attempts - 1))

    async def finish(self, upload_id: UUID, *, error: str | None = None) -> None:
        this_upload = uploads.c.id == upload_id
        failed = update(uploads).where(this_upload).values(status="FAILED", error=storable(error or ""), content=None)
        async with self._database.writing() as connection:
            await connection.execute(delete(uploads).where(this_upload) if error is None else failed)

    async def uploads(self, project: UUID | None = None) -> list[Upload]:
        query: Select[Any] = (
            select(*_WITHOUT_CONTENT, projects.c.name.label("project_name"))
            .join(projects, projects.c.id == uploads.c.project_id)
            .where(_of(project))
            .order_by(*_OLDEST_FIRST)
        )
        async with self._database.reading() as connection:
            return [_upload(row, row.project_name) for row in await connection.execute(query)]

    async def withdraw(self, project: UUID, path: str) -> bool:
        waiting = delete(uploads).where(
            uploads.c.project_id == project, uploads.c.path == storable(path), uploads.c.status != "PROCESSING"
        )
        async with self._database.writing() as connection:
            return (await connection.execute(waiting)).rowcount == 1


def _is_new() -> ColumnElement[bool]:
    return (uploads.c.kind == "ingest") & (uploads.c.attempts == 0)


def _of(project: UUID | None) -> ColumnElement[bool]:
    return true() if project is None else uploads.c.project_id == project


def _upload(row: Row[Any], project: str) -> Upload:
    return Upload(
        id=row.id,
        project=Project(row.project_id, project),
        path=row.path,
        kind=row.kind,
        status=row.status,
        size=row.size,
        created_at=row.created_at,
        error=row.error,
        attempts=row.attempts,
    )
