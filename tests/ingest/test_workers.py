"""Several workers share the uploads of one database: what one leaves, another does, and nobody does it twice."""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO
from uuid import uuid4

import httpx2
import pytest

from citewell.adapters.hashing import HashingEmbedder
from citewell.adapters.sql import Database, SqlProjects, SqlUploads
from citewell.ingest.uploads import work
from citewell.models import Project, Upload
from citewell.ports import Embeddable, Embedding
from tests.commands import Command
from tests.conftest import PROJECT, chunk_ids, ready, serving
from tests.fakes.postgres import PostgresServer
from tests.http.live import until
from tests.ingest.own_indexes import RECIPE, opener

OURS, THEIRS = Project.named("ours"), Project.named("theirs")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def url(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database that every command uses, too."""
    url = ready(postgres_server)
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("CITEWELL_EMBEDDER", "hashing")
    return url


def page(word: str, *, parts: int = 1) -> bytes:
    sections = (f"## Part {part}\n\n" + f"The {word} of part {part} turns. " * 80 for part in range(parts))
    return "\n\n".join((f"# {word}", *sections)).encode()


async def send(database: Database, *paths: str, project: Project, parts: int = 1) -> None:
    for minute, path in enumerate(paths):
        content = page(path, parts=parts)
        at = NOON + timedelta(minutes=minute)
        upload = Upload(uuid4(), project, path, "ingest", "PENDING", len(content), at)
        await SqlUploads(database).add(upload, content=content)


def sent(url: str, *paths: str, parts: int = 1, project: Project = PROJECT) -> None:
    async def run() -> None:
        database = await Database.open(url)
        await send(database, *paths, project=project, parts=parts)
        await database.close()

    asyncio.run(run())


def unfinished(url: str) -> list[tuple[str, str, int]]:
    """Path, status and attempts of what is in the queue."""

    async def run() -> list[Upload]:
        database = await Database.open(url)
        found = await SqlUploads(database).uploads()
        await database.close()
        return found

    return [(upload.path, upload.status, upload.attempts) for upload in asyncio.run(run())]


class Meeting(HashingEmbedder):
    """Waits with its first text until another embedder has come as far: neither can be done before the other begins."""

    def __init__(self, meeting: asyncio.Barrier) -> None:
        super().__init__()
        self._meeting = meeting
        self._met = False

    async def embed_passages(self, passages: Sequence[Embeddable]) -> list[Embedding]:
        if not self._met:
            self._met = True
            await asyncio.wait_for(self._meeting.wait(), 60)
        return await super().embed_passages(passages)


async def _work(url: str, home: Path, embedder: HashingEmbedder) -> AsyncIterator[str]:
    database = await Database.open(url)
    done = work(
        SqlUploads(database),
        SqlProjects(database),
        open_engines=opener(database, home, embedder=embedder),
        recipe=RECIPE,
        folder=home / "uploads",
    )
    async for upload, error in done:
        assert error is None
        yield f"{upload.project.name}/{upload.path}"
    await database.close()


def test_two_workers_index_two_projects_at_the_same_time_and_each_in_its_order(url: str, tmp_path: Path) -> None:
    """Where each project has an index of its own, as on a server."""
    names = [f"{number}.md" for number in range(3)]

    async def run() -> list[list[str]]:
        database = await Database.open(url)
        for project in (OURS, THEIRS):
            await send(database, *names, project=project)
        await database.close()
        meeting = asyncio.Barrier(2)

        async def worker() -> list[str]:
            return [path async for path in _work(url, tmp_path, Meeting(meeting))]

        return list(await asyncio.gather(worker(), worker()))

    done = asyncio.run(run())
    assert sorted(done) == [[f"{name}/{path}" for path in names] for name in ("ours", "theirs")]
    assert unfinished(url) == []
    assert list((tmp_path / "uploads").iterdir()) == []


class Worker:
    """`citewell worker --forever`, in a process of its own."""

    def __init__(self, home: Path, output: IO[bytes]) -> None:
        self._output = output
        self.process = Command(
            *("worker", "--forever"),
            cwd=home.parent,
            env={**os.environ, "CITEWELL_HOME": str(home)},
            stdout=output,
            stderr=output,
        )

    @property
    def said(self) -> str:
        return os.pread(self._output.fileno(), 1_000_000, 0).decode()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=120)


@contextmanager
def workers(home: Path, count: int) -> Iterator[list[Worker]]:
    with ExitStack() as ending:
        started = [Worker(home, ending.enter_context(tempfile.TemporaryFile())) for _ in range(count)]
        for worker in started:
            ending.callback(worker.end, signal.SIGKILL)
        yield started


def test_what_a_killed_worker_left_another_one_does_without_a_restart(url: str, home: Path) -> None:
    sent(url, "long.md", parts=400)
    with workers(home, 2) as (one, other):
        until(lambda: ("long.md", "PROCESSING", 1) in unfinished(url), "one has begun")
        both = {worker.process.pid: worker for worker in (one, other)}
        busy = _who_writes(home, both)
        busy.end(signal.SIGKILL)
        assert [path for path, _, _ in unfinished(url)] == ["long.md"], "it was in the middle"
        rest = other if busy is one else one
        until(lambda: not unfinished(url), "the other one did it")
        assert rest.said.count("default: long.md indexed") == 1
        assert rest.end() == 0
    assert chunk_ids(home)


def _who_writes(home: Path, workers: dict[int, Worker]) -> Worker:
    """The worker that holds the lock of the home folder, as the kernel has it."""
    inode = (home / "ingest.lock").stat().st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if "->" not in fields and fields[5].endswith(f":{inode}") and int(fields[4]) in workers:
            return workers[int(fields[4])]
    raise AssertionError("nobody writes")


def test_a_worker_that_runs_until_it_is_stopped_puts_its_upload_back_and_ends_well(url: str, home: Path) -> None:
    with workers(home, 1) as (worker,):
        until(lambda: "Waiting for uploads." in worker.said, "it waits")
        sent(url, "quick.md")
        until(lambda: "quick.md indexed" in worker.said, "it does what comes later")
        sent(url, "long.md", parts=1000)
        until(lambda: ("long.md", "PROCESSING", 1) in unfinished(url), "it has begun")
        assert worker.end() == 0
    assert unfinished(url) == [("long.md", "PENDING", 0)], "no attempt is used up"


def test_a_worker_outlives_its_database_and_uses_up_no_attempt(
    url: str, home: Path, postgres_server: PostgresServer
) -> None:
    sent(url, *(f"{number}.md" for number in range(4)), parts=60)
    with workers(home, 1) as (worker,):
        for number in range(4):
            until(lambda: "PROCESSING" in str(unfinished(url)) or not unfinished(url), "it works")
            if number < 3:
                postgres_server.restart()
        until(lambda: not unfinished(url), "all is indexed")
        said = worker.said
        assert worker.end() == 0
    for number in range(4):
        assert said.count(f"{number}.md indexed") == 1, said
    assert len(chunk_ids(home)) == len(set(chunk_ids(home))) > 0


def test_a_server_without_a_worker_leaves_uploads_to_one_elsewhere(url: str, home: Path) -> None:
    with serving(home, CITEWELL_WORKER="false", DATABASE_URL=url) as address, httpx2.Client(base_url=address) as http:
        documents = f"/api/v1/projects/{Project.named('default').id}/documents"
        assert http.post(documents, files={"file": ("taps.md", page("taps"))}).status_code == 202
        assert [row["status"] for row in http.get(documents).json()["documents"]] == ["PENDING"]
        with workers(home, 1):
            until(
                lambda: [row["status"] for row in http.get(documents).json()["documents"]] == ["COMPLETED"],
                "the worker has done it",
            )
        assert "turns" in http.post("/api/ask", json={"question": "What turns?"}).text
