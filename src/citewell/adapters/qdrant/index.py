"""Searches the published generation of a project: by meaning (dense windows) and by words (BM25), fused by rank.

A reader searches the generation that it knows, then reads the state again, and repeats the search if another was
published meanwhile: the points of the old one may have been deleted while it searched.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast
from uuid import UUID, uuid5

from qdrant_client.models import (
    CollectionStatus,
    Filter,
    IdfCorpusParams,
    IsEmptyCondition,
    PayloadField,
    Prefetch,
    QuantizationSearchParams,
    Rrf,
    RrfQuery,
    ScoredPoint,
    SearchParams,
    SparseVector,
)

from citewell.adapters.index_format import (
    DENSE_VECTORS,
    MENDED_BY_DOCTOR,
    SPARSE_VECTORS,
    IndexOrigin,
    query_terms,
    to_passages,
)
from citewell.adapters.qdrant.collection import Collection, CollectionOptions
from citewell.adapters.qdrant.conditions import in_generation
from citewell.adapters.qdrant.counts import Scope, WordCounts
from citewell.adapters.qdrant.server import CollectionMissing, QdrantServer
from citewell.adapters.qdrant.states import Generation
from citewell.errors import EmptyKnowledgeBase, IndexUnavailable
from citewell.models import NO_FILTERS, Filters, Passage, Vector
from citewell.similarity_scale import IDENTITY_SCALE, SimilarityScale

T = TypeVar("T")

_CANDIDATES = 50  # from each of the two searches, before fusion, as in the embedded engine
_RRF_K = 10
_MAX_SWITCHES = 5
# Quantized vectors choose candidates, whole vectors score them.
_RESCORED = QuantizationSearchParams(rescore=True, oversampling=2.0)


class QdrantIndex:
    """Reads whatever generation is published, and never two at once."""

    def __init__(
        self,
        server: QdrantServer,
        options: CollectionOptions,
        *,
        model: str,
        dimensions: int,
        expected_generation: Callable[[UUID | None], Awaitable[int | None]] | None = None,
    ) -> None:
        """`expected_generation` gives the one that the library names: without any, an empty server is no fault."""
        self._server = server
        self._collection = Collection(server, options, IndexOrigin.configured(model=model, dimensions=dimensions))
        self._expected_generation = expected_generation
        self._known: dict[UUID, Generation] = {}
        self._counts = WordCounts(server, self._collection.name)
        self._version: str | None = None
        self._dense_params = None if options.quantization == "none" else SearchParams(quantization=_RESCORED)

    async def search(
        self, project: UUID, *, vector: Vector, words: str, limit: int, filters: Filters = NO_FILTERS
    ) -> tuple[Passage, ...]:
        return await self._in_one_generation(
            project, lambda generation: self._search(generation, project, vector, words, limit, filters), nothing=()
        )

    async def frequencies(
        self, project: UUID, stems: Sequence[str], *, filters: Filters = NO_FILTERS
    ) -> tuple[int, list[int]]:
        return await self._in_one_generation(
            project,
            lambda generation: self._counts.frequencies(Scope(project, generation, filters), stems),
            nothing=(0, [0] * len(stems)),
        )

    async def scale(self) -> SimilarityScale:
        project = next(reversed(self._known), None)
        generation = await (self._published(project) if project else self._any_generation())
        return generation.scale or IDENTITY_SCALE

    def problem(self) -> str | None:
        return None

    async def details(self) -> Mapping[str, str | int]:
        self._version = self._version or await self._server.version()
        try:
            info = await self._collection.info()
        except CollectionMissing:
            return {"version": self._version, "points": 0, "status": "missing"}
        if info.status == CollectionStatus.RED:
            raise IndexUnavailable("the vector store reports its collection as red: it failed to apply a change")
        return {"version": self._version, "points": info.points_count or 0, "status": str(info.status)}

    async def close(self) -> None:
        await self._server.close()

    async def _in_one_generation(self, project: UUID, read: Callable[[Generation], Awaitable[T]], *, nothing: T) -> T:
        """What `read` gives for the published generation; read again if another was published meanwhile.

        It is `nothing` for a project that has no index beside others that have.
        """
        try:
            async with asyncio.timeout(self._server.total_seconds):
                generation = self._known.get(project) or await self._published(project)
                for _ in range(_MAX_SWITCHES):
                    result = await self._unless_missing(read(generation))
                    published = await self._published(project)
                    if result is not None and published == generation:
                        return result
                    generation = published
        except TimeoutError as error:
            raise IndexUnavailable("the vector store did not answer in time; try again in a moment") from error
        except EmptyKnowledgeBase:
            await self._any_generation()  # raises it again if there is none
            return nothing
        raise IndexUnavailable("the index changes too often to be read; try again in a moment")

    async def _unless_missing(self, result: Awaitable[T]) -> T | None:
        try:
            return await result
        except CollectionMissing:  # the state says next what that means
            return None

    async def _published(self, project: UUID) -> Generation:
        """The published generation of a project; raises EmptyKnowledgeBase, IndexMismatch or IndexUnavailable."""
        state = await self._collection.state(project)
        if state is None or state.published is None:
            self._known.pop(project, None)
            for other in (await self._collection.states_elsewhere(project)).values():
                if other.published:
                    other.origin.require(self._collection.origin)
            if self._expected_generation and await self._expected_generation(project) is not None:
                raise IndexUnavailable(f"the index is missing on the vector store; {MENDED_BY_DOCTOR}")
            raise EmptyKnowledgeBase("nothing has been ingested yet; run `citewell ingest PATH` first")
        self._known[project] = state.published
        return state.published

    async def _any_generation(self) -> Generation:
        """A published generation of any project: all of a collection have one model, and so one scale."""
        has_state = Filter(must_not=[IsEmptyCondition(is_empty=PayloadField(key="state_of"))])
        try:
            states, _ = await self._server.call(
                lambda client: client.scroll(self._collection.name, scroll_filter=has_state, limit=100)
            )
        except CollectionMissing:
            states = []
        for state in states:
            with suppress(EmptyKnowledgeBase):
                return await self._published(UUID((state.payload or {})["state_of"]))
        raise EmptyKnowledgeBase("nothing has been ingested yet; run `citewell ingest PATH` first")

    async def _search(
        self, generation: Generation, project: UUID, vector: Vector, words: str, limit: int, filters: Filters
    ) -> tuple[Passage, ...]:
        # Fused ranks tie in pairs, and the engine cuts through a pair: ask for one more, then sort by id.
        response = await self._server.call(
            lambda client: client.query_points(
                self._collection.name,
                prefetch=self._prefetches(generation, project, vector, words, filters),
                query=RrfQuery(rrf=Rrf(k=_RRF_K)),
                limit=limit + 1,
                with_payload=True,
                with_vectors=[DENSE_VECTORS],
            )
        )

        def rank(point: ScoredPoint) -> tuple[float, int]:
            # Not by the point's id, which differs for a chunk that was replaced.
            return -point.score, uuid5(project, (point.payload or {})["chunk_id"]).int

        rows = [(point.payload or {}, cast("Any", point.vector)[DENSE_VECTORS])
                for point in sorted(response.points, key=rank)]  # fmt: skip
        return to_passages(rows, vector, generation.scale or IDENTITY_SCALE)[:limit]

    def _prefetches(
        self, generation: Generation, project: UUID, vector: Vector, words: str, filters: Filters
    ) -> list[Prefetch]:
        allowed = in_generation(project, generation.number, filters)
        by_meaning = Prefetch(
            query=[vector.tolist()],
            using=DENSE_VECTORS,
            filter=allowed,
            limit=_CANDIDATES,
            params=self._dense_params,
        )
        dimensions, weights = query_terms(words)
        if not dimensions:
            return [by_meaning]
        # How rare a word is, is counted in what this project has published.
        corpus = IdfCorpusParams(corpus=in_generation(project, generation.number))
        by_words = Prefetch(
            query=SparseVector(indices=dimensions, values=weights),
            using=SPARSE_VECTORS,
            filter=allowed,
            limit=_CANDIDATES,
            params=SearchParams(idf=corpus),
        )
        return [by_meaning, by_words]
