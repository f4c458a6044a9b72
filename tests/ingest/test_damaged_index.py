"""A damaged index is found before anything is answered from it, and is built anew without embedding anything."""

import asyncio
import json
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from citewell import wiring
from citewell.adapters.qdrant_edge import QdrantEdgeBuilder, QdrantEdgeIndex
from citewell.adapters.qdrant_edge.sparse_files import checksum
from citewell.errors import IndexUnavailable
from citewell.ingest.doctor import examine, mend
from citewell.ingest.flow import ingest
from citewell.models import Passage
from citewell.settings import Settings
from tests.conftest import PROJECT, Citewell, copied, serving, settings_for, take_in
from tests.conftest import ask as answer
from tests.fakes.embeddings import KEY, EmbeddingServer

PAGES = {
    "01-pumps.md": "# Pumps\n\nA pump moves water uphill.\n\n## Priming\n\nFill the casing before the start.\n",
    "02-valves.md": "# Valves\n\nA valve stops the flow.\n\n## Leaks\n\nReplace the gasket yearly.\n",
    "03-pipes.md": "# Pipes\n\nCopper pipes carry hot water.\n",
}
QUESTIONS = ("What moves water uphill?", "When is the gasket replaced?", "What do copper pipes carry?")
VECTORS = "vector_storage-dense/vectors/chunk_0.mmap"
MODEL = "custom/ours/64"


def cut_to_nothing(file: Path) -> None:
    os.truncate(file, 0)


def cut_in_half(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flip_bytes(file: Path) -> None:
    """200 of them, anywhere; most lie in a hole, as most of the file does."""
    size = file.stat().st_size
    with file.open("r+b") as damaged:
        for position in random.Random(7).sample(range(size), min(200, size)):
            damaged.seek(position)
            (byte,) = damaged.read(1)
            damaged.seek(position)
            damaged.write(bytes([byte ^ 0xFF]))


HARMS: tuple[Callable[[Path], None], ...] = (cut_to_nothing, cut_in_half, flip_bytes, Path.unlink)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for name, text in PAGES.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def vendor() -> Iterator[EmbeddingServer]:
    """Embeds, and counts what it was asked to."""
    with EmbeddingServer() as server:
        yield server


def using(home: Path, vendor: EmbeddingServer) -> Settings:
    custom = {"embedder": "custom", "embedding_model": "ours", "embedding_dimensions": 64}
    return settings_for(home, **custom, embedding_base_url=vendor.url, embedding_api_key=KEY)


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory: pytest.TempPathFactory, pages: Path, vendor: EmbeddingServer) -> Path:
    """A home with three pages that the vendor embedded. Nobody changes it."""
    home = tmp_path_factory.mktemp("undamaged") / "home"
    settings = using(home, vendor)

    async def run() -> None:
        async with wiring.open_for_ingest(settings, wait=True, on_wait=lambda: None) as engines:
            recipe = wiring.ingest_recipe(settings)
            await ingest([pages], project=PROJECT, engines=engines, recipe=recipe, progress=lambda *_: None)

    asyncio.run(run())
    return home


@pytest.fixture
def own_home(undamaged: Path, tmp_path: Path) -> Path:
    return copied(undamaged, tmp_path / "own")


def files_of(home: Path) -> list[Path]:
    return sorted(path for path in home.glob("index/[0-9]*/**/*") if path.is_file())


def file_named(home: Path, name: str, *, generation: int = 1) -> Path:
    (file,) = home.glob(f"index/{generation}/**/{name}")
    return file


def kind_of(file: Path) -> str:
    """What a file is to the engine: the many fields and the two kinds of vectors have the same files each."""
    return re.sub(r"\w{24}-\w+-", "", f"{file.parent.parent.name}/{file.parent.name}/{file.name}")


