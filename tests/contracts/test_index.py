"""What every Index and its IndexBuilder promise."""

import os
import warnings
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from qdrant_client import QdrantClient

from citewell.adapters.qdrant import QdrantServer
from citewell.adapters.sql import Database
from citewell.errors import EmptyKnowledgeBase, IndexMismatch, StoreUnavailable
from citewell.models import Filters, Vector
from citewell.ports import Change, Embedding, Entry
from citewell.similarity_scale import IDENTITY_SCALE, SimilarityScale
from tests.conftest import ready
from tests.contracts.index_stores import (
    EAST,
    NORTH,
    OURS,
    SIZE,
    THEIRS,
    UP,
    Store,
    each,
    embedded,
    entry,
    in_postgres,
    on_qdrant,
    vector,
)
from tests.fakes.postgres import PostgresServer
from tests.fakes.qdrant import KEY
from tests.fakes.qdrant import Qdrant as FakeQdrant
from tests.fakes.qdrant_local import local_client

pytestmark = pytest.mark.anyio


@pytest.fixture
def open_embedded(tmp_path: Path) -> Store:
    return embedded(tmp_path / "index")


@pytest.fixture
def open_postgres(postgres_server: PostgresServer) -> Store:
    return in_postgres(Database(ready(postgres_server)))


@pytest.fixture
def open_qdrant_local() -> Store:
    client = local_client()
    return on_qdrant(lambda policy: QdrantServer(client, policy), "contract")


@pytest.fixture
def open_qdrant_rest() -> Iterator[Store]:
    with FakeQdrant() as server:
        yield on_qdrant(lambda policy: QdrantServer.at(server.url, key=KEY, policy=policy), "contract")


@pytest.fixture
def open_qdrant() -> Iterator[Store]:
    """On a real server, which is left as it was."""
    url, key, name = os.environ["REAL_QDRANT_URL"], os.environ.get("REAL_QDRANT_API_KEY"), f"test-{uuid4().hex[:12]}"
    yield on_qdrant(lambda policy: QdrantServer.at(url, key=key, policy=policy), name)
    with warnings.catch_warnings(action="ignore"):  # of a key without TLS
        client = QdrantClient(url, api_key=key, check_compatibility=False)
    for collection in client.get_collections().collections:
        if collection.name.startswith(f"{name}-"):
            client.delete_collection(collection.name)
    client.close()


@pytest.fixture(
    params=[
        "embedded",
        "postgres",
        "qdrant_local",
        "qdrant_rest",
        *(["qdrant"] if os.environ.get("REAL_QDRANT_URL") else []),
    ]
)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    made: Store = request.getfixturevalue(f"open_{request.param}")
    yield made
    await made.close()


async def test_before_the_first_publish_there_is_nothing_to_search(store: Store) -> None:
    with pytest.raises(EmptyKnowledgeBase, match="citewell ingest"):
        await store.index.search(OURS, vector=EAST, words="x", limit=5)
    await store.builder.stage(each([Change(entries=[entry("staged", EAST)])]), base=None)
    with pytest.raises(EmptyKnowledgeBase):
        await store.index.frequencies(OURS, [])


async def test_what_went_in_comes_out_whole(store: Store) -> None:
    stored = entry("A pump moves water.", EAST)
    await store.publish(Change(entries=[stored]))
    (found,) = await store.index.search(OURS, vector=EAST, words="pump", limit=5)
    assert found.chunk == stored.chunk
    assert found.score == pytest.approx(1, abs=1e-3)
    assert [(one.start, one.end) for one in found.windows] == [(0, len(stored.chunk.text))]


async def test_a_chunk_is_found_by_its_best_window_and_once(store: Store) -> None:
    await store.publish(Change(entries=[entry("two sides", EAST, NORTH), entry("one side", UP, document="b.md")]))
    found = await store.index.search(OURS, vector=NORTH, words="", limit=5)
    assert [one.chunk.text for one in found] == ["two sides", "one side"]
    assert [round(one.score, 2) for one in found] == [1.0, 0.0]


async def test_words_find_what_vectors_do_not(store: Store) -> None:
    entries = [entry(f"filler {n}", EAST, document=f"{n}.md") for n in range(60)]
    await store.publish(Change(entries=[*entries, entry("the zyxomma dragonfly", UP, document="z.md")]))
    found = await store.index.search(OURS, vector=EAST, words="zyxomma", limit=3)
    assert "the zyxomma dragonfly" in [one.chunk.text for one in found]


