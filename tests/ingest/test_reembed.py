"""An index stays with its embedding model until it is made anew with another; what was embedded is never paid twice."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from time import sleep

import httpx2
import pytest

from citewell import wiring
from citewell.adapters.embeddings_openai import OpenAiCompatibleEmbedder
from citewell.adapters.vendor_embedding import EmbeddingPolicies
from citewell.answer import flow as answering
from citewell.answer.reply.markers import NumberedMarkers
from citewell.errors import ModelError, OtherModel
from citewell.ingest.flow import IngestEngines, ingest
from citewell.ingest.preview import preview
from citewell.ingest.run_record import Progress
from citewell.models import Answer, IngestResult
from citewell.settings import Settings
from citewell.similarity_scale import PAIRS
from tests.adapters.test_embedding_vendors import HURRIED
from tests.conftest import PROJECT, Citewell, serving, settings_for
from tests.fakes.embeddings import KEY, EmbeddingServer, problem
from tests.fakes.vendor import WELL, Reply

PAGES = 110
FAILED = problem(500, "out of order")
ENOUGH = [WELL] * 8
"""For 64 chunks: a server of one's own gets eight at a time, and they are remembered by 32."""


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Pages of one chunk each: as many chunks as three batches and a bit."""
    folder = tmp_path / "many"
    folder.mkdir()
    for n in range(PAGES):
        (folder / f"{n:03}.md").write_text(f"# Valve {n}\n\nValve number {n} opens at {n + 20} bar.\n")
    return folder


def paid_for(vendor: EmbeddingServer) -> list[str]:
    """The chunks it was sent; not what every new index is measured with."""
    measured = {text for pair in PAIRS for text in pair}
    return [text for text in vendor.texts if text not in measured]


def using(home: Path, url: str, **values: object) -> Settings:
    custom = {"embedder": "custom", "embedding_model": "ours", "embedding_dimensions": 64}
    return settings_for(home, **custom, embedding_base_url=url, embedding_api_key=KEY, **values)


@asynccontextmanager
async def writing(settings: Settings) -> AsyncIterator[IngestEngines]:
    """The engines as they are configured, but for the patience: nobody here has any."""
    async with wiring.open_for_ingest(settings, wait=True, on_wait=lambda: None) as engines:
        if settings.embedder != "custom":
            yield engines
            return
        embedder = OpenAiCompatibleEmbedder(
            "custom",
            key=KEY,
            model="ours",
            dimensions=64,
            base_url=str(settings.embedding_base_url),
            policies=EmbeddingPolicies(ingest=HURRIED),
        )
        try:
            yield replace(engines, embedder=embedder)
        finally:
            await embedder.close()


def take_in(
    settings: Settings, *paths: Path, reembed: bool = False, reembed_progress: Progress = lambda *_: None
) -> IngestResult:
    async def run() -> IngestResult:
        async with writing(settings) as engines:
            return await ingest(
                paths,
                project=PROJECT,
                engines=engines,
                recipe=wiring.ingest_recipe(settings),
                reembed=reembed,
                progress=lambda *_: None,
                reembed_progress=reembed_progress,
            )

    return asyncio.run(run())


async def asked(settings: Settings, question: str = "At what pressure does valve 7 open?") -> Answer:
    async with wiring.open_for_answers(settings) as reading:
        pieces = answering.answer(question, project=PROJECT, engines=reading.engines)
        return (await answering.collect(pieces, NumberedMarkers().render))[1]


def test_a_vendor_s_embeddings_answer_questions(home: Path, many: Path) -> None:
    with EmbeddingServer() as vendor:
        assert take_in(using(home, vendor.url), many).chunks_embedded == PAGES
        answer = asyncio.run(asked(using(home, vendor.url)))
    assert answer.retrieved[0].chunk.source == "007.md"


def test_what_was_embedded_before_a_vendor_failed_is_not_paid_for_again(home: Path, many: Path) -> None:
    with EmbeddingServer(*ENOUGH, FAILED) as vendor:
        with pytest.raises(ModelError, match="64 chunks that were embedded are cached: run the same command again"):
            take_in(using(home, vendor.url), many)
        assert len(vendor.calls) == len(ENOUGH) + 3
        paid = set(paid_for(vendor)[:64])
        vendor.calls.clear()
        vendor.replies = [WELL]
        result = take_in(using(home, vendor.url), many)
    assert result.chunks_created == PAGES
    assert result.chunks_embedded == PAGES - 64
    assert len(paid_for(vendor)) == PAGES - 64
    assert not paid & set(paid_for(vendor))


def test_a_killed_ingest_goes_on_where_it_was(home: Path, many: Path, tmp_path: Path) -> None:
    """Killed while the vendor lets it wait for one more call."""
    with EmbeddingServer(*ENOUGH, Reply(hang=True)) as vendor:
        environment = {**os.environ, **using(home, vendor.url).as_environment()}
        running = subprocess.Popen(
            [sys.executable, "-m", "citewell", "ingest", str(many)], env=environment, cwd=tmp_path
        )
        while len(vendor.calls) <= len(ENOUGH) and running.poll() is None:
            sleep(0.02)
        running.send_signal(signal.SIGKILL)
        running.wait()
        assert len(vendor.calls) == len(ENOUGH) + 1
        paid = set(paid_for(vendor)[:64])
        vendor.calls.clear()
        vendor.replies = [WELL]
        assert take_in(using(home, vendor.url), many).chunks_embedded == PAGES - 64
        assert not paid & set(paid_for(vendor))
        undisturbed = tmp_path / "undisturbed"
        take_in(using(undisturbed, vendor.url), many)
        assert contents(using(home, vendor.url)) == contents(using(undisturbed, vendor.url))


def contents(settings: Settings) -> dict[str, str]:
    """Every chunk of the published index."""

    async def run() -> dict[str, str]:
        async with writing(settings) as engines:
            published = await engines.index_builder.current_generation()
            assert published is not None
            assert published == await engines.library.generation()
            return {chunk: text async for chunk, text in engines.index_builder.contents(published)}

    return asyncio.run(run())


def test_a_vendor_that_is_down_ends_an_ingest_with_a_line_and_code_1(
    citewell: Citewell, home: Path, docs: Path
) -> None:
    with EmbeddingServer(problem(404, "no such model: ours")) as vendor:
        done = citewell("ingest", str(docs), **using(home, vendor.url).as_environment())
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "Error: the embedding server gives no embeddings: status 404: no such model: ours"
    )
    assert KEY not in done.stdout + done.stderr


def test_another_model_is_refused_until_it_is_wished_for(home: Path, docs: Path) -> None:
    hashing = settings_for(home, embedder="hashing")
    take_in(hashing, docs)
    says = r"made with the embedding model hashing-64, but custom/ours/64 is configured.*`citewell ingest --reembed`"
    with EmbeddingServer() as vendor:
        theirs = using(home, vendor.url)
        with pytest.raises(OtherModel, match=says):
            take_in(theirs, docs)
        assert not vendor.calls
        with pytest.raises(OtherModel, match=says):
            asyncio.run(asked(theirs))
    assert asyncio.run(asked(hashing, "What moves water?")).retrieved


def test_an_index_is_made_anew_without_any_file(home: Path, docs: Path) -> None:
    take_in(settings_for(home, embedder="hashing"), docs)
    before = contents(settings_for(home, embedder="hashing"))
    for file in docs.iterdir():
        file.unlink()
    counted: list[tuple[int, int]] = []
    with EmbeddingServer() as vendor:
        theirs = using(home, vendor.url)
        result = take_in(theirs, reembed=True, reembed_progress=lambda *now: counted.append(now))
        assert result.exit_code == 0
        assert result.chunks_embedded == len(before) == len(paid_for(vendor))
        assert counted == [(0, len(before)), (len(before), len(before))]
        assert contents(theirs) == before
        assert asyncio.run(asked(theirs, "What moves water?")).retrieved[0].chunk.source == "01-pumps.md"
        with pytest.raises(OtherModel, match="made with the embedding model custom/ours/64, but hashing-64 is"):
            asyncio.run(asked(settings_for(home, embedder="hashing")))


def test_made_anew_a_second_time_it_costs_nothing(home: Path, docs: Path) -> None:
    take_in(settings_for(home, embedder="hashing"), docs)
    with EmbeddingServer() as vendor:
        theirs = using(home, vendor.url)
        take_in(theirs, reembed=True)
        vendor.calls.clear()
        assert take_in(theirs, reembed=True).chunks_embedded == 0
        take_in(settings_for(home, embedder="hashing"), reembed=True)
        take_in(theirs, reembed=True)
        assert paid_for(vendor) == []


def test_files_that_are_named_are_taken_in_as_it_is_made_anew(home: Path, docs: Path) -> None:
    take_in(settings_for(home, embedder="hashing"), docs)
    (docs / "02-valves.md").write_text("# Valves\n\nA new kind of valve opens by itself.\n")
    with EmbeddingServer() as vendor:
        result = take_in(using(home, vendor.url), docs, reembed=True)
        words = contents(using(home, vendor.url)).values()
    assert (result.files_processed, result.files_unchanged) == (3, 2)
    assert any("opens by itself" in text for text in words)
    assert not any("stops the flow" in text for text in words)


def test_what_it_would_cost_is_told_before(home: Path, docs: Path) -> None:
    take_in(settings_for(home, embedder="hashing"), docs)

    async def look(*, reembed: bool) -> int:
        settings = using(home, "http://127.0.0.1:1")
        async with wiring.open_for_preview(settings) as engines:
            recipe = wiring.ingest_recipe(settings)
            return (
                await preview((), project=PROJECT, engines=engines, recipe=recipe, reembed=reembed)
            ).embeddings_needed

    assert asyncio.run(look(reembed=True)) == len(contents(settings_for(home, embedder="hashing")))
    with pytest.raises(OtherModel):
        asyncio.run(look(reembed=False))


def test_readers_are_served_by_the_old_model_while_the_new_one_fails(home: Path, many: Path) -> None:
    hashing = settings_for(home, embedder="hashing")
    take_in(hashing, many)
    published = contents(hashing)
    with EmbeddingServer(*ENOUGH, FAILED) as vendor:
        seen: list[bool] = []
        with pytest.raises(ModelError, match="64 chunks that were embedded are cached"):
            take_in(
                using(home, vendor.url),
                reembed=True,
                reembed_progress=lambda *_: seen.append((home / "index/1/made.json").exists()),
            )
        assert len(seen) == 3
        assert all(seen)
        assert asyncio.run(asked(hashing)).retrieved
        assert contents(hashing) == published
        vendor.calls.clear()
        vendor.replies = [WELL]
        assert take_in(using(home, vendor.url), reembed=True).chunks_embedded == PAGES - 64
        assert len(paid_for(vendor)) == PAGES - 64
        assert contents(using(home, vendor.url)) == published


def test_the_command_makes_the_index_anew_and_a_running_server_says_what_to_do(
    citewell: Citewell, home: Path, docs: Path
) -> None:
    take_in(settings_for(home, embedder="hashing"), docs)
    with EmbeddingServer() as vendor, serving(home, CITEWELL_EMBEDDER="hashing") as address:
        before = httpx2.post(f"{address}/api/ask", json={"question": "What moves water?"})
        done = citewell("ingest", "--reembed", **using(home, vendor.url).as_environment())
        after = httpx2.post(f"{address}/api/ask", json={"question": "What moves water?"})
        as_json = citewell("ingest", "--reembed", "--json", **using(home, vendor.url).as_environment())
    assert before.status_code == 200
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("0 of 5 chunks\n5 of 5 chunks\n")
    assert done.stderr.endswith("Rebuilt the index with custom/ours/64.\n")
    assert after.status_code == 503
    assert "configure custom/ours/64 and start again, or run `citewell ingest --reembed`" in after.json()["message"]
    assert json.loads(as_json.stdout)["chunks_embedded"] == 0


def test_a_server_outlives_a_vendor_that_is_down(home: Path, docs: Path) -> None:
    with EmbeddingServer(key=KEY) as vendor:
        take_in(using(home, vendor.url), docs)
        vendor.replies = [problem(400, f"this account is closed: {KEY}"), WELL]
        vendor.calls.clear()
        server = serving(home, CITEWELL_LOG_LEVEL="debug", **using(home, vendor.url).as_environment())
        with server as address:
            assert not vendor.calls  # a server starts whether or not its vendor answers
            replies = [httpx2.post(f"{address}/api/ask", json={"question": "What moves water?"}) for _ in range(2)]
    assert [reply.status_code for reply in replies] == [503, 200]
    assert replies[0].json()["message"].startswith("the embedding server gives no embeddings: status 400")
    assert KEY not in server.log + "".join(reply.text for reply in replies)


@pytest.mark.parametrize("wrong", [[], ["--reembed", "--prune"], ["--reembed", "--watch"]])
def test_what_needs_a_path_says_so(citewell: Citewell, wrong: list[str]) -> None:
    done = citewell("ingest", *wrong)
    assert done.returncode == 2
    assert "Missing argument 'PATH…'" in done.stderr
