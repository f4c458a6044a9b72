"""Chunks as rows and rows as chunks. A chunk's text is not stored: it is a stretch of its document's."""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Row, case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from citewell.adapters.sql import tables
from citewell.adapters.sql.database import storable
from citewell.models import Chunk, Surroundings, Trace

_BATCH = 500  # values in a statement; SQLite takes at most 32,766 and PostgreSQL 32,767

_Item = TypeVar("_Item")


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def as_row(chunk: Chunk) -> dict[str, object]:
    return {
        "id": chunk.id,
        "document_id": chunk.document_id,
        "chunk_index": chunk.index,
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


def as_chunk(row: Row[*tuple[Any, ...]], *, path: str, title: str, text: str) -> Chunk:
    return Chunk(
        id=row.id,
        document_id=row.document_id,
        content_hash=row.content_hash,
        index=row.chunk_index,
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
    every = list(items)
    return (every[start : start + _BATCH] for start in range(0, len(every), _BATCH))


async def trace(connection: AsyncConnection, project: UUID, ids: Iterable[str]) -> dict[str, Trace]:
    """What became of each chunk of a project: there, the same words elsewhere, what stands in its place, or nothing."""
    wanted = list(dict.fromkeys(ids))
    here = await _by_id(connection, project, wanted)
    past = await _past(connection, project, [one for one in wanted if one not in here])
    twins = await _twins(connection, project, past.values())
    successors = await _successors(connection, project, [past[one] for one in past if one not in twins])
    chunks = await _by_id(connection, project, {*twins.values(), *successors.values()})
    return {
        one: Trace(
            current=here.get(one),
            moved_to=chunks.get(twins.get(one, "")),
            successor=chunks.get(successors.get(one, "")),
            known=one in here or one in past,
        )
        for one in wanted
    }


async def around(connection: AsyncConnection, identity: str, characters: int) -> Surroundings | None:
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
        .where(chunks.c.id == identity)
    )
    row = (await connection.execute(query)).first()
    return Surroundings(row.before, row.after, row.siblings) if row else None


async def _by_id(connection: AsyncConnection, project: UUID, ids: Collection[str]) -> dict[str, Chunk]:
    chunks, documents, texts = tables.chunks, tables.documents, tables.texts
    # Of a text only the stretch: a document may be a thousand times as long.
    words = func.substr(texts.c.text, chunks.c.start + 1, chunks.c.end - chunks.c.start).label("words")
    query = (
        select(chunks, documents.c.path, documents.c.title, words)
        .join(documents, documents.c.id == chunks.c.document_id)
        .join(texts, texts.c.hash == documents.c.text_hash)
        .where(documents.c.project_id == project)
    )
    return {
        row.id: as_chunk(row, path=row.path, title=row.title, text=row.words)
        for part in batches(ids)
        for row in await connection.execute(query.where(chunks.c.id.in_(part)))
    }


async def _past(connection: AsyncConnection, project: UUID, ids: Collection[str]) -> dict[str, Row[*tuple[Any, ...]]]:
    past = tables.past_chunks
    query = select(past).where(past.c.project_id == project)
    return {row.id: row for part in batches(ids) for row in await connection.execute(query.where(past.c.id.in_(part)))}


async def _twins(connection: AsyncConnection, project: UUID, past: Iterable[Row[*tuple[Any, ...]]]) -> dict[str, str]:
    """The chunk that has the same text, for each that has one: in the same document and near, if it can be."""
    gone = list(past)
    chunks, documents = tables.chunks, tables.documents
    query = (
        select(chunks.c.id, chunks.c.document_id, chunks.c.chunk_index, chunks.c.text_hash, documents.c.path)
        .join(documents, documents.c.id == chunks.c.document_id)
        .where(documents.c.project_id == project)
    )
    same: dict[str, list[Row[*tuple[Any, ...]]]] = {}
    for part in batches({row.text_hash for row in gone}):
        for row in await connection.execute(query.where(chunks.c.text_hash.in_(part))):
            same.setdefault(row.text_hash, []).append(row)
    found = {}
    for old in gone:
        if candidates := same.get(old.text_hash):
            nearest = min(
                candidates,
                key=lambda row: (
                    row.document_id != old.document_id,
                    row.path,
                    abs(row.chunk_index - old.chunk_index),
                    row.id,
                ),
            )
            found[old.id] = str(nearest.id)
    return found


async def _successors(
    connection: AsyncConnection, project: UUID, past: Collection[Row[*tuple[Any, ...]]]
) -> dict[str, str]:
    """The chunk that now stands at the index of each, or else the last one of its document."""
    chunks, documents = tables.chunks, tables.documents
    query = (
        select(chunks.c.id, chunks.c.document_id, chunks.c.chunk_index)
        .join(documents, documents.c.id == chunks.c.document_id)
        .where(documents.c.project_id == project)
    )
    standing: dict[UUID, dict[int, str]] = {}
    for part in batches({row.document_id for row in past}):
        for row in await connection.execute(query.where(chunks.c.document_id.in_(part))):
            standing.setdefault(row.document_id, {})[row.chunk_index] = row.id
    return {
        old.id: by_index.get(old.chunk_index, by_index[max(by_index)])
        for old in past
        if (by_index := standing.get(old.document_id))
    }
