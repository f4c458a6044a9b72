"""What the adapter of a Qdrant server sends, in which order, and what it makes of what comes back."""

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from qdrant_client import models

from citewell import wiring
from citewell.adapters.index_format import to_point
from citewell.adapters.qdrant import WRITING, CollectionOptions, QdrantBuilder, QdrantIndex, QdrantServer
from citewell.adapters.qdrant.uploads import batches
from citewell.errors import IndexUnavailable, SettingsError
from citewell.ports import Change, Entry
from citewell.retry import RetryPolicy
from tests.conftest import settings_for
from tests.contracts.index_stores import EAST, OURS, SIZE, THEIRS, each, embedded, entry, vector
from tests.fakes.qdrant import KEY, Call, Fault, Qdrant
from tests.fakes.vendor import Reply, sent

pytestmark = pytest.mark.anyio

QUICK = RetryPolicy(max_attempts=4, attempt_seconds=1.0, total_seconds=6.0, backoff_seconds=0.01)


@pytest.fixture
def server() -> Iterator[Qdrant]:
    with Qdrant() as running:
        yield running


class Client:
    """A reader and a writer of one project."""

    def __init__(self, url: str, *, key: str | None = KEY, model: str = "test", **options: Any) -> None:
        made = CollectionOptions(**options)
        self.index = QdrantIndex(QdrantServer.at(url, key=key, policy=QUICK), made, model=model, dimensions=SIZE)
        self.builder = QdrantBuilder(
            QdrantServer.at(url, key=key, policy=QUICK), made, project=OURS, model=model, dimensions=SIZE
        )

    async def publish(self, *changes: Change, base: int | None = None) -> int:
        generation = await self.builder.stage(each(changes), base=base)
        await self.builder.publish(generation)
        return generation

    async def texts(self, words: str = "") -> list[str]:
        found = await self.index.search(OURS, vector=EAST, words=words, limit=20)
        return [passage.chunk.text for passage in found]

    async def close(self) -> None:
        await self.index.close()
        await self.builder.close()


@pytest.fixture
async def client(server: Qdrant) -> AsyncIterator[Client]:
    made = Client(server.url)
    yield made
    await made.close()


def number(text: str, position: int) -> Entry:
    """The same chunk in another place of its document."""
    made = entry(text, EAST)
    return replace(made, chunk=replace(made.chunk, index=position))


def switches(calls: list[Call], generation: int) -> list[int]:
    """Where in these calls a generation is published."""
    states = [call.writes_state for call in calls]
    return [
        place
        for place, state in enumerate(states)
        if state and state["published"] and state["published"]["number"] == generation and not state["staged"]
    ]


def writes(calls: list[Call]) -> list[Call]:
    reading = ("/query", "/scroll", "/count")
    is_retrieval = [call.method == "POST" and call.path.endswith("/points") for call in calls]
    return [
        call
        for call, retrieves in zip(calls, is_retrieval, strict=True)
        if call.method != "GET" and not retrieves and not call.path.endswith(reading)
    ]


async def test_the_switch_is_the_last_write_before_superseded_points_are_deleted(
    server: Qdrant, client: Client
) -> None:
    base = await client.publish(Change(entries=[entry("old", EAST), entry("kept", EAST, document="b.md")]))
    server.requests.clear()
    old = entry("old", EAST).chunk.document_id
    await client.publish(Change(remove=[old], entries=[entry("new", EAST)]), base=base)
    made = writes(server.requests)
    (place,) = switches(made, base + 1)
    after = [call.path.removeprefix("/collections/").partition("/")[2] for call in made[place + 1 :]]
    assert set(after) <= {"points/delete", "points/payload/delete"}
    assert any(call.path.endswith("/payload") for call in made[:place]), "what is gone was marked before"
    assert all("wait=true" in call.query for call in made)


async def test_the_first_publish_ends_with_the_alias(server: Qdrant, client: Client) -> None:
    await client.publish(Change(entries=[entry("text", EAST)]))
    made = writes(server.requests)
    alias = next(place for place, call in enumerate(made) if call.path == "/collections/aliases")
    assert [place for place in switches(made, 1) if place < alias]
    assert not [call for call in made[alias:] if call.method == "PUT"]
    (named,) = server.local.get_aliases().aliases
    assert named.alias_name == "citewell"
    assert named.collection_name.startswith("citewell-")


