"""The library: the full text of every document, its chunks, and a cache of embeddings.

A chunk's text is not stored: it is `document.text[start:end]`, so a citation cannot disagree with
its document.
"""

import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Insert,
    Select,
    Table,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    text,
    true,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from citewell.adapters.sql import tables
from citewell.adapters.sql.chunks import batches, surroundings, text_hash, to_chunk, to_row, trace
from citewell.adapters.sql.database import Database, storable
from citewell.adapters.sql.queue import guard, several_write
from citewell.adapters.sql.tables import generation_of
from citewell.models import Chunk, Document, DocumentSummary, KnownDocument, Project, Surroundings, Trace
from citewell.ports import Embedding
from citewell.similarity_scale import SimilarityScale

_SCALE = "similarity_scale of "  # and the model
_EMBEDDINGS_LEFT = "unused_embeddings"


class SqlLibrary:
    """Implements Library, LibraryWriter, Audit and VectorCache.

    With `project`, what is staged, committed and listed in `chunks` is of this project alone, and so is the index
    generation: several projects can then be written at the same time. With `engine`, projects have their generations
    in this engine.
    """

    def __init__(self, database: Database, *, project: UUID | None = None, engine: str | None = None) -> None:
        self._database = database
        self._project = project
        self._engine = engine

    async def documents(self, project: Project) -> list[DocumentSummary]:
        chunk_count = select(func.count()).where(tables.chunks.c.document_id == tables.documents.c.id).scalar_subquery()
        query = (
            select(tables.documents, chunk_count.label("chunks"), func.length(tables.texts.c.text).label("characters"))
            .join(tables.texts, tables.texts.c.hash == tables.documents.c.text_hash)
            .where(tables.documents.c.project_id == project.id)
        )
        async with self._database.reading() as connection:
            rows = await connection.execute(query)
        # Sorted here: PostgreSQL would sort by the language of its host.
        return sorted(
            (
                DocumentSummary(
                    row.id, row.path, row.title, row.part, row.url, row.chunks, row.characters, row.ingested_at
                )
                for row in rows
            ),
            key=lambda document: document.path,
        )

    async def document(self, document_id: UUID) -> Document | None:
        async with self._database.reading() as connection:
            row = (await connection.execute(_with_text(document_id))).first()
        return (
            Document(row.id, row.path, row.title, row.text, row.fingerprint, row.part, row.url, row.root)
            if row
            else None
        )

    async def project_of(self, document_id: UUID) -> UUID | None:
        query = select(tables.documents.c.project_id).where(tables.documents.c.id == document_id)
        async with self._database.reading() as connection:
            return await connection.scalar(query)

    async def document_counts(self) -> dict[UUID, int]:
        project = tables.documents.c.project_id
        async with self._database.reading() as connection:
            rows = await connection.execute(select(project, func.count().label("documents")).group_by(project))
            return {row.project_id: row.documents for row in rows}

    async def chunks(self, document_id: UUID | None = None) -> AsyncIterator[Sequence[tuple[UUID, Chunk]]]:
        # One transaction for each document: a caller that embeds between two of them must not hold one open.
        for next_id in [document_id] if document_id else await self._all_document_ids():
            async with self._database.reading() as connection:
                document = (await connection.execute(_with_text(next_id))).first()
                query = select(tables.chunks).where(tables.chunks.c.document_id == next_id)
                rows = (await connection.execute(query.order_by(tables.chunks.c.chunk_index))).all()
            if document is not None:
                yield [
                    (
                        document.project_id,
                        to_chunk(
                            row, path=document.path, title=document.title, text=document.text[row.start : row.end]
                        ),
                    )
                    for row in rows
                ]

    async def known_documents(self, project: Project) -> Mapping[str, KnownDocument]:
        query = select(tables.documents).where(tables.documents.c.project_id == project.id)
        async with self._database.reading() as connection:
            return {row.path: KnownDocument(row.fingerprint, row.root) for row in await connection.execute(query)}

    async def stage(self, project: Project, documents: Sequence[tuple[Document, Sequence[Chunk]]]) -> None:
        now = datetime.now(UTC)
        text_rows: list[dict[str, object]] = []
        document_rows: list[dict[str, object]] = []
        chunk_rows: list[dict[str, object]] = []
        for document, document_chunks in documents:
            hash_of_text = text_hash(document.text)
            text_rows.append({"hash": hash_of_text, "text": document.text})
            document_rows.append(
                {
                    "id": document.id,
                    "project_id": project.id,
                    "path": document.path,
                    "root": storable(document.root),
                    "title": storable(document.title),
                    "part": storable(document.part),
                    "url": document.url and storable(document.url),
                    "text_hash": hash_of_text,
                    "fingerprint": document.fingerprint,
                    "ingested_at": now,
                }
            )
            chunk_rows.extend(to_row(chunk) for chunk in document_chunks)
        text_rows.sort(key=itemgetter("hash"))  # two writers that wait for each other's texts would wait forever
        async with self._database.writing() as connection:
            if self._database.dialect == "postgresql":
                await guard(connection, shared=True)  # a text may be there already, and must not be deleted now
            project_row = self._database.insert(tables.projects).values(
                id=project.id, name=project.name, created_at=now
            )
            await connection.execute(project_row.on_conflict_do_nothing())
            for table, rows in (
                (tables.texts, text_rows),
                (tables.staged_documents, document_rows),
                (tables.staged_chunks, chunk_rows),
            ):
                if rows:
                    await connection.execute(self._database.insert(table).on_conflict_do_nothing(), rows)

    async def commit(self, *, remove: Collection[UUID], generation: int) -> None:
        async with self._database.writing() as connection:
            replaced = select(tables.staged_documents.c.id).where(self._staged_documents())
            removals: list[Select[tuple[UUID]] | Sequence[UUID]] = [replaced, *batches(remove)]
            for removed in removals:
                await connection.execute(self._record_past_chunks(removed))
                await connection.execute(delete(tables.chunks).where(tables.chunks.c.document_id.in_(removed)))
                await connection.execute(delete(tables.documents).where(tables.documents.c.id.in_(removed)))
            returned = select(tables.staged_chunks.c.id).where(self._staged_chunks())
            await connection.execute(delete(tables.past_chunks).where(tables.past_chunks.c.id.in_(returned)))
            for table, staged, where in (
                (tables.chunks, tables.staged_chunks, self._staged_chunks()),
                (tables.documents, tables.staged_documents, self._staged_documents()),
            ):
                await connection.execute(insert(table).from_select(list(table.c.keys()), select(staged).where(where)))
                await connection.execute(delete(staged).where(where))
            await self._delete_unused(connection)
            await connection.execute(self._set_fact(generation_of(self._project, self._engine), str(generation)))
            await connection.execute(delete(tables.facts).where(self._outdated_generations()))

    async def set_generations(self, generations: Mapping[UUID | None, int | None]) -> None:
        async with self._database.writing() as connection:
            for project, generation in generations.items():
                name = generation_of(project, self._engine)
                removed = delete(tables.facts).where(tables.facts.c.name == name)
                await connection.execute(removed if generation is None else self._set_fact(name, str(generation)))

    def _outdated_generations(self) -> ColumnElement[bool]:
        """The facts of engines that this change did not reach: an index that was moved may still be there as it was."""
        name, together = tables.facts.c.name, generation_of(None)
        if self._project is None:
            return name.startswith(f"{together} of ")
        of_project = name.startswith(generation_of(self._project))
        return (name == together) | (of_project & (name != generation_of(self._project, self._engine)))

    async def _delete_unused(self, connection: AsyncConnection) -> None:
        """Delete texts and embeddings that no document has any more.

        Another process may have read embeddings, or stored some, for documents that it has not staged yet. Then they
        stay until the last process that writes is done.
        """
        if self._database.dialect == "postgresql":
            await guard(connection)
            if await several_write(connection):
                await connection.execute(delete(tables.texts).where(_UNUSED_TEXT))
                await connection.execute(self._set_fact(_EMBEDDINGS_LEFT, "yes"))
                return
        await _delete_unused(connection)

    async def clean_up(self, connection: AsyncConnection) -> None:
        """Delete embeddings that were left because several processes were writing; now none is."""
        if await connection.scalar(select(tables.facts.c.value).where(tables.facts.c.name == _EMBEDDINGS_LEFT)):
            await _delete_unused(connection)

    def _set_fact(self, name: str, value: str) -> Insert:
        fact = self._database.insert(tables.facts).values(name=name, value=value)
        return fact.on_conflict_do_update(index_elements=["name"], set_={"value": value})

    async def _fact(self, name: str) -> str | None:
        async with self._database.reading() as connection:
            return await connection.scalar(select(tables.facts.c.value).where(tables.facts.c.name == name))

    def _record_past_chunks(self, documents: Select[tuple[UUID]] | Sequence[UUID]) -> Insert:
        """Store ids and hashes of the chunks of documents that are removed."""
        chunks, past = tables.chunks, tables.past_chunks
        removed = (
            select(
                chunks.c.id,
                tables.documents.c.project_id,
                chunks.c.document_id,
                chunks.c.chunk_index,
                chunks.c.text_hash,
                literal(datetime.now(UTC), past.c.gone_at.type),
            )
            .join(tables.documents, tables.documents.c.id == chunks.c.document_id)
            .where(chunks.c.document_id.in_(documents))
        )
        return self._database.insert(past).from_select(past.c.keys(), removed).on_conflict_do_nothing()

    async def discard(self) -> None:
        async with self._database.writing() as connection:
            await connection.execute(delete(tables.staged_chunks).where(self._staged_chunks()))
            await connection.execute(delete(tables.staged_documents).where(self._staged_documents()))

    def _staged_documents(self) -> ColumnElement[bool]:
        return true() if self._project is None else tables.staged_documents.c.project_id == self._project

    def _staged_chunks(self) -> ColumnElement[bool]:
        documents = select(tables.staged_documents.c.id).where(self._staged_documents())
        return true() if self._project is None else tables.staged_chunks.c.document_id.in_(documents)

    async def audit(self) -> list[str]:
        async with self._database.reading() as connection:
            counts = [
                (await connection.scalar(select(func.count()).select_from(table).where(where)), message)
                for table, where, message in _inconsistencies()
            ]
        return [message.format(count) for count, message in counts if count]

    async def repair(self) -> None:
        async with self._database.writing() as connection:
            for table, where, _ in _inconsistencies():
                await connection.execute(delete(table).where(where))

    async def vacuum(self) -> None:
        """Erase deleted data from the database file and its log; PostgreSQL does so itself."""
        if self._database.dialect == "postgresql":
            return
        async with self._database.outside_transactions() as connection:
            for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
                await connection.execute(text(statement))

    async def generation(self, project: UUID | None = None) -> int | None:
        value = await self._fact(generation_of(project or self._project, self._engine))
        if value is None and self._project is None and project is not None:
            value = await self._fact(generation_of(None))
        return None if value is None else int(value)

    async def trace(self, project: UUID, ids: Sequence[str]) -> dict[str, Trace]:
        async with self._database.reading() as connection:
            return await trace(connection, project, ids)

    async def surroundings(self, chunk: str, *, characters: int) -> Surroundings | None:
        async with self._database.reading() as connection:
            return await surroundings(connection, chunk, characters)

    async def load(self, keys: Sequence[str], *, model: str) -> dict[str, Embedding]:
        embeddings: dict[str, Embedding] = {}
        async with self._database.reading() as connection:
            for batch in batches(keys):
                query = select(tables.embeddings).where(
                    tables.embeddings.c.model == model, tables.embeddings.c.text_hash.in_(batch)
                )
                for row in await connection.execute(query):
                    spans = tuple((start, end) for start, end in json.loads(row.spans))
                    vectors = np.frombuffer(row.vectors, dtype="<f4").reshape(len(spans), -1)
                    embeddings[row.text_hash] = Embedding(vectors, spans)
        return embeddings

    async def save(self, embeddings: Mapping[str, Embedding], *, model: str) -> None:
        rows = [
            {
                "text_hash": key,
                "model": model,
                "spans": json.dumps(embedding.spans),
                "vectors": embedding.vectors.astype("<f4").tobytes(),
            }
            for key, embedding in sorted(embeddings.items())  # in one order, as texts are
        ]
        if rows:
            async with self._database.writing() as connection:
                await connection.execute(self._database.insert(tables.embeddings).on_conflict_do_nothing(), rows)

    async def load_scale(self, *, model: str) -> SimilarityScale | None:
        value = await self._fact(_SCALE + model)
        return None if value is None else SimilarityScale(**json.loads(value))

    async def save_scale(self, scale: SimilarityScale, *, model: str) -> None:
        async with self._database.writing() as connection:
            await connection.execute(self._set_fact(_SCALE + model, json.dumps(asdict(scale))))

    async def _all_document_ids(self) -> list[UUID]:
        """In the order of project and path, so that an index is built in the same order on every database."""
        documents = tables.documents
        async with self._database.reading() as connection:
            query = select(documents.c.id, documents.c.project_id, documents.c.path)
            if self._project is not None:
                query = query.where(documents.c.project_id == self._project)
            rows = (await connection.execute(query)).all()
        return [row.id for row in sorted(rows, key=lambda row: (row.project_id, row.path))]


