"""A generation of several parts answers as one of a single part, and a change copies only the parts that it hits."""

import json
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from uuid import UUID, uuid5

import numpy as np
import pytest

from citewell.adapters.qdrant_edge import Limits, QdrantEdgeBuilder, QdrantEdgeIndex
from citewell.adapters.qdrant_edge.manifest import seal
from citewell.adapters.qdrant_edge.sparse_files import checksum
from citewell.errors import IndexMismatch
from citewell.models import Chunk, Filters, Project, Vector, chunk_id, content_hash
from citewell.ports import Change, Embedding, Entry

pytestmark = pytest.mark.anyio

OURS, THEIRS = Project.named("ours").id, Project.named("theirs").id
SIZE = 16
SMALL = Limits(part_chunks=30, graph_chunks=10**9)
GRAPHS = Limits(part_chunks=30, graph_chunks=60, graph_kilobytes=1)
ONE_PART = Limits(graph_chunks=10**9)
WORDS = [f"{word}{number}" for number in range(6) for word in ("pump", "valve", "rotor", "hose", "tank")]
SHARES = np.array([1 / (rank + 1) for rank in range(len(WORDS))])


Answers: TypeAlias = list[tuple[list[tuple[str, float]], tuple[int, list[int]]]]
"""Ids and scores of what each question finds, and the counts of its words."""


@dataclass
class Store:
    """An index and its builder over one folder."""

    folder: Path
    limits: Limits

    def __post_init__(self) -> None:
        self.builder = QdrantEdgeBuilder(self.folder, model="test", dimensions=SIZE, limits=self.limits)
        self.index = QdrantEdgeIndex(self.folder, model="test", dimensions=SIZE)

    async def publish(self, *changes: Change, base: int | None = None) -> int:
        generation = await self.builder.stage(_each(changes), base=base)
        await self.builder.publish(generation)
        return generation

    async def answers(self) -> Answers:
        """What is found for some questions, in every project and with a filter, and how often words were counted."""
        found = []
        for number in range(0, 40, 5):
            for project, filters in ((OURS, Filters()), (THEIRS, Filters()), (OURS, Filters(section="Section 2"))):
                vector, words = vectors_of(number)[0], f"{WORDS[number % 10]} {WORDS[number % 7]} word{number}"
                passages = await self.index.search(project, vector=vector, words=words, limit=10, filters=filters)
                counts = await self.index.frequencies(project, words.split(), filters=filters)
                found.append(([(passage.chunk.id, round(passage.cosine, 4)) for passage in passages], counts))
        return found


StoreMaker: TypeAlias = Callable[[str, Limits], Store]


@pytest.fixture
async def make_store(tmp_path: Path) -> AsyncIterator[StoreMaker]:
    """Makes stores over folders by name; closes them."""
    made: list[Store] = []

    def make(folder: str, limits: Limits) -> Store:
        made.append(Store(tmp_path / folder, limits))
        return made[-1]

    yield make
    for store in made:
        await store.index.close()


def check_alike(found: Answers, expected: Answers, *, exact: bool) -> None:
    """Graphs are made at random, and may miss a hit; what they find has the same scores."""
    if exact:
        assert found == expected
        return
    assert [counts for _, counts in found] == [counts for _, counts in expected]
    missed = sum(len({*ours} - {*theirs}) for (theirs, _), (ours, _) in zip(found, expected, strict=True))
    assert missed <= 0.05 * sum(len(passages) for passages, _ in expected)


async def _each(changes: Sequence[Change]) -> AsyncIterator[Change]:
    for change in changes:
        yield change


def vectors_of(number: int) -> Vector:
    rng = np.random.default_rng(number)
    rows = rng.normal(size=(2, SIZE))
    unit: Vector = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def entry(number: int, *, text: str = "") -> Entry:
    """Ten chunks to a document, every fourth document in another project. No two texts are as long: ranks never tie."""
    rng = np.random.default_rng((1, number))
    text = text or " ".join([f"word{number}", *rng.choice(WORDS, size=5 + number, p=SHARES / SHARES.sum()).tolist()])
    project = THEIRS if number // 10 % 4 == 3 else OURS
    content = content_hash("Title", f"Section {number % 5}", text)
    identity = document(number)
    chunk = Chunk(
        id=chunk_id(identity, content),
        document_id=identity,
        content_hash=content,
        index=number % 10,
        source=f"{number // 10}.md",
        chapter="Title",
        section=f"Section {number % 5}",
        headings=(f"Section {number % 5}",),
        text=text,
        start=0,
        end=len(text),
        first_line=1,
        last_line=1,
    )
    return Entry(project, chunk, Embedding(vectors_of(number), ((0, 3), (3, len(text)))))


def document(number: int) -> UUID:
    return uuid5(THEIRS if number // 10 % 4 == 3 else OURS, f"{number // 10}.md")


def added(first: int, last: int) -> list[Change]:
    """Chunks in changes of 23, which end neither with documents nor with parts."""
    return [
        Change(entries=[entry(number) for number in range(start, min(start + 23, last))])
        for start in range(first, last, 23)
    ]


def segments_of(store: Store, generation: int) -> dict[str, set[str]]:
    """The segments of each part."""
    found = {}
    for folder in (store.folder / str(generation) / "parts").iterdir():
        found[folder.name] = set(json.loads((folder / "part.json").read_text())["segments"])
    return found


def contents(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): checksum(file) for file in folder.rglob("*") if file.is_file()}