async def test_a_reader_never_gets_half_of_two_generations(server: Qdrant, client: Client) -> None:
    """Published, and cleaned up, between a reader's look at the state and its search: it searches again."""
    old = [entry(f"old {n}", EAST, document=f"{n}.md") for n in range(5)]
    base = await client.publish(Change(entries=old))
    assert len(await client.texts()) == 5
    new = [entry(f"new {n}", EAST, document=f"{n}.md") for n in range(5)]
    replaced = Change(remove=[one.chunk.document_id for one in old], entries=new)

    async def publish() -> None:
        other = Client(server.url)
        await other.publish(replaced, base=base)
        await other.close()

    pending = [publish]

    def publish_first(call: Call) -> None:
        if call.path.endswith("/query") and pending:
            asyncio.run(pending.pop()())

    server.on_call = publish_first
    assert sorted(await client.texts()) == [f"new {n}" for n in range(5)]
    assert await client.index.frequencies(OURS, ["new", "old"]) == (5, [5, 0])


async def test_readers_that_never_stop_see_whole_generations_only(server: Qdrant, client: Client) -> None:
    def version(number: int) -> Change:
        entries = [entry(f"version {number} of {page}", EAST, document=f"{page}.md") for page in range(6)]
        return Change(remove=[one.chunk.document_id for one in entries], entries=entries)

    base, seen = await client.publish(version(0)), set()
    stop = asyncio.Event()

    async def read(reader: Client) -> None:
        while not stop.is_set():
            texts = await reader.texts("version")
            assert len(texts) == 6
            (number,) = {text.split()[1] for text in texts}
            seen.add(number)
        await reader.close()

    reading = [asyncio.create_task(read(Client(server.url))) for _ in range(2)]
    for number in range(1, 5):
        base = await client.publish(version(number), base=base)
    stop.set()
    await asyncio.gather(*reading)
    assert len(seen) > 1


async def test_a_chunk_that_moved_in_its_document_is_the_old_one_until_the_switch(
    server: Qdrant, client: Client
) -> None:
    base = await client.publish(Change(entries=[number("text", 0)]))
    for position in (1, 2, 3):
        moved = number("text", position)
        staged = await client.builder.stage(each([Change(entries=[moved])]), base=base)
        (before,) = await client.index.search(OURS, vector=EAST, words="", limit=5)
        assert before.chunk.index == position - 1
        await client.builder.publish(staged)
        (after,) = await client.index.search(OURS, vector=EAST, words="", limit=5)
        assert after.chunk.index == position
        base = staged
    (name,) = [one.name for one in server.local.get_collections().collections]
    assert server.local.count(name).count == 2, "the chunk and the state"


async def test_a_document_that_changes_twice_in_a_run_is_stored_once(client: Client) -> None:
    document = entry("x", EAST).chunk.document_id
    base = await client.publish(Change(entries=[entry("first", EAST)]))
    changes = [Change(remove=[document], entries=[entry("second", EAST)]),
               Change(remove=[document], entries=[entry("third", EAST)])]  # fmt: skip
    await client.publish(*changes, base=base)
    assert await client.texts() == ["third"]


async def test_a_chunk_without_a_word_is_found_by_its_meaning(client: Client) -> None:
    stored = replace(entry("—", EAST).chunk, chapter="…", section="", headings=())
    await client.publish(Change(entries=[replace(entry("—", EAST), chunk=stored)]))
    assert await client.texts("pump") == ["—"]
    assert await client.index.frequencies(OURS, ["pump"]) == (1, [0])


async def test_building_from_nothing_replaces_everything_at_the_switch(client: Client) -> None:
    await client.publish(Change(entries=[entry("old", EAST), entry("both", EAST, document="b.md")]))
    staged = await client.builder.stage(each([Change(entries=[entry("both", EAST, document="b.md")])]), base=None)
    assert sorted(await client.texts()) == ["both", "old"]
    await client.builder.publish(staged)
    assert await client.texts() == ["both"]


