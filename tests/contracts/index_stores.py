"""The engines that the contract of Index and IndexBuilder is tried on, and chunks to put into them."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID, uuid5

import numpy as np

from citewell.adapters.pgvector import PgVectorBuilder, PgVectorIndex
from citewell.adapters.qdrant import READING, WRITING, CollectionOptions, QdrantBuilder, QdrantIndex, QdrantServer
from citewell.adapters.qdrant_edge import QdrantEdgeBuilder, QdrantEdgeIndex
from citewell.adapters.sql import Database
from citewell.models import Chunk, Project, Vector, chunk_id, content_hash
from citewell.ports import Change, Embedding, Entry, Index, IndexBuilder
from citewell.retry import RetryPolicy

OURS, THEIRS = Project.named("ours").id, Project.named("theirs").id
SIZE = 4


@dataclass
class Store:
    """An index and its builders in one place. `other` opens the same place again, perhaps for another model."""

    index: Index
    make_builder: Callable[[UUID | None], IndexBuilder]
    other: "Callable[..., Store]"
    builder_is_for_one_project: bool
    connections: Sequence[QdrantServer] = ()
    database: Database | None = None
    _builders: dict[UUID | None, IndexBuilder] = field(default_factory=dict)

    @property
    def builder(self) -> IndexBuilder:
        return self.builder_for(OURS)

    def builder_for(self, project: UUID) -> IndexBuilder:
        scope = project if self.builder_is_for_one_project else None
        if scope not in self._builders:
            self._builders[scope] = self.make_builder(scope)
        return self._builders[scope]

    async def publish(self, *changes: Change, base: int | None = None) -> int:
        """Stage and publish; returns the generation of our project."""
        projects = {entry.project for change in changes for entry in change.entries} | {OURS}
        for project in sorted(projects - {OURS}) if self.builder_is_for_one_project else ():
            builder = self.builder_for(project)
            known = await builder.current_generation() if base is not None else None
            theirs = [_of_project(change, project) for change in changes]
            await builder.publish(await builder.stage(each(theirs), base=known))
        ours = [_of_project(change, OURS) for change in changes] if self.builder_is_for_one_project else changes
        generation = await self.builder.stage(each(ours), base=base)
        await self.builder.publish(generation)
        return generation

    async def close(self) -> None:
        await self.index.close()
        for builder in self._builders.values():
            await builder.close()
        for connection in self.connections:
            await connection.close()
        if self.database:
            await self.database.close()


def _of_project(change: Change, project: UUID) -> Change:
    return replace(change, entries=[entry for entry in change.entries if entry.project == project])


def embedded(folder: Path, model: str = "test") -> Store:
    return Store(
        index=QdrantEdgeIndex(folder, model=model, dimensions=SIZE),
        make_builder=lambda _: QdrantEdgeBuilder(folder, model=model, dimensions=SIZE),
        other=lambda model="test": embedded(folder, model),
        builder_is_for_one_project=False,
    )


def on_qdrant(connect: Callable[[RetryPolicy], QdrantServer], name: str) -> Store:
    """A store on a server. Closing it closes all connections, also of stores that were opened beside it."""
    opened: list[QdrantServer] = []

    def connect_once(policy: RetryPolicy) -> QdrantServer:
        opened.append(connect(policy))
        return opened[-1]

    return _on_qdrant(connect_once, opened, name, "test")


def _on_qdrant(
    connect: Callable[[RetryPolicy], QdrantServer], opened: list[QdrantServer], name: str, model: str
) -> Store:
    options = CollectionOptions(alias=name, replicas=1, shards=1)
    return Store(
        index=QdrantIndex(connect(READING), options, model=model, dimensions=SIZE),
        make_builder=lambda project: QdrantBuilder(
            connect(WRITING), options, project=project or OURS, model=model, dimensions=SIZE
        ),
        other=lambda model="test": _on_qdrant(connect, opened, name, model),
        builder_is_for_one_project=True,
        connections=opened,
    )


def in_postgres(database: Database, model: str = "test") -> Store:
    def make_builder(project: UUID | None) -> IndexBuilder:
        assert project is not None
        return PgVectorBuilder(database, project, model=model, dimensions=SIZE)

    return Store(
        index=PgVectorIndex(database, model=model, dimensions=SIZE),
        make_builder=make_builder,
        other=lambda model="test": in_postgres(database, model),
        builder_is_for_one_project=True,
        database=database,
    )


async def each(changes: Sequence[Change]) -> AsyncIterator[Change]:
    for change in changes:
        yield change


def vector(*values: float) -> Vector:
    unit = np.array(values, dtype=np.float32)
    return unit / np.linalg.norm(unit)


def entry(text: str, *rows: Vector, project: UUID = OURS, document: str = "a.md") -> Entry:
    identity = uuid5(project, document)
    content = content_hash("Title", "Section", text)
    chunk = Chunk(
        id=chunk_id(identity, content),
        document_id=identity,
        content_hash=content,
        index=0,
        source=document,
        chapter="Title",
        section="Section",
        headings=("Section",),
        text=text,
        start=0,
        end=len(text),
        first_line=1,
        last_line=1,
    )
    return Entry(project, chunk, Embedding(np.stack(rows), tuple((0, len(text)) for _ in rows)))


EAST, NORTH, UP = vector(1, 0, 0, 0), vector(0, 1, 0, 0), vector(0, 0, 1, 0)
