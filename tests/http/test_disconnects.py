"""Five hundred clients that disconnect at any moment leave no task, socket or lock behind."""

import asyncio
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from tests.conftest import ready, settings_for
from tests.http.conftest import DEFAULT
from tests.http.live import Live, Wire, live, request_bytes, until

CLIENTS = 500
SESSIONS = [str(uuid4()) for _ in range(5)]
QUESTION = "What moves water uphill?"
IDS = {"projectId": str(DEFAULT.id)}
_FORM = (
    f"POST /api/v1/projects/{DEFAULT.id}/documents HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n"
    "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    '--x\r\nContent-Disposition: form-data; name="file"; filename="a.md"\r\n\r\n'
).encode() + b"water " * 250_000  # never whole: it has no end


pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def server(request: pytest.FixtureRequest, pages: Path) -> Iterator[Live]:
    database_url = ready(request.getfixturevalue("postgres_server")) if request.param == "postgresql" else None
    settings = settings_for(pages, embedder="hashing", database_url=database_url, max_concurrent_requests=40)
    with live(settings) as server:
        yield server


@dataclass(frozen=True, slots=True)
class Held:
    """Open resources of the process while no request runs."""

    tasks: int
    threads: int
    files: int
    """Sockets, without those of a database."""
    database: int
    """Files of SQLite, which keeps files of closed connections open to reuse them."""


def held(server: Live) -> Held:
    async def tasks() -> int:
        return len(asyncio.all_tasks())

    opened = []
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # it is just being closed
            opened.append(one.readlink().name)
    database = sum(name.startswith("citewell.db") for name in opened)
    return Held(server.run(tasks()), threading.active_count(), len(opened) - database, database)


def requests(chance: random.Random) -> bytes:
    """A request to one of the endpoints that take a body."""
    session = chance.choice(SESSIONS)
    chat = {"query": QUESTION, "session_id": session}
    word = {"Idempotency_Key": f"{session}-{chance.randrange(20)}"}
    endpoints = [
        request_bytes("/api/ask", {"question": QUESTION}),
        request_bytes("/api/ask/stream", {"question": QUESTION}),
        request_bytes("/api/query", {"query": QUESTION}),
        request_bytes("/chat", chat),
        request_bytes("/chat", chat, **word),
        request_bytes("/chat/stream", chat),
        request_bytes("/chat/stream", chat, **word),
        request_bytes("/api/v1/chat", {"message": QUESTION, **IDS}),
        request_bytes("/api/v1/chat/stream", {"message": QUESTION, **IDS}),
        request_bytes("/api/v1/search", {"query": QUESTION}),
        request_bytes("/api/v1/citations/verify", {"ids": ["0" * 64], **IDS}),
        request_bytes("/api/v1/projects", {"name": "left"}),
        _FORM,
    ]
    return chance.choice(endpoints)


def come_and_leave(server: Live, seed: int) -> None:
    """Send all or part of a request, read some or none of the response, and disconnect, cleanly or not."""
    chance = random.Random(seed)
    wire = Wire(server.port, receive_buffer=chance.choice([None, 4096]))
    sent = requests(chance)
    if chance.random() < 0.2:
        sent = sent[: chance.randrange(len(sent))]
    try:
        wire.socket.sendall(sent)
        time.sleep(chance.choice([0, 0, chance.random() * 0.05, chance.random() * 0.2]))
        if chance.random() < 0.3:
            wire.socket.settimeout(0.05)
            wire.socket.recv(chance.choice([1, 200, 65536]))
    except (TimeoutError, ConnectionError):
        pass  # refused in the middle of a body, say
    if chance.random() < 0.5:
        wire.leave()
    else:
        if chance.random() < 0.5:
            shut(wire)
        wire.socket.close()


def shut(wire: Wire) -> None:
    with suppress(OSError):  # the server was quicker
        wire.socket.shutdown(socket.SHUT_WR)


def test_clients_that_leave_at_random_leave_nothing_behind(server: Live, request: pytest.FixtureRequest) -> None:
    def leave_all(seeds: range) -> None:
        with ThreadPoolExecutor(12) as crowd:
            for done in [crowd.submit(come_and_leave, server, seed) for seed in seeds]:
                done.result()

    leave_all(range(100))  # what is opened once stays open: connections of the pool, threads of the executor
    until(lambda: server.running == 0, "everybody is gone")
    time.sleep(0.5)  # connections and threads that are being closed
    before = held(server)
    leave_all(range(100, 100 + CLIENTS))

    def given_back() -> bool:
        """Pools may have grown a little, by far not by one for each client."""
        now = held(server)
        return (
            now.tasks <= before.tasks
            and now.threads <= before.threads + 10
            and now.files <= before.files + 10
            and now.database <= before.database + CLIENTS // 10
        )

    until(given_back, f"no more is held than {before}")
    for session in SESSIONS:  # none is locked
        answer = httpx2.post(f"{server.address}/chat", json={"query": QUESTION, "session_id": session}, timeout=30)
        assert answer.status_code == 200
        entries = httpx2.get(f"{server.address}/history/{session}", params={"limit": 1000}).json()["entries"]
        assert entries[-1]["response"] == answer.json()["answer"]
    if server.state.settings.database_url:
        postgres = request.getfixturevalue("postgres_server")
        busy = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'citewell' AND state <> 'idle'"
        until(lambda: postgres.run(busy) == "0", "no connection is in the middle of something")
    assert httpx2.get(f"{server.address}/health").status_code == 200
    assert json.loads(httpx2.get(f"{server.address}/ready").text) == {"ready": True}
