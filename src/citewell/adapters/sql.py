"""The library in SQLite: documents word for word, their chunks, and embeddings already paid for.

A chunk's text is not stored: it is `document.text[start:end]`, so a citation cannot disagree with
its document.
"""

import json
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import (
    Column,
    DateTime,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    String,
    Table,
    UniqueConstraint,
    Uuid,
    delete,
    event,
    insert,
    select,
)
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from citewell.errors import StoreUnavailable
from citewell.models import Chunk, Document, Project
from citewell.ports import Embedding

_tables = MetaData()

_projects = Table(
    "projects",
    _tables,
    Column("id", Uuid, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("created_at", DateTime, nullable=False),
)
_documents = Table(
    "documents",
    _tables,
    Column("id", Uuid, primary_key=True),
    Column("project_id", ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    Column("path", String, nullable=False),
    Column("title", String, nullable=False),
    Column("text", String, nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("ingested_at", DateTime, nullable=False),
    UniqueConstraint("project_id", "path"),
)
_chunks = Table(
    "chunks",
    _tables,
    Column("id", String(64), primary_key=True),
    Column("document_id", ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
    Column("chunk_index", Integer, nullable=False),
    Column("content_hash", String(64), nullable=False),
    Column("section", String, nullable=False),
    Column("headings", String, nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    Column("first_line", Integer, nullable=False),
    Column("last_line", Integer, nullable=False),
    Column("page", Integer),
    UniqueConstraint("document_id", "chunk_index"),
)
_embeddings = Table(
    "embeddings",
    _tables,
    Column("text_hash", String(64), primary_key=True),
    Column("model", String, primary_key=True),
    Column("spans", String, nullable=False),
    Column("vectors", LargeBinary, nullable=False),
)
_facts = Table("facts", _tables, Column("name", String, primary_key=True), Column("value", String, nullable=False))

_GENERATION = "index_generation"
_BATCH = 500  # rows per statement; SQLite takes at most 32,766 parameters


class SqlLibrary:
    """Keeps the promises of Library and VectorCache in one SQLite file."""

    def __init__(self, database: Path, *, timeout_seconds: float = 5.0) -> None:
        self._engine = create_async_engine(f"sqlite+aiosqlite:///{database}", connect_args={"timeout": timeout_seconds})
        event.listen(self._engine.sync_engine, "connect", _prepare_connection)

    @classmethod
    async def open(cls, database: Path) -> "SqlLibrary":
        with _translated(database):
            database.parent.mkdir(parents=True, exist_ok=True)
            library = cls(database)
            async with library._engine.begin() as connection:
                await connection.run_sync(_tables.create_all)
        return library

    async def fingerprints(self, project: Project) -> Mapping[str, str]:
        query = select(_documents.c.path, _documents.c.fingerprint).where(_documents.c.project_id == project.id)
        async with self._engine.connect() as connection:
            return {row.path: row.fingerprint for row in await connection.execute(query)}

    async def document(self, document_id: UUID) -> Document | None:
        query = select(_documents).where(_documents.c.id == document_id)
        async with self._engine.connect() as connection:
            row = (await connection.execute(query)).first()
        return Document(row.id, row.path, row.title, row.text, row.fingerprint) if row else None

    async def every_chunk(self) -> AsyncIterator[Sequence[tuple[UUID, Chunk]]]:
        query = select(_documents.c.id).order_by(_documents.c.project_id, _documents.c.path)
        async with self._engine.connect() as connection:
            for document_id in (await connection.execute(query)).scalars().all():
                rows = await connection.execute(
                    select(_documents, _chunks)
                    .join(_chunks, _chunks.c.document_id == _documents.c.id)
                    .where(_documents.c.id == document_id)
                    .order_by(_chunks.c.chunk_index)
                )
                yield [(row.project_id, _chunk(row)) for row in rows]

    async def generation(self) -> int | None:
        async with self._engine.connect() as connection:
            value = await connection.scalar(select(_facts.c.value).where(_facts.c.name == _GENERATION))
        return None if value is None else int(value)

    async def apply(
        self,
        project: Project,
        *,
        documents: Sequence[tuple[Document, Sequence[Chunk]]],
        remove: Collection[UUID],
        generation: int,
    ) -> None:
        now = datetime.now(UTC)
        gone = [*remove, *(document.id for document, _ in documents)]
        async with self._engine.begin() as connection:
            await connection.execute(
                upsert(_projects).values(id=project.id, name=project.name, created_at=now).on_conflict_do_nothing()
            )
            for ids in _batches(gone):
                await connection.execute(delete(_documents).where(_documents.c.id.in_(ids)))
            for document, chunks in documents:
                await connection.execute(
                    insert(_documents).values(
                        id=document.id,
                        project_id=project.id,
                        path=document.path,
                        title=document.title,
                        text=document.text,
                        fingerprint=document.fingerprint,
                        ingested_at=now,
                    )
                )
                if chunks:
                    await connection.execute(insert(_chunks), [_row(chunk) for chunk in chunks])
            fact = upsert(_facts).values(name=_GENERATION, value=str(generation))
            await connection.execute(
                fact.on_conflict_do_update(index_elements=["name"], set_={"value": str(generation)})
            )

    async def recall(self, keys: Sequence[str], *, model: str) -> dict[str, Embedding]:
        known: dict[str, Embedding] = {}
        async with self._engine.connect() as connection:
            for part in _batches(keys):
                query = select(_embeddings).where(_embeddings.c.model == model, _embeddings.c.text_hash.in_(part))
                for row in await connection.execute(query):
                    spans = tuple((start, end) for start, end in json.loads(row.spans))
                    vectors = np.frombuffer(row.vectors, dtype="<f4").reshape(len(spans), -1)
                    known[row.text_hash] = Embedding(vectors, spans)
        return known

    async def remember(self, embeddings: Mapping[str, Embedding], *, model: str) -> None:
        rows = [
            {
                "text_hash": key,
                "model": model,
                "spans": json.dumps(one.spans),
                "vectors": one.vectors.astype("<f4").tobytes(),
            }
            for key, one in embeddings.items()
        ]
        if rows:
            async with self._engine.begin() as connection:
                await connection.execute(upsert(_embeddings).on_conflict_do_nothing(), rows)

    async def close(self) -> None:
        await self._engine.dispose()


def _prepare_connection(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    for pragma in ("foreign_keys=ON", "journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


@contextmanager
def _translated(database: Path) -> Iterator[None]:
    try:
        yield
    except (DBAPIError, OSError) as error:
        reason = error.orig if isinstance(error, DBAPIError) else error.strerror
        raise StoreUnavailable(f"the database {database} cannot be opened: {reason}") from error


def _row(chunk: Chunk) -> dict[str, object]:
    return {
        "id": chunk.id,
        "document_id": chunk.document_id,
        "chunk_index": chunk.index,
        "content_hash": chunk.content_hash,
        "section": chunk.section,
        "headings": json.dumps(chunk.headings, ensure_ascii=False),
        "start": chunk.start,
        "end": chunk.end,
        "first_line": chunk.first_line,
        "last_line": chunk.last_line,
        "page": chunk.page,
    }


def _chunk(row: Row[Any]) -> Chunk:
    values = row._mapping
    return Chunk(
        id=values[_chunks.c.id],
        document_id=row.document_id,
        content_hash=row.content_hash,
        index=row.chunk_index,
        source=row.path,
        chapter=row.title,
        section=row.section,
        headings=tuple(json.loads(row.headings)),
        text=row.text[row.start : row.end],
        start=row.start,
        end=row.end,
        first_line=row.first_line,
        last_line=row.last_line,
        page=row.page,
    )


def _batches(keys: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (keys[start : start + _BATCH] for start in range(0, len(keys), _BATCH))