async def passages_of(home: Path, vendor: EmbeddingServer) -> list[tuple[Passage, set[Passage]]]:
    """What the index finds for each question: the best passage, and all with every score (some ranks are tied)."""
    async with wiring.open_for_answers(using(home, vendor)) as answers:
        engines = answers.engines
        vectors = [await engines.embedder.embed_query(question) for question in QUESTIONS]
        found = [
            await engines.index.search(PROJECT.id, vector=vector, words=question, limit=5)
            for question, vector in zip(QUESTIONS, vectors, strict=True)
        ]
    return [(passages[0], set(passages)) for passages in found]


async def mended(home: Path, vendor: EmbeddingServer) -> tuple[list[str], list[str]]:
    """What the doctor finds before and after it mended the index, for which nothing may be embedded."""
    async with wiring.open_for_ingest(using(home, vendor), wait=True, on_wait=lambda: None) as engines:
        before = await examine(engines)
        calls = len(vendor.calls)
        await mend(engines)
        assert len(vendor.calls) == calls, "the vendor was asked for embeddings"
        return before, await examine(engines)


def restore(file: Path, content: bytes) -> None:
    """Write a file as it was, with its long hole at the end."""
    with file.open("wb") as restored:
        restored.write(content.rstrip(b"\0"))
        restored.truncate(len(content))


@pytest.mark.anyio
async def test_damage_to_any_kind_of_file_is_found_and_never_answered_from(own_home: Path) -> None:
    builder = QdrantEdgeBuilder(own_home / "index", model=MODEL, dimensions=64)
    index = QdrantEdgeIndex(own_home / "index", model=MODEL, dimensions=64)
    for file in {kind_of(file): file for file in files_of(own_home)}.values():
        content = file.read_bytes()
        for harm in HARMS:
            harm(file)
            fault = await builder.fault_of(1)
            assert fault, f"{file}, {harm.__name__}"
            assert file.relative_to(own_home / "index" / "1").as_posix() in fault or fault == "is missing"
            with pytest.raises(IndexUnavailable, match="run `citewell doctor --fix`"):
                await index.frequencies(PROJECT.id, [])
            restore(file, content)
    assert await builder.fault_of(1) is None
    assert (await index.frequencies(PROJECT.id, []))[0] == 5
    await index.close()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("made.json", cut_to_nothing),
        (VECTORS, flip_bytes),
        ("vector_storage-dense/offsets/status.dat", cut_in_half),
        ("segment.json", Path.unlink),
    ],
)
async def test_a_damaged_index_is_mended_without_embedding_and_answers_as_before(
    own_home: Path, vendor: EmbeddingServer, name: str, harm: Callable[[Path], None]
) -> None:
    before = await passages_of(own_home, vendor)
    await check_is_mended(own_home, vendor, file_named(own_home, name), harm, before)


async def check_is_mended(
    home: Path,
    vendor: EmbeddingServer,
    file: Path,
    harm: Callable[[Path], None],
    before: list[tuple[Passage, set[Passage]]],
) -> None:
    harm(file)
    with pytest.raises(IndexUnavailable, match="run `citewell doctor --fix`"):
        await passages_of(home, vendor)
    problems, remaining = await mended(home, vendor)
    assert len(problems) == 1
    assert problems[0].startswith("index: generation 1 is ")
    assert remaining == []
    assert await passages_of(home, vendor) == before


@pytest.mark.anyio
async def test_an_index_that_is_gone_is_built_anew_without_embedding(own_home: Path, vendor: EmbeddingServer) -> None:
    before = await passages_of(own_home, vendor)
    shutil.rmtree(own_home / "index")
    with pytest.raises(IndexUnavailable, match="the index is missing: its files are gone; run `citewell doctor --fix`"):
        await passages_of(own_home, vendor)
    assert await mended(own_home, vendor) == (["index: generation 1 is missing"], [])
    assert await passages_of(own_home, vendor) == before


