"""`/api/v1/chat` and its stream keep their contract."""

import re
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.http.conftest import COVERED, DEFAULT, UNCOVERED, events, problem

pytestmark = pytest.mark.anyio

SEED = {"id", "documentId", "chunkText", "chunkIndex", "source", "distance"}
ID = re.compile(r"\[([0-9a-f]{64})\]")


async def chat(http: httpx2.AsyncClient, message: str, **more: Any) -> dict[str, Any]:
    response = await http.post("/api/v1/chat", json={"projectId": str(DEFAULT.id), "message": message, **more})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def test_every_key_is_there_and_every_citation_is_a_source(http: httpx2.AsyncClient) -> None:
    body = await chat(http, COVERED)
    assert set(body) == {
        "response", "messages", "sources", "model", "totalDuration", "promptEvalCount", "evalCount",
    }  # fmt: skip
    cited = ID.findall(body["response"])
    assert cited
    assert list(dict.fromkeys(cited)) == [source["id"] for source in body["sources"]]
    for source in body["sources"]:
        assert set(source) >= SEED | {"start", "end", "line", "page", "source_url"}
        assert source["chunkIndex"] >= 0
        assert source["chunkText"]
        assert source["source"].endswith(".mdx")
        assert 0 <= source["distance"] <= 1
    assert body["model"]
    assert body["totalDuration"] >= 0
    assert body["promptEvalCount"] is None
    assert body["evalCount"] is None
    assert "  " not in body["response"]


async def test_messages_are_the_history_and_this_exchange(http: httpx2.AsyncClient) -> None:
    history = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is the capture point?"},
        {"role": "assistant", "content": "A point on the ground."},
    ]
    body = await chat(http, "How is it computed?", history=history)
    now = [{"role": "user", "content": "How is it computed?"}, {"role": "assistant", "content": body["response"]}]
    assert body["messages"] == history + now
    assert any("capture point" in source["chunkText"] for source in body["sources"]), "a follow-up is understood"


async def test_nothing_relevant_means_no_sources_and_plain_words(http: httpx2.AsyncClient) -> None:
    body = await chat(http, UNCOVERED)
    assert body["sources"] == []
    assert "not covered" in body["response"]
    assert not ID.search(body["response"])


async def test_a_source_s_text_is_what_stands_at_its_place(http: httpx2.AsyncClient) -> None:
    for source in (await chat(http, COVERED))["sources"]:
        document = (await http.get(f"/api/v1/documents/{source['documentId']}?text=true")).json()
        assert document["text"][source["start"] : source["end"]] == source["chunkText"]
        chunk = (await http.get(f"/api/v1/documents/{source['documentId']}/chunks/{source['chunkIndex']}")).json()
        assert (chunk["id"], chunk["chunkText"]) == (source["id"], source["chunkText"])


@pytest.mark.parametrize("message", [COVERED, UNCOVERED])
async def test_the_stream_has_stages_then_text_then_the_response(http: httpx2.AsyncClient, message: str) -> None:
    plain = await chat(http, message)
    response = await http.post("/api/v1/chat/stream", json={"projectId": str(DEFAULT.id), "message": message})
    first, second, *deltas, last = events(response.text)
    assert (first, second) == ({"stage": "retrieving"}, {"stage": "generating"})
    assert all(set(delta) == {"delta"} for delta in deltas)
    assert "".join(delta["delta"] for delta in deltas) == plain["response"] == last["response"]["response"]
    assert set(last) == {"done", "response"}
    assert last["done"] is True
    assert last["response"]["sources"] == plain["sources"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"projectId": str(DEFAULT.id), "message": ""}, (400, "EMPTY_QUERY")),
        ({"projectId": str(DEFAULT.id), "message": "x" * 32_001}, (400, "QUERY_TOO_LONG")),
        ({"projectId": str(DEFAULT.id)}, (400, "EMPTY_QUERY")),
        ({"projectId": "nope", "message": COVERED}, (400, "VALIDATION_ERROR")),
        ({"message": COVERED}, (400, "VALIDATION_ERROR")),
        ({"projectId": str(uuid4()), "message": COVERED}, (404, "NOT_FOUND")),
        (
            {"projectId": str(DEFAULT.id), "message": COVERED, "history": [{"role": "robot", "content": "x"}]},
            (400, "VALIDATION_ERROR"),
        ),
        (
            {"projectId": str(DEFAULT.id), "message": COVERED, "history": [{"role": "user", "content": "x" * 64_001}]},
            (400, "VALIDATION_ERROR"),
        ),
        (
            {"projectId": str(DEFAULT.id), "message": COVERED, "history": [{"role": "user", "content": "x"}] * 1001},
            (400, "VALIDATION_ERROR"),
        ),
    ],
)
@pytest.mark.parametrize("endpoint", ["/api/v1/chat", "/api/v1/chat/stream"])
async def test_a_wrong_request_is_told_what_is_wrong(
    http: httpx2.AsyncClient, endpoint: str, body: object, expected: tuple[int, str]
) -> None:
    assert problem(await http.post(endpoint, json=body)) == expected


async def test_a_mode_is_one_that_there_is(http: httpx2.AsyncClient) -> None:
    assert (await chat(http, COVERED, mode="vector"))["sources"]
    for endpoint in ("/api/v1/chat", "/api/v1/chat/stream"):
        body = {"projectId": str(DEFAULT.id), "message": COVERED, "mode": "graph"}
        response = await http.post(endpoint, json=body)
        assert problem(response) == (400, "VALIDATION_ERROR")
        assert response.json()["message"] == "mode: should be 'vector'"


async def test_a_project_with_nothing_in_it_says_so(http: httpx2.AsyncClient) -> None:
    made = (await http.post("/api/v1/projects", json={"name": f"empty {uuid4()}"})).json()
    response = await http.post("/api/v1/chat", json={"projectId": made["id"], "message": COVERED})
    assert problem(response) == (503, "EMPTY_KNOWLEDGE_BASE")
