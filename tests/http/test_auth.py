"""Authentication, rate limits and body limits; and the headers of every response."""

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import httpx2
import pytest

from citewell.settings import Settings
from tests.conftest import serving, settings_for
from tests.http.conftest import DEFAULT, break_answers, ingest_folder, made_key, problem, running
from tests.http.protected_server import (
    QUESTION,
    SITE,
    ProtectedServer,
    block_embedder,
    headers,
    open_protected_server,
    wait_until_running,
)
from tests.http.test_isolation import ENDPOINTS, OPEN

pytestmark = pytest.mark.anyio

STRANGER = "https://evil.example"
NOBODY = str(uuid4())
IDS = {
    "session_id": NOBODY,
    "project_id": NOBODY,
    "document_id": NOBODY,
    "index": "0",
    "chunk_id": "0" * 64,
    "language": "de",
}
UNREAD = {"content-length": "2000001", "content-type": "application/json"}


@pytest.fixture
async def guarded(home: Path, docs: Path) -> AsyncIterator[ProtectedServer]:
    settings = settings_for(home, embedder="hashing", cors_origins=(SITE,), heartbeat_seconds=0.05)
    async with open_protected_server(settings, docs) as guarded:
        yield guarded


@pytest.fixture(scope="module")
def pumps(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of a small library without a key."""
    folder = tmp_path_factory.mktemp("pumps")
    (folder / "pumps.md").write_text("# Pumps\n\nFill the casing with water before the first start.\n")
    settings = settings_for(folder / "home", embedder="hashing")
    ingest_folder(settings, folder / "pumps.md")
    return settings


@pytest.fixture(scope="module")
async def unguarded(pumps: Settings) -> AsyncIterator[httpx2.AsyncClient]:
    async with running(pumps) as http:
        yield http


async def test_one_more_than_fits_is_sent_away_at_once_and_told_when_to_come_back(home: Path, docs: Path) -> None:
    settings = settings_for(home, embedder="hashing", max_concurrent_requests=2)
    await asyncio.to_thread(ingest_folder, settings, docs)
    async with running(settings) as http:
        patient = block_embedder(http)
        waiting = [asyncio.create_task(http.post("/api/ask", json=QUESTION)) for _ in range(2)]
        await wait_until_running(http, 2)
        refused = await http.post("/api/ask", json=QUESTION)
        assert problem(refused) == (429, "RATE_LIMITED")
        assert int(refused.headers["retry-after"]) >= 1
        assert problem(await http.get("/api/v1/projects"))[0] == 429, "whatever is asked"
        assert (await http.get("/chat")).status_code == 200, "a page costs nothing"
        patient.go_on.set()
        assert [one.status_code for one in await asyncio.gather(*waiting)] == [200, 200]
        assert (await http.post("/api/ask", json=QUESTION)).status_code == 200
        await wait_until_running(http, 0)


async def test_who_is_refused_leaves_the_place_free(guarded: ProtectedServer) -> None:
    for _ in range(30):  # more than fit in at once
        assert problem(await guarded.http.post("/api/ask", json=QUESTION))[0] == 401
        assert problem(await guarded.http.post("/api/ask", headers=headers(guarded.key) | UNREAD))[0] == 413
        assert problem(await guarded.http.post("/api/ask", headers=headers(guarded.key)))[0] == 415
    assert (await guarded.ask()).status_code == 200
    await wait_until_running(guarded.http, 0)


async def test_a_key_asks_as_often_as_it_may(guarded: ProtectedServer) -> None:
    seldom, often = [await made_key(guarded.stores, per_minute=number) for number in (2, 60)]
    assert [(await guarded.ask(seldom)).status_code for _ in range(2)] == [200, 200]
    refused = await guarded.ask(seldom)
    assert problem(refused) == (429, "RATE_LIMITED")
    assert 1 <= int(refused.headers["retry-after"]) <= 31, "one of two a minute"
    by_header = await guarded.http.post("/api/ask", json=QUESTION, headers=headers(seldom, "x-api-key"))
    assert problem(by_header)[0] == 429, "the other header is no other key"
    assert (await guarded.ask(often)).status_code == 200


async def test_a_key_that_waited_as_long_as_it_was_told_may_ask_again(guarded: ProtectedServer) -> None:
    key = await made_key(guarded.stores, per_minute=60)
    path = f"/history/{uuid4()}"
    for _ in range(200):
        response = await guarded.http.get(path, headers=headers(key))
        if response.status_code == 429:
            break
    assert response.status_code == 429
    await asyncio.sleep(int(response.headers["retry-after"]))
    assert (await guarded.http.get(path, headers=headers(key))).status_code == 200


async def test_a_key_without_a_rate_of_its_own_has_that_of_the_settings(home: Path, docs: Path) -> None:
    settings = settings_for(home, embedder="hashing", requests_per_minute=3)
    async with open_protected_server(settings, docs) as guarded:
        assert [(await guarded.ask()).status_code for _ in range(4)] == [200, 200, 200, 429]


@dataclass
class Sender:
    """A request body that counts how many bytes were read."""

    pieces: int
    taken: int = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(self.pieces):
            self.taken += 1
            yield b" " * 100_000


@pytest.mark.parametrize("length", ["2000001", "9" * 5000, "99999999999999999999"])
async def test_a_body_that_says_it_is_too_large_is_not_read(unguarded: httpx2.AsyncClient, length: str) -> None:
    body = Sender(30)
    sent = {"content-type": "application/json", "content-length": length}
    refused = await unguarded.post("/api/ask", content=body, headers=sent)
    assert problem(refused) == (413, "PAYLOAD_TOO_LARGE")
    assert body.taken == 0
    assert refused.headers["connection"] == "close", "or the server would read on, to find the next request"


@pytest.mark.parametrize("length", [None, "0", "-1", "abc", "1e9", "٣"])
async def test_a_body_that_does_not_say_so_is_read_as_far_as_it_may_be(
    unguarded: httpx2.AsyncClient, length: str | None
) -> None:
    body = Sender(30)
    sent = {"content-type": "application/json"}
    raw = [(name.encode(), value.encode()) for name, value in sent.items()]
    raw += [(b"content-length", length.encode())] if length else []
    refused = await unguarded.post("/api/ask", content=body, headers=raw)
    assert problem(refused) == (413, "PAYLOAD_TOO_LARGE")
    assert body.taken == 21, "the first that is too many, and none after it"


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "json"])
async def test_a_body_of_another_kind_is_not_read(unguarded: httpx2.AsyncClient, kind: str) -> None:
    body = Sender(1)
    sent = {"content-type": kind} if kind else {}
    assert problem(await unguarded.post("/api/ask", content=body, headers=sent)) == (415, "UNSUPPORTED_MEDIA")
    assert body.taken == 0
    upload = f"/api/v1/projects/{DEFAULT.id}/documents"
    assert problem(await unguarded.post(upload, json=QUESTION)) == (415, "UNSUPPORTED_MEDIA")


async def test_a_server_that_is_reached_does_not_take_what_it_refused(pumps: Settings) -> None:
    """Over a real connection: the server answers and closes it long before all is sent."""
    with serving(pumps.home, CITEWELL_EMBEDDER="hashing") as address:
        sent, answer = await asyncio.to_thread(_send_much, address, 200_000_000)
    assert b" 413 " in answer.partition(b"\r\n")[0]
    assert sent < 20_000_000, "what lies in the buffers of both ends, not more"


def _send_much(address: str, size: int) -> tuple[int, bytes]:
    """Send until the server closes; returns the bytes sent and the response."""
    host, _, port = address.removeprefix("http://").partition(":")
    head = f"POST /api/ask HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(head.encode())
        answer = connection.recv(65536)
        sent = 0
        try:
            while sent < size:
                sent += connection.send(b" " * 65536)
        except OSError:
            pass
        return sent, answer


async def test_a_page_of_another_site_cannot_send_anything(unguarded: httpx2.AsyncClient) -> None:
    """Without a key the server trusts this machine, but a browser on it shows pages of any site."""
    for origin in (STRANGER, "null", "http://localhost.evil.example", "http://[", "file://", "http://localhost:99999"):
        for method, path in ENDPOINTS:
            if method != "GET":
                sent = await unguarded.request(method, path.format(**IDS), json=QUESTION, headers={"Origin": origin})
                assert problem(sent) == (401, "UNAUTHORIZED"), (origin, path)
    own = await unguarded.post("/api/ask", json=QUESTION, headers={"Origin": "http://localhost"})
    assert own.status_code == 200
    assert "access-control-allow-origin" not in own.headers


async def test_a_site_on_the_list_may_ask_and_read_what_it_is_told(guarded: ProtectedServer) -> None:
    answered = await guarded.ask(Origin=SITE)
    wrong = await guarded.http.post("/api/ask", json={}, headers=headers(guarded.key) | {"Origin": SITE})
    nobody = await guarded.http.post("/api/ask", json=QUESTION, headers={"Origin": SITE})
    assert [one.status_code for one in (answered, wrong, nobody)] == [200, 400, 401]
    break_answers(guarded.http)
    broken = await guarded.ask(Origin=SITE)
    assert problem(broken) == (500, "INTERNAL_ERROR")
    for response in (answered, wrong, nobody, broken):
        assert response.headers["access-control-allow-origin"] == SITE
        assert "access-control-allow-credentials" not in response.headers
    stranger = await guarded.ask(Origin=STRANGER)
    assert problem(stranger) == (401, "UNAUTHORIZED")
    assert "access-control-allow-origin" not in stranger.headers


@pytest.mark.parametrize(("origin", "allowed"), [(SITE, True), (STRANGER, False), ("null", False)])
async def test_a_browser_that_asks_first_is_told_for_sites_on_the_list_only(
    guarded: ProtectedServer, unguarded: httpx2.AsyncClient, origin: str, allowed: bool
) -> None:
    asks = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    told = await guarded.http.options("/api/ask", headers=asks)
    assert (told.status_code == 200) == allowed
    assert ("access-control-allow-origin" in told.headers) == allowed
    safe(told)
    without_a_list = await unguarded.options("/api/ask", headers=asks)
    assert without_a_list.status_code == 405
    assert "access-control-allow-origin" not in without_a_list.headers


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "[::1",
        "",
        "10.0.0.1",
    ],
)
async def test_without_a_key_the_server_answers_to_this_machine_s_names_only(
    unguarded: httpx2.AsyncClient, host: str
) -> None:
    """A host name of another site that resolves to this machine (DNS rebinding) gets no access."""
    for method, path in ENDPOINTS:
        response = await unguarded.request(method, path.format(**IDS), json=QUESTION, headers={"Host": host})
        assert problem(response) == (401, "UNAUTHORIZED"), path


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000"])
async def test_this_machine_s_names_are_known(unguarded: httpx2.AsyncClient, host: str) -> None:
    assert (await unguarded.post("/api/ask", json=QUESTION, headers={"Host": host})).status_code == 200


async def test_with_a_key_the_server_answers_to_any_name(guarded: ProtectedServer) -> None:
    assert (await guarded.ask(Host="citewell.example.org")).status_code == 200


def safe(response: httpx2.Response) -> None:
    """Check the headers that every response has."""
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    assert response.headers["cache-control"].startswith(("no-store", "no-cache"))
    assert UUID(response.headers["x-request-id"]).version == 4


async def test_every_response_is_safe_to_show_and_has_an_id(guarded: ProtectedServer) -> None:
    for method, path in OPEN | set(ENDPOINTS):
        own = str(uuid4())
        for sent in ({}, headers(guarded.key)):
            response = await guarded.http.request(method, path.format(**IDS), headers=sent | {"X-Request-ID": own})
            safe(response)
            assert response.headers["x-request-id"] == own
    stream = await guarded.http.post("/api/ask/stream", json=QUESTION, headers=headers(guarded.key))
    assert stream.headers["content-type"].startswith("text/event-stream")
    safe(stream)
    safe(await guarded.http.get("/nowhere"))
    safe(await guarded.http.put("/chat"))
    break_answers(guarded.http)
    broken = await guarded.ask()
    assert broken.status_code == 500
    safe(broken)