@pytest.mark.anyio
async def test_an_ingest_builds_on_no_damaged_index(own_home: Path, pages: Path, vendor: EmbeddingServer) -> None:
    before = await passages_of(own_home, vendor)
    flip_bytes(file_named(own_home, VECTORS))
    calls = len(vendor.calls)
    settings = using(own_home, vendor)
    async with wiring.open_for_ingest(settings, wait=True, on_wait=lambda: None) as engines:
        recipe = wiring.ingest_recipe(settings)
        result = await ingest([pages], project=PROJECT, engines=engines, recipe=recipe, progress=lambda *_: None)
        assert (result.chunks_embedded, len(vendor.calls)) == (0, calls)
        assert await examine(engines) == []
    assert await passages_of(own_home, vendor) == before


@pytest.fixture
def plain_home(home: Path, docs: Path) -> Path:
    """A home with three pages, embedded on this machine."""
    take_in(home, docs, embedder="hashing")
    return home


def test_opening_and_closing_an_index_changes_no_byte_of_it(plain_home: Path) -> None:
    before = {file: checksum(file) for file in files_of(plain_home)}
    for _ in range(3):
        assert answer(plain_home, QUESTIONS[0], embedder="hashing")[1].retrieved
    assert {file: checksum(file) for file in files_of(plain_home)} == before


def test_what_a_killed_engine_left_is_no_damage_but_a_strange_file_is(plain_home: Path, citewell: Citewell) -> None:
    shard = plain_home / "index" / "1" / "shard"
    (shard / ".atomicwriteXYZ").mkdir()
    (shard / ".atomicwriteXYZ" / "tmpfile.tmp").write_text("half a fi")
    assert citewell("doctor", CITEWELL_EMBEDDER="hashing").stdout == "All is well.\n"
    (shard / "segments" / "another").mkdir()
    (shard / "segments" / "another" / "segment.json").write_text("{}")
    found = citewell("doctor", CITEWELL_EMBEDDER="hashing").stdout
    assert "generation 1 is damaged: shard/segments/another/segment.json does not belong to it" in found


def without_checksums(home: Path) -> None:
    """Make the index look as earlier versions made it."""
    (made,) = home.glob("index/*/made.json")
    content = json.loads(made.read_text())
    made.write_text(json.dumps({name: content[name] for name in ("format", "model", "dimensions")}))


def test_an_index_without_checksums_is_served_and_the_doctor_adds_them(plain_home: Path, citewell: Citewell) -> None:
    without_checksums(plain_home)
    asked = citewell("ask", QUESTIONS[0], CITEWELL_EMBEDDER="hashing")
    assert "moves water uphill" in asked.stdout
    found = citewell("doctor", CITEWELL_EMBEDDER="hashing")
    assert found.returncode == 1
    assert "has no checksums, because an earlier version of Citewell made it" in found.stdout
    assert "Run `citewell doctor --fix`" in found.stdout
    assert citewell("doctor", "--fix", CITEWELL_EMBEDDER="hashing").returncode == 3
    assert citewell("doctor", CITEWELL_EMBEDDER="hashing").stdout == "All is well.\n"


def test_a_panic_of_the_engine_is_one_clear_line(plain_home: Path, citewell: Citewell) -> None:
    without_checksums(plain_home)  # with them, the engine would not be let near the file
    cut_to_nothing(file_named(plain_home, "vector_storage-dense/offsets/status.dat"))
    asked = citewell("ask", QUESTIONS[0], CITEWELL_EMBEDDER="hashing")
    assert asked.returncode == 1
    assert "Error: the vector store cannot be read; run `citewell doctor --fix`" in asked.stderr
    assert "Traceback" not in asked.stderr
    assert citewell("doctor", "--fix", CITEWELL_EMBEDDER="hashing").returncode == 3
    assert "moves water uphill" in citewell("ask", QUESTIONS[0], CITEWELL_EMBEDDER="hashing").stdout


def health_of(address: str) -> tuple[int, str, str | None]:
    response = httpx2.get(f"{address}/health", timeout=60)
    store = response.json()["services"]["vector_store"]
    return response.status_code, store["status"], store["error"]


