"""An ingest leaves word of how it goes and went, for whoever looks on from elsewhere."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from citewell import wiring
from citewell.adapters.hashing import HashingEmbedder
from citewell.errors import OtherModel
from citewell.ingest.flow import ingest
from citewell.models import DEFAULT_PROJECT, IngestResult, IngestRun, Project
from citewell.ports import Embeddable, Embedding
from citewell.settings import Settings
from tests.conftest import PROJECT, settings_for, take_in


async def saved_runs(settings: Settings, project: Project = PROJECT) -> list[IngestRun]:
    """How the ingests stand, as another process sees it."""
    async with wiring.open_stores(settings) as stores:
        return await stores.ingests.ingests(project.id)


def runs(home: Path, *, project: str = DEFAULT_PROJECT) -> list[IngestRun]:
    return asyncio.run(saved_runs(settings_for(home), Project.named(project)))


def test_an_ingest_leaves_what_it_did(home: Path, docs: Path) -> None:
    (docs / "04-broken.pdf").write_bytes(b"not a PDF")
    result = take_in(home, docs, embedder="hashing")
    (run,) = runs(home)
    assert (run.outcome, run.done, run.total) == ("done", 4, 4)
    assert (run.files_processed, run.chunks_created) == (result.files_processed, result.chunks_created) == (3, 5)
    assert run.errors == result.errors
    assert run.started_at < run.updated_at == run.finished_at


def test_an_ingest_that_finds_nothing_to_do_leaves_word_too(home: Path, docs: Path) -> None:
    for _ in range(2):
        take_in(home, docs, embedder="hashing")
    last, first = runs(home)
    assert (last.outcome, last.files_processed, last.chunks_created) == ("done", 3, 0)
    assert (first.files_processed, first.chunks_created) == (3, 5)
    assert runs(home, project="another") == []


def test_an_ingest_that_takes_in_nothing_failed(home: Path, tmp_path: Path) -> None:
    take_in(home, tmp_path / "nowhere", embedder="hashing")
    (run,) = runs(home)
    assert (run.outcome, run.files_processed) == ("failed", 0)
    assert "nowhere" in run.errors[0]


def test_an_ingest_that_ends_in_an_error_failed_and_says_why(home: Path, docs: Path) -> None:
    take_in(home, docs, embedder="hashing")
    with pytest.raises(OtherModel):
        take_in(home, docs)
    failed, done = runs(home)
    assert (failed.outcome, done.outcome) == ("failed", "done")
    assert "--reembed" in failed.errors[0]


def test_of_many_errors_the_first_are_kept_and_no_line_is_endless(home: Path, docs: Path) -> None:
    for number in range(25):
        (docs / f"{number:03}-{'long-' * 45}.pdf").write_bytes(b"not a PDF")
    assert len(take_in(home, docs, embedder="hashing").errors) == 25
    (run,) = runs(home)
    assert len(run.errors) == 20
    assert max(map(len, run.errors)) <= 300
    assert run.outcome == "done"


class Waiting(HashingEmbedder):
    """Embeds when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def embed_passages(self, passages: Sequence[Embeddable]) -> list[Embedding]:
        self.asked.set()
        await self.go_on.wait()
        return await super().embed_passages(passages)


@asynccontextmanager
async def ingesting(settings: Settings, docs: Path) -> AsyncIterator[tuple[Waiting, "asyncio.Task[IngestResult]"]]:
    """An ingest that has begun and waits for its embedder."""
    waiting = Waiting()
    async with wiring.open_for_ingest(settings, wait=True, on_wait=lambda: None) as engines:
        work = ingest(
            [docs],
            project=PROJECT,
            engines=replace(engines, embedder=waiting),
            recipe=wiring.ingest_recipe(settings),
            progress=lambda *_: None,
        )
        task = asyncio.create_task(work)
        await waiting.asked.wait()
        yield waiting, task


@pytest.mark.anyio
async def test_while_an_ingest_runs_others_see_how_far_it_is(home: Path, docs: Path, database_url: str | None) -> None:
    settings = settings_for(home, database_url=database_url, embedder="hashing")
    (docs / "00-broken.pdf").write_bytes(b"not a PDF")
    async with ingesting(settings, docs) as (waiting, task):
        async with asyncio.timeout(300):
            while (seen := (await saved_runs(settings))[0]).stage == "planning":  # noqa: ASYNC110 (another process would)
                await asyncio.sleep(0.05)
        assert (seen.outcome, seen.stage, seen.total, seen.finished_at) == ("running", "reading", 4, None)
        assert seen.started_at < seen.updated_at
        assert seen.errors, "as soon as they are known"
        waiting.go_on.set()
        result = await task
    (run,) = await saved_runs(settings)
    assert (run.id, run.outcome, run.chunks_created) == (seen.id, "done", result.chunks_created)


@pytest.mark.anyio
async def test_an_ingest_that_is_broken_off_was_interrupted(home: Path, docs: Path) -> None:
    settings = settings_for(home, embedder="hashing")
    async with ingesting(settings, docs) as (_, task):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    (run,) = await saved_runs(settings)
    assert run.outcome == "interrupted"
    assert run.finished_at is not None
