"""Streams over real sockets: events arrive at once; clients that disconnect, stall or come in crowds do no harm."""

import json
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import httpx2
import pytest

from citewell.errors import IndexUnavailable
from citewell.models import Passage
from tests.conftest import ready, serving, settings_for
from tests.fakes.cohere import KEY, WELL, Reply, Vendor
from tests.http.conftest import DEFAULT, events
from tests.http.live import Held, Live, WaitingIndex, Wire, live, until

QUESTION = "What moves water uphill?"
WITH_CODE = "How do I prime the casing?"
_SMALL = 4096


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def any_server(request: pytest.FixtureRequest, pages: Path) -> Iterator[Live]:
    database_url = ready(request.getfixturevalue("postgres_server")) if request.param == "postgresql" else None
    with live(
        settings_for(
            pages, embedder="hashing", database_url=database_url, heartbeat_seconds=0.1, client_timeout_seconds=1
        ),
        send_buffer=_SMALL,
    ) as server:
        yield server


@pytest.fixture
def server(any_server: Live) -> Iterator[Live]:
    """The same with its own engines, and no request running when the test ends."""
    any_server.use()
    yield any_server
    until(lambda: any_server.running == 0, "everybody is gone")


@pytest.fixture
def held(server: Live) -> Iterator[Held]:
    """Every search waits for this."""
    held = Held()
    server.use(index=WaitingIndex(server.well.engines.index, held))
    yield held
    held.release()


STREAMS: list[tuple[str, str, dict[str, Any]]] = [
    ("/api/ask/stream", "question", {}),
    ("/chat/stream", "query", {}),
    ("/api/v1/chat/stream", "message", {"projectId": str(DEFAULT.id)}),
]
STAGED = STREAMS[1:]
PLAIN = {"/api/ask/stream": "answer", "/chat/stream": "answer", "/api/v1/chat/stream": "response"}


def history(server: Live, session: UUID) -> list[dict[str, Any]]:
    body = httpx2.get(f"{server.address}/history/{session}").json()
    return cast("list[dict[str, Any]]", body["entries"])


def words(told: list[dict[str, Any]]) -> str:
    return "".join(event.get("content") or event.get("delta") or "" for event in told)


@pytest.mark.parametrize(("endpoint", "field", "more"), STAGED)
def test_an_event_arrives_as_it_is_said(
    server: Live, held: Held, endpoint: str, field: str, more: dict[str, Any]
) -> None:
    wire = Wire(server.port).post(endpoint, {field: QUESTION, **more})
    assert b'data: {"stage":"retrieving"}' in wire.read_until(b"\n\n\r\n")
    until(lambda: held.waiting == 1, "the search begins")
    held.release()
    assert b'"delta":' in wire.read_until(b'"done":true')


@pytest.mark.parametrize(("endpoint", "field", "more"), STAGED)
def test_a_stream_in_which_nothing_is_said_beats(
    server: Live, held: Held, endpoint: str, field: str, more: dict[str, Any]
) -> None:
    wire = Wire(server.port).post(endpoint, {field: QUESTION, **more})
    for _ in range(3):
        wire.read_until(b": still here\n\n")
    assert held.waiting
    held.release()
    wire.read_until(b'"done":true')


@pytest.mark.parametrize("question", [QUESTION, WITH_CODE, "What is a quasar?"])
@pytest.mark.parametrize(("endpoint", "field", "more"), STREAMS)
def test_the_joined_stream_is_the_plain_answer_byte_for_byte(
    server: Live, endpoint: str, field: str, more: dict[str, Any], question: str
) -> None:
    body = {field: question, **more}
    streamed = httpx2.post(f"{server.address}{endpoint}", json=body)
    plain = httpx2.post(f"{server.address}{endpoint.removesuffix('/stream')}", json=body).json()[PLAIN[endpoint]]
    assert words(events(streamed.text)).encode() == plain.encode()
    if question == WITH_CODE:
        assert "\tstart 泵\n" in plain


def test_a_stream_is_not_for_proxies_to_keep(server: Live) -> None:
    headers = httpx2.post(f"{server.address}/chat/stream", json={"query": QUESTION}).headers
    assert headers["x-accel-buffering"] == "no"
    assert "no-cache" in headers["cache-control"]
    assert "no-transform" in headers["cache-control"]
    assert "content-length" not in headers


@pytest.mark.parametrize("endpoint", ["/chat", "/chat/stream"])
def test_when_a_client_leaves_the_work_ends_and_the_exchange_is_kept_as_incomplete(
    server: Live, held: Held, endpoint: str
) -> None:
    session = uuid4()
    wire = Wire(server.port).post(endpoint, {"query": QUESTION, "session_id": str(session)})
    until(lambda: held.waiting == 1, "the search began")
    wire.leave()
    until(lambda: held.cancelled == 1, "the search was cancelled")
    until(lambda: server.running == 0, "its place is free")
    (entry,) = history(server, session)
    assert (entry["query"], entry["response"], entry["complete"]) == (QUESTION, "", False)


