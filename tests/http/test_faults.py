"""Responses while the vector store, the embedder or the database is slow, hangs or is down, and afterwards."""

import asyncio
import io
import json
import logging
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from citewell.errors import IndexUnavailable, ModelError
from citewell.http.routes import health
from citewell.logs import JsonLines
from tests.conftest import Citewell, ready, serving, settings_for
from tests.fakes.postgres import PostgresServer
from tests.http.conftest import DEFAULT, events, problem
from tests.http.live import Before, Held, Live, WaitingEmbedder, WaitingIndex, Wire, live, until

QUESTION = "What moves water uphill?"
ASK = ("/api/ask", {"question": QUESTION})
CHAT = ("/chat", {"query": QUESTION})
ENDPOINTS: list[tuple[str, dict[str, Any]]] = [
    ASK,
    CHAT,
    ("/api/ask/stream", {"question": QUESTION}),
    ("/api/query", {"query": QUESTION}),
    ("/api/v1/chat", {"message": QUESTION, "projectId": str(DEFAULT.id)}),
    ("/api/v1/search", {"query": QUESTION}),
]
STREAMS: list[tuple[str, dict[str, Any]]] = [
    ("/chat/stream", {"query": QUESTION}),
    ("/api/v1/chat/stream", {"message": QUESTION, "projectId": str(DEFAULT.id)}),
]

HEALTH_PROMISE_SECONDS = 2.0  # /health answers within this time, even while a service hangs


@pytest.fixture(scope="module")
def sqlite_server(pages: Path) -> Iterator[Live]:
    with live(settings_for(pages, embedder="hashing")) as server:
        yield server


@pytest.fixture
def server(sqlite_server: Live) -> Iterator[Live]:
    sqlite_server.use()
    yield sqlite_server
    until(lambda: sqlite_server.running == 0, "everybody is gone")


@pytest.fixture(scope="module")
def postgres(postgres_server: PostgresServer, pages: Path) -> Iterator[Live]:
    with live(settings_for(pages, embedder="hashing", database_url=ready(postgres_server))) as server:
        yield server
        postgres_server.restart()


def post(server: Live, endpoint: str, body: dict[str, Any]) -> httpx2.Response:
    response = httpx2.post(f"{server.address}{endpoint}", json=body, timeout=60)
    for secret in ("Traceback", ".py", "://", "/tmp", "secret", "citewell.db"):
        assert secret not in response.text or response.status_code == 200
    return response


def answers(server: Live, endpoint: str, body: dict[str, Any]) -> bool:
    return post(server, endpoint, body).status_code == 200


def test_a_hung_service_is_given_up_before_health_must_answer() -> None:
    assert health.TIMEOUT_SECONDS < HEALTH_PROMISE_SECONDS


def unhealthy_services(server: Live) -> dict[str, str]:
    """The status of each service that is not healthy, by /health, whose fields are checked too."""
    response = httpx2.get(f"{server.address}/health", timeout=120)  # it answers while a service hangs
    body = response.json()
    sick = {name: one["status"] for name, one in body["services"].items() if one["status"] != "healthy"}
    for name in sick:
        assert body["services"][name]["error"]
    assert body["status"] == ("unavailable" if sick else "healthy")
    assert response.status_code == (503 if sick else 200)
    ready = httpx2.get(f"{server.address}/ready", timeout=120)
    assert (ready.status_code, ready.json()) == ((503, {"ready": False}) if sick else (200, {"ready": True}))
    return sick


def failing(error: Exception) -> Before:
    async def fail() -> None:
        raise error

    return fail


async def slowly() -> None:
    await asyncio.sleep(0.2)


@contextmanager
def broken_service(server: Live, service: str, fault: str) -> Iterator[None]:
    """Within this context the vector store or the embedder is down or hangs."""
    held = Held()
    if service == "vector_store":
        trouble = failing(IndexUnavailable("the vector store does not answer")) if fault == "gone" else held
        server.use(index=WaitingIndex(server.well.engines.index, trouble, even_count=True), patience=0.2)
    else:
        trouble = failing(ModelError("the embedding model does not answer")) if fault == "gone" else held
        server.use(embedder=WaitingEmbedder(server.well.engines.embedder, trouble), patience=0.2)
    try:
        yield
    finally:
        held.release()
        server.use()


