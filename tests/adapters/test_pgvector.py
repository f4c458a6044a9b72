"""The index in PostgreSQL: what holds beside the contract of every index, foremost its one commit with the library."""

import asyncio
import json
import random
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx2
import numpy as np
import pytest

from citewell import wiring
from citewell.adapters.pgvector import PgVectorBuilder, PgVectorIndex
from citewell.adapters.sql import Database, SqlLibrary
from citewell.errors import IndexUnavailable, SettingsError
from citewell.models import Chunk, Document, Filters, Project, Vector
from citewell.ports import Change, Embedding, Entry
from tests import commands
from tests.conftest import Citewell, ready, serving, settings_for
from tests.contracts.index_stores import EAST, OURS, SIZE, Store, each, embedded, entry, in_postgres
from tests.fakes.postgres import PostgresServer

pytestmark = pytest.mark.anyio

WORDS = [
    "pump",
    "valve",
    "rotor",
    "sensor",
    "joint",
    "motor",
    "gear",
    "water",
    "pipe",
    "casing",
    "gasket",
    "bolt",
    "crane",
    "wheel",
    "cable",
    "lamp",
]


@pytest.fixture
async def store(postgres_server: PostgresServer) -> AsyncIterator[Store]:
    made = in_postgres(Database(ready(postgres_server)))
    yield made
    await made.close()


def generated(number: int, rng: random.Random) -> Entry:
    """A chunk with windows and words of its own; some words are in most chunks, others in few.

    Each is of another length, so that no two have the same BM25 score.
    """
    chosen = rng.choices(WORDS, range(len(WORDS), 0, -1), k=10 + number)
    words = " ".join(f"{word}{rng.randrange(40) or ''}" for word in chosen)
    windows = np.array([[rng.gauss(0, 1) for _ in range(SIZE)] for _ in range(rng.randint(1, 3))], dtype=np.float32)
    windows /= np.linalg.norm(windows, axis=1, keepdims=True)
    made = entry(f"Chunk {number}: {words}.", windows[0], document=f"part-{number % 7}/{number // 3}.md")
    chunk = replace(made.chunk, section=f"Section {number % 5}", chapter=f"The {WORDS[number % 9]}")
    return Entry(OURS, chunk, Embedding(windows, tuple((0, len(chunk.text)) for _ in windows)))


async def found(store: Store, vector: Vector, words: str, filters: Filters) -> list[tuple[str, float, float, float]]:
    passages = await store.index.search(OURS, vector=vector, words=words, limit=100, filters=filters)
    return [(one.chunk.id, one.score, one.cosine, one.mean_score) for one in passages]


async def test_every_search_agrees_with_the_embedded_index(store: Store, tmp_path: Path) -> None:
    reference, rng = embedded(tmp_path / "index"), random.Random(5)
    entries = [generated(number, rng) for number in range(600)]
    gone = [entries[number].chunk.document_id for number in range(0, 600, 40)]
    added = [generated(number, rng) for number in range(600, 660)]
    for each_store in (store, reference):
        base = await each_store.publish(Change(entries=entries[:400]), Change(entries=entries[400:]))
        base = await each_store.publish(Change(remove=gone), Change(entries=added), base=base)
        await each_store.publish(Change(remove=gone[:1], entries=entries[:2]), base=base)
    scopes = [Filters(), Filters(section="Section 3"), Filters(path="part-2/"), Filters(source_url_prefix="/part-1/1")]
    stems = [*WORDS, "chunk", "pump3", "absent"]
    in_other_order = 0
    for number in range(60):
        vector = np.array([rng.gauss(0, 1) for _ in range(SIZE)], dtype=np.float32)
        vector /= np.linalg.norm(vector)
        words = " ".join(rng.sample(WORDS, 3)) + f" pump{rng.randrange(9)}" * (number % 2)
        scope = scopes[number % len(scopes)]
        ours, theirs = await found(store, vector, words, scope), await found(reference, vector, words, scope)
        assert sorted(ours) == [pytest.approx(row, abs=1e-4) for row in sorted(theirs)], (words, scope)
        in_other_order += [row[0] for row in ours] != [row[0] for row in theirs]
        assert await store.index.frequencies(OURS, stems, filters=scope) == await reference.index.frequencies(
            OURS, stems, filters=scope
        )
    assert in_other_order <= 3  # scores that differ by less than 32 bits can tell
    await reference.close()


