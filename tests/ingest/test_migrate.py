"""The migration of an index between engines of both kinds: one generation for all projects, or one for each.

Where no server is at hand, an engine with a generation for each project is made of embedded ones.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol
from uuid import UUID

import pytest

from citewell.adapters.hashing import HashingEmbedder
from citewell.adapters.qdrant_edge import QdrantEdgeBuilder, QdrantEdgeIndex
from citewell.adapters.sql import Database, SqlLibrary, SqlProjects
from citewell.errors import MigrationError, OtherModel
from citewell.ingest.migrate import IndexPlace, MigrationStores, find_source, move_index
from citewell.models import NO_FILTERS, Filters, Passage, Project, Vector, document_id
from citewell.ports import Embeddable, Embedding, Index, IndexBuilder
from citewell.similarity_scale import IDENTITY_SCALE, SimilarityScale
from tests.conftest import PROJECT, copied, take_in

pytestmark = pytest.mark.anyio

SECOND = Project.named("second")
TOGETHER, APART, ELSEWHERE = "together", "apart", "elsewhere"
"""Kinds of engine: one generation for all projects; one for each, in two servers."""


class NeverEmbeds(HashingEmbedder):
    """Fails where it is used: a migration embeds nothing."""

    async def embed_passages(self, passages: Sequence[Embeddable]) -> list[Embedding]:  # noqa: ARG002
        raise AssertionError("a migration embeds nothing")


@dataclass
class ApartIndex:
    """An index for each project, as on a server."""

    open_index: Callable[[UUID], QdrantEdgeIndex]
    skew: float = 0.0
    """By how much its scores are wrong."""
    _indexes: dict[UUID, QdrantEdgeIndex] = field(default_factory=dict)

    async def search(
        self, project: UUID, *, vector: Vector, words: str, limit: int, filters: Filters = NO_FILTERS
    ) -> tuple[Passage, ...]:
        index = self._indexes.setdefault(project, self.open_index(project))
        found = await index.search(project, vector=vector, words=words, limit=limit, filters=filters)
        return tuple(replace(passage, cosine=passage.cosine - self.skew) for passage in found)

    async def frequencies(
        self, project: UUID, stems: Sequence[str], *, filters: Filters = NO_FILTERS
    ) -> tuple[int, list[int]]:
        return await self._indexes[project].frequencies(project, stems, filters=filters)

    async def scale(self) -> SimilarityScale:
        return IDENTITY_SCALE

    def problem(self) -> str | None:
        return None

    async def close(self) -> None:
        for index in self._indexes.values():
            await index.close()
        self._indexes.clear()


class MakePlace(Protocol):
    def __call__(
        self, kind: str, folder: Path, embedder: HashingEmbedder | None = None, *, skew: float = 0.0
    ) -> IndexPlace: ...


@pytest.fixture
async def place(opened: Database) -> AsyncIterator[MakePlace]:
    """Makes engines in folders, and closes them at the end."""
    indexes: list[Index] = []

    def make(kind: str, folder: Path, embedder: HashingEmbedder | None = None, *, skew: float = 0.0) -> IndexPlace:
        model = embedder or NeverEmbeds()

        def open_index(project: UUID | None) -> QdrantEdgeIndex:
            own = folder / str(project) if project else folder
            return QdrantEdgeIndex(own, model=model.model, dimensions=model.dimensions)

        @asynccontextmanager
        async def open_builder(project: UUID | None) -> AsyncIterator[IndexBuilder]:
            own = folder if kind == TOGETHER else folder / str(project)
            builder = QdrantEdgeBuilder(own, model=model.model, dimensions=model.dimensions, project=project)
            yield builder
            await builder.close()

        def library(project: UUID | None) -> SqlLibrary:
            return SqlLibrary(opened, project=project, engine=ELSEWHERE if kind == ELSEWHERE else None)

        index: Index = open_index(None) if kind == TOGETHER else ApartIndex(open_index, skew)
        indexes.append(index)
        return IndexPlace(kind, index, kind == TOGETHER, open_builder, library, library(None))

    yield make
    for index in indexes:
        await index.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two projects. Nobody changes it."""
    folder, randomly = tmp_path_factory.mktemp("filled"), random.Random(5)
    for project, pages in ((PROJECT, 40), (SECOND, 15)):
        docs = folder / project.name
        docs.mkdir()
        for number in range(pages):
            words = [f"{word}{randomly.randrange(300)}" for word in ("valve", "pump", "gasket", "pipe") * 8]
            text = f"Valve {number} of {project.name} opens at noon. {' '.join(words)}."
            notes = f"Red, {words[3]}, {words[7]}."
            (docs / f"{number}.md").write_text(f"# Page {number}\n\n{text}\n\n## Notes\n\n{notes}\n")
        take_in(folder / "home", docs, project=project.name, embedder="hashing")
    return folder / "home"


