"""Searches the published generation of a project in PostgreSQL: each search reads one snapshot of the database.

A chunk is found by its best window and by its words, as in the embedded index, with the same weights.
"""

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from citewell.adapters.index_format import MENDED_BY_DOCTOR, IndexOrigin, query_terms, term_of, to_passages
from citewell.adapters.pgvector import search
from citewell.adapters.pgvector.rows import read_vectors, signed, vector_literal
from citewell.adapters.pgvector.search import Allowed, WordQuery, allowed_chunks
from citewell.adapters.pgvector.tables import INDEXED_WINDOWS, Generation, has_table, to_generation
from citewell.adapters.sql import Database, generation_of
from citewell.errors import EmptyKnowledgeBase, IndexMismatch, IndexUnavailable, StoreUnavailable
from citewell.models import NO_FILTERS, Filters, Passage, Vector
from citewell.similarity_scale import SimilarityScale

_log = logging.getLogger("citewell.index")

Result = TypeVar("Result")

_NO_PROJECT = UUID(int=0)
_FACT_PREFIX = generation_of(_NO_PROJECT).removesuffix(str(_NO_PROJECT))
_ATTEMPTS = 3  # a publish may drop the tables of the generation that was just looked up
_MISSING_TABLE = "42P01"
_MIN_WINDOWS, _MAX_WINDOWS = 100, 1000  # read from the HNSW index; `hnsw.ef_search` may be no more than 1000
_MIN_CONSIDERED = 400  # chunks, of which the best by words are chosen
_SELECTIVE_FRACTION = 50  # filters that leave fewer of the chunks than one in so many are searched without the index

# A project's generation, and the settings of this transaction. The first column loads pgvector, which knows them.
_PUBLISHED = """
    SELECT vector_dims(CAST('[1]' AS vector)), set_config('hnsw.iterative_scan', 'strict_order', true),
        set_config('hnsw.max_scan_tuples', '100000', true), set_config('statement_timeout', '10s', true),
        set_config('work_mem', '64MB', true), set_config('jit', 'off', true), g.*
    FROM facts f JOIN index_generations g ON f.value = CAST(g.number AS text) AND f.name = :prefix || g.project_id
"""


class PgVectorIndex:
    """Reads what the library has published; there is nothing to open or to switch."""

    def __init__(self, database: Database, *, model: str, dimensions: int) -> None:
        self._database = database
        self._configured = IndexOrigin.configured(model=model, dimensions=dimensions)

    async def search(
        self, project: UUID, *, vector: Vector, words: str, limit: int, filters: Filters = NO_FILTERS
    ) -> tuple[Passage, ...]:
        async def run(connection: AsyncConnection, generation: Generation) -> tuple[Passage, ...]:
            return await self._search(connection, generation, vector, words, limit, filters)

        return await self._read(project, run, nothing=())

    async def frequencies(
        self, project: UUID, stems: Sequence[str], *, filters: Filters = NO_FILTERS
    ) -> tuple[int, list[int]]:
        terms = [signed(term_of(stem)) for stem in stems]

        async def run(connection: AsyncConnection, generation: Generation) -> tuple[int, list[int]]:
            if not filters:
                counts = await _word_counts(connection, generation, terms)
                return generation.chunks or 0, [counts.get(term, (0, 0))[1] for term in terms]
            allowed = allowed_chunks(generation, filters)
            statement = text(search.count_matches(generation, allowed, terms))
            total, *matches = (await connection.execute(statement, allowed.parameters)).one()
            return total, matches

        return await self._read(project, run, nothing=(0, [0] * len(stems)))

    async def scale(self) -> SimilarityScale:
        async def run(connection: AsyncConnection, generation: Generation) -> SimilarityScale:  # noqa: ARG001
            return generation.origin.similarity_scale

        return await self._read(None, run, nothing=None)

    def problem(self) -> str | None:
        return None

    async def close(self) -> None:
        pass

    async def _read(
        self,
        project: UUID | None,
        run: Callable[[AsyncConnection, Generation], Awaitable[Result]],
        *,
        nothing: Result | None,
    ) -> Result:
        """Read the published generation of a project, or of any; `nothing` if only others have one."""
        for _ in range(_ATTEMPTS):
            try:
                async with self._snapshot() as connection:
                    try:
                        if generation := await self._published(connection, project):
                            return await run(connection, generation)
                    except DBAPIError as error:
                        if getattr(error.orig, "sqlstate", None) != _MISSING_TABLE:
                            raise
                        continue
                async with self._snapshot() as connection:
                    await _require_nothing(connection, project)
                if nothing is None:
                    raise _empty()
                return nothing
            except IndexUnavailable:
                raise
            except StoreUnavailable as error:
                _log.error("the index in PostgreSQL cannot be read: %s", error)
                raise IndexUnavailable("the vector store does not answer; try again in a moment") from error
        async with self._snapshot() as connection:
            await _require_nothing(connection, project)
        raise _missing()

    @asynccontextmanager
    async def _snapshot(self) -> AsyncIterator[AsyncConnection]:
        async with self._database.reading() as connection:
            yield await connection.execution_options(isolation_level="REPEATABLE READ")

    async def _published(self, connection: AsyncConnection, project: UUID | None) -> Generation | None:
        of_project = "AND g.project_id = :project" if project else "ORDER BY g.number DESC LIMIT 1"
        parameters = {"prefix": _FACT_PREFIX} | ({"project": project} if project else {})
        row = (await connection.execute(text(f"{_PUBLISHED} {of_project}"), parameters)).first()
        if row is None:
            return None
        generation = to_generation(row)
        generation.origin.require(self._configured)
        return generation

    async def _search(
        self,
        connection: AsyncConnection,
        generation: Generation,
        vector: Vector,
        words: str,
        limit: int,
        filters: Filters,
    ) -> tuple[Passage, ...]:
        if len(vector) != generation.origin.dimensions:
            raise IndexMismatch(f"the index was made with other dimensions of its vectors; {MENDED_BY_DOCTOR}")
        allowed = allowed_chunks(generation, filters)
        by_words = await _best_by_words(connection, generation, allowed, words)
        uses_index = generation.has_vector_index and await _are_many(connection, generation, allowed, filters)
        windows = _windows_to_read(generation)
        while True:
            nearest = search.nearest_by_index if uses_index else search.nearest_exactly
            if uses_index:
                await connection.execute(_SET_EF_SEARCH, {"windows": str(min(windows, _MAX_WINDOWS))})
            parameters = {
                **allowed.parameters,
                **({"windows": windows} if uses_index else {}),
                "vector": vector_literal(vector),
                "by_words": by_words,
                "limit": limit,
            }
            statement = search.fused(generation, nearest(generation, allowed))
            rows = (await connection.execute(text(statement), parameters)).all()
            too_few = uses_index and (not rows or rows[0].near < search.CANDIDATES)
            if not too_few:
                break
            # A few chunks have all the nearest windows: read more of them, at last all.
            uses_index = windows < _MAX_WINDOWS
            windows *= 4
        passages = [(json.loads(row.payload), read_vectors(row.vectors)) for row in rows]
        return to_passages(passages, vector, generation.origin.similarity_scale)