async def test_a_large_index_finds_what_a_comparison_with_every_vector_finds(store: Store) -> None:
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(12_000, SIZE)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    entries = [entry(f"chunk {n}", one, document=f"part-{n % 600}/{n}.md") for n, one in enumerate(vectors)]
    halves = [Change(entries=entries[start : start + 4000]) for start in range(0, 12_000, 4000)]
    generation = await store.publish(*halves)
    assert await store.builder.fault_of(generation) is None
    hits = 0
    for vector in vectors[::1000]:
        cosines = vectors @ vector
        for scope, allowed in ((Filters(), slice(None)), (Filters(path="part-7/"), slice(7, None, 600))):
            nearest = set(np.sort(cosines[allowed])[-10:].round(4))
            passages = await store.index.search(OURS, vector=vector, words="", limit=10, filters=scope)
            assert len(passages) == 10
            hits += sum(round(max(one.cosine, 0), 4) >= max(min(nearest), 0) - 1e-4 for one in passages)
    assert hits >= 0.98 * 240


def page(version: int, number: int) -> tuple[Document, list[Chunk], list[Entry]]:
    """A document that is its only chunk: version and number."""
    made = entry(f"version {version} of page {number}", EAST, document=f"{number}.md")
    document = Document(made.chunk.document_id, f"{number}.md", "Title", made.chunk.text, f"{version}")
    return document, [made.chunk], [made]


async def test_readers_see_all_or_nothing_of_an_ingest_and_its_index_and_documents_at_once(
    postgres_server: PostgresServer,
) -> None:
    url = ready(postgres_server)
    writing, reading = Database(url), Database(url)
    builder = PgVectorBuilder(writing, OURS, model="test", dimensions=SIZE)
    writer, library = SqlLibrary(writing, project=OURS), SqlLibrary(reading)
    index = PgVectorIndex(reading, model="test", dimensions=SIZE)
    ours, done = Project(OURS, "ours"), False

    async def ingest(version: int, base: int | None) -> int:
        pages = [page(version, number) for number in range(5)]
        await writer.stage(ours, [(document, chunks) for document, chunks, _ in pages])
        changes = [Change(remove=[document.id], entries=entries) for document, _, entries in pages]
        generation = await builder.stage(each(changes), base=base)
        await writer.commit(remove=[], generation=generation)
        await builder.publish(generation)
        return generation

    async def read() -> int:
        reads = 0
        while not done:
            before = (await library.document(page(0, 0)[0].id) or page(0, 0)[0]).fingerprint
            passages = await index.search(OURS, vector=EAST, words="version", limit=10)
            after = (await library.document(page(0, 0)[0].id) or page(0, 0)[0]).fingerprint
            versions = {passage.chunk.text.split(" ")[1] for passage in passages}
            assert (len(passages), len(versions)) == (5, 1), "of one version, and whole"
            assert int(before) <= int(versions.pop()) <= int(after)
            reads += 1
        return reads

    generation = await ingest(0, None)
    readers = [asyncio.create_task(read()) for _ in range(2)]
    try:
        for version in range(1, 12):
            generation = await ingest(version, generation if version % 3 else None)  # every third one from nothing
    finally:
        done = True
    assert min(await asyncio.gather(*readers)) > 5
    await writing.close()
    await reading.close()