def _with_text(document_id: UUID) -> Select[Any]:
    query = select(tables.documents, tables.texts.c.text)
    return query.join(tables.texts, tables.texts.c.hash == tables.documents.c.text_hash).where(
        tables.documents.c.id == document_id
    )


async def _delete_unused(connection: AsyncConnection) -> None:
    await connection.execute(delete(tables.texts).where(_UNUSED_TEXT))
    await connection.execute(delete(tables.embeddings).where(_UNUSED_EMBEDDING))
    await connection.execute(delete(tables.facts).where(tables.facts.c.name == _EMBEDDINGS_LEFT))


_UNUSED_TEXT = ~exists().where(tables.documents.c.text_hash == tables.texts.c.hash) & ~exists().where(
    tables.staged_documents.c.text_hash == tables.texts.c.hash
)
_UNUSED_EMBEDDING = ~exists().where(tables.chunks.c.embedding_key == tables.embeddings.c.text_hash)


def _inconsistencies() -> list[tuple[Table, ColumnElement[bool], str]]:
    """Rows that must not exist while no ingest runs, in the order in which they can be deleted."""
    documents, chunks = tables.documents, tables.chunks
    has_document = exists().where(documents.c.id == chunks.c.document_id)
    return [
        (tables.staged_chunks, true(), "{} chunks staged by an ingest that did not finish"),
        (tables.staged_documents, true(), "{} documents staged by an ingest that did not finish"),
        (chunks, ~has_document, "{} chunks of documents that are gone"),
        (documents, ~exists().where(tables.texts.c.hash == documents.c.text_hash), "{} documents without their text"),
        (tables.past_chunks, exists().where(chunks.c.id == tables.past_chunks.c.id), "{} chunks both here and gone"),
        (tables.texts, _UNUSED_TEXT, "{} texts that no document has"),
        (tables.embeddings, _UNUSED_EMBEDDING, "{} embeddings that no chunk uses"),
    ]
