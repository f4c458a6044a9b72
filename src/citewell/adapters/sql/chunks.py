"""Converts between chunks and rows, and traces chunks that were cited once.

A chunk's text is not stored: it is a slice of its document's text.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Row, case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from citewell.adapters.sql import tables
from citewell.adapters.sql.database import storable
from citewell.models import Chunk, Surroundings, Trace

_MAX_VALUES = 500  # in a statement; SQLite takes at most 32,766 and PostgreSQL 32,767

_WHOLE = -1  # the chunk_index of a document that is stored whole
_DOCUMENT_ID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_Item = TypeVar("_Item")


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def to_row(chunk: Chunk) -> dict[str, object]:
    return {
        "id": chunk.id,
        "document_id": chunk.document_id,
        "chunk_index": _WHOLE if chunk.index is None else chunk.index,
        "content_hash": chunk.content_hash,
        "text_hash": text_hash(chunk.text),
        "embedding_key": chunk.embedding_key,
        "section": storable(chunk.section),
        "headings": storable(json.dumps(chunk.headings, ensure_ascii=False)),
        "start": chunk.start,
        "end": chunk.end,
        "first_line": chunk.first_line,
        "last_line": chunk.last_line,
        "page": chunk.page,
        "url": chunk.url and storable(chunk.url),
    }


def to_chunk(row: Row[*tuple[Any, ...]], *, path: str, title: str, text: str) -> Chunk:
    return Chunk(
        id=row.id,
        document_id=row.document_id,
        content_hash=row.content_hash,
        index=None if row.chunk_index == _WHOLE else row.chunk_index,
        source=path,
        chapter=title,
        section=row.section,
        headings=tuple(json.loads(row.headings)),
        text=text,
        start=row.start,
        end=row.end,
        first_line=row.first_line,
        last_line=row.last_line,
        page=row.page,
        url=row.url,
    )


def batches(items: Collection[_Item]) -> Iterator[Sequence[_Item]]:
    """Lists short enough for one SQL statement."""
    all_items = list(items)
    return (all_items[start : start + _MAX_VALUES] for start in range(0, len(all_items), _MAX_VALUES))


async def trace(connection: AsyncConnection, project: UUID, ids: Iterable[str]) -> dict[str, Trace]:
    """What became of each chunk of a project: still there, moved, replaced, deleted or never known.

    The id of a document stands for its whole text, if it is or was stored whole.
    """
    chunk_ids = list(dict.fromkeys(ids))
    current = await _chunks_by_id(connection, project, chunk_ids)
    current |= await _whole_documents(connection, project, chunk_ids)
    gone = [chunk_id for chunk_id in chunk_ids if chunk_id not in current]
    past = await _past_chunks(connection, project, gone) | await _past_documents(connection, project, gone)
    moved = await _same_text_elsewhere(connection, project, past.values())
    replaced = await _successors(connection, project, [row for row in past.values() if row.id not in moved])
    chunks = await _chunks_by_id(connection, project, {*moved.values(), *replaced.values()})
    return {
        chunk_id: Trace(
            current=current.get(chunk_id),
            moved_to=chunks.get(moved.get(past[chunk_id].id, "")) if chunk_id in past else None,
            successor=chunks.get(replaced.get(past[chunk_id].id, "")) if chunk_id in past else None,
            known=chunk_id in current or chunk_id in past,
        )
        for chunk_id in chunk_ids
    }


async def surroundings(connection: AsyncConnection, chunk_id: str, characters: int) -> Surroundings | None:
    """The document's text before and after a chunk; None if there is no such chunk."""
    chunks, documents, text = tables.chunks, tables.documents, tables.texts.c.text
    begin = case((chunks.c.start > characters, chunks.c.start - characters), else_=0)
    siblings = tables.chunks.alias()
    query = (
        select(
            func.substr(text, begin + 1, chunks.c.start - begin).label("before"),
            func.substr(text, chunks.c.end + 1, characters).label("after"),
            select(func.count())
            .where(siblings.c.document_id == chunks.c.document_id)
            .scalar_subquery()
            .label("siblings"),
        )
        .join(documents, documents.c.id == chunks.c.document_id)
        .join(tables.texts, tables.texts.c.hash == documents.c.text_hash)
        .where(chunks.c.id == chunk_id)
    )
    row = (await connection.execute(query)).first()
    return Surroundings(row.before, row.after, row.siblings) if row else None


async def _chunks_by_id(connection: AsyncConnection, project: UUID, ids: Collection[str]) -> dict[str, Chunk]:
    rows = [
        chunk for batch in batches(ids) for chunk in await _select(connection, project, tables.chunks.c.id.in_(batch))
    ]
    return {chunk.id: chunk for chunk in rows}


