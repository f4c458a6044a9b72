"""The index on Qdrant Edge: dense windows and BM25 in one embedded shard, one folder per generation.

A chunk is one point: its windows are a multivector (found by the best of them), its words a sparse
vector weighted by BM25. The engine holds the GIL, tolerates one owner per folder and does not roll a
failed batch back; so readers open immutable generations only, under a lock, and writers build elsewhere.
"""

import asyncio
import json
import logging
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import IO, Any, cast
from uuid import UUID, uuid5

import numpy as np
from qdrant_edge import (
    CountRequest,
    Distance,
    EdgeConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    FieldCondition,
    Filter,
    Fusion,
    IdfParams,
    KeywordIndexParams,
    MatchAny,
    MatchPrefix,
    MatchText,
    MatchValue,
    Memory,
    Modifier,
    MultiVectorComparator,
    MultiVectorConfig,
    Point,
    Prefetch,
    Query,
    QueryRequest,
    ScrollRequest,
    SearchParams,
    SparseVector,
    TextIndexParams,
    TokenizerType,
    UpdateOperation,
)

from citewell.adapters.qdrant_edge.generations import Generations
from citewell.adapters.qdrant_edge.points import normalize_url, passages, payload, query_words, weighted_words
from citewell.errors import (
    CitewellError,
    EmptyKnowledgeBase,
    IndexMismatch,
    IndexUnavailable,
    OtherModel,
    StoreUnavailable,
)
from citewell.models import NO_FILTERS, Filters, Passage, Vector
from citewell.ports import Change, Entry
from citewell.similarity_scale import IDENTITY_SCALE, SimilarityScale
from citewell.text import detect_language, sentence_stems, stems

_log = logging.getLogger("citewell.index")

_DENSE, _WORDS = "dense", "bm25"
_CANDIDATES = 50  # from each half, before fusion
_RRF_K = 10  # over 60: the right file in the first five for 91.2 % instead of 88.9 % (docs/log.md)
_FORMAT = 4  # of the payload; raised, the next ingest builds the index anew from the library
_UPSERT = 256  # points per engine call
_TOTALS = 1000  # counts kept of what filters allow
# Points after which a shard under construction is closed and opened again: what it has written is then mapped anew
# instead of staying resident. A small gain (docs/log.md): the engine's indexes under construction are the larger part.
_REOPEN = 10_000


class QdrantEdgeIndex:
    """Reads the published generation and follows to the next one between two queries."""

    def __init__(self, folder: Path, *, model: str, dimensions: int) -> None:
        self._generations = Generations(folder)
        self._model = model
        self._dimensions = dimensions
        self._opened: _Opened | None = None
        self._using = Lock()
        # A thread of its own: questions that wait for an engine that hangs must not take the embedder's.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="index")

    async def search(
        self, project: UUID, *, vector: Vector, words: str, limit: int, filters: Filters = NO_FILTERS
    ) -> tuple[Passage, ...]:
        # Fused ranks tie in pairs, and the engine cuts through a pair as it happens: one more, then the id decides.
        request = fusion_query(project, vector=vector, words=words, limit=limit + 1, filters=filters)
        return (await asyncio.get_running_loop().run_in_executor(self._thread, self._search, request, vector))[:limit]

    async def frequencies(
        self, project: UUID, stems: Sequence[str], *, filters: Filters = NO_FILTERS
    ) -> tuple[int, list[int]]:
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, self._frequencies, project, stems, filters
        )

    async def scale(self) -> SimilarityScale:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._scale)

    async def close(self) -> None:
        with self._using:
            self._close()

    def _search(self, request: QueryRequest, vector: Vector) -> tuple[Passage, ...]:
        with self._using, _readable():
            opened = self.opened()
            hits = opened.shard.query(request)
        hits = sorted(hits, key=lambda hit: (-hit.score, str(hit.id)))
        found = [(cast("dict[str, Any]", hit.payload), cast("Any", hit.vector)[_DENSE]) for hit in hits]
        return passages(found, vector, opened.scale)

    def _frequencies(self, project: UUID, spoken: Sequence[str], filters: Filters) -> tuple[int, list[int]]:
        allowed = _allowed(project, filters)
        by_stem = [Filter(must=[*allowed, FieldCondition("words", match=MatchText(stem))]) for stem in spoken]
        with self._using, _readable():
            opened = self.opened()
            counts = [opened.shard.count(CountRequest(exact=True, filter=stem_filter)) for stem_filter in by_stem]
            return opened.total(project, filters), counts

    def _scale(self) -> SimilarityScale:
        with self._using, _readable():
            return self.opened().scale

    def opened(self) -> "_Opened":
        """The published generation, opened on first use and whenever another is published."""
        for _ in range(10):  # a generation can be swept between reading its name and opening it
            number = self._generations.published()
            if number is None:
                raise EmptyKnowledgeBase("nothing has been ingested yet; run `citewell ingest PATH` first")
            if self._opened is not None and self._opened.number == number:
                return self._opened
            try:
                opened = _Opened.open(self._generations, number, model=self._model)
            except FileNotFoundError:
                continue
            self._close()
            self._opened = opened
            return opened
        raise StoreUnavailable("the index keeps changing under the reader; try again")

    def _close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None