async def test_what_was_not_committed_is_seen_by_nobody_and_the_next_run_removes_it(store: Store) -> None:
    base = await store.publish(Change(entries=[entry("kept", EAST)]))
    changes = [Change(remove=[entry("kept", EAST).chunk.document_id], entries=[entry("new", EAST, document="b.md")])]
    staged = await store.builder.stage(each(changes), base=base)
    again = await store.builder.stage(each(changes), base=base)  # the first run died before its commit
    assert await store.builder.leftovers() == [str(again)]
    assert await store.builder.fault_of(staged) == "is missing"
    assert [one.chunk.text for one in await store.index.search(OURS, vector=EAST, words="", limit=5)] == ["kept"]
    assert await store.index.frequencies(OURS, ["kept", "new"]) == (1, [1, 0])
    await store.builder.publish(again)
    assert await store.index.frequencies(OURS, ["kept", "new"]) == (1, [0, 1])


async def test_a_document_that_goes_leaves_no_row(store: Store, postgres_server: PostgresServer) -> None:
    kept, gone = entry("the kept words", EAST), entry("the gone words", EAST, document="b.md")
    base = await store.publish(Change(entries=[kept, gone]))
    last = await store.publish(Change(remove=[gone.chunk.document_id]), base=base)
    assert store.database
    database = store.database._location.rsplit("/", 1)[-1] if isinstance(store.database._location, str) else ""
    for table, expected in (("chunks", 1), ("windows", 1), ("counts", 5), ("postings", 5)):
        rows = postgres_server.run(f"SELECT count(*) FROM index_{base}_{table}", database=database)
        assert int(rows) == expected, table
    assert postgres_server.run(f"SELECT max(cardinality(numbers)) FROM index_{base}_postings", database=database) == "1"
    rebuilt = await store.publish(Change(entries=[kept]))
    named = "SELECT string_agg(tablename, ' ' ORDER BY tablename) FROM pg_tables WHERE tablename LIKE 'index_%'"
    tables = [f"index_{rebuilt}_{name}" for name in ("chunks", "counts", "postings", "windows")]
    assert postgres_server.run(named, database=database).split() == [*tables, "index_generations"]
    assert last != rebuilt


async def test_a_server_that_went_away_is_used_again_when_it_is_back(
    store: Store, postgres_server: PostgresServer
) -> None:
    await store.publish(Change(entries=[entry("kept", EAST)]))
    postgres_server.run("CHECKPOINT")  # in tests, commits reach the disk later
    postgres_server.stop()
    try:
        with pytest.raises(IndexUnavailable, match="does not answer"):
            await store.index.search(OURS, vector=EAST, words="", limit=5)
    finally:
        postgres_server.start()
    assert len(await store.index.search(OURS, vector=EAST, words="", limit=5)) == 1


async def test_tables_that_are_gone_are_no_empty_index(store: Store, postgres_server: PostgresServer) -> None:
    generation = await store.publish(Change(entries=[entry("kept", EAST)]))
    assert store.database
    async with store.database.writing() as connection:
        await connection.exec_driver_sql(f"DROP TABLE index_{generation}_windows")
    with pytest.raises(IndexUnavailable, match="doctor --fix"):
        await store.index.search(OURS, vector=EAST, words="", limit=5)
    assert "index_" in str(await store.builder.fault_of(generation))


async def test_a_user_who_may_not_install_pgvector_learns_who_may(postgres_server: PostgresServer) -> None:
    url = postgres_server.create()
    name = url.rsplit("/", 1)[-1]
    postgres_server.run(
        f"CREATE ROLE {name} LOGIN PASSWORD 'secret'; GRANT ALL ON SCHEMA public TO {name}", database=name
    )
    database = Database(url.replace("citewell:", f"{name}:"))
    builder = PgVectorBuilder(database, OURS, model="test", dimensions=SIZE)
    with pytest.raises(IndexUnavailable, match="administrator run `CREATE EXTENSION vector`"):
        await builder.stage(each([]), base=None)
    postgres_server.run("CREATE EXTENSION vector", database=name)
    assert await builder.stage(each([]), base=None)
    await database.close()