SICK = [
    ("vector_store", "gone", "QDRANT_UNAVAILABLE"),
    ("vector_store", "hung", "QDRANT_UNAVAILABLE"),
    ("embedder", "gone", "SERVICE_UNAVAILABLE"),
    ("embedder", "hung", "SERVICE_UNAVAILABLE"),
]


@pytest.mark.parametrize(("service", "fault", "code"), SICK)
def test_every_endpoint_says_what_fails_and_answers_again_once_it_is_back(
    server: Live, service: str, fault: str, code: str
) -> None:
    with broken_service(server, service, fault):
        for endpoint, body in ENDPOINTS:
            assert problem(post(server, endpoint, body)) == (503, code), endpoint
        for endpoint, body in STREAMS:
            response = post(server, endpoint, body)
            if service == "vector_store":  # a stream does not begin before the index has been seen to answer
                assert problem(response) == (503, code), endpoint
            else:
                assert response.status_code == 200
                assert events(response.text)[-1]["error"]["error_code"] == code
            assert "://" not in response.text
    for endpoint, body in ENDPOINTS + STREAMS:
        assert answers(server, endpoint, body), endpoint


@pytest.mark.parametrize(("service", "fault", "code"), SICK)
def test_health_names_what_fails_and_ready_says_no(server: Live, service: str, fault: str, code: str) -> None:
    with broken_service(server, service, fault):
        assert unhealthy_services(server) == {service: "unavailable"}
    assert unhealthy_services(server) == {}


def test_slow_engines_are_waited_for(server: Live) -> None:
    engines = server.well.engines
    server.use(index=WaitingIndex(engines.index, slowly), embedder=WaitingEmbedder(engines.embedder, slowly))
    for endpoint, body in ENDPOINTS + STREAMS:
        assert answers(server, endpoint, body), endpoint
    assert unhealthy_services(server) == {}


def test_a_selection_is_answered_from_without_the_vector_store(server: Live) -> None:
    with broken_service(server, "vector_store", "hung"):
        body = post(server, "/chat", {"query": QUESTION, "selected_text": "A camel moves water uphill."}).json()
    assert body["answer"].startswith("A camel moves water uphill.")


