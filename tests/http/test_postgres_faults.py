"""PostgreSQL is killed and restarted while it is needed: nothing is lost or doubled, and nobody has to restart us."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import sleep
from uuid import uuid4

import httpx2
import pytest
from sqlalchemy import text

from citewell.adapters.sql import Database, SqlLibrary
from citewell.errors import StoreUnavailable
from citewell.models import Project
from tests.conftest import Citewell, chunk_ids, ready, serving, settings_for
from tests.fakes.postgres import PostgresServer
from tests.http.live import live, until

QUESTIONS, UPLOADS = 32, 6
DOCUMENTS = f"/api/v1/projects/{Project.named('default').id}/documents"


@pytest.fixture
def url(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> str:
    url = ready(postgres_server)
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("CITEWELL_EMBEDDER", "hashing")
    return url


@contextmanager
def restarting(server: PostgresServer) -> Iterator[None]:
    """The server is killed while what is in the context runs, and is back at its end."""
    thread = threading.Thread(target=_restart, args=[server])
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _restart(server: PostgresServer) -> None:
    server.stop()
    sleep(0.3)
    server.start()


def sent(client: httpx2.Client, method: str, path: str, **body: object) -> httpx2.Response:
    """The answer, after as many attempts as it takes."""
    for _ in range(300):
        answer = client.request(method, path, **body)  # type: ignore[arg-type]
        if answer.status_code < 400:
            return answer
        assert answer.status_code == 503, answer.text
        sleep(0.1)
    raise AssertionError(f"{method} {path} never came through")


def statuses(client: httpx2.Client) -> list[str]:
    return [row["status"] for row in sent(client, "GET", DOCUMENTS).json()["documents"]]


def done(client: httpx2.Client) -> bool:
    return not {"PENDING", "PROCESSING"} & set(statuses(client))


def health(client: httpx2.Client) -> tuple[int, str, str]:
    """The status code, and what is said of the database."""
    answer = client.get("/health")
    database = answer.json()["services"]["database"]
    return answer.status_code, database["status"], database["error"] or ""


def test_exchanges_are_kept_once_while_the_database_is_killed_during_chat(
    url: str, home: Path, docs: Path, citewell: Citewell, postgres_server: PostgresServer
) -> None:
    assert citewell("ingest", str(docs)).returncode == 0
    session = str(uuid4())
    with serving(home, DATABASE_URL=url) as address, httpx2.Client(base_url=address, timeout=60) as client:
        for number in range(QUESTIONS):
            body = {"query": f"What does a pump move, {number}?", "session_id": session}
            with restarting(postgres_server) if number % 8 == 4 else nullcontext():
                sent(client, "POST", "/chat", json=body, headers={"Idempotency-Key": str(number)})
        history = sent(client, "GET", f"/history/{session}?limit=1000").json()
        assert health(client)[:2] == (200, "healthy")
    kept = Counter(entry["query"] for entry in history["entries"])
    assert kept == Counter(f"What does a pump move, {one}?" for one in range(QUESTIONS))
    assert all(entry["complete"] for entry in history["entries"])


def test_uploads_are_indexed_once_while_the_database_is_killed(
    url: str, home: Path, postgres_server: PostgresServer
) -> None:
    page = "\n\n".join(f"## Part {part}\n\n" + "A pump moves water. " * 90 for part in range(40))
    with serving(home, DATABASE_URL=url) as address, httpx2.Client(base_url=address, timeout=60) as client:
        for number in range(UPLOADS):
            with restarting(postgres_server) if number % 3 == 1 else nullcontext():
                sent(client, "POST", DOCUMENTS, files={"file": (f"{number}.md", f"# Page {number}\n\n{page}".encode())})
        for _ in range(2):
            until(lambda: "PROCESSING" in statuses(client) or done(client), "a worker has begun")
            with restarting(postgres_server):
                pass
        until(lambda: done(client), "all are indexed")
        documents = sent(client, "GET", DOCUMENTS).json()["documents"]
    assert sorted((row["filename"], row["status"]) for row in documents) == [
        (f"{number}.md", "COMPLETED") for number in range(UPLOADS)
    ]
    assert len(chunk_ids(home)) == len(set(chunk_ids(home))) > 0


def test_an_ingest_whose_database_is_killed_says_so_and_a_second_run_ends_as_if_undisturbed(
    url: str, home: Path, tmp_path: Path, citewell: Citewell, postgres_server: PostgresServer
) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(40):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\n" + f"Pump {number} moves water. " * 2000)
    database = url.rpartition("/")[2]
    with ThreadPoolExecutor(1) as aside:
        running = aside.submit(citewell, "ingest", str(folder))
        until(lambda: postgres_server.run("SELECT count(*) FROM leases", database=database) == "1", "it has begun")
        _restart(postgres_server)
        first = running.result()
    assert first.returncode in (0, 1)  # it may have found the server again
    if first.returncode:
        assert "the database does not answer" in first.stderr
        assert first.stderr.strip().splitlines()[-1].startswith("Error: ")
    again = citewell("ingest", str(folder), "--no-wait")  # a dead ingest of this home folder keeps nobody waiting
    assert again.returncode == 0, again.stderr
    other = tmp_path / "undisturbed"
    assert citewell("ingest", str(folder), home=other, DATABASE_URL=ready(postgres_server)).returncode == 0
    assert citewell("doctor").stdout.strip() == "All is well."
    assert "40 unchanged" in citewell("ingest", str(folder)).stdout


def test_health_says_that_the_database_is_gone_and_that_it_is_back(
    url: str, home: Path, docs: Path, citewell: Citewell, postgres_server: PostgresServer
) -> None:
    assert citewell("ingest", str(docs)).returncode == 0
    with serving(home, DATABASE_URL=url) as address, httpx2.Client(base_url=address, timeout=60) as client:
        assert health(client) == (200, "healthy", "")
        postgres_server.stop()
        try:
            assert health(client) == (503, "unavailable", "the database does not answer")
        finally:
            postgres_server.start()
        assert health(client) == (200, "healthy", "")


def test_health_says_that_no_connection_is_free_and_that_one_is_again(url: str, home: Path) -> None:
    with live(settings_for(home)) as server, httpx2.Client(base_url=server.address, timeout=60) as client:
        library = server.state.stores.library
        assert isinstance(library, SqlLibrary)
        assert health(client)[1] == "healthy"
        free = server.run(_event())

        async def hold() -> None:
            async with library._database.reading() as connection:
                await connection.execute(text("SELECT 1"))
                await free.wait()

        holders = [asyncio.run_coroutine_threadsafe(hold(), server.loop) for _ in range(10)]
        until(lambda: health(client)[1:] == ("unavailable", "no answer within 1.5 s"), "all are in use")
        server.loop.call_soon_threadsafe(free.set)
        for holder in holders:
            holder.result(timeout=30)
        assert health(client)[1:] == ("healthy", "")


async def _event() -> asyncio.Event:
    return asyncio.Event()


@pytest.mark.anyio
async def test_who_finds_every_connection_in_use_is_told_so_and_the_next_one_is_served(url: str) -> None:
    database = await Database.open(url, timeout_seconds=1)
    free = asyncio.Event()

    async def hold() -> None:
        async with database.reading() as connection:
            await connection.execute(text("SELECT 1"))
            await free.wait()

    holders = [asyncio.create_task(hold()) for _ in range(10)]
    await asyncio.sleep(0.5)
    with pytest.raises(StoreUnavailable, match="all connections to the database are in use"):
        async with database.reading() as connection:
            await connection.execute(text("SELECT 1"))
    free.set()
    await asyncio.gather(*holders)
    async with database.reading() as connection:
        assert await connection.scalar(text("SELECT 1")) == 1
    await database.close()