async def _whole_documents(connection: AsyncConnection, project: UUID, ids: Collection[str]) -> dict[str, Chunk]:
    """The documents among the ids that are stored whole."""
    chunks = tables.chunks
    rows = [
        chunk
        for batch in batches(_document_ids(ids))
        for chunk in await _select(
            connection, project, chunks.c.document_id.in_(batch) & (chunks.c.chunk_index == _WHOLE)
        )
    ]
    return {str(chunk.document_id): chunk for chunk in rows}


def _document_ids(ids: Iterable[str]) -> list[UUID]:
    return [UUID(document) for document in ids if _DOCUMENT_ID.fullmatch(document)]


async def _select(connection: AsyncConnection, project: UUID, condition: ColumnElement[bool]) -> list[Chunk]:
    chunks, documents, texts = tables.chunks, tables.documents, tables.texts
    # Only the slice is read: a document may be a thousand times as long.
    chunk_text = func.substr(texts.c.text, chunks.c.start + 1, chunks.c.end - chunks.c.start).label("chunk_text")
    query = (
        select(chunks, documents.c.path, documents.c.title, chunk_text)
        .join(documents, documents.c.id == chunks.c.document_id)
        .join(texts, texts.c.hash == documents.c.text_hash)
        .where(documents.c.project_id == project, condition)
    )
    return [
        to_chunk(row, path=row.path, title=row.title, text=row.chunk_text) for row in await connection.execute(query)
    ]


async def _past_chunks(
    connection: AsyncConnection, project: UUID, ids: Collection[str]
) -> dict[str, Row[*tuple[Any, ...]]]:
    """Rows of chunks that are gone, by id."""
    past = tables.past_chunks
    query = select(past).where(past.c.project_id == project)
    return {
        row.id: row for batch in batches(ids) for row in await connection.execute(query.where(past.c.id.in_(batch)))
    }


async def _past_documents(
    connection: AsyncConnection, project: UUID, ids: Collection[str]
) -> dict[str, Row[*tuple[Any, ...]]]:
    """The last row of each document that was stored whole and no longer is, by the document's id."""
    past = tables.past_chunks
    query = select(past).where(past.c.project_id == project, past.c.chunk_index == _WHOLE).order_by(past.c.gone_at)
    return {
        str(row.document_id): row
        for batch in batches(_document_ids(ids))
        for row in await connection.execute(query.where(past.c.document_id.in_(batch)))
    }


async def _same_text_elsewhere(
    connection: AsyncConnection, project: UUID, past: Iterable[Row[*tuple[Any, ...]]]
) -> dict[str, str]:
    """The chunk with the same text, for each past chunk that has one: preferably near by in the same document."""
    past_rows = list(past)
    chunks, documents = tables.chunks, tables.documents
    query = (
        select(chunks.c.id, chunks.c.document_id, chunks.c.chunk_index, chunks.c.text_hash, documents.c.path)
        .join(documents, documents.c.id == chunks.c.document_id)
        .where(documents.c.project_id == project)
    )
    by_text: dict[str, list[Row[*tuple[Any, ...]]]] = {}
    for batch in batches({row.text_hash for row in past_rows}):
        for row in await connection.execute(query.where(chunks.c.text_hash.in_(batch))):
            by_text.setdefault(row.text_hash, []).append(row)
    moved = {}
    for old in past_rows:
        if candidates := by_text.get(old.text_hash):
            nearest = min(
                candidates,
                key=lambda row: (
                    row.document_id != old.document_id,
                    row.path,
                    abs(row.chunk_index - old.chunk_index),
                    row.id,
                ),
            )
            moved[old.id] = str(nearest.id)
    return moved


async def _successors(
    connection: AsyncConnection, project: UUID, past: Collection[Row[*tuple[Any, ...]]]
) -> dict[str, str]:
    """The chunk that now has the index of each past chunk, or else the last one of its document."""
    chunks, documents = tables.chunks, tables.documents
    query = (
        select(chunks.c.id, chunks.c.document_id, chunks.c.chunk_index)
        .join(documents, documents.c.id == chunks.c.document_id)
        .where(documents.c.project_id == project)
    )
    by_document: dict[UUID, dict[int, str]] = {}
    for batch in batches({row.document_id for row in past}):
        for row in await connection.execute(query.where(chunks.c.document_id.in_(batch))):
            by_document.setdefault(row.document_id, {})[row.chunk_index] = row.id
    return {
        old.id: by_index.get(old.chunk_index, by_index[max(by_index)])
        for old in past
        if (by_index := by_document.get(old.document_id))
    }