@pytest.fixture
async def opened(filled: Path, home: Path) -> AsyncIterator[Database]:
    """The database of a copy of that home."""
    database = await Database.open(copied(filled, home) / "citewell.db")
    yield database
    await database.close()


@pytest.fixture
async def stores(opened: Database) -> MigrationStores:
    projects = [project for project, _ in await SqlProjects(opened).projects()]
    return MigrationStores(projects, cache=SqlLibrary(opened), embedder=NeverEmbeds())


@pytest.fixture
def source(home: Path, place: MakePlace) -> IndexPlace:
    return place(TOGETHER, home / "index")


def silent(done: int, total: int) -> None:
    pass


async def answers(place: IndexPlace) -> list[list[float]]:
    """The scores of what searches by meaning find; which of two equal passages comes first is the engine's choice."""
    embedder = HashingEmbedder()
    found = []
    for project in (PROJECT, SECOND):
        for question in ("When does valve 7 open?", "valve12 pump34 gasket56", "Is pipe9 red?"):
            vector = await embedder.embed_query(question)
            passages = await place.index.search(project.id, vector=vector, words="zzzz", limit=20)
            assert {passage.chunk.document_id for passage in passages} <= {
                document_id(project, f"{number}.md") for number in range(40)
            }
            found.append(sorted(round(passage.cosine, 5) for passage in passages))
    await place.index.close()
    return found


@pytest.mark.parametrize("kind", [TOGETHER, APART, ELSEWHERE])
async def test_an_index_moves_and_back_and_answers_as_before(
    stores: MigrationStores, place: MakePlace, source: IndexPlace, tmp_path: Path, kind: str
) -> None:
    before, seen = await answers(source), list[tuple[int, int]]()
    target = place(kind, tmp_path / "new")
    moved = await move_index(source, target, stores, progress=lambda done, total: seen.append((done, total)))
    assert (moved.source, moved.chunks, moved.projects, moved.already_there) == (TOGETHER, 110, 2, 0)
    assert moved.compared > 50
    assert seen[-1] == (110, 110)
    assert await answers(target) == before
    assert await answers(source) == before, "readers of the old one are served throughout"
    back = place(TOGETHER, tmp_path / "back")
    assert (await move_index(target, back, stores, progress=silent)).chunks == 110
    assert await answers(back) == before
    again = await move_index(target, back, stores, progress=silent)
    assert again.already_there == 1, "what has arrived is left out"


async def test_the_library_names_the_new_index_and_the_old_one_until_it_is_removed(
    stores: MigrationStores, place: MakePlace, source: IndexPlace, tmp_path: Path
) -> None:
    target = place(APART, tmp_path / "new")
    assert await find_source([target, source], stores) is source
    await move_index(source, target, stores, progress=silent)
    assert await named(target, source) == [1, 1, 2]
    assert await find_source([target], stores) is target
    again = await move_index(source, target, stores, progress=silent, remove_source=True)
    assert again.already_there == 2
    assert await named(target, source) == [1, 1, None]
    assert await find_source([source], stores) is None
    async with source.open_builder(None) as builder:
        assert await builder.current_generation() is None
    assert [path for path in (tmp_path / "home" / "index").iterdir() if path.suffix != ".lock"] == []


async def test_an_ingest_forgets_the_generation_of_the_engine_that_it_does_not_write(
    stores: MigrationStores, place: MakePlace, source: IndexPlace, tmp_path: Path
) -> None:
    target = place(APART, tmp_path / "new")
    await move_index(source, target, stores, progress=silent)
    other = place(ELSEWHERE, tmp_path / "other")
    await move_index(target, other, stores, progress=silent)
    assert [await named(target, source), await named(other, source)] == [[1, 1, 2], [1, 1, 2]]
    for written, generations in ((other, [None, 8]), (target, [8, None])):
        await written.library(SECOND.id).commit(remove=[], generation=8)  # type: ignore[attr-defined]
        assert [(await named(engine, source))[1] for engine in (target, other)] == generations
        assert (await named(target, source))[::2] == [1, None], "the other project is as it was"
    await source.library(None).commit(remove=[], generation=9)  # type: ignore[attr-defined]
    assert [await named(target, source), await named(other, source)] == [[None, None, 9], [None, None, 9]]