async def test_no_project_sees_another(store: Store) -> None:
    await store.publish(Change(entries=[entry("ours alone", EAST), entry("theirs alone", EAST, project=THEIRS)]))
    found = await store.index.search(OURS, vector=EAST, words="alone theirs", limit=10)
    assert [one.chunk.text for one in found] == ["ours alone"]
    assert await store.index.frequencies(OURS, ["alon", "their"]) == (1, [1, 0])


async def test_a_project_without_an_index_is_empty_beside_one_that_has_one(store: Store) -> None:
    builder = store.builder_for(THEIRS)
    theirs = Change(entries=[entry("theirs alone", EAST, project=THEIRS)])
    await builder.publish(await builder.stage(each([theirs]), base=None))
    assert await store.index.search(OURS, vector=EAST, words="alone", limit=5) == ()
    assert await store.index.frequencies(OURS, ["alon"]) == (0, [0])


async def test_how_rare_a_word_is_does_not_depend_on_another_project(store: Store) -> None:
    # Each as close, and as long, as no other: nothing is left to a tie.
    said = [f"{'valve' if n % 10 == 5 else 'pump'} {'filler ' * n}" for n in range(30)]
    ours = [entry(text, vector(40, n, 0, 0), document=f"{n}.md") for n, text in enumerate(said)]
    base = await store.publish(Change(entries=ours))
    alone = await store.index.search(OURS, vector=EAST, words="pump valve", limit=10)
    theirs = [entry(f"valve {n}", EAST, project=THEIRS, document=f"{n}.md") for n in range(300)]
    await store.publish(Change(entries=theirs), base=base)
    assert await store.index.search(OURS, vector=EAST, words="pump valve", limit=10) == alone


async def test_the_same_search_finds_the_same_every_time(store: Store) -> None:
    near = [entry(f"near {n}", vector(10, 1 + n, 0, 0), document=f"n{n}.md") for n in range(60)]
    named = [entry("zyxomma " * (n + 1), vector(0, 0, 10, n), document=f"z{n}.md") for n in range(60)]
    await store.publish(Change(entries=[*near, *named]))
    for limit in (5, 10, 21):
        first = await store.index.search(OURS, vector=EAST, words="zyxomma", limit=limit)
        assert len(first) == limit
        for _ in range(15):
            assert await store.index.search(OURS, vector=EAST, words="zyxomma", limit=limit) == first


async def test_frequencies_count_chunks_that_speak_a_word_in_any_form(store: Store) -> None:
    await store.publish(Change(entries=[entry("Pumps run.", EAST), entry("A pump, a pump.", NORTH, document="b.md")]))
    assert await store.index.frequencies(OURS, ["pump", "run", "octopus"]) == (2, [2, 1, 0])


async def test_a_document_that_goes_leaves_nothing(store: Store) -> None:
    kept, gone = entry("kept", EAST), entry("gone", NORTH, document="b.md")
    base = await store.publish(Change(entries=[kept, gone]))
    await store.publish(Change(remove=[gone.chunk.document_id]), base=base)
    found = await store.index.search(OURS, vector=NORTH, words="gone", limit=5)
    assert [one.chunk.text for one in found] == ["kept"]
    assert await store.index.frequencies(OURS, ["gone"]) == (1, [0])


async def test_readers_see_a_generation_only_once_it_is_published(store: Store) -> None:
    base = await store.publish(Change(entries=[entry("old", EAST)]))
    staged = await store.builder.stage(each([Change(entries=[entry("new", NORTH, document="b.md")])]), base=base)
    assert (await store.index.frequencies(OURS, []))[0] == 1
    assert await store.builder.fault_of(staged) is None
    await store.builder.publish(staged)
    await store.builder.publish(staged)
    assert (await store.index.frequencies(OURS, []))[0] == 2


async def test_two_readers_share_a_generation_unharmed(store: Store) -> None:
    await store.publish(Change(entries=[entry("shared", EAST)]))
    other = store.other()
    for reader in (store, other, store):
        assert len(await reader.index.search(OURS, vector=EAST, words="", limit=5)) == 1
    await other.close()