async def test_two_projects_are_staged_at_the_same_time(server: Qdrant) -> None:
    """Also the first time: both create the collection, and one of them is told that it exists."""
    ours = Client(server.url)
    server_of_theirs = QdrantServer.at(server.url, key=KEY, policy=QUICK)
    theirs = QdrantBuilder(server_of_theirs, CollectionOptions(), project=THEIRS, model="test", dimensions=SIZE)
    both_listed = asyncio.Barrier(2)

    async def changes(project: Any, text: str) -> AsyncIterator[Change]:
        await both_listed.wait()
        yield Change(entries=[entry(text, EAST, project=project)])
        await both_listed.wait()

    first, second = await asyncio.gather(
        ours.builder.stage(changes(OURS, "ours"), base=None), theirs.stage(changes(THEIRS, "theirs"), base=None)
    )
    await asyncio.gather(ours.builder.publish(first), theirs.publish(second))
    assert await ours.texts() == ["ours"]
    assert [text async for _, text in theirs.contents(second)] == ["theirs"]
    await ours.close()
    await theirs.close()


async def test_payload_indexes_come_before_the_points(server: Qdrant, client: Client) -> None:
    await client.publish(Change(entries=[entry("text", EAST)]))
    puts = [call for call in server.requests if call.method == "PUT"]
    created, *rest = puts
    assert created.body["vectors"]["dense"]["distance"] == "Cosine"
    assert created.body["hnsw_config"]["m"] == 16
    assert created.body["sparse_vectors"] == {"bm25": {"modifier": "idf"}}
    indexes = [call.path.endswith("/index") for call in rest]
    assert indexes == sorted(indexes, reverse=True)
    schema = {call.body["field_name"]: call.body["field_schema"] for call in rest if call.path.endswith("/index")}
    assert schema["project_id"] == {"type": "keyword", "is_tenant": True}
    assert {"document_id", "chapter", "section", "filename", "source_url"} <= schema.keys()
    server.requests.clear()
    await client.publish(Change(entries=[entry("text", EAST)]))
    assert not [call for call in server.requests if call.path.endswith("/index")], "once is enough"


async def test_settings_shape_a_new_collection(server: Qdrant) -> None:
    made = Client(
        server.url, alias="physical-ai-textbook-v1", shards=3, replicas=2, quantization="binary", on_disk=True
    )
    await made.publish(Change(entries=[entry("text", EAST)]))
    body = next(call.body for call in server.requests if call.method == "PUT")
    assert (body["shard_number"], body["replication_factor"], body["write_consistency_factor"]) == (3, 2, 2)
    assert body["quantization_config"] == {"binary": {"always_ram": True}}
    assert body["vectors"]["dense"]["on_disk"] is True
    (named,) = server.local.get_aliases().aliases
    assert named.alias_name == "physical-ai-textbook-v1"
    assert await made.texts() == ["text"]
    dense, *_ = next(call.body for call in server.requests if call.path.endswith("/query"))["prefetch"]
    assert dense["params"]["quantization"] == {"rescore": True, "oversampling": 2.0}
    await made.close()


async def test_a_collection_that_has_become_large_is_quantized(server: Qdrant, client: Client) -> None:
    await client.publish(Change(entries=[entry("text", EAST)]))
    (name,) = [one.name for one in server.local.get_collections().collections]
    assert not [call for call in server.requests if call.method == "PATCH"]
    info: Any = json.loads(server._info(name).body or b"")
    info["result"]["points_count"] = 100_001
    server.faults.append(Fault(f"^GET /collections/{name}$", sent(info)))
    await client.publish(Change(entries=[entry("text", EAST)]))
    (patched,) = [call for call in server.requests if call.method == "PATCH"]
    assert patched.body["quantization_config"]["scalar"]["type"] == "int8"


def test_uploads_are_bounded_in_number_and_size() -> None:
    small = [to_point(entry(f"text {n}", EAST), dimensions=SIZE) for n in range(600)]
    assert [len(batch) for batch in batches(small)] == [256, 256, 88]
    rows = np.ones((100, 768), dtype=np.float32)
    large = [to_point(entry(f"text {n}", *rows), dimensions=768) for n in range(9)]
    assert [len(batch) for batch in batches(large)] == [4, 4, 1]


async def test_a_write_that_was_only_queued_is_sent_again(server: Qdrant, client: Client) -> None:
    queued = sent({"result": {"operation_id": 7, "status": "acknowledged"}, "status": "ok", "time": 0.0})
    server.faults.append(Fault("^PUT .*/points$", queued, times=1, applied=True))
    await client.publish(Change(entries=[entry("text", EAST)]))
    assert await client.texts() == ["text"]