@contextmanager
def _readable() -> Iterator[None]:
    """What goes wrong in the engine becomes an error of ours; its own words name folders, and stay in the log."""
    try:
        yield
    except CitewellError:
        raise
    except Exception as error:  # the engine has no errors of its own, it raises this very class
        _log.error("the vector store failed: %s", error)
        raise IndexUnavailable("the vector store cannot be read; `citewell doctor` says what is wrong") from error


class _Opened:
    """One generation in use: its folder under our lock, or a private copy where another process has it."""

    def __init__(
        self,
        number: int,
        shard: EdgeShard,
        scale: SimilarityScale,
        generations: Generations,
        *,
        lock: IO[bytes] | None,
        copy: Path | None,
    ) -> None:
        self.number = number
        self.shard = shard
        self.scale = scale
        self._generations = generations
        self._lock = lock
        self._copy = copy
        self._totals: dict[tuple[UUID, Filters], int] = {}

    @classmethod
    def open(cls, generations: Generations, number: int, *, model: str) -> "_Opened":
        folder = generations.path(number)
        if not (made := _made_with(folder)):
            raise FileNotFoundError(folder)
        if (other := made.get("model")) != model:
            raise OtherModel(made=str(other), configured=model)
        if made.get("format") != _FORMAT:
            raise IndexMismatch(
                "the index was made by another version of Citewell; run `citewell doctor --fix`, or ingest again, "
                "to build it anew from the library (nothing has to be embedded again)"
            )
        copy: Path | None = None
        lock = generations.lock(number)
        if lock is None:
            copy = Path(tempfile.mkdtemp(prefix="citewell-"))
            folder = copy / "index"
        try:
            if copy is not None:
                generations.copy(number, folder)
            if not folder.is_dir():
                raise FileNotFoundError(folder)
            with generations.still():
                shard = EdgeShard.load(str(folder / "shard"))
            scale = SimilarityScale(**made["scale"]) if "scale" in made else IDENTITY_SCALE
            return cls(number, shard, scale, generations, lock=lock, copy=copy)
        except BaseException:
            _let_go(lock, copy)
            raise

    def total(self, project: UUID, filters: Filters) -> int:
        """How many chunks there are to search. Counted once: 27 ms for 90,000, and a generation never changes."""
        if (project, filters) not in self._totals:
            if len(self._totals) >= _TOTALS:
                self._totals.clear()
            allowed = Filter(must=[*_allowed(project, filters)])
            self._totals[project, filters] = self.shard.count(CountRequest(exact=True, filter=allowed))
        return self._totals[project, filters]

    def close(self) -> None:
        with self._generations.still():
            self.shard.close()
        _let_go(self._lock, self._copy)


def _let_go(lock: IO[bytes] | None, copy: Path | None) -> None:
    if lock is not None:
        lock.close()
    if copy is not None:
        shutil.rmtree(copy, ignore_errors=True)


