"""Builds generations of one project on a Qdrant server and publishes them by one write.

The points of a new generation stand beside those of the published one, and readers do not see them: each point says
from which generation on it is there, and from which on it is not. Publishing replaces the project's state; then the
points that only older generations had are deleted.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast
from uuid import UUID, uuid4

from qdrant_client import AsyncQdrantClient
from qdrant_client.conversions.common_types import PointId, Record
from qdrant_client.models import Filter, FilterSelector, Payload, PointIdsList, PointsSelector

from citewell.adapters.index_format import DENSE_VECTORS, MENDED_BY_DOCTOR, IndexOrigin, IndexPoint, to_entry
from citewell.adapters.qdrant.collection import Collection, CollectionOptions
from citewell.adapters.qdrant.conditions import (
    ADDED,
    REMOVED,
    after,
    in_generation,
    of_documents,
    of_project,
    up_to,
)
from citewell.adapters.qdrant.server import CollectionMissing, QdrantServer
from citewell.adapters.qdrant.states import Generation, ProjectState, state_id, write_state
from citewell.adapters.qdrant.uploads import batches, both_ids, to_points, to_struct
from citewell.errors import IndexUnavailable
from citewell.ports import Change, Entry

_CHUNKS_PER_PAGE = 500
_EMBEDDINGS_PER_PAGE = 64  # with their vectors, which are 20 kB and more in JSON
_DOCUMENTS_PER_CALL = 500


class QdrantBuilder:
    """Builds generations of one project. The caller makes sure that each project has one writer at a time."""

    def __init__(
        self, server: QdrantServer, options: CollectionOptions, *, project: UUID, model: str, dimensions: int
    ) -> None:
        self._server = server
        self._project = project
        self._collection = Collection(server, options, IndexOrigin.configured(model=model, dimensions=dimensions))

    async def fault_of(self, generation: int) -> str | None:
        state = await self._state()
        if (made := state.generation(generation)) is None:
            other = await self._state_elsewhere(generation)
            return (other and other.origin.fault(self._collection.origin)) or "is missing"
        points = await self._count(in_generation(self._project, generation))
        return None if points == made.points else f"is damaged: it has {points} of its {made.points} chunks"

    async def embedding_model_of(self, generation: int) -> str | None:
        state = await self._state()
        if state.generation(generation) is None:
            other = await self._state_elsewhere(generation)
            return other.origin.model if other else None
        return state.origin.model

    async def current_generation(self) -> int | None:
        published = (await self._state()).published
        return published.number if published else None

    async def stage(self, changes: AsyncIterator[Change], *, base: int | None) -> int:
        await self._collection.prepare()
        await self.remove_leftovers()
        state = await self._state()
        if base is not None and (state.published is None or base != state.number):
            raise self._missing(base)
        elsewhere = await self._collection.states_elsewhere(self._project)
        number = 1 + max([state.newest, *(other.newest for other in elsewhere.values())])
        staging = _Staging(self._server, self._collection, state, number)
        if base is None:
            await staging.remove_all()
        scale = state.published.scale if base is not None and state.published else None
        async for change in changes:
            await staging.apply(change)
            scale = change.scale or scale
        await staging.apply_removals()
        points = await self._count(in_generation(self._project, number))
        await self._collection.quantize_if_large()
        staged = Generation(number, build=uuid4().hex, points=points, scale=scale)
        await self._write(replace(state, staged=staged))
        return number

    async def publish(self, generation: int) -> None:
        state = await self._state()
        if (made := state.generation(generation)) is None:
            raise self._missing(generation)
        if state.published != made:
            await self._write(replace(state, published=made, staged=None))  # the switch
        await self._collection.take_alias()
        await self.remove_leftovers()
        if state.published not in (None, made):
            await self._forget_older_models()

    async def contents(self, generation: int) -> AsyncIterator[tuple[str, str]]:
        fields = ["chunk_id", "text"]
        async for rows in self._pages(generation, _CHUNKS_PER_PAGE, with_payload=fields, with_vectors=False):
            for payload, _ in rows:
                yield payload["chunk_id"], payload["text"]

    async def entries(self, generation: int) -> AsyncIterator[Sequence[Entry]]:
        vectors = [DENSE_VECTORS]
        async for rows in self._pages(generation, _EMBEDDINGS_PER_PAGE, with_payload=True, with_vectors=vectors):
            yield [to_entry(payload, vectors[DENSE_VECTORS]) for payload, vectors in rows]

    async def leftovers(self) -> list[str]:
        state, names = await self._state(), []
        if state.staged:
            names.append(str(state.staged.number))
        elif await self._count(self._added_later(state)) or await self._count(self._removed_later(state)):
            names.append(f"{state.number + 1}.partial")
        if await self._count(self._superseded(state)):
            names.append(f"{state.number}.superseded")
        return names

    async def remove_leftovers(self) -> None:
        state = await self._state()
        if state.staged:
            await self._write(replace(state, staged=None))
        try:
            await self._delete(self._added_later(state))
            await self._delete(self._superseded(state))
            removed_later = FilterSelector(filter=self._removed_later(state))
            await self._server.write(
                lambda client: client.delete_payload(self._collection.name, [REMOVED], removed_later, wait=True)
            )
        except CollectionMissing:
            return

    async def remove(self) -> None:
        with suppress(CollectionMissing):
            await self._server.delete(self._collection.name, PointIdsList(points=[state_id(self._project)]))
            await self._delete(Filter(must=[of_project(self._project)]))
        await self._forget_older_models()

    async def close(self) -> None:
        await self._server.close()

    async def _state(self) -> ProjectState:
        state = await self._collection.state(self._project)
        return state or ProjectState(self._project, self._collection.origin)

    async def _write(self, state: ProjectState) -> None:
        await write_state(self._server, self._collection.name, state)

    async def _state_elsewhere(self, generation: int) -> ProjectState | None:
        """The state of the project in a collection of another model or version, where that has the generation."""
        states = await self._collection.states_elsewhere(self._project)
        return next((state for state in states.values() if state.generation(generation)), None)

    def _missing(self, generation: int) -> IndexUnavailable:
        return IndexUnavailable(f"generation {generation} of the index is not on the vector store; {MENDED_BY_DOCTOR}")

    def _added_later(self, state: ProjectState) -> Filter:
        return Filter(must=[of_project(self._project), after(ADDED, state.number)])

    def _removed_later(self, state: ProjectState) -> Filter:
        return Filter(must=[of_project(self._project), after(REMOVED, state.number)])

    def _superseded(self, state: ProjectState) -> Filter:
        return Filter(must=[of_project(self._project), up_to(REMOVED, state.number)])

    async def _count(self, matching: Filter) -> int:
        try:
            return await self._server.count(self._collection.name, matching)
        except CollectionMissing:
            return 0

    async def _delete(self, matching: Filter) -> None:
        await self._server.delete(self._collection.name, FilterSelector(filter=matching))

    async def _forget_older_models(self) -> None:
        """Delete what other embedding models made of this project.

        Not at the first publish with a new model: servers that still use the old one answer until the next ingest.
        """
        for name in await self._collection.states_elsewhere(self._project):
            await self._server.delete(name, FilterSelector(filter=Filter(must=[of_project(self._project)])))
            await self._server.delete(name, PointIdsList(points=[state_id(self._project)]))

    async def _pages(
        self, generation: int, size: int, *, with_payload: bool | list[str], with_vectors: bool | list[str]
    ) -> AsyncIterator[list[tuple[Payload, Any]]]:
        """Payloads and vectors of a generation."""
        if (await self._state()).generation(generation) is None:
            raise self._missing(generation)
        matching, offset = in_generation(self._project, generation), None

        def scroll(client: AsyncQdrantClient) -> Awaitable[tuple[list[Record], PointId | None]]:
            return client.scroll(
                self._collection.name,
                scroll_filter=matching,
                limit=size,
                offset=offset,
                with_payload=with_payload,
                with_vectors=with_vectors,
            )

        while True:
            records, offset = await self._server.call(scroll)
            yield [(record.payload or {}, cast("Any", record.vector)) for record in records]
            if offset is None:
                return


class _Staging:
    """The generation under construction. What it writes is seen by no reader of the published one."""

    def __init__(self, server: QdrantServer, collection: Collection, state: ProjectState, number: int) -> None:
        self._server = server
        self._collection = collection
        self._state = state
        self._number = number
        self._removes_all = state.published is None
        self._removals: list[UUID] = []
        self._staged_documents: set[UUID] = set()

    async def remove_all(self) -> None:
        """Leave out everything that is published."""
        if not self._removes_all:
            self._removes_all = True
            await self._mark_removed(FilterSelector(filter=in_generation(self._state.project, self._state.number)))

    async def apply(self, change: Change) -> None:
        self._removals.extend(change.remove)
        if not change.entries:
            return  # an ingest removes one document at a time
        await self.apply_removals()
        self._staged_documents.update(entry.chunk.document_id for entry in change.entries)
        points = await asyncio.to_thread(to_points, change.entries, dimensions=self._collection.origin.dimensions)
        for batch in batches(points):
            await self._upload(batch)

    async def apply_removals(self) -> None:
        documents, self._removals = self._removals, []
        for start in range(0, len(documents), _DOCUMENTS_PER_CALL):
            some = documents[start : start + _DOCUMENTS_PER_CALL]
            in_project = [of_project(self._state.project), of_documents(some)]
            if not self._staged_documents.isdisjoint(some):
                staged = FilterSelector(filter=Filter(must=[*in_project, after(ADDED, self._state.number)]))
                await self._server.delete(self._collection.name, staged)
            if not self._removes_all:
                published = Filter(must=[*in_project, up_to(ADDED, self._state.number)])
                await self._mark_removed(FilterSelector(filter=published))

    async def _upload(self, points: Sequence[IndexPoint]) -> None:
        published = await self._published_ids(points)
        ids = {point.id: next(one for one in both_ids(point) if one not in published) for point in points}
        structs = [to_struct(point, ids[point.id], generation=self._number) for point in points]
        await self._server.write(lambda client: client.upsert(self._collection.name, structs, wait=True))
        if replaced := [one for one, is_marked in published.items() if not is_marked]:
            await self._mark_removed(PointIdsList(points=list(replaced)))

    async def _published_ids(self, points: Sequence[IndexPoint]) -> dict[str, bool]:
        """The ids under which these chunks are published, and whether each is marked as removed."""
        if self._state.published is None:
            return {}
        ids = [one for point in points for one in both_ids(point)]
        records = await self._server.call(
            lambda client: client.retrieve(self._collection.name, ids, with_payload=[ADDED, REMOVED])
        )
        payloads = {str(record.id): record.payload or {} for record in records}
        return {one: REMOVED in row for one, row in payloads.items() if row[ADDED] <= self._state.number}

    async def _mark_removed(self, selector: PointsSelector) -> None:
        removed = {REMOVED: self._number}
        await self._server.write(lambda client: client.set_payload(self._collection.name, removed, selector, wait=True))