def ask(address: str) -> httpx2.Response:
    return httpx2.post(f"{address}/api/ask", json={"question": QUESTIONS[0]}, timeout=60)


def test_a_server_over_a_damaged_index_says_so_and_answers_once_it_is_mended(
    plain_home: Path, citewell: Citewell
) -> None:
    flip_bytes(file_named(plain_home, VECTORS))
    server = serving(plain_home, CITEWELL_EMBEDDER="hashing")
    with server as address:
        assert "is damaged: shard/segments/" in server.log, "it was checked at the start"
        refused = ask(address)
        assert (refused.status_code, refused.json()["error_code"]) == (503, "QDRANT_UNAVAILABLE")
        assert "run `citewell doctor --fix`" in refused.json()["message"]
        assert "segments" not in refused.text
        assert health_of(address)[:2] == (503, "unavailable")
        assert citewell("doctor", "--fix", CITEWELL_EMBEDDER="hashing").returncode == 3
        assert "moves water uphill" in ask(address).json()["answer"]
        assert health_of(address) == (200, "healthy", None)


def test_a_server_goes_on_with_the_index_it_has_when_the_next_one_is_damaged(
    plain_home: Path, docs: Path, citewell: Citewell
) -> None:
    with serving(plain_home, CITEWELL_EMBEDDER="hashing") as address:
        before = ask(address).json()
        (docs / "04-taps.md").write_text("# Taps\n\nA tap drips.\n")
        take_in(plain_home, docs, embedder="hashing")
        flip_bytes(file_named(plain_home, VECTORS, generation=2))
        assert ask(address).json() == before
        code, status, error = health_of(address)
        assert (code, status) == (200, "degraded")
        assert "an older version of the index answers: the index is damaged; run `citewell doctor --fix`" in str(error)
        assert citewell("doctor", "--fix", CITEWELL_EMBEDDER="hashing").returncode == 3
        assert ask(address).status_code == 200
        assert health_of(address) == (200, "healthy", None)


def test_missing_files_are_not_taken_for_an_empty_library(home: Path, docs: Path, citewell: Citewell) -> None:
    with serving(home, CITEWELL_EMBEDDER="hashing") as address:
        assert ask(address).json()["error_code"] == "EMPTY_KNOWLEDGE_BASE"
    take_in(home, docs, embedder="hashing")
    shutil.rmtree(home / "index" / "1")
    asked = citewell("ask", QUESTIONS[0], CITEWELL_EMBEDDER="hashing")
    assert asked.returncode == 1
    assert "Error: the index is missing: its files are gone; run `citewell doctor --fix`" in asked.stderr
    with serving(home, CITEWELL_EMBEDDER="hashing") as address:
        refused = ask(address)
        assert (refused.status_code, refused.json()["error_code"]) == (503, "QDRANT_UNAVAILABLE")
        assert "run `citewell doctor --fix`" in refused.json()["message"]
        assert health_of(address)[:2] == (503, "unavailable")
        assert citewell("doctor", "--fix", CITEWELL_EMBEDDER="hashing").returncode == 3
        assert "moves water uphill" in ask(address).json()["answer"]


@pytest.mark.parametrize("harm", [cut_to_nothing, flip_bytes, Path.unlink])
def test_a_lost_name_of_the_current_generation_is_found_and_mended(
    plain_home: Path, citewell: Citewell, harm: Callable[[Path], None]
) -> None:
    harm(plain_home / "index" / "CURRENT")
    assert "run `citewell doctor --fix`" in citewell("ask", QUESTIONS[0], CITEWELL_EMBEDDER="hashing").stderr
    found = citewell("doctor", "--fix", CITEWELL_EMBEDDER="hashing")
    assert found.returncode == 3
    assert "generation 1 matches the library, but none is published" in found.stdout
    assert "moves water uphill" in citewell("ask", QUESTIONS[0], CITEWELL_EMBEDDER="hashing").stdout