GARBAGE = Reply(200, b"<html>It works!</html>", {"content-type": "text/html"})


@pytest.mark.parametrize(
    ("reply", "times"),
    [
        (Reply(500, b"{}"), 2),
        (Reply(503, b"overloaded"), 2),
        (Reply(429, b"{}", {"Retry-After": "1"}), 1),
        (Reply(429, b"{}"), 1),
        (Reply(200, b'{"result"', cut=True), 1),
        (Reply(hang=True), 1),
    ],
    ids=["500", "503", "429 with Retry-After", "429", "cut", "hang"],
)
async def test_a_passing_fault_is_not_noticed(server: Qdrant, client: Client, reply: Reply, times: int) -> None:
    await client.publish(Change(entries=[entry("text", EAST)]))
    server.faults.append(Fault("/query$", reply, times=times))
    assert await client.texts() == ["text"]
    assert len([call for call in server.requests if call.path.endswith("/query")]) == times + 1


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(500, b"{}"), r"failed \(status 500\)"),
        (Reply(429, b"{}", {"Retry-After": "3600"}), "too many requests"),
        (Reply(hang=True), "did not answer in time"),
        (GARBAGE, "does not answer as Qdrant does"),
        (Reply(200, b"{}"), "does not answer as Qdrant does"),
        (Reply(404, b"<html>nginx</html>"), "no vector store under QDRANT_URL"),
        (Reply(401, b"Invalid API key or JWT"), "refuses the key in QDRANT_API_KEY"),
        (Reply(403, b"forbidden"), "refuses the key in QDRANT_API_KEY"),
    ],
    ids=["500", "429", "hang", "html", "other json", "404", "401", "403"],
)
async def test_a_lasting_fault_is_named_without_url_or_key(
    server: Qdrant, client: Client, caplog: pytest.LogCaptureFixture, reply: Reply, message: str
) -> None:
    await client.publish(Change(entries=[entry("text", EAST)]))
    server.faults.append(Fault("", reply))
    for call in (
        client.texts(),
        client.index.frequencies(OURS, []),
        client.index.details(),
        client.builder.leftovers(),
    ):
        with pytest.raises(IndexUnavailable, match=message) as raised:
            await call
        assert "127.0.0.1" not in str(raised.value)
    assert KEY not in caplog.text
    server.faults.clear()
    assert await client.texts() == ["text"]


async def test_a_server_that_is_not_there_or_not_trusted_is_named(server: Qdrant) -> None:
    port = server.url.rpartition(":")[2]
    for url, message in [
        ("http://127.0.0.1:1", "cannot be reached"),
        ("http://qdrant.invalid:6333", "host in QDRANT_URL cannot be found"),
        (f"https://127.0.0.1:{port}", "certificate of the vector store is not trusted"),
    ]:
        client = Client(url)
        with pytest.raises(IndexUnavailable, match=message):
            await client.texts()
        await client.close()


