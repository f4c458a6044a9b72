"""The migration of an index to another engine: read → stage → publish → compare, project by project.

Nothing is embedded: vectors come from the old index, or else from the cache in the library. Readers use the old index
throughout. A run that was killed is finished by the next one, which leaves out what has arrived whole.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from typing import TypeAlias, cast
from uuid import UUID

from citewell.errors import EmptyKnowledgeBase, IndexUnavailable, MigrationError, OtherModel
from citewell.ingest.doctor import compare_contents
from citewell.ingest.run_record import Progress
from citewell.models import Chunk, Project
from citewell.ports import (
    Change,
    Embedder,
    Entry,
    Index,
    IndexBuilder,
    Library,
    LibraryWriter,
    VectorCache,
)

_BATCH_CHUNKS = 256  # of those that the old index lacks
_SAMPLED_CHUNKS = 100  # of all projects together, and at least 2 of each
_FOUND_PASSAGES = 50  # so many that the nearest chunk is among them, however the words rank
_SCORE_TOLERANCE = 1e-4

Scope: TypeAlias = UUID | None
"""What has an index of its own: a project, or everything together."""


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """An engine that holds an index, or is to hold one. Opened for a project, a builder lists that project alone."""

    name: str
    index: Index
    is_shared: bool
    """Whether one generation holds all projects."""
    open_builder: Callable[[Scope], AbstractAsyncContextManager[IndexBuilder]]
    library: Callable[[Scope], Library]
    """The library, with the generations that it names in this engine."""
    library_writer: LibraryWriter

    def scopes(self, projects: Sequence[Project]) -> Sequence[Scope]:
        return [None] if self.is_shared else [project.id for project in projects]


@dataclass(frozen=True, slots=True)
class MigrationStores:
    """What both indexes are of: the projects and their embeddings."""

    projects: Sequence[Project]
    cache: VectorCache
    embedder: Embedder


@dataclass(frozen=True, slots=True)
class MovedIndex:
    """The outcome of a migration."""

    source: str
    chunks: int
    projects: int
    already_there: int
    """How many of the projects were in the new engine before, whole; all of them count as one where it is shared."""
    compared: int
    """How many windows were searched in both indexes."""


async def find_source(places: Sequence[IndexPlace], stores: MigrationStores) -> IndexPlace | None:
    """The first of the engines whose published index matches the library."""
    failure: IndexUnavailable | None = None
    for place in places:
        try:
            if await _matches_library(place, stores):
                return place
        except IndexUnavailable as error:
            failure = failure or error
    if failure:
        raise failure
    return None


async def _matches_library(place: IndexPlace, stores: MigrationStores) -> bool:
    for scope in place.scopes(stores.projects):
        async with place.open_builder(scope) as builder:
            generation = await place.library(scope).generation()
            if generation is None or await builder.current_generation() != generation:
                continue
            if await builder.embedding_model_of(generation):  # otherwise: named once, and gone since
                return True
    return False


async def move_index(
    source: IndexPlace, target: IndexPlace, stores: MigrationStores, *, progress: Progress, remove_source: bool = False
) -> MovedIndex:
    """Make the target an index of the library as it is, with the embeddings of the source; for one writer at a time.

    Raises OtherModel if the source is of another embedding model, MigrationError if an embedding is nowhere to be
    found or if the target does not answer as the source does. The library names the new index only at the end.
    """
    await _require_intact(source, stores)
    move = _IndexMove(source, target, stores, progress)
    generations = {scope: await move.scope(scope) for scope in target.scopes(stores.projects)}
    compared = await _compare_scores(source, target, await move.samples(generations))
    await target.library_writer.set_generations(dict(generations))
    if remove_source:
        await _remove(source, stores)
    return MovedIndex(source.name, move.total, len(stores.projects), move.already_there, compared)


async def _require_intact(source: IndexPlace, stores: MigrationStores) -> None:
    model = stores.embedder.model
    for scope in source.scopes(stores.projects):
        async with source.open_builder(scope) as builder:
            generation = await builder.current_generation()
            if generation is None:
                continue
            if (made := await builder.embedding_model_of(generation)) not in (None, model):
                raise OtherModel(made=str(made), configured=model)
            if fault := await builder.fault_of(generation):
                raise MigrationError(
                    f"generation {generation} of the index in {source.name} {fault}; run `citewell doctor --fix` first"
                )


class _IndexMove:
    """One run: moves scope after scope of the target, and counts chunks for the progress."""

    def __init__(self, source: IndexPlace, target: IndexPlace, stores: MigrationStores, progress: Progress) -> None:
        self.already_there = 0
        self.total = 0
        self._source = source
        self._target = target
        self._stores = stores
        self._progress = progress
        self._done = 0

    async def scope(self, scope: Scope) -> int:
        """The generation of a project, or of all, in the target: published there, and compared with the library."""
        if not self.total:
            self.total = await self._count_chunks()
        library = self._target.library(scope)
        async with self._target.open_builder(scope) as builder:
            generation = await builder.current_generation()
            if generation is not None and not await self._problems(builder, generation, library):
                self.already_there += 1
                self._count(sum([len(batch) async for batch in library.chunks()]))
                return generation
            generation = await builder.stage(self._changes(scope, library), base=None)
            await builder.publish(generation)
            if problems := await self._problems(builder, generation, library):
                raise MigrationError(f"the index did not arrive as it was: {'; '.join(problems)}; run it again")
            return generation

    async def samples(self, generations: dict[Scope, int]) -> list[Entry]:
        """A few chunks of each project, as the target stores them."""
        most = max(2, _SAMPLED_CHUNKS // max(1, len(generations)))
        sampled: list[Entry] = []
        for scope, generation in generations.items():
            async with self._target.open_builder(scope) as builder:
                batches = cast("AsyncGenerator[Sequence[Entry]]", builder.entries(generation))
                async with aclosing(batches):
                    batch: Sequence[Entry] = await anext(batches, [])
                sampled += batch[:: max(1, len(batch) // most)][:most]
        return sampled

    async def _problems(self, builder: IndexBuilder, generation: int, library: Library) -> list[str]:
        """How a generation of the target is not an intact index of the library; empty if it is."""
        if fault := await builder.fault_of(generation):
            return [f"generation {generation} {fault}"]
        return await compare_contents(library, builder, generation)

    async def _changes(self, scope: Scope, library: Library) -> AsyncIterator[Change]:
        """Every chunk of the library: as the source has it, and what the source lacks with the cached embedding."""
        missing = {chunk.id async for batch in library.chunks() for _, chunk in batch}
        async for entries in self._source_entries(scope):
            known = [entry for entry in entries if entry.chunk.id in missing]
            missing.difference_update(entry.chunk.id for entry in known)
            self._count(len(known))
            yield Change(entries=known)
        async for entries in self._cached_entries(library, missing):
            self._count(len(entries))
            yield Change(entries=entries)
        if not self._stores.embedder.fitted:
            known_scale = await self._stores.cache.load_scale(model=self._stores.embedder.model)
            yield Change(scale=known_scale or await self._source.index.scale())

    async def _source_entries(self, scope: Scope) -> AsyncIterator[Sequence[Entry]]:
        """What the source has of a project, or of all."""
        for part in [scope] if scope else self._source.scopes(self._stores.projects):
            async with self._source.open_builder(part) as builder:
                generation = await builder.current_generation()
                if generation is not None:
                    async for entries in builder.entries(generation):
                        yield entries

    async def _cached_entries(self, library: Library, ids: set[str]) -> AsyncIterator[list[Entry]]:
        if not ids:
            return
        pending: list[tuple[UUID, Chunk]] = []
        async for batch in library.chunks():
            pending += [(project, chunk) for project, chunk in batch if chunk.id in ids]
            if len(pending) >= _BATCH_CHUNKS:
                yield await self._from_cache(pending)
                pending = []
        yield await self._from_cache(pending)

    async def _from_cache(self, chunks: Sequence[tuple[UUID, Chunk]]) -> list[Entry]:
        keys = [chunk.embedding_key for _, chunk in chunks]
        embeddings = await self._stores.cache.load(keys, model=self._stores.embedder.model)
        for _, chunk in chunks:
            if chunk.embedding_key not in embeddings:
                raise MigrationError(
                    f"the chunk {chunk.id} of {chunk.source} is not in the index that is to be moved, and its "
                    "embedding is not in the database; run `citewell doctor --fix` first, which embeds it"
                )
        return [Entry(project, chunk, embeddings[chunk.embedding_key]) for project, chunk in chunks]

    async def _count_chunks(self) -> int:
        whole = self._target.library(None)
        return sum([row.chunks for project in self._stores.projects for row in await whole.documents(project)])

    def _count(self, chunks: int) -> None:
        self._done += chunks
        self._progress(min(self._done, self.total), self.total)


async def _compare_scores(source: IndexPlace, target: IndexPlace, sampled: Sequence[Entry]) -> int:
    """Search a window of each sampled chunk in both indexes; returns how many. Raises MigrationError if scores differ.

    Which passages come last may differ, since engines break ties in their own way; the best one and every score may
    not.
    """
    compared = 0
    for number, entry in enumerate(sampled):
        try:
            old = await _scores(source.index, entry, number)
        except EmptyKnowledgeBase:  # the whole project is from the cache
            continue
        if entry.chunk.id not in old:  # from the cache: the old index lacks it
            continue
        new = await _scores(target.index, entry, number)
        differences = [abs(old[chunk] - new[chunk]) for chunk in old.keys() & new.keys()]
        differences.append(abs(max(old.values()) - max(new.values(), default=-1.0)))
        if max(differences) > _SCORE_TOLERANCE:
            raise MigrationError(
                f"the two indexes differ: near the chunk {entry.chunk.id} of {entry.chunk.source} a score is "
                f"{max(differences):.4f} away from what it was; leave CITEWELL_INDEX as it is"
            )
        compared += 1
    return compared


async def _scores(index: Index, entry: Entry, number: int) -> dict[str, float]:
    """The scores of a search for one of the windows of a chunk, by chunk."""
    windows = entry.embedding.vectors
    vector, words = windows[number % len(windows)], entry.chunk.label
    found = await index.search(entry.project, vector=vector, words=words, limit=_FOUND_PASSAGES)
    return {passage.chunk.id: passage.cosine for passage in found}


async def _remove(source: IndexPlace, stores: MigrationStores) -> None:
    await source.index.close()  # what a reader has open stays
    scopes = source.scopes(stores.projects)
    for scope in scopes:
        async with source.open_builder(scope) as builder:
            await builder.remove()
    await source.library_writer.set_generations(dict.fromkeys(scopes))
