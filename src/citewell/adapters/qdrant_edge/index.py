"""Searches the published generation: by meaning (dense windows) and by words (BM25), fused by rank.

A chunk is one point: its windows are a multivector (scored by the best of them), its words a sparse vector weighted
by BM25.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, TypeVarTuple, cast
from uuid import UUID

from qdrant_edge import (
    AcornSearchParams,
    CountRequest,
    EdgeShard,
    FieldCondition,
    Filter,
    Fusion,
    MatchPrefix,
    MatchText,
    MatchValue,
    Prefetch,
    QuantizationSearchParams,
    Query,
    QueryRequest,
    SearchParams,
    SparseVector,
)

from citewell.adapters.index_format import (
    DENSE_VECTORS,
    MENDED_BY_DOCTOR,
    SPARSE_VECTORS,
    IndexOrigin,
    normalize_url,
    query_terms,
    to_passages,
)
from citewell.adapters.qdrant_edge.generations import Generations
from citewell.adapters.qdrant_edge.manifest import CheckedFiles, fingerprint
from citewell.adapters.qdrant_edge.shard import OpenGeneration, translated_errors
from citewell.adapters.qdrant_edge.word_counts import WordCounts
from citewell.errors import EmptyKnowledgeBase, IndexUnavailable
from citewell.models import NO_FILTERS, Filters, Passage, Vector
from citewell.similarity_scale import SimilarityScale

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

_CANDIDATES = 50  # from each of the two searches, before fusion
_RRF_K = 10  # over 60: the right file in the first five for 91.2 % instead of 88.9 % (docs/log.md)
_MAX_CACHED_COUNTS = 1000
# Where an index has graphs; a segment without one is compared whatever this says. ACORN is for filters: without it,
# a filter that a fifth of the chunks match finds 64 of 100 of the nearest ten, with it 100 (docs/log.md).
_GRAPH_SEARCH = SearchParams(
    hnsw_ef=128,
    quantization=QuantizationSearchParams(rescore=True, oversampling=2.0),
    acorn=AcornSearchParams(enable=True, max_selectivity=0.5),
)
_OPEN_ATTEMPTS = 10


class QdrantEdgeIndex:
    """Reads the published generation and switches to the next one between two queries."""

    def __init__(
        self,
        folder: Path,
        *,
        model: str,
        dimensions: int,
        expected_generation: Callable[[], Awaitable[int | None]] | None = None,
    ) -> None:
        """`expected_generation` gives the one that the library names: without any, an empty folder is no fault."""
        self._generations = Generations(folder)
        self._configured = IndexOrigin.configured(model=model, dimensions=dimensions)
        self._expected_generation = expected_generation
        self._current: OpenGeneration | None = None
        self._problem: str | None = None
        self._refused: tuple[object, str] | None = None  # a generation that cannot be read, as it was, and the reason
        self._checked: CheckedFiles = {}
        # How many chunks match filters. Cached: a count takes 27 ms for 90,000 chunks, and a generation never changes.
        self._chunk_counts: dict[tuple[UUID, Filters], int] = {}
        self._shard_lock = Lock()
        # A thread of its own: questions that wait for an engine that hangs must not block the embedder's threads.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="index")

    async def search(
        self, project: UUID, *, vector: Vector, words: str, limit: int, filters: Filters = NO_FILTERS
    ) -> tuple[Passage, ...]:
        # Fused ranks tie in pairs, and the engine cuts through a pair at random: ask for one more, then sort by id.
        return (await self._call(self._search, project, vector, words, limit + 1, filters))[:limit]

    async def frequencies(
        self, project: UUID, stems: Sequence[str], *, filters: Filters = NO_FILTERS
    ) -> tuple[int, list[int]]:
        return await self._call(self._frequencies, project, stems, filters)

    async def scale(self) -> SimilarityScale:
        return await self._call(self._scale)

    def problem(self) -> str | None:
        return self._problem

    async def _call(self, function: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """Call a function in the thread of the engine."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
        except EmptyKnowledgeBase as error:
            if self._expected_generation is None or await self._expected_generation() is None:
                raise
            raise _files_missing() from error

    async def close(self) -> None:
        with self._shard_lock:
            self._close()

    def opened(self) -> OpenGeneration:
        """The published generation, opened on first use and whenever another is published.

        If it cannot be read, the generation that is open already stays in use.
        """
        try:
            self._current = self._open_published()
            self._problem = None
        except IndexUnavailable as error:
            self._problem = str(error)
            if self._current is None:
                raise
        return self._current

    def _open_published(self) -> OpenGeneration:
        for _ in range(_OPEN_ATTEMPTS):  # a generation can be removed between reading its name and opening it
            number = self._generations.published()
            if number is None:
                break
            if self._current is not None and self._current.number == number:
                return self._current
            with suppress(FileNotFoundError):
                newest = self._open(number)
                self._close()
                return newest
        if number is None and self._current is None:
            raise EmptyKnowledgeBase("nothing has been ingested yet; run `citewell ingest PATH` first")
        raise _files_missing()

    def _open(self, number: int) -> OpenGeneration:
        """Open a generation. One that was refused is not checked again before its files change."""
        folder = self._generations.path(number)
        if self._refused and self._refused[0] == (number, fingerprint(folder)):
            raise IndexUnavailable(self._refused[1])
        try:
            opened = OpenGeneration.open(self._generations, number, configured=self._configured, checked=self._checked)
        except IndexUnavailable as error:
            self._refused = (number, fingerprint(folder)), str(error)
            raise
        self._refused = None
        return opened

    def _search(self, project: UUID, vector: Vector, words: str, limit: int, filters: Filters) -> tuple[Passage, ...]:
        with self._shard_lock, translated_errors():
            generation = self.opened()
            terms = weighted_terms(generation.counts, project, words)
            points = generation.shard.query(
                fusion_query(project, vector=vector, terms=terms, limit=limit, filters=filters)
            )
        points = sorted(points, key=lambda point: (-point.score, str(point.id)))
        rows = [(cast("dict[str, Any]", point.payload), cast("Any", point.vector)[DENSE_VECTORS]) for point in points]
        return to_passages(rows, vector, generation.scale)

    def _frequencies(self, project: UUID, stems: Sequence[str], filters: Filters) -> tuple[int, list[int]]:
        if not filters:
            with self._shard_lock, translated_errors():
                counts = self.opened().counts
                return counts.chunks(project), counts.stems(project, stems)
        conditions = _conditions(project, filters)
        by_stem = [Filter(must=[*conditions, FieldCondition("words", match=MatchText(stem))]) for stem in stems]
        with self._shard_lock, translated_errors():
            shard = self.opened().shard
            filtered = [shard.count(CountRequest(exact=True, filter=stem_filter)) for stem_filter in by_stem]
            return self._chunk_count(shard, project, filters), filtered

    def _chunk_count(self, shard: EdgeShard, project: UUID, filters: Filters) -> int:
        key = project, filters
        if key not in self._chunk_counts:
            if len(self._chunk_counts) >= _MAX_CACHED_COUNTS:
                self._chunk_counts.clear()
            allowed = Filter(must=[*_conditions(project, filters)])
            self._chunk_counts[key] = shard.count(CountRequest(exact=True, filter=allowed))
        return self._chunk_counts[key]

    def _scale(self) -> SimilarityScale:
        with self._shard_lock, translated_errors():
            return self.opened().scale

    def _close(self) -> None:
        self._chunk_counts.clear()
        if self._current is not None:
            self._current.close()
            self._current = None


