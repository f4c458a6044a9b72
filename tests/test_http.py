"""The HTTP doors keep the contract, and every error says what to do."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest

from citewell.errors import StoreUnavailable
from citewell.http.app import create_app
from citewell.http.ask import StreamChunk, as_sse
from tests.conftest import serving, settings_for, take_in

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def client(home: Path, **settings: object) -> AsyncIterator[httpx2.AsyncClient]:
    app = create_app(settings_for(home, **settings))
    async with app.router.lifespan_context(app):
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://citewell") as http:
            http.app = app  # type: ignore[attr-defined]
            yield http


def events(body: str) -> list[dict[str, Any]]:
    assert body.endswith("\n\n")
    return [json.loads(block.removeprefix("data: ")) for block in body.strip().split("\n\n")]


async def test_a_question_gets_an_answer_with_numbered_citations(book_home: Path) -> None:
    async with client(book_home) as http:
        response = await http.post("/api/ask", json={"question": "  Why do gyroscopes drift?  "})
    body = response.json()
    assert response.status_code == 200
    assert set(body) == {"answer", "citations", "confidence"}
    assert 0 < body["confidence"] <= 1
    assert "[1]" in body["answer"]
    for citation in body["citations"]:
        assert set(citation) == {"chapter", "chapter_title", "source_file", "excerpt"}
        assert len(citation["excerpt"]) <= 200
    assert UUID(response.headers["x-request-id"]).version == 4


@pytest.mark.parametrize("question", ["Why do gyroscopes drift?", "How long does a chicken roast?"])
async def test_the_joined_stream_is_the_plain_answer(book_home: Path, question: str) -> None:
    async with client(book_home) as http:
        plain = (await http.post("/api/ask", json={"question": question})).json()
        response = await http.post("/api/ask/stream", json={"question": question})
    assert response.headers["content-type"].startswith("text/event-stream")
    *pieces, last = events(response.text)
    assert "".join(piece["content"] for piece in pieces) == plain["answer"]
    assert all(set(piece) == {"content", "done"} and not piece["done"] for piece in pieces)
    assert last == {"content": "", "done": True} | {name: plain[name] for name in plain if name != "answer"}


async def test_no_answer_means_no_confidence_and_no_citation(book_home: Path) -> None:
    async with client(book_home) as http:
        body = (await http.post("/api/ask", json={"question": "How long does a chicken roast?"})).json()
    assert body["confidence"] == 0
    assert body["citations"] == []
    assert "not covered" in body["answer"]
    for topic in body["nearest"]:
        assert set(topic) == {"title", "source_file"}, "the example book was ingested without an address"
        assert f"“{topic['title']}”" in body["answer"]


async def test_nearest_topics_lead_to_their_live_pages(home: Path, docs: Path) -> None:
    await asyncio.to_thread(take_in, home, docs, base_url="https://docs.example.org")
    async with client(home) as http:
        body = (await http.post("/api/ask", json={"question": "Who won the 1998 world cup final?"})).json()
    assert body["citations"] == []
    assert {topic["title"]: topic["url"] for topic in body["nearest"]}.items() <= {
        "Pumps": "https://docs.example.org/pumps",
        "Pumps > Priming": "https://docs.example.org/pumps#priming",
        "Valves": "https://docs.example.org/valves",
        "Valves > Leaks": "https://docs.example.org/valves#leaks",
        "Pipes": "https://docs.example.org/pipes",
    }.items()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"question": "   "}, "EMPTY_QUERY"),
        ({"question": ""}, "EMPTY_QUERY"),
        ({"question": "ab"}, "VALIDATION_ERROR"),
        ({"question": "x" * 1001}, "QUERY_TOO_LONG"),
        ({"question": 7}, "VALIDATION_ERROR"),
        ({}, "VALIDATION_ERROR"),
        ({"question": "What is it?", "top_k": 0}, "VALIDATION_ERROR"),
        ({"question": "What is it?", "top_k": 21}, "VALIDATION_ERROR"),
        ("not an object", "VALIDATION_ERROR"),
    ],
)
@pytest.mark.parametrize("door", ["/api/ask", "/api/ask/stream"])
async def test_a_wrong_request_is_told_what_is_wrong(book_home: Path, door: str, body: object, code: str) -> None:
    async with client(book_home) as http:
        response = await http.post(door, json=body)
    problem = response.json()
    assert response.status_code == 400
    assert problem["error_code"] == code
    assert problem["message"]
    assert problem["request_id"] == response.headers["x-request-id"]


async def test_what_is_not_json_is_refused_kindly(book_home: Path) -> None:
    async with client(book_home) as http:
        response = await http.post("/api/ask", content=b"{", headers={"content-type": "application/json"})
    assert (response.status_code, response.json()["error_code"]) == (400, "VALIDATION_ERROR")


async def test_an_unknown_address_and_a_wrong_method_are_errors_of_ours_too(book_home: Path) -> None:
    async with client(book_home) as http:
        missing, wrong = await http.get("/nowhere"), await http.get("/api/ask")
    assert (missing.status_code, missing.json()["error_code"]) == (404, "NOT_FOUND")
    assert (wrong.status_code, wrong.json()["error_code"]) == (405, "VALIDATION_ERROR")


async def test_before_the_first_ingest_the_doors_say_so(home: Path) -> None:
    async with client(home) as http:
        asked = [await http.post(door, json={"question": "What is it?"}) for door in ("/api/ask", "/api/ask/stream")]
        health = await http.get("/health")
    for response in asked:
        assert (response.status_code, response.json()["error_code"]) == (503, "EMPTY_KNOWLEDGE_BASE")
        assert "citewell ingest" in response.json()["message"]
    assert health.status_code == 200
    assert health.json()["status"] == "degraded"


async def test_health_names_every_service(book_home: Path) -> None:
    async with client(book_home) as http:
        body = (await http.get("/health")).json()
    assert body["status"] == "healthy"
    assert set(body["services"]) == {"vector_store", "database", "embedder", "llm"}
    for name, service in body["services"].items():
        assert set(service) == {"name", "status", "latency_ms", "error"}
        assert (service["name"], service["status"]) == (name, "healthy")


async def test_something_unforeseen_shows_no_trace(book_home: Path) -> None:
    async with client(book_home) as http:
        del http.app.state.reading  # type: ignore[attr-defined]
        response = await http.post("/api/ask", json={"question": "What is it?"})
    assert (response.status_code, response.json()["error_code"]) == (500, "INTERNAL_ERROR")
    assert "Traceback" not in response.text
    assert "reading" not in response.text
    assert response.headers["x-request-id"] == response.json()["request_id"]


async def test_an_error_after_the_first_byte_is_an_event_and_not_a_cut_connection() -> None:
    async def failing() -> AsyncIterator[StreamChunk]:
        yield StreamChunk(content=" on")
        raise StoreUnavailable("the index went away")

    body = "".join([line async for line in as_sse(StreamChunk(content="Go"), failing())])
    assert events(body) == [
        {"content": "Go", "done": False},
        {"content": " on", "done": False},
        {"content": "", "done": True, "error": "the index went away"},
    ]


async def test_more_questions_at_once_than_allowed_are_asked_to_come_back(book_home: Path) -> None:
    async with client(book_home, max_concurrent_requests=1) as http:
        asked = [http.post("/api/ask", json={"question": f"What is torque number {n}?"}) for n in range(6)]
        responses = await asyncio.gather(*asked)
    statuses = [response.status_code for response in responses]
    assert 200 in statuses
    refused = [response for response in responses if response.status_code == 429]
    assert refused
    assert refused[0].headers["retry-after"] == "1"
    assert refused[0].json()["error_code"] == "RATE_LIMITED"


async def test_the_page_and_its_parts_are_served_under_a_strict_policy(book_home: Path) -> None:
    async with client(book_home) as http:
        for path, kind in (("/chat", "text/html"), ("/chat.js", "text/javascript"), ("/chat.css", "text/css")):
            response = await http.get(path)
            assert response.headers["content-type"].startswith(kind)
            assert "unsafe-inline" not in response.headers["content-security-policy"]
        assert (await http.get("/")).headers["location"] == "/chat"


_WITHOUT_NETWORK = """
import fcntl, socket, struct, sys
from pathlib import Path
import httpx2
from tests.conftest import serving
loopback = struct.pack("16sh", b"lo", 1)  # a new namespace has nothing but a loopback that is down
fcntl.ioctl(socket.socket(), 0x8914, loopback)
with serving(Path(sys.argv[1])) as address:
    print(httpx2.post(f"{address}/api/ask", json={"question": "Why do gyroscopes drift?"}).text)
"""


def test_it_starts_and_answers_with_the_network_off(book_home: Path) -> None:
    if subprocess.run(["unshare", "-rn", "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs leave to make a network namespace (unshare -rn)")
    done = subprocess.run(
        ["unshare", "-rn", sys.executable, "-c", _WITHOUT_NETWORK, str(book_home)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=Path(__file__).parents[1],
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["confidence"] > 0


def test_the_log_tells_each_request_with_its_id_and_stages(home: Path, docs: Path) -> None:
    take_in(home, docs)
    server = serving(home, CITEWELL_LOG_FORMAT="json")
    with server as address:
        response = httpx2.post(f"{address}/api/ask", json={"question": "What does a pump do?"})
    lines = [json.loads(line) for line in server.log.splitlines() if response.headers["x-request-id"] in line]
    assert [line.get("stage") for line in lines] == ["RECEIVED", "RETRIEVING", "GENERATING", "COMPLETED", None]
    assert all(line["latency_ms"] >= 0 for line in lines)
    assert lines[-1]["status"] == 200