class QdrantEdgeBuilder:
    """Builds generations and puts them out. One writer at a time, which the caller sees to."""

    def __init__(self, folder: Path, *, model: str, dimensions: int) -> None:
        self._generations = Generations(folder)
        self._model = model
        self._dimensions = dimensions

    def has_generation(self, generation: int) -> bool:
        made = _made_with(self._generations.path(generation))
        return made.items() >= self._making().items()

    def embedding_model_of(self, generation: int) -> str | None:
        model: str | None = _made_with(self._generations.path(generation)).get("model")
        return model

    async def stage(self, changes: AsyncIterator[Change], *, base: int | None) -> int:
        self._generations.sweep()
        number, building = self._generations.partial()
        shard = await asyncio.to_thread(self._begin, building, base)
        try:
            since_opened = 0
            async for change in changes:
                await asyncio.to_thread(self._apply, shard, change)
                if change.scale is not None:
                    _note(building, self._making() | {"scale": asdict(change.scale)})
                since_opened += len(change.entries)
                if since_opened >= _REOPEN:
                    shard = await asyncio.to_thread(self._reopened, shard, building)
                    since_opened = 0
            await asyncio.to_thread(shard.flush)
        finally:
            shard.close()
        await asyncio.to_thread(self._generations.finish, number, building)
        return number

    def _reopened(self, shard: EdgeShard, building: Path) -> EdgeShard:
        shard.flush()
        shard.close()
        return EdgeShard.load(str(building / "shard"))

    def publish(self, generation: int) -> None:
        self._generations.publish(generation)
        self.remove_leftovers()

    def current_generation(self) -> int | None:
        return self._generations.published()

    def remove_leftovers(self) -> None:
        self._generations.sweep()

    def leftovers(self) -> list[str]:
        return self._generations.leftovers()

    def contents(self, generation: int) -> Iterator[tuple[str, str]]:
        with _readable():
            opened = _Opened.open(self._generations, generation, model=self._model)
            try:
                offset = None
                while True:
                    points, offset = opened.shard.scroll(ScrollRequest(offset=offset, limit=1000, with_payload=True))
                    for point in points:
                        stored = cast("dict[str, Any]", point.payload)
                        yield stored["id"], stored["text"]
                    if offset is None:
                        return
            finally:
                opened.close()

    def _making(self) -> dict[str, Any]:
        return {"format": _FORMAT, "model": self._model, "dimensions": self._dimensions}

    def _begin(self, building: Path, base: int | None) -> EdgeShard:
        folder = building / "shard"
        if base is not None:
            self._generations.copy(base, building)
            return EdgeShard.load(str(folder))
        folder.mkdir(parents=True)
        _note(building, self._making())
        windows = MultiVectorConfig(MultiVectorComparator.MaxSim)
        dense = EdgeVectorParams(
            size=self._dimensions, distance=Distance.Cosine, multivector_config=windows, memory=Memory.Cold
        )
        words = EdgeSparseVectorParams(modifier=Modifier.Idf, memory=Memory.Cold)
        # No write-ahead log: a generation that is not finished is thrown away, never replayed.
        shard = EdgeShard.create(
            str(folder),
            EdgeConfig(vectors={_DENSE: dense}, sparse_vectors={_WORDS: words}, wal_enabled=False),
        )
        shard.update(UpdateOperation.create_field_index("project", KeywordIndexParams(is_tenant=True)))
        for field in ("document", "section", "chapter"):
            shard.update(UpdateOperation.create_field_index(field, KeywordIndexParams()))
        for field in ("source", "addresses"):
            shard.update(UpdateOperation.create_field_index(field, KeywordIndexParams(prefix=True)))
        counted = TextIndexParams(tokenizer=TokenizerType.Whitespace, lowercase=False, memory=Memory.Cold)
        shard.update(UpdateOperation.create_field_index("words", counted))
        return shard

    def _apply(self, shard: EdgeShard, change: Change) -> None:
        if change.remove:
            gone = Filter(must=[FieldCondition("document", match=MatchAny([str(one) for one in change.remove]))])
            shard.update(UpdateOperation.delete_points_by_filter(gone))
        points = [self._point(entry) for entry in change.entries]
        for start in range(0, len(points), _UPSERT):
            shard.update(UpdateOperation.upsert_points(points[start : start + _UPSERT]))

    def _point(self, entry: Entry) -> Point:
        vectors, chunk = entry.embedding.vectors, entry.chunk
        # The engine takes NaN and keeps half of a batch it refuses, so nothing wrong may reach it.
        if vectors.ndim != 2 or vectors.shape[1] != self._dimensions or not np.isfinite(vectors).all():
            raise StoreUnavailable(f"{chunk.source}: the embedder gave vectors that cannot be stored ({vectors.shape})")
        tongue = detect_language(chunk.text)
        spoken = sentence_stems(chunk.text, tongue)
        named = stems(chunk.label, tongue)
        return Point(
            str(uuid5(entry.project, chunk.id)),
            {_DENSE: cast("list[list[float]]", vectors), _WORDS: SparseVector(*weighted_words(spoken, named))},
            payload(entry, spoken),
        )


def _note(folder: Path, made: dict[str, Any]) -> None:
    """Write down how a generation is made."""
    (folder / "made.json").write_text(json.dumps(made), encoding="utf-8")


def _made_with(folder: Path) -> dict[str, Any]:
    """How a generation was made; empty where there is none."""
    try:
        made: dict[str, Any] = json.loads((folder / "made.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return made


def fusion_query(
    project: UUID, *, vector: Vector, words: str, limit: int, filters: Filters = NO_FILTERS
) -> QueryRequest:
    """The one request that a search is: the nearest by meaning and by words, fused by rank."""
    ours, *narrower = _allowed(project, filters)
    # How rare a word is, is counted in this project alone; the engine would count it in all of them.
    rarity = SearchParams(idf=IdfParams(corpus=Filter(must=[ours])))
    return QueryRequest(
        limit=limit,
        filter=Filter(must=[ours, *narrower]),
        query=cast("Fusion", Fusion.Rrf(k=_RRF_K)),  # the stub hides that it is one
        prefetches=[
            Prefetch(limit=_CANDIDATES, query=Query.Nearest(cast("list[float]", vector), using=_DENSE)),
            Prefetch(
                limit=_CANDIDATES, query=Query.Nearest(SparseVector(*query_words(words)), using=_WORDS), params=rarity
            ),
        ],
        with_payload=True,
        with_vector=[_DENSE],
    )


def _allowed(project: UUID, filters: Filters) -> list[FieldCondition]:
    """What a chunk must be: the project's, and whatever else is asked for."""
    conditions = [FieldCondition("project", match=MatchValue(str(project)))]
    for field, value in (("section", filters.section), ("chapter", filters.chapter)):
        if value is not None:
            conditions.append(FieldCondition(field, match=MatchValue(value)))
    if filters.path is not None:
        folder = filters.path.endswith("/")
        conditions.append(FieldCondition("source", match=(MatchPrefix if folder else MatchValue)(filters.path)))
    if filters.source_url_prefix is not None:
        conditions.append(FieldCondition("addresses", match=MatchPrefix(normalize_url(filters.source_url_prefix))))
    return conditions