_SET_EF_SEARCH = text("SELECT set_config('hnsw.ef_search', :windows, true)")


def _windows_to_read(generation: Generation) -> int:
    """So many that they belong to enough chunks, as a rule."""
    per_chunk = (generation.windows or 0) / max(1, generation.chunks or 0)
    return min(_MAX_WINDOWS, max(_MIN_WINDOWS, round(2 * per_chunk * search.CANDIDATES)))


async def _are_many(connection: AsyncConnection, generation: Generation, allowed: Allowed, filters: Filters) -> bool:
    """Whether so many chunks are allowed that the HNSW index finds them: it looks at the nearest, and then filters."""
    if not filters:
        return True
    enough = max(INDEXED_WINDOWS // 2, (generation.chunks or 0) // _SELECTIVE_FRACTION)
    statement = text(search.count_up_to(generation, allowed, enough))
    return int(await connection.scalar(statement, allowed.parameters) or 0) >= enough


async def _best_by_words(
    connection: AsyncConnection, generation: Generation, allowed: Allowed, words: str
) -> list[int]:
    """The numbers of the best chunks by BM25, best first; exactly those of a search that scores every chunk.

    The best of the chunks with one of the rarest terms give a score that the others have to reach. What cannot reach
    it by the other terms need not be scored.
    """
    terms = [signed(term) for term in query_terms(words)[0]]
    counts = await _word_counts(connection, generation, terms)
    query = WordQuery.weighted(terms, {term: chunks for term, (chunks, _) in counts.items()}, generation.chunks or 0)
    if not query.terms:
        return []

    async def score(number: int, floor: float, considered: int) -> Sequence[Row[Any]]:
        if allowed.parameters:
            statement, parameters = search.best_allowed_by_words(generation, allowed, query, number), allowed.parameters
        else:
            statement = search.best_by_words(generation, query, number)
            parameters = {"floor": floor, "considered": considered}
        return (await connection.execute(text(statement), parameters)).all()

    number, considered = query.first_attempt, _MIN_CONSIDERED
    rows = await score(number, 0.0, considered)
    to_reach = rows[-1].score if len(rows) == search.CANDIDATES else 0.0
    if not query.is_exact(number, to_reach, rows[0].least if rows else 0.0):
        number = query.sensible(to_reach)
        rest = query.most_without(number)
        rows = await score(number, to_reach - rest, considered if rest == 0 else search.ALL)
        while rest == 0 and len(rows) < search.CANDIDATES and rows and rows[0].least:
            considered *= 8  # many of the best are of another generation
            rows = await score(number, 0.0, considered)
    return [row.no for row in rows]


async def _word_counts(
    connection: AsyncConnection, generation: Generation, terms: Sequence[int]
) -> dict[int, tuple[int, int]]:
    """How many chunks have each term, and how many have it in their text."""
    if not terms:
        return {}
    rows = await connection.execute(text(search.count_words(generation)), {"terms": list(terms)})
    return {row.term: (int(row.chunks), int(row.text_chunks)) for row in rows}


async def _require_nothing(connection: AsyncConnection, project: UUID | None) -> None:
    """Raise IndexUnavailable if there should be an index of the project, EmptyKnowledgeBase if there is none at all."""
    documents = text("SELECT EXISTS (SELECT FROM documents WHERE project_id = :project)")
    names = text("SELECT count(*) FROM facts WHERE starts_with(name, :prefix)")
    own = text("SELECT EXISTS (SELECT FROM facts WHERE name = :name)")
    if project is not None and (
        await connection.scalar(documents, {"project": project})
        or await connection.scalar(own, {"name": generation_of(project)})
    ):
        raise _missing()
    if not await connection.scalar(names, {"prefix": _FACT_PREFIX}):
        raise _empty()
    if not await has_table(connection, "index_generations"):
        raise _missing()


def _empty() -> EmptyKnowledgeBase:
    return EmptyKnowledgeBase("nothing has been ingested yet; run `citewell ingest PATH` first")


def _missing() -> IndexUnavailable:
    return IndexUnavailable(f"the index is missing: its tables are gone; {MENDED_BY_DOCTOR}")