def test_a_locked_sqlite_is_said_to_be_unavailable_and_questions_without_a_session_go_on(
    server: Live, pages: Path
) -> None:
    session = str(uuid4())
    body = {"query": QUESTION, "session_id": session}
    with closing(sqlite3.connect(pages / "citewell.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert problem(post(server, "/chat", body)) == (503, "SERVICE_UNAVAILABLE")
        (last,) = events(post(server, "/chat/stream", body).text)[-1:]
        assert last["error"]["error_code"] == "SERVICE_UNAVAILABLE"
        assert answers(server, *ASK)
        other.execute("ROLLBACK")
    assert answers(server, "/chat", body)
    told = httpx2.get(f"{server.address}/history/{session}").json()
    assert told["total_entries"] == 1, "what could not be kept was not told either"


def test_a_client_that_leaves_while_nothing_can_be_kept_gives_up_its_place(server: Live, pages: Path) -> None:
    held = Held()
    server.use(index=WaitingIndex(server.well.engines.index, held))
    with closing(sqlite3.connect(pages / "citewell.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        wires = [Wire(server.port).post(endpoint, {"query": QUESTION}) for endpoint in ("/chat", "/chat/stream")]
        until(lambda: held.waiting == 2, "both are searched for")
        for wire in wires:
            wire.leave()
        until(lambda: server.running == 0, "their places are free")
        other.execute("ROLLBACK")
    server.use()
    assert answers(server, *CHAT)


def database_is_missed(server: Live) -> None:
    """What needs the database answers with an error; the rest goes on."""
    with ThreadPoolExecutor(8) as at_once:
        chat, stream = at_once.submit(post, server, *CHAT), at_once.submit(post, server, *STREAMS[0])
        history = at_once.submit(httpx2.get, f"{server.address}/history/{uuid4()}", timeout=60)
        others = [ASK, ENDPOINTS[2], ENDPOINTS[3], ENDPOINTS[4], STREAMS[1]]
        for (endpoint, _), well in zip(others, at_once.map(lambda one: answers(server, *one), others), strict=True):
            assert well, endpoint
    for response in (chat, stream, history):
        assert problem(response.result()) == (503, "SERVICE_UNAVAILABLE")


def database_is_back(server: Live) -> None:
    for endpoint, body in ENDPOINTS + STREAMS:
        assert answers(server, endpoint, body), endpoint
    assert unhealthy_services(server) == {}


def test_a_postgresql_that_is_gone_is_missed_only_where_it_is_needed_and_found_again(
    postgres: Live, postgres_server: PostgresServer
) -> None:
    database_is_back(postgres)
    postgres_server.stop()
    try:
        assert unhealthy_services(postgres) == {"database": "unavailable"}
        database_is_missed(postgres)
    finally:
        postgres_server.start()
    database_is_back(postgres)


def test_a_postgresql_that_hangs_is_given_up_and_found_again(postgres: Live, postgres_server: PostgresServer) -> None:
    database_is_back(postgres)
    postgres_server.freeze()
    try:
        assert unhealthy_services(postgres) == {"database": "unavailable"}
        database_is_missed(postgres)
    finally:
        postgres_server.thaw()
    database_is_back(postgres)


def test_a_postgresql_that_was_restarted_is_not_noticed(postgres: Live, postgres_server: PostgresServer) -> None:
    database_is_back(postgres)
    postgres_server.restart()
    database_is_back(postgres)


def test_a_server_whose_database_does_not_answer_ends_with_one_clear_line(citewell: Citewell) -> None:
    gone = citewell("serve", "--port", "0", DATABASE_URL="postgresql://citewell:hunter2@127.0.0.1:1/book")
    assert gone.returncode == 1
    *_, last = gone.stderr.splitlines()
    assert last.startswith("Error: the database 'book' at 127.0.0.1 cannot be opened")
    assert "Traceback" not in gone.stderr
    assert "hunter2" not in gone.stderr
    assert gone.stdout == ""


def test_a_server_whose_database_cannot_be_used_starts_and_admits_nobody_without_a_key(home: Path) -> None:
    home.mkdir()
    database = home / "citewell.db"
    database.write_bytes(b"no database at all" * 100)
    server = serving(home, CITEWELL_EMBEDDER="hashing", CITEWELL_HOST="0.0.0.0")
    with server as address, httpx2.Client(base_url=address.replace("0.0.0.0", "127.0.0.1"), timeout=60) as http:
        assert f"the database {database} cannot be used: it is not a SQLite database" in server.log
        assert "not a SQLite database" in http.get("/health").json()["services"]["database"]["error"]
        assert problem(http.post(ASK[0], json=ASK[1])) == (503, "SERVICE_UNAVAILABLE")
        database.unlink()  # from now on there is a new, empty one, without a key
        assert http.get("/health").json()["services"]["database"]["status"] == "healthy"
        assert problem(http.post(ASK[0], json=ASK[1])) == (401, "UNAUTHORIZED")
        assert "Traceback" not in server.log


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """The server's log as JSON lines, as in production."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("citewell")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield written
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_the_log_tells_of_every_question_how_it_ended(server: Live, log: io.StringIO) -> None:
    ids = {name: str(uuid4()) for name in ("well", "failed", "streamed", "left")}
    httpx2.post(f"{server.address}/chat", json=CHAT[1], headers={"X-Request-ID": ids["well"]})
    with broken_service(server, "vector_store", "gone"):
        httpx2.post(f"{server.address}/api/ask", json=ASK[1], headers={"X-Request-ID": ids["failed"]})
        httpx2.post(f"{server.address}/chat/stream", json=CHAT[1], headers={"X-Request-ID": ids["streamed"]})
    held = Held()
    server.use(index=WaitingIndex(server.well.engines.index, held))
    wire = Wire(server.port).post("/chat/stream", CHAT[1], X_Request_ID=ids["left"])
    until(lambda: held.waiting == 1, "the search began")
    wire.leave()
    until(lambda: server.running == 0, "it is over")
    until(lambda: log.getvalue().count('"message": "request"') == 4, "each has its line")
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    for name, identity in ids.items():
        mine = [line for line in lines if line.get("request_id") == identity]
        stages = [line["stage"] for line in mine if "stage" in line]
        assert stages[0] == "RECEIVED"
        assert stages[-1] == ("COMPLETED" if name == "well" else "FAILED"), name
        assert all(line["latency_ms"] >= 0 for line in mine)
        assert mine[-1]["message"] == "request"
        assert mine[-1].get("error") == ("QDRANT_UNAVAILABLE" if name in ("failed", "streamed") else None)