async def test_a_server_without_pgvector_says_what_to_install(postgres_server: PostgresServer) -> None:
    url = postgres_server.create()
    name = url.rsplit("/", 1)[-1]
    postgres_server.run(f"ALTER DATABASE {name} SET extension_control_path = '/nowhere'")
    database = Database(url)
    with pytest.raises(IndexUnavailable, match="no pgvector: install it on its server"):
        await PgVectorBuilder(database, OURS, model="test", dimensions=SIZE).stage(each([]), base=None)
    await database.close()


def test_without_a_database_the_missing_variable_is_named(home: Path) -> None:
    with pytest.raises(SettingsError, match="needs DATABASE_URL"):
        wiring.check_settings(settings_for(home, index="postgres"))


def test_files_are_ingested_asked_changed_and_proven_in_postgresql_alone(
    citewell: Citewell, home: Path, docs: Path, postgres_url: str
) -> None:
    def run(*arguments: str) -> str:
        done = citewell(*arguments, DATABASE_URL=postgres_url, CITEWELL_INDEX="postgres")
        assert done.returncode in (0, 3), done.stderr
        return done.stdout

    assert json.loads(run("ingest", str(docs), "--plan", "--json"))["chunks_added"] == 5
    assert json.loads(run("ingest", str(docs), "--json"))["chunks_created"] == 5
    assert not (home / "index").exists()
    assert "Fill the casing with water" in run("ask", "How is a pump primed?")
    (docs / "02-valves.md").unlink()
    (docs / "01-pumps.md").write_text("# Pumps\n\n## Priming\n\nPrime it with oil.\n")
    run("ingest", str(docs), "--prune")
    assert "Prime it with oil" in run("ask", "How is a pump primed?")
    assert run("doctor").strip() == "All is well."
    with serving(home, DATABASE_URL=postgres_url, CITEWELL_INDEX="postgres") as address:
        answer = httpx2.post(f"{address}/api/ask", json={"question": "How is a pump primed?"}, timeout=60).json()
        assert "Prime it with oil" in answer["answer"]
        assert httpx2.get(f"{address}/health", timeout=60).json()["status"] == "healthy"
    run("documents", "delete", "03-pipes.mdx")
    run("doctor", "--fix", "--vacuum")
    assert run("doctor").strip() == "All is well."


def test_a_run_that_is_killed_leaves_the_old_index_and_the_next_one_finishes(
    home: Path, docs: Path, postgres_server: PostgresServer, citewell: Citewell
) -> None:
    url = postgres_server.create()
    name, changed = url.rsplit("/", 1)[-1], {"DATABASE_URL": url, "CITEWELL_INDEX": "postgres"}
    environment = {**changed, "CITEWELL_EMBEDDER": "hashing"}
    assert citewell("ingest", str(docs), **environment).returncode == 0
    paragraph = "The rotor of the pump turns in its casing. " * 300
    for number in range(60):
        (docs / f"more-{number}.md").write_text(f"# Page {number}\n\n{paragraph}{number}\n")
    (docs / "02-valves.md").unlink()
    process = commands.Command(
        *("ingest", str(docs), "--prune"), cwd=docs, env={**environment, "CITEWELL_HOME": str(home)}
    )
    try:
        deadline = time.monotonic() + 60
        unfinished = "SELECT count(*) FROM index_generations WHERE chunks IS NULL"
        while postgres_server.run(unfinished, database=name) == "0" and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=20)
    assert "stops the flow" in citewell("ask", "What does a valve do?", **environment).stdout
    assert citewell("ingest", str(docs), "--prune", **environment).returncode == 0
    assert citewell("doctor", **environment).stdout.strip() == "All is well."
    assert postgres_server.run("SELECT count(*) FROM index_generations", database=name) == "1"