async def test_another_model_is_refused_with_both_names(store: Store) -> None:
    generation = await store.publish(Change(entries=[entry("text", EAST)]))
    other = store.other("newer")
    with pytest.raises(IndexMismatch, match=r"test.*newer"):
        await other.index.search(OURS, vector=EAST, words="", limit=5)
    assert await other.builder.fault_of(generation)


async def test_scores_are_read_on_the_scale_of_the_index_and_of_those_built_on_it(store: Store) -> None:
    scale = SimilarityScale(unrelated=0.5, related=0.9)
    base = await store.publish(Change(entries=[entry("text", vector(1, 1, 0, 0))]), Change(scale=scale))
    assert await store.index.scale() == scale
    (found,) = await store.index.search(OURS, vector=EAST, words="", limit=5)
    assert found.score == pytest.approx(scale.read(0.5**0.5), abs=1e-3)
    assert found.cosine == pytest.approx(0.5**0.5, abs=1e-3)
    assert found.score < 0.5
    assert await store.builder.fault_of(base) is None
    await store.publish(Change(entries=[entry("more", UP, document="b.md")]), base=base)
    assert await store.index.scale() == scale
    await store.publish(Change(entries=[entry("text", EAST)]))
    assert await store.index.scale() == IDENTITY_SCALE


def placed(source: str, *, url: str | None = None, chapter: str = "Title", section: str = "Section") -> Entry:
    made = entry(f"text of {source}", EAST, document=source)
    return replace(made, chunk=replace(made.chunk, url=url, chapter=chapter, section=section))


PLACES = [
    placed("guide/arms.md", url="https://docs.example.org/guide/arms#grip", section="Grip"),
    placed("guide/arms-race.md", url="https://docs.example.org/guide/arms-race", chapter="History"),
    placed("guide/über.md", url="https://docs.example.org/guide/%C3%BCber"),
    placed("notes/legs.md", section="Grip"),
]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (Filters(), ["guide/arms-race.md", "guide/arms.md", "guide/über.md", "notes/legs.md"]),
        (Filters(section="Grip"), ["guide/arms.md", "notes/legs.md"]),
        (Filters(section="grip"), []),
        (Filters(section="Gri"), []),
        (Filters(chapter="History"), ["guide/arms-race.md"]),
        (Filters(path="guide/arms.md"), ["guide/arms.md"]),
        (Filters(path="guide/arms"), []),
        (Filters(path="guide/"), ["guide/arms-race.md", "guide/arms.md", "guide/über.md"]),
        (Filters(source_url_prefix="/guide/arms"), ["guide/arms-race.md", "guide/arms.md"]),
        (Filters(source_url_prefix="/guide/arms#"), ["guide/arms.md"]),
        (Filters(source_url_prefix="https://docs.example.org/guide/arms-"), ["guide/arms-race.md"]),
        (Filters(source_url_prefix="http://docs.example.org/guide"), []),
        (Filters(source_url_prefix="/guide/über"), ["guide/über.md"]),
        (Filters(source_url_prefix="/notes"), ["notes/legs.md"]),
        (Filters(source_url_prefix="/guide", section="Grip"), ["guide/arms.md"]),
    ],
    ids=str,
)
async def test_a_search_stays_where_it_is_told_to(store: Store, where: Filters, expected: list[str]) -> None:
    theirs = entry("text of theirs", EAST, project=THEIRS, document="guide/theirs.md")
    base = await store.publish(Change(entries=[*PLACES[:2], theirs]))
    await store.publish(Change(entries=PLACES[2:]), base=base)  # a copied generation filters like a new one
    found = await store.index.search(OURS, vector=EAST, words="text", limit=10, filters=where)
    assert sorted(one.chunk.source for one in found) == expected
    counts = await store.index.frequencies(OURS, ["text", "note"], filters=where)
    assert counts == (len(expected), [len(expected), int("notes/legs.md" in expected)])


async def test_a_filter_finds_what_many_nearer_chunks_would_hide(store: Store) -> None:
    crowd = [entry(f"crowd {n}", EAST, document=f"crowd/{n}.md") for n in range(200)]
    await store.publish(Change(entries=[*crowd, entry("far away", UP, document="far/one.md")]))
    (found,) = await store.index.search(OURS, vector=EAST, words="crowd", limit=5, filters=Filters(path="far/"))
    assert found.chunk.text == "far away"


