"""The library in SQLite: documents word for word, their chunks, and embeddings already paid for.

A chunk's text is not stored: it is `document.text[start:end]`, so a citation cannot disagree with
its document.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import ColumnElement, Delete, Row, Table, delete, event, exists, func, insert, select, text, true
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from citewell.adapters.sql import tables
from citewell.errors import StoreUnavailable
from citewell.models import Chunk, Document, Entered, Known, Project, Trace
from citewell.ports import Embedding

_GENERATION = "index_generation"
_BATCH = 500  # rows per statement; SQLite takes at most 32,766 parameters


class SqlLibrary:
    """Keeps the promises of Library, Ledger and VectorCache in one SQLite file."""

    def __init__(self, database: Path, *, timeout_seconds: float = 5.0) -> None:
        self._engine = create_async_engine(f"sqlite+aiosqlite:///{database}", connect_args={"timeout": timeout_seconds})
        event.listen(self._engine.sync_engine, "connect", _prepare_connection)

    @classmethod
    async def open(cls, database: Path) -> "SqlLibrary":
        with _translated(database):
            database.parent.mkdir(parents=True, exist_ok=True)
            library = cls(database)
            async with library._engine.begin() as connection:
                await connection.run_sync(tables.tables.create_all)
        return library

    async def documents(self, project: Project) -> list[Entered]:
        chunks = select(func.count()).where(tables.chunks.c.document_id == tables.documents.c.id).scalar_subquery()
        query = (
            select(tables.documents, chunks.label("chunks"), func.length(tables.texts.c.text).label("characters"))
            .join(tables.texts, tables.texts.c.hash == tables.documents.c.text_hash)
            .where(tables.documents.c.project_id == project.id)
            .order_by(tables.documents.c.path)
        )
        async with self._engine.connect() as connection:
            return [
                Entered(row.id, row.path, row.title, row.part, row.url, row.chunks, row.characters, row.ingested_at)
                for row in await connection.execute(query)
            ]

    async def document(self, document_id: UUID) -> Document | None:
        query = (
            select(tables.documents, tables.texts.c.text).join(tables.texts).where(tables.documents.c.id == document_id)
        )
        async with self._engine.connect() as connection:
            row = (await connection.execute(query)).first()
        return (
            Document(row.id, row.path, row.title, row.text, row.fingerprint, row.part, row.url, row.root)
            if row
            else None
        )

    async def chunks(self, document_id: UUID | None = None) -> AsyncIterator[Sequence[tuple[UUID, Chunk]]]:
        every = select(tables.documents.c.id).order_by(tables.documents.c.project_id, tables.documents.c.path)
        async with self._engine.connect() as connection:
            wanted = [document_id] if document_id else (await connection.execute(every)).scalars().all()
            for one in wanted:
                rows = await connection.execute(
                    select(
                        tables.chunks,
                        tables.documents.c.path,
                        tables.documents.c.title,
                        tables.documents.c.project_id,
                        tables.texts.c.text,
                    )
                    .join(tables.documents, tables.documents.c.id == tables.chunks.c.document_id)
                    .join(tables.texts, tables.texts.c.hash == tables.documents.c.text_hash)
                    .where(tables.documents.c.id == one)
                    .order_by(tables.chunks.c.chunk_index)
                )
                yield [(row.project_id, _chunk(row)) for row in rows]

    async def known(self, project: Project) -> Mapping[str, Known]:
        query = select(tables.documents).where(tables.documents.c.project_id == project.id)
        async with self._engine.connect() as connection:
            return {row.path: Known(row.fingerprint, row.root) for row in await connection.execute(query)}

    async def stage(self, project: Project, entered: Sequence[tuple[Document, Sequence[Chunk]]]) -> None:
        now = datetime.now(UTC)
        texts: list[dict[str, object]] = []
        documents: list[dict[str, object]] = []
        chunks: list[dict[str, object]] = []
        for document, parts in entered:
            text_hash = _text_hash(document.text)
            texts.append({"hash": text_hash, "text": document.text})
            documents.append(
                {
                    "id": document.id,
                    "project_id": project.id,
                    "path": document.path,
                    "root": document.root,
                    "title": document.title,
                    "part": document.part,
                    "url": document.url,
                    "text_hash": text_hash,
                    "fingerprint": document.fingerprint,
                    "ingested_at": now,
                }
            )
            chunks.extend(_row(chunk) for chunk in parts)
        async with self._engine.begin() as connection:
            named = upsert(tables.projects).values(id=project.id, name=project.name, created_at=now)
            await connection.execute(named.on_conflict_do_nothing())
            for table, rows in (
                (tables.texts, texts),
                (tables.staged_documents, documents),
                (tables.staged_chunks, chunks),
            ):
                if rows:
                    await connection.execute(upsert(table).on_conflict_do_nothing(), rows)

    async def enter(self, *, remove: Collection[UUID], generation: int) -> None:
        async with self._engine.begin() as connection:
            replaced = select(tables.staged_documents.c.id)
            for gone in (replaced, *_batches(list(remove))):
                await connection.execute(delete(tables.chunks).where(tables.chunks.c.document_id.in_(gone)))
                await connection.execute(delete(tables.documents).where(tables.documents.c.id.in_(gone)))
            for table, staged in ((tables.documents, tables.staged_documents), (tables.chunks, tables.staged_chunks)):
                await connection.execute(insert(table).from_select(list(table.c.keys()), select(staged)))
                await connection.execute(delete(staged))
            for unused in _unused():
                await connection.execute(unused)
            fact = upsert(tables.facts).values(name=_GENERATION, value=str(generation))
            await connection.execute(
                fact.on_conflict_do_update(index_elements=["name"], set_={"value": str(generation)})
            )

    async def discard(self) -> None:
        async with self._engine.begin() as connection:
            await connection.execute(delete(tables.staged_chunks))
            await connection.execute(delete(tables.staged_documents))

    async def audit(self) -> list[str]:
        async with self._engine.connect() as connection:
            found = [
                (await connection.scalar(select(func.count()).select_from(table).where(where)), says)
                for table, where, says in _faults()
            ]
            sick = (await connection.execute(text("PRAGMA quick_check"))).scalars().all()
        return [says.format(count) for count, says in found if count] + [
            f"the database is damaged: {one}" for one in sick if one != "ok"
        ]

    async def repair(self) -> None:
        async with self._engine.begin() as connection:
            for table, where, _ in _faults():
                await connection.execute(delete(table).where(where))

    async def vacuum(self) -> None:
        """Leave no byte of what was deleted in the database file or its log."""
        async with self._engine.connect() as connection:
            automatic = await connection.execution_options(isolation_level="AUTOCOMMIT")
            for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
                await automatic.execute(text(statement))

    async def generation(self) -> int | None:
        async with self._engine.connect() as connection:
            value = await connection.scalar(select(tables.facts.c.value).where(tables.facts.c.name == _GENERATION))
        return None if value is None else int(value)

    async def trace(self, project: UUID, ids: Sequence[str]) -> dict[str, Trace]:
        raise NotImplementedError

    async def recall(self, keys: Sequence[str], *, model: str) -> dict[str, Embedding]:
        known: dict[str, Embedding] = {}
        async with self._engine.connect() as connection:
            for part in _batches(keys):
                query = select(tables.embeddings).where(
                    tables.embeddings.c.model == model, tables.embeddings.c.text_hash.in_(part)
                )
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
                await connection.execute(upsert(tables.embeddings).on_conflict_do_nothing(), rows)

    async def close(self) -> None:
        await self._engine.dispose()


def _unused() -> list[Delete]:
    """Words and embeddings that no document has any more leave the database with it."""
    texts, embeddings = _UNUSED_TEXT, _UNUSED_EMBEDDING
    return [delete(tables.texts).where(texts), delete(tables.embeddings).where(embeddings)]


_UNUSED_TEXT = ~exists().where(tables.documents.c.text_hash == tables.texts.c.hash) & ~exists().where(
    tables.staged_documents.c.text_hash == tables.texts.c.hash
)
_UNUSED_EMBEDDING = ~exists().where(tables.chunks.c.embedding_key == tables.embeddings.c.text_hash)


def _faults() -> list[tuple[Table, ColumnElement[bool], str]]:
    """What must not be in the database while no ingest runs, in the order in which it can be deleted."""
    documents, chunks = tables.documents, tables.chunks
    here = exists().where(documents.c.id == chunks.c.document_id)
    return [
        (tables.staged_chunks, true(), "{} chunks staged by an ingest that did not finish"),
        (tables.staged_documents, true(), "{} documents staged by an ingest that did not finish"),
        (chunks, ~here, "{} chunks of documents that are gone"),
        (documents, ~exists().where(tables.texts.c.hash == documents.c.text_hash), "{} documents without their text"),
        (tables.texts, _UNUSED_TEXT, "{} texts that no document has"),
        (tables.embeddings, _UNUSED_EMBEDDING, "{} embeddings that no chunk uses"),
    ]


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


def _text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _row(chunk: Chunk) -> dict[str, object]:
    return {
        "id": chunk.id,
        "document_id": chunk.document_id,
        "chunk_index": chunk.index,
        "content_hash": chunk.content_hash,
        "text_hash": _text_hash(chunk.text),
        "embedding_key": chunk.embedding_key,
        "section": chunk.section,
        "headings": json.dumps(chunk.headings, ensure_ascii=False),
        "start": chunk.start,
        "end": chunk.end,
        "first_line": chunk.first_line,
        "last_line": chunk.last_line,
        "page": chunk.page,
        "url": chunk.url,
    }


def _chunk(row: Row[Any]) -> Chunk:
    return Chunk(
        id=row.id,
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
        url=row.url,
    )


def _batches(keys: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (keys[start : start + _BATCH] for start in range(0, len(keys), _BATCH))