async def test_a_wrong_key_is_refused_and_a_key_in_the_clear_is_worth_a_warning(
    server: Qdrant, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(server.url, key="qd-wrong")
    with pytest.raises(IndexUnavailable, match="refuses the key in QDRANT_API_KEY"):
        await client.texts()
    await client.close()
    assert "without encryption" not in caplog.text, "nobody listens on loopback"
    with caplog.at_level(logging.WARNING):
        await Client("http://qdrant.example.org", key="qd-wrong").close()
    assert "without encryption" in caplog.text


@pytest.mark.parametrize(
    "url",
    ["", "qdrant:6333", "ftp://x", "http://", "http://x:99999", "http://x y", "http://x?a=b", "http://u:p@x:6333"],
)
def test_what_is_no_url_is_refused_at_once(url: str, tmp_path: Path) -> None:
    settings = settings_for(tmp_path, embedder="hashing", index="qdrant", qdrant_url=url or None)
    with pytest.raises(SettingsError, match="QDRANT_URL") as raised:
        wiring.check_settings(settings)
    assert "u:p" not in str(raised.value)


def test_without_its_client_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "citewell.adapters.qdrant")
    for module in [name for name in sys.modules if name.startswith("citewell.adapters.qdrant.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(SettingsError, match=r"pip install 'citewell\[qdrant\]'"):
        wiring.check_settings(settings_for(tmp_path, embedder="hashing", qdrant_url="http://127.0.0.1:6333"))


async def test_an_ingest_waits_for_a_server_that_asks_it_to_but_not_for_one_that_is_not_there(server: Qdrant) -> None:
    builder = QdrantBuilder(
        QdrantServer.at(server.url, key=KEY, policy=replace(WRITING, backoff_seconds=0.001)),
        CollectionOptions(),
        project=OURS,
        model="test",
        dimensions=SIZE,
    )
    server.faults.append(Fault("^PUT .*/points$", Reply(429, b"{}", {"Retry-After": "0"}), times=12))
    assert await builder.stage(each([Change(entries=[entry("text", EAST)])]), base=None) == 1
    await builder.close()
    nowhere = QdrantServer.at("http://127.0.0.1:1", key=None, policy=WRITING)
    async with asyncio.timeout(WRITING.total_seconds / 2):
        with pytest.raises(IndexUnavailable, match="cannot be reached"):
            await nowhere.version()
    await nowhere.close()


async def test_an_old_server_is_named_before_anything_is_written(server: Qdrant, client: Client) -> None:
    server.version = "1.18.2"
    with pytest.raises(SettingsError, match=r"Qdrant 1\.18\.2; upgrade it to 1\.19"):
        await client.publish(Change(entries=[entry("text", EAST)]))
    assert not writes(server.requests)


async def test_a_collection_of_somebody_else_is_left_alone(server: Qdrant, client: Client) -> None:
    server.local.create_collection("citewell", models.VectorParams(size=2, distance=models.Distance.DOT))
    with pytest.raises(SettingsError, match="set CITEWELL_QDRANT_COLLECTION to another name"):
        await client.publish(Change(entries=[entry("text", EAST)]))
    assert not writes(server.requests)


async def test_hundreds_of_words_are_counted_in_few_requests(server: Qdrant, client: Client) -> None:
    said = ["pump valve", "valve pipe", "gasket"]
    await client.publish(Change(entries=[entry(text, EAST, document=f"{text}.md") for text in said]))
    words = [f"zz{number:03d}" for number in range(400)]
    words[17], words[250], words[399] = "pump", "valv", "gasket"
    for _ in (1, 2):  # the second time from the cache
        server.requests.clear()
        total, counts = await client.index.frequencies(OURS, words)
        assert (total, counts[17], counts[250], counts[399], sum(counts)) == (3, 1, 2, 1, 4)
    assert [str(call) for call in server.requests if call.path.endswith("/count")] == []
    server.requests.clear()
    await client.index.frequencies(OURS, [f"yy{number:03d}" for number in range(320)])
    assert len([call for call in server.requests if call.path.endswith("/count")]) == 10


async def test_results_agree_with_the_embedded_engine(server: Qdrant, client: Client, tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    words = ["pump", "valve", "pipe", "gasket", "casing", "rotor", "flange", "seal", "bolt", "gauge", "motor", "belt"]
    entries = [
        entry(
            f"{n} {' '.join(random.choice(words, size=3 + n))}",  # no two of a length: no two score the same
            *[vector(*random.normal(size=SIZE)) for _ in range(random.integers(1, 4))],
            document=f"{n}.md",
        )
        for n in range(150)
    ]
    edge = embedded(tmp_path / "index")
    gone = [one.chunk.document_id for one in entries[::7]]
    await edge.publish(Change(entries=entries), Change(remove=gone))
    base = await client.publish(Change(entries=entries))
    await client.publish(Change(remove=gone), base=base)
    for _ in range(25):
        nearest, said = vector(*random.normal(size=SIZE)), " ".join(random.choice(words, size=3))
        theirs, ours = [
            {one.chunk.id: one for one in await index.search(OURS, vector=nearest, words=said, limit=10)}
            for index in (edge.index, client.index)
        ]
        assert ours.keys() == theirs.keys()
        for chunk, passage in ours.items():
            assert passage.score == pytest.approx(theirs[chunk].score, abs=1e-4)
            assert passage.mean_score == pytest.approx(theirs[chunk].mean_score, abs=1e-4)
        counts = await client.index.frequencies(OURS, words)
        assert counts == await edge.index.frequencies(OURS, words)
    await edge.close()