@pytest.mark.parametrize(
    ("endpoint", "body"),
    [
        ("/api/ask", {"question": QUESTION}),
        ("/api/ask/stream", {"question": QUESTION}),
        ("/api/query", {"query": QUESTION}),
        ("/api/v1/chat", {"message": QUESTION, "projectId": str(DEFAULT.id)}),
        ("/api/v1/chat/stream", {"message": QUESTION, "projectId": str(DEFAULT.id)}),
        ("/api/v1/search", {"query": QUESTION}),
    ],
)
def test_nobody_works_for_a_client_that_left(server: Live, held: Held, endpoint: str, body: object) -> None:
    wire = Wire(server.port).post(endpoint, body)
    until(lambda: held.waiting == 1, "the search began")
    wire.leave()
    until(lambda: held.cancelled == 1, "the search was cancelled")


def test_what_was_said_before_a_client_left_is_kept(server: Live) -> None:
    whole = ", and then up" * 20_000
    server.use(index=_with_text(server, lambda text: _as_row(text, f"uphill{whole}")))
    session = uuid4()
    wire = Wire(server.port, receive_buffer=_SMALL).post(
        "/chat/stream", {"query": QUESTION, "session_id": str(session)}
    )
    wire.read_until(b'{"delta":')
    wire.leave()
    until(lambda: len(history(server, session)) == 1, "it is kept")
    (entry,) = history(server, session)
    assert not entry["complete"]
    assert whole in entry["response"]
    full = httpx2.post(f"{server.address}/chat", json={"query": QUESTION}, timeout=60).json()["answer"]
    assert full.startswith(entry["response"])


@pytest.mark.parametrize("endpoint", ["/chat", "/chat/stream"])
def test_a_retry_after_leaving_takes_the_place_of_what_was_left(server: Live, held: Held, endpoint: str) -> None:
    body = {"query": QUESTION, "session_id": str(session := uuid4())}
    word = {"Idempotency-Key": str(uuid4())}
    wire = Wire(server.port).post(endpoint, body, **word)
    until(lambda: held.waiting == 1, "the search began")
    wire.leave()
    until(lambda: len(history(server, session)) == 1, "it is kept")
    held.release()
    for _ in range(2):
        answer = httpx2.post(f"{server.address}/chat", json=body, headers=word).json()
    (entry,) = history(server, session)
    assert entry["complete"]
    assert entry["response"] == answer["answer"] != ""


@pytest.mark.parametrize(("endpoint", "field", "more"), STAGED)
def test_an_engine_that_fails_after_the_first_byte_is_one_last_event(
    server: Live, endpoint: str, field: str, more: dict[str, Any]
) -> None:
    async def fail() -> None:
        raise IndexUnavailable("the vector store does not answer")

    server.use(index=WaitingIndex(server.well.engines.index, fail))
    response = httpx2.post(f"{server.address}{endpoint}", json={field: QUESTION, **more})
    assert response.status_code == 200
    first, last = events(response.text)
    assert first == {"stage": "retrieving"}
    assert last["done"] is True
    assert last["error"]["error_code"] == "QDRANT_UNAVAILABLE"
    assert last["error"]["request_id"] == response.headers["x-request-id"]


@pytest.mark.parametrize(("endpoint", "field", "more"), STREAMS)
def test_something_unforeseen_after_the_first_words_is_one_last_event_without_a_trace(
    server: Live, endpoint: str, field: str, more: dict[str, Any]
) -> None:
    def broken(one: Passage) -> Passage:
        return replace(one, chunk=replace(one.chunk, document_id=cast("UUID", "no such thing")))

    server.use(index=WaitingIndex(server.well.engines.index, _at_once, change=broken))
    response = httpx2.post(f"{server.address}{endpoint}", json={field: QUESTION, **more})
    assert response.status_code == 200
    *said, last = events(response.text)
    assert words(said)
    assert not any("done" in event and event["done"] for event in said)
    assert last["done"] is True
    assert "request id" in json.dumps(last["error"])
    assert "no such thing" not in response.text


def test_a_client_that_does_not_read_hinders_nobody_and_is_let_go(server: Live) -> None:
    server.use(index=_with_text(server, lambda text: _as_row(text, "uphill" + ", and up" * 30_000)))
    deaf = [Wire(server.port, receive_buffer=_SMALL).post("/api/ask/stream", {"question": QUESTION}) for _ in range(3)]
    for wire in deaf:
        wire.read_until(b"200 OK")
    assert server.running, "the last one at least"
    server.use()
    assert httpx2.post(f"{server.address}/api/ask", json={"question": QUESTION}).status_code == 200
    until(lambda: server.running == 0, "they are let go")
    for wire in deaf:
        wire.leave()