def inodes(folder: Path, part: str, segments: set[str]) -> set[int]:
    files = [file for name in segments for file in (folder / "shard" / "segments" / name).rglob("*")]
    files += (folder / "parts" / part).iterdir()
    return {file.stat().st_ino for file in files if file.is_file() and file.name != "segment.json"}


@pytest.mark.parametrize("limits", [SMALL, GRAPHS], ids=["flat", "graphs"])
async def test_several_parts_answer_as_one_does_after_any_changes(make_store: StoreMaker, limits: Limits) -> None:
    one, several = make_store("one", ONE_PART), make_store("several", limits)
    steps = [
        added(0, 115),
        [
            *[Change(remove=[document(0), document(50)]), *added(115, 120)],
            *[Change(remove=[document(20)]), Change(entries=[entry(20, text="a pump of another kind"), entry(21)])],
        ],
        [
            Change(remove=[document(number) for number in (30, 40, 50)]),
            *[Change(entries=[entry(60), entry(61)]), Change(entries=[entry(61)])],
        ],
    ]
    bases: list[int | None] = [None, None]
    for step in steps:
        bases = [await store.publish(*step, base=base) for store, base in zip((one, several), bases, strict=True)]
        check_alike(await several.answers(), await one.answers(), exact=limits is SMALL)
    assert len(segments_of(one, bases[0] or 0)) == 1
    assert len(segments_of(several, bases[1] or 0)) > 2


async def test_parts_without_a_change_are_linked_and_none_of_their_bytes_change(make_store: StoreMaker) -> None:
    store = make_store("index", GRAPHS)
    first = await store.publish(*added(0, 75))
    before = contents(store.folder / str(first))
    await store.answers()  # the first generation stays open while the next one is built from it, and read
    second = await store.builder.stage(_each([Change(remove=[document(40)]), *added(80, 83)]), base=first)
    assert contents(store.folder / str(first)) == before
    reader = QdrantEdgeIndex(store.folder, model="test", dimensions=SIZE)
    assert await store.builder.fault_of(second) is None
    old, new = segments_of(store, first), segments_of(store, second)
    unchanged = {name for name in old if old[name] == new.get(name)}
    linked = {
        name
        for name in old.keys() & new.keys()
        if inodes(store.folder / str(first), name, old[name]) == inodes(store.folder / str(second), name, new[name])
    }
    assert linked == old.keys() - {"2"}, "document 40 is in part 2, which has room for the new chunks"
    assert linked <= unchanged
    after = contents(store.folder / str(second))
    await store.builder.publish(second)
    await store.answers()
    await reader.frequencies(OURS, [])
    await reader.close()
    assert contents(store.folder / str(second)) == after
    shared = [path for path in after if "/segments/" in path and before.get(path) == after[path]]
    assert len(shared) > 100


async def test_a_second_reader_links_the_files_for_itself_and_leaves_nothing(make_store: StoreMaker) -> None:
    store = make_store("index", SMALL)
    await store.publish(*added(0, 50))
    await store.index.frequencies(OURS, [])
    before = contents(store.folder)
    second = make_store("index", SMALL)
    assert await second.answers() == await store.answers()
    own = [*store.folder.glob("1.reader-*/shard/segments/*/vector_storage-dense/vectors/chunk_0.mmap")]
    assert own
    assert all(file.stat().st_nlink == 2 for file in own)
    assert await store.builder.leftovers() == [], "it is in use"
    await second.index.close()
    assert contents(store.folder) == before
    dead = store.folder / "1.reader-dead"
    dead.mkdir()
    assert await store.builder.leftovers() == [dead.name]
    await store.builder.remove_leftovers()
    assert not dead.exists()


async def test_an_index_gets_graphs_once_it_is_large_and_keeps_finding_the_same(make_store: StoreMaker) -> None:
    store = make_store("index", GRAPHS)
    small = await store.publish(*added(0, 50))
    assert not graphs(store, small)
    large = await store.publish(*added(50, 80), base=small)
    assert len(graphs(store, large)) == 3, "each part has one, and those that were there before got one too"
    exact = make_store("exact", ONE_PART)
    await exact.publish(*added(0, 80))
    check_alike(await store.answers(), await exact.answers(), exact=False)


def graphs(store: Store, generation: int) -> list[Path]:
    return list((store.folder / str(generation)).rglob("graph.bin"))


async def test_an_index_that_loses_all_its_chunks_is_empty_and_not_missing(make_store: StoreMaker) -> None:
    store = make_store("index", SMALL)
    base = await store.publish(*added(0, 50))
    await store.publish(Change(remove=[document(number) for number in range(0, 50, 10)]), base=base)
    assert await store.index.frequencies(OURS, ["pump"]) == (0, [0])
    assert await store.index.search(OURS, vector=vectors_of(1)[0], words="pump", limit=5) == ()


async def test_an_index_without_parts_is_one_of_another_version(make_store: StoreMaker) -> None:
    store = make_store("index", SMALL)
    base = await store.publish(*added(0, 5))
    folder = store.folder / str(base)
    shutil.rmtree(folder / "parts")
    made = json.loads((folder / "made.json").read_text())
    (folder / "made.json").write_text(json.dumps({key: made[key] for key in ("format", "model", "dimensions")}))
    seal(folder)
    assert await store.builder.fault_of(base) == "was made by another version of Citewell"
    with pytest.raises(IndexMismatch, match="another version"):
        await store.index.frequencies(OURS, [])