async def named(apart: IndexPlace, together: IndexPlace) -> list[int | None]:
    """The generations that the library names: of both projects, and of all together."""
    scopes = ((apart, PROJECT.id), (apart, SECOND.id), (together, None))
    return [await engine.library(scope).generation() for engine, scope in scopes]


async def test_a_run_that_died_is_finished_by_the_next(
    stores: MigrationStores, place: MakePlace, source: IndexPlace, tmp_path: Path
) -> None:
    target, counted = place(APART, tmp_path / "new"), list[int]()

    def die_in_the_second_project(done: int, total: int) -> None:
        counted.append(done)
        if len(counted) > 1:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await move_index(source, target, stores, progress=die_in_the_second_project)
    assert await target.library(PROJECT.id).generation() is None, "nothing half done is visible"
    moved = await move_index(source, target, stores, progress=silent)
    assert moved.already_there == 1
    assert await answers(target) == await answers(source)


async def test_what_the_old_index_lacks_comes_from_the_cache_or_is_named(
    stores: MigrationStores, place: MakePlace, home: Path, tmp_path: Path
) -> None:
    empty = place(TOGETHER, tmp_path / "empty")
    target = place(APART, tmp_path / "new")
    assert (await move_index(empty, target, stores, progress=silent)).compared == 0
    assert await answers(target) == await answers(place(TOGETHER, home / "index"))
    library = target.library(None)
    chunks = [chunk async for batch in library.chunks() for _, chunk in batch]
    await forget_embedding(home / "citewell.db", chunks[30].embedding_key)
    with pytest.raises(MigrationError, match=f"the chunk {chunks[30].id} of {chunks[30].source} is not in the index"):
        await move_index(empty, place(APART, tmp_path / "other"), stores, progress=silent)


async def forget_embedding(database: Path, key: str) -> None:
    from sqlalchemy import delete

    from citewell.adapters.sql.tables import embeddings

    opened = await Database.open(database)
    async with opened.writing() as connection:
        await connection.execute(delete(embeddings).where(embeddings.c.text_hash == key))
    await opened.close()


async def test_an_index_that_answers_otherwise_is_not_named(
    stores: MigrationStores, place: MakePlace, source: IndexPlace, tmp_path: Path
) -> None:
    wrong = place(APART, tmp_path / "new", skew=0.0002)
    with pytest.raises(MigrationError, match=r"a score is 0\.0002 away from what it was; leave"):
        await move_index(source, wrong, stores, progress=silent)
    assert await wrong.library(PROJECT.id).generation() is None
    right = place(APART, tmp_path / "new", skew=0.00005)
    assert (await move_index(source, right, stores, progress=silent)).already_there == 2


async def test_a_target_with_other_chunks_is_made_anew(
    stores: MigrationStores, place: MakePlace, source: IndexPlace, tmp_path: Path, docs: Path
) -> None:
    old = tmp_path / "old"
    await asyncio.to_thread(take_in, old, docs, embedder="hashing")
    target = place(TOGETHER, old / "index")
    moved = await move_index(source, target, stores, progress=silent)
    assert moved.already_there == 0
    assert await answers(target) == await answers(source)


async def test_an_index_of_another_model_or_a_damaged_one_is_not_moved(
    stores: MigrationStores, place: MakePlace, source: IndexPlace, home: Path, tmp_path: Path
) -> None:
    target = place(TOGETHER, tmp_path / "new")
    other = NeverEmbeds()
    other.model = "another"
    with pytest.raises(OtherModel, match="made with the embedding model hashing-64, but another is configured"):
        await move_index(
            place(TOGETHER, home / "index", other), target, replace(stores, embedder=other), progress=silent
        )
    (generation,) = [path for path in (home / "index").iterdir() if path.is_dir()]
    with max(generation.rglob("*"), key=lambda path: path.stat().st_size if path.is_file() else 0).open("r+b") as file:
        file.write(b"\xff" * 64)
    with pytest.raises(MigrationError, match=r"of the index in together is damaged: .*; run `citewell doctor --fix`"):
        await move_index(source, target, stores, progress=silent)
    async with target.open_builder(None) as builder:
        assert await builder.current_generation() is None