def test_ten_streams_at_once_complete_and_the_eleventh_is_told_to_come_back(server: Live, held: Held) -> None:
    wires = [Wire(server.port).post("/chat/stream", {"query": QUESTION}) for _ in range(10)]
    for wire in wires:
        assert b"200 OK" in wire.read_until(b'"stage":"retrieving"')
    late = httpx2.post(f"{server.address}/chat/stream", json={"query": QUESTION})
    assert (late.status_code, late.json()["error_code"]) == (429, "RATE_LIMITED")
    assert int(late.headers["retry-after"]) >= 1
    assert held.waiting <= 10
    held.release()
    answers = {re.sub(rb'"(metadata|session_id)".*', b"", wire.read_until(b"0\r\n\r\n")) for wire in wires}
    assert all(b'"done":true' in answer for answer in answers)
    until(lambda: server.running == 0, "there is room again")
    assert httpx2.post(f"{server.address}/chat", json={"query": QUESTION}).status_code == 200


def stalling(home: Path, *replies: Reply) -> tuple[Vendor, serving]:
    """`citewell serve` with an embedding vendor that does not answer."""
    vendor = Vendor(*replies)
    environment = {
        "CITEWELL_EMBEDDER": "hashing",
        "CITEWELL_RERANKER": "cohere",
        "COHERE_API_KEY": KEY,
        "CITEWELL_COHERE_BASE_URL": vendor.url,
    }
    return vendor, serving(home, **environment)


def test_told_to_stop_a_server_finishes_its_streams(pages: Path) -> None:
    vendor, process = stalling(pages, Reply(hang=True), WELL)
    with vendor, process as address:
        wire = Wire(int(address.rpartition(":")[2])).post("/chat/stream", {"query": QUESTION})
        wire.read_until(b'"retrieving"')
        until(lambda: len(vendor.calls) == 1, "the vendor was asked")
        os.kill(process.pid, signal.SIGTERM)
        assert b'"answer":"A ' in wire.read_until(b"0\r\n\r\n")
        assert process.wait() == 0
    assert not list((pages / "spool").iterdir())


def test_told_twice_it_ends_them_with_an_event_and_keeps_what_was_said(pages: Path) -> None:
    session = str(uuid4())
    vendor, process = stalling(pages, Reply(hang=True))
    with vendor, process as address:
        port = int(address.rpartition(":")[2])
        wire = Wire(port).post("/chat/stream", {"query": QUESTION, "session_id": session})
        wire.read_until(b'"retrieving"')
        until(lambda: len(vendor.calls) == 1, "the vendor was asked")
        os.kill(process.pid, signal.SIGTERM)
        until(lambda: not _listens(port), "it heard the first")
        os.kill(process.pid, signal.SIGTERM)
        last = wire.read_until(b"0\r\n\r\n")
        assert b"the server was stopped" in last
        assert b'"done":true' in last
        assert process.wait() == 0
    assert len(vendor.calls) == 1, "nobody waited for the vendor to be asked again"
    with live(settings_for(pages, embedder="hashing")) as again:
        (entry,) = history(again, UUID(session))
        assert not entry["complete"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system has no such timeout")
def test_a_connection_on_which_nothing_is_taken_is_closed(pages: Path) -> None:
    process = serving(pages, CITEWELL_EMBEDDER="hashing", CITEWELL_CLIENT_TIMEOUT_SECONDS="1")
    with process as address:
        port = int(address.rpartition(":")[2])
        before = _connections(process.pid)
        past = [{"role": "user", "content": "x" * 60_000}] * 30  # it comes back in the response
        body = {"message": QUESTION, "projectId": str(DEFAULT.id), "history": past}
        wires = [Wire(port, receive_buffer=_SMALL) for _ in range(2)]
        until(lambda: _connections(process.pid) == before + 2, "both are there")
        for wire, endpoint in zip(wires, ("/api/v1/chat", "/api/v1/chat/stream"), strict=True):
            wire.post(endpoint, body).read_until(b"200 OK")
        until(lambda: _connections(process.pid) == before, "both are closed")


def _connections(pid: int) -> int:
    count = 0
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            count += str(one.readlink()).startswith("socket:")
    return count


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


async def _at_once() -> None:
    pass


def _as_row(text: str, end: str) -> str:
    """What the text says of pumps, as the row of a table with another end: however long, a row is quoted whole."""
    row = f"| what | does |\n| --- | --- |\n| A pump | moves water {end} |\n"
    return re.sub(r"A pump moves water uphill[^\n]*", lambda _: row, text)


def _with_text(server: Live, change: Callable[[str], str]) -> WaitingIndex:
    """An index that returns changed passages."""
    return WaitingIndex(
        server.well.engines.index,
        _at_once,
        change=lambda one: replace(one, chunk=replace(one.chunk, text=change(one.chunk.text))),
    )
