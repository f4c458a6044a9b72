"""Builds the generations of one project in tables beside the library; its commit is what publishes them.

Rows are written in batches and stay invisible until the library names their generation, in the transaction that also
changes its documents. So readers get the documents and their index at once, and a run that dies leaves rows that
nobody sees, which the next run removes.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from citewell.adapters.index_format import MENDED_BY_DOCTOR, IndexOrigin, IndexPoint, to_entry, to_point
from citewell.adapters.pgvector import tables
from citewell.adapters.pgvector.bulk import copy_rows, create_indexes, without_time_limit
from citewell.adapters.pgvector.rows import CHUNK_COLUMNS, WINDOW_COLUMNS, chunk_rows, read_vectors, window_rows
from citewell.adapters.pgvector.tables import Generation
from citewell.adapters.sql import Database, generation_of
from citewell.errors import IndexUnavailable, StoreUnavailable
from citewell.ports import Change, Entry

_log = logging.getLogger("citewell.index")

_POINTS_PER_COPY = 500
_CHUNKS_PER_PAGE = 500
_CHUNKS_PER_BLOCK = 8192  # in one list of a term's chunks, which is written anew when one of them goes
_DROP_WAIT = "10s"  # behind readers of a table that is dropped; what they keep is removed by the next run


class PgVectorBuilder:
    """Builds generations of one project. The caller makes sure that it has one writer at a time."""

    def __init__(self, database: Database, project: UUID, *, model: str, dimensions: int) -> None:
        self._database = database
        self._project = project
        self._configured = IndexOrigin.configured(model=model, dimensions=dimensions)

    async def fault_of(self, generation: int) -> str | None:
        found = await self._generation(generation)
        if found is None:
            return "is missing"
        if fault := found.origin.fault(self._configured):
            return fault
        if found.chunks is None:
            return "is damaged: it was never completed"
        async with self._database.reading() as connection:
            await without_time_limit(connection)
            damage = await _damage_of(connection, found)
        return damage and f"is damaged: {damage}"

    async def embedding_model_of(self, generation: int) -> str | None:
        found = await self._generation(generation)
        return found.origin.model if found else None

    async def current_generation(self) -> int | None:
        async with self._database.reading() as connection:
            return await tables.published_number(connection, self._project)

    async def stage(self, changes: AsyncIterator[Change], *, base: int | None) -> int:
        await tables.prepare(self._database)
        await self.remove_leftovers()
        base_generation = await self._generation(base) if base is not None else None
        if base is not None and base_generation is None:
            raise IndexUnavailable(f"generation {base} of the index is missing; {MENDED_BY_DOCTOR}")
        origin = base_generation.origin if base_generation else self._configured
        async with self._database.writing() as connection:
            generation = await tables.add_generation(connection, self._project, origin, base_generation)
            numbered = text(f"SELECT coalesce(max(no), 0) FROM {generation.table('chunks')}")
            last = last_before = int(await connection.scalar(numbered) or 0)
        async for change in changes:
            if change.scale is not None:
                origin = replace(origin, scale=change.scale)
            await self._remove(generation, change.remove)
            for start in range(0, len(change.entries), _POINTS_PER_COPY):
                last = await self._add(generation, change.entries[start : start + _POINTS_PER_COPY], last=last)
        complete = replace(generation, origin=origin)
        await self._complete(complete, base_generation, last_before=last_before, last=last)
        return generation.number

    async def publish(self, generation: int) -> None:
        published = text(
            "INSERT INTO facts (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = :value "
            "WHERE facts.value <> :value"  # the commit of a library has set it already
        )
        async with self._database.writing() as connection:
            await connection.execute(published, {"name": generation_of(self._project), "value": str(generation)})
        await self.remove_leftovers()

    async def remove(self) -> None:
        async with self._database.writing() as connection:
            published = text("DELETE FROM facts WHERE name = :name")
            await connection.execute(published, {"name": generation_of(self._project)})
        await self.remove_leftovers()

    async def close(self) -> None:
        pass

    async def leftovers(self) -> list[str]:
        async with self._database.reading() as connection:
            known = await tables.generations(connection, self._project)
            published = await tables.published_number(connection, self._project)
        return [str(number) for number in known if number != published]

    async def remove_leftovers(self) -> None:
        async with self._database.reading() as connection:
            known = await tables.generations(connection, self._project)
            published = await tables.published_number(connection, self._project)
        unused = [generation for number, generation in known.items() if number != published]
        current = known.get(published) if published is not None else None
        for number in sorted({generation.tables for generation in unused} - {current and current.tables}):
            await self._drop(number)
        if unused and current is not None:
            await self._tidy(current)

    async def contents(self, generation: int) -> AsyncIterator[tuple[str, str]]:
        async for rows in self._pages(generation, "c.payload->>'chunk_id' AS id, c.payload->>'text' AS text"):
            for row in rows:
                yield row.id, row.text

    async def entries(self, generation: int) -> AsyncIterator[Sequence[Entry]]:
        found = await self._required(generation)
        vectors = (
            f"SELECT array_agg(vector_send(w.embedding) ORDER BY w.place) FROM {found.table('windows')} w "
            "WHERE w.chunk = c.no"
        )
        async for rows in self._pages(generation, f"CAST(c.payload AS text) AS payload, ({vectors}) AS vectors"):
            yield [to_entry(json.loads(row.payload), read_vectors(row.vectors)) for row in rows]

    async def _generation(self, number: int) -> Generation | None:
        async with self._database.reading() as connection:
            return (await tables.generations(connection, self._project)).get(number)

    async def _required(self, number: int) -> Generation:
        found = await self._generation(number)
        if found is None:
            raise IndexUnavailable(f"generation {number} of the index is missing; {MENDED_BY_DOCTOR}")
        found.origin.require(self._configured)
        return found

    async def _pages(self, number: int, columns: str) -> AsyncIterator[Sequence[Any]]:
        generation = await self._required(number)
        last = -1
        while True:
            statement = text(
                f"SELECT c.no, {columns} FROM {generation.table('chunks')} c "
                f"WHERE c.no > :last AND {generation.visible()} ORDER BY c.no LIMIT {_CHUNKS_PER_PAGE}"
            )
            try:
                async with self._database.reading() as connection:
                    rows = (await connection.execute(statement, {"last": last})).all()
            except StoreUnavailable as error:
                raise IndexUnavailable(f"the index cannot be read; {MENDED_BY_DOCTOR}") from error
            if not rows:
                return
            yield rows
            last = rows[-1].no

    async def _add(self, generation: Generation, entries: Sequence[Entry], *, last: int) -> int:
        """Write chunks with numbers after `last`; returns the last number. A chunk replaces one with its id."""
        numbered, chunks, windows = await asyncio.to_thread(self._encode, generation, entries, last)
        async with self._database.writing() as connection:
            await _mark_removed(connection, generation, "id", [point.id for _, point in numbered])
            await copy_rows(connection, generation.table("chunks"), CHUNK_COLUMNS, chunks)
            await copy_rows(connection, generation.table("windows"), WINDOW_COLUMNS, windows)
        return last + len(numbered)

    def _encode(
        self, generation: Generation, entries: Sequence[Entry], last: int
    ) -> tuple[list[tuple[int, IndexPoint]], bytes, bytes]:
        points = {}
        for entry in entries:
            point = to_point(entry, dimensions=self._configured.dimensions)
            points[point.id] = point  # the last one with an id stays, as in an upsert
        numbered = list(enumerate(points.values(), last + 1))
        return numbered, chunk_rows(numbered, added=generation.number), window_rows(numbered)

    async def _remove(self, generation: Generation, documents: Sequence[UUID]) -> None:
        if documents:
            async with self._database.writing() as connection:
                await _mark_removed(connection, generation, "document_id", documents)

    async def _complete(self, generation: Generation, base: Generation | None, *, last_before: int, last: int) -> None:
        """Count words, chunks and windows, and make what searches need."""
        for block in range((last_before + 1) // _CHUNKS_PER_BLOCK, last // _CHUNKS_PER_BLOCK + 1):
            async with self._database.writing() as connection:
                await connection.execute(text(_gather_postings(generation, block)))
        async with self._database.writing() as connection:
            await without_time_limit(connection)
            await connection.execute(text(_count_words(generation)))
            totals = []
            for name in ("chunks", "windows"):
                changed = int(await connection.scalar(text(_changed_rows(generation, name))) or 0)
                totals.append(changed + (getattr(base, name) or 0 if base else 0))
        complete = replace(generation, chunks=totals[0], windows=totals[1])
        await create_indexes(self._database, complete)
        async with self._database.writing() as connection:
            scale = complete.origin.scale
            completed = "UPDATE index_generations SET chunks = :chunks, windows = :windows, scale = :scale"
            await connection.execute(
                text(f"{completed} WHERE number = :n"),
                {
                    "chunks": complete.chunks,
                    "windows": complete.windows,
                    "scale": json.dumps(asdict(scale)) if scale else None,
                    "n": complete.number,
                },
            )

    async def _drop(self, number: int) -> None:
        """Drop the tables of generations that are not in use any more, and forget those."""
        try:
            async with self._database.writing() as connection:
                await connection.execute(text(f"SET LOCAL lock_timeout = '{_DROP_WAIT}'"))
                await tables.drop_tables(connection, number)
                await connection.execute(text("DELETE FROM index_generations WHERE tables = :n"), {"n": number})
        except StoreUnavailable as error:
            _log.warning("tables %s of the index are still in use and stay until the next ingest: %s", number, error)

    async def _tidy(self, current: Generation) -> None:
        """Delete the rows that the published generation does not have from its tables, and forget the other ones."""
        chunks, windows, postings, counts = map(current.table, tables.TABLES)
        number = current.number
        gone = f"(removed <= {number} OR added > {number})"
        async with self._database.writing() as connection:
            await without_time_limit(connection)
            for statement in (
                f"DELETE FROM {windows} WHERE chunk IN (SELECT no FROM {chunks} WHERE {gone})",
                f"DELETE FROM {postings} WHERE generation > {number}",
                *_forget_postings(current, gone),
                f"DELETE FROM {chunks} WHERE {gone}",
                f"UPDATE {chunks} SET removed = NULL WHERE removed > {number}",
                f"DELETE FROM {counts} WHERE generation > {number}",
                f"""WITH merged AS (
                    DELETE FROM {counts} WHERE term IN (SELECT term FROM {counts} WHERE generation = {number})
                    RETURNING term, chunks, text_chunks
                ) INSERT INTO {counts} SELECT term, {number}, sum(chunks), sum(text_chunks) FROM merged
                GROUP BY term HAVING sum(chunks) > 0""",
                f"DELETE FROM index_generations WHERE tables = {current.tables} AND number <> {number}",
            ):
                await connection.execute(text(statement))


async def _damage_of(connection: AsyncConnection, generation: Generation) -> str | None:
    """What is missing of a generation."""
    for table in map(generation.table, tables.TABLES):
        if not await tables.has_table(connection, table):
            return f"its table {table} is missing"
    for index in tables.search_indexes(generation):
        if not await tables.has_table(connection, index):
            return f"its index {index} is missing"
    for name, expected in (("chunks", generation.chunks), ("windows", generation.windows)):
        actual = await connection.scalar(text(_visible_rows(generation, name)))
        if actual != expected:
            return f"it has {actual} {name} instead of {expected}"
    return None


async def _mark_removed(
    connection: AsyncConnection, generation: Generation, column: str, values: Sequence[UUID]
) -> None:
    """Take chunks out of the generation that is built; what it has added itself is deleted."""
    chunks, windows = generation.table("chunks"), generation.table("windows")
    chosen = f"{column} = ANY(CAST(:values AS uuid[]))"
    own = f"{chosen} AND added = {generation.number}"
    for statement in (
        f"DELETE FROM {windows} WHERE chunk IN (SELECT no FROM {chunks} WHERE {own})",
        f"DELETE FROM {chunks} WHERE {own}",
        f"UPDATE {chunks} SET removed = {generation.number} WHERE {chosen} AND removed IS NULL",
    ):
        await connection.execute(text(statement), {"values": list(values)})


def _gather_postings(generation: Generation, block: int) -> str:
    """List which of the new chunks of a block have each term."""
    first = block * _CHUNKS_PER_BLOCK
    return f"""
        INSERT INTO {generation.table("postings")}
        SELECT posting.term, {block}, {generation.number}, array_agg(c.no), array_agg(posting.weight)
        FROM {generation.table("chunks")} c, unnest(c.terms, c.weights) AS posting (term, weight)
        WHERE c.no >= {first} AND c.no < {first + _CHUNKS_PER_BLOCK} AND c.added = {generation.number}
        GROUP BY posting.term
    """


def _forget_postings(generation: Generation, gone: str) -> list[str]:
    """Take chunks out of the lists of their terms."""
    chunks, postings = generation.table("chunks"), generation.table("postings")
    return [
        f"""WITH gone AS (SELECT no, terms FROM {chunks} WHERE {gone}), lists AS (
            SELECT DISTINCT term, no / {_CHUNKS_PER_BLOCK} AS block FROM gone, unnest(terms) AS term
        ), kept AS (
            SELECT p.ctid AS place, array_agg(posting.no ORDER BY posting.no) AS numbers,
                array_agg(posting.weight ORDER BY posting.no) AS weights
            FROM lists JOIN {postings} p ON p.term = lists.term AND p.block = lists.block,
            unnest(p.numbers, p.weights) AS posting (no, weight)
            WHERE posting.no NOT IN (SELECT no FROM gone) GROUP BY p.ctid
        ), emptied AS (
            DELETE FROM {postings} p USING lists
            WHERE p.term = lists.term AND p.block = lists.block AND p.ctid NOT IN (SELECT place FROM kept)
        )
        UPDATE {postings} p SET numbers = kept.numbers, weights = kept.weights FROM kept WHERE p.ctid = kept.place""",
    ]


def _count_words(generation: Generation) -> str:
    """How many more chunks of the generation have each term than of its base, and how many have it in their text."""
    chunks, number = generation.table("chunks"), generation.number
    return f"""
        INSERT INTO {generation.table("counts")}
        SELECT term, {number}, sum(chunks), sum(text_chunks) FROM (
            SELECT term, cardinality(numbers) AS chunks, cardinality(numbers) AS text_chunks
            FROM {generation.table("postings")} WHERE generation = {number}
            UNION ALL SELECT unnest(label_terms), 0, -1 FROM {chunks} WHERE added = {number}
            UNION ALL SELECT unnest(terms), -1, -1 FROM {chunks} WHERE removed = {number}
            UNION ALL SELECT unnest(label_terms), 0, 1 FROM {chunks} WHERE removed = {number}
        ) AS changes GROUP BY term
    """


def _changed_rows(generation: Generation, name: str) -> str:
    """How many more rows a generation has than its base."""
    added, removed = (
        f"SELECT count(*) FROM {_joined(generation, name)} WHERE c.{column} = {generation.number}"
        for column in ("added", "removed")
    )
    return f"SELECT ({added}) - ({removed})"


def _visible_rows(generation: Generation, name: str) -> str:
    return f"SELECT count(*) FROM {_joined(generation, name)} WHERE {generation.visible()}"


def _joined(generation: Generation, name: str) -> str:
    chunks = f"{generation.table('chunks')} c"
    return chunks if name == "chunks" else f"{chunks} JOIN {generation.table('windows')} w ON w.chunk = c.no"