@pytest.mark.parametrize("bad", [np.full((1, SIZE), np.nan), np.ones((1, SIZE + 1)), np.ones(SIZE)])
async def test_vectors_that_make_no_sense_never_reach_the_engine(store: Store, bad: Vector) -> None:
    good = entry("good", EAST)
    base = await store.publish(Change(entries=[good]))
    broken = Entry(OURS, entry("bad", EAST, document="b.md").chunk, Embedding(bad.astype(np.float32), ((0, 3),)))
    with pytest.raises(StoreUnavailable, match="cannot be stored"):
        await store.publish(Change(entries=[broken]), base=base)
    assert (await store.index.frequencies(OURS, []))[0] == 1


async def test_a_generation_of_many_chunks_holds_every_one(store: Store) -> None:
    many = [entry(f"chunk {n}", EAST, document=f"{n}.md") for n in range(10_050)]
    halves = [Change(entries=many[start : start + 3350]) for start in range(0, len(many), 3350)]
    await store.publish(*halves, Change(entries=[entry("the last one", UP, document="last.md")]))
    assert (await store.index.frequencies(OURS, ["last"])) == (10_051, [1])


async def test_a_builder_knows_its_generations_and_their_model(store: Store) -> None:
    assert await store.builder.current_generation() is None
    assert await store.builder.fault_of(1) == "is missing"
    assert await store.builder.embedding_model_of(1) is None
    first = await store.publish(Change(entries=[entry("old", EAST)]))
    staged = await store.builder.stage(each([]), base=first)
    assert (await store.builder.current_generation(), await store.builder.fault_of(staged)) == (first, None)
    assert await store.other("newer").builder.embedding_model_of(first) == "test"


async def test_a_builder_lists_every_chunk_of_a_generation(store: Store) -> None:
    entries = [entry("first", EAST), entry("second", NORTH, document="b.md")]
    generation = await store.publish(Change(entries=entries))
    listed = sorted([row async for row in store.builder.contents(generation)])
    assert listed == sorted((each.chunk.id, each.chunk.text) for each in entries)


async def test_a_builder_gives_every_chunk_with_its_embedding(store: Store) -> None:
    entries = [entry("first", EAST, NORTH), entry("second", UP, document="b.md")]
    generation = await store.publish(Change(entries=entries))
    exported = [each async for batch in store.builder.entries(generation) for each in batch]
    for given, got in zip(entries, sorted(exported, key=lambda each: each.chunk.text), strict=True):
        assert (got.project, got.chunk, got.embedding.spans) == (given.project, given.chunk, given.embedding.spans)
        assert got.embedding.vectors == pytest.approx(given.embedding.vectors)


async def test_an_index_that_is_removed_leaves_nothing_and_can_be_built_again(store: Store) -> None:
    first = await store.publish(Change(entries=[entry("old", EAST)]))
    await store.builder.remove()
    await store.builder.remove()
    assert await store.builder.current_generation() is None
    assert await store.builder.fault_of(first) == "is missing"
    assert await store.builder.leftovers() == []
    with pytest.raises(EmptyKnowledgeBase):
        await store.index.search(OURS, vector=EAST, words="x", limit=5)
    await store.publish(Change(entries=[entry("new", EAST), entry("theirs", EAST, project=THEIRS)]))
    (found,) = await store.index.search(OURS, vector=EAST, words="x", limit=5)
    assert found.chunk.text == "new"
    if store.builder_is_for_one_project:
        await store.builder.remove()
        assert await store.index.search(THEIRS, vector=EAST, words="x", limit=5), "it was for one project"


async def test_what_a_dead_run_left_is_listed_and_removed_and_the_published_generation_stays(store: Store) -> None:
    published = await store.publish(Change(entries=[entry("kept", EAST)]))
    assert await store.builder.leftovers() == []

    async def dies() -> AsyncIterator[Change]:
        yield Change(entries=[entry("lost", NORTH)])
        raise RuntimeError("the embedder failed")

    with pytest.raises(RuntimeError):
        await store.builder.stage(dies(), base=published)
    unused = await store.builder.stage(each([]), base=published)
    assert str(unused) in await store.builder.leftovers()
    await store.builder.remove_leftovers()
    assert await store.builder.leftovers() == []
    assert await store.builder.fault_of(unused) == "is missing"
    assert [one.chunk.text for one in await store.index.search(OURS, vector=EAST, words="", limit=5)] == ["kept"]