def _files_missing() -> IndexUnavailable:
    return IndexUnavailable(f"the index is missing: its files are gone; {MENDED_BY_DOCTOR}")


def weighted_terms(counts: WordCounts, project: UUID, words: str) -> SparseVector:
    """The words of a question, each weighted by how rare it is in the project."""
    dimensions, weights = query_terms(words)
    rarities = counts.rarities(project, dimensions)
    return SparseVector(dimensions, [weight * rarity for weight, rarity in zip(weights, rarities, strict=True)])


def fusion_query(
    project: UUID, *, vector: Vector, terms: SparseVector, limit: int, filters: Filters = NO_FILTERS
) -> QueryRequest:
    """The request for a search: nearest chunks by meaning and by words, merged by reciprocal rank fusion."""
    return QueryRequest(
        limit=limit,
        filter=Filter(must=[*_conditions(project, filters)]),
        query=cast("Fusion", Fusion.Rrf(k=_RRF_K)),  # the stub hides that it is one
        prefetches=[
            Prefetch(
                limit=_CANDIDATES,
                query=Query.Nearest(cast("list[float]", vector), using=DENSE_VECTORS),
                params=_GRAPH_SEARCH,
            ),
            Prefetch(limit=_CANDIDATES, query=Query.Nearest(terms, using=SPARSE_VECTORS)),
        ],
        with_payload=True,
        with_vector=[DENSE_VECTORS],
    )


def _conditions(project: UUID, filters: Filters) -> list[FieldCondition]:
    """What a chunk must match: first the project, then every filter that is set."""
    conditions = [FieldCondition("project_id", match=MatchValue(str(project)))]
    for field, value in (("section", filters.section), ("chapter", filters.chapter)):
        if value is not None:
            conditions.append(FieldCondition(field, match=MatchValue(value)))
    if filters.path is not None:
        is_folder = filters.path.endswith("/")
        conditions.append(FieldCondition("filename", match=(MatchPrefix if is_folder else MatchValue)(filters.path)))
    if filters.source_url_prefix is not None:
        conditions.append(FieldCondition("matchable_urls", match=MatchPrefix(normalize_url(filters.source_url_prefix))))
    return conditions
