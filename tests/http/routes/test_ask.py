"""`/api/ask` and `/api/ask/stream` keep their contract."""

from typing import Any
from uuid import UUID

import httpx2
import pytest

from tests.http.conftest import COVERED, UNCOVERED, events, problem

pytestmark = pytest.mark.anyio

SEED = {"chapter", "chapter_title", "source_file", "excerpt"}
RECEIPT = {"start", "end", "line", "page", "source_url", "chunk_id", "document_id"}


async def ask(http: httpx2.AsyncClient, question: str, **more: Any) -> dict[str, Any]:
    response = await http.post("/api/ask", json={"question": question, **more})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def test_an_answer_has_numbered_citations_and_a_confidence(http: httpx2.AsyncClient) -> None:
    response = await http.post("/api/ask", json={"question": f"  {COVERED}  "})
    body = response.json()
    assert set(body) == {"answer", "citations", "confidence"}
    assert 0 < body["confidence"] <= 1
    assert body["citations"]
    for number, citation in enumerate(body["citations"], start=1):
        assert f"[{number}]" in body["answer"]
        assert set(citation) == SEED | RECEIPT
        assert 0 < len(citation["excerpt"]) <= 200
    assert f"[{len(body['citations']) + 1}]" not in body["answer"]
    assert UUID(response.headers["x-request-id"]).version == 4


async def test_no_answer_means_no_confidence_and_no_citation(http: httpx2.AsyncClient) -> None:
    body = await ask(http, UNCOVERED)
    assert body["confidence"] == 0
    assert body["citations"] == []
    assert "not covered" in body["answer"]
    assert {topic["source_file"] for topic in body["nearest"]}


@pytest.mark.parametrize("question", [COVERED, UNCOVERED])
async def test_the_joined_stream_is_the_plain_answer(http: httpx2.AsyncClient, question: str) -> None:
    plain = await ask(http, question)
    response = await http.post("/api/ask/stream", json={"question": question})
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["x-accel-buffering"] == "no"
    assert "no-transform" in response.headers["cache-control"]
    *pieces, last = events(response.text)
    assert "".join(piece["content"] for piece in pieces) == plain["answer"]
    assert all(set(piece) == {"content", "done"} and piece["done"] is False for piece in pieces)
    assert last == {"content": "", "done": True} | {name: plain[name] for name in plain if name != "answer"}


@pytest.mark.parametrize(
    "question", ["abc", "x" * 1000, "   abc\n", " " * 2000 + "abc"], ids=["3", "1000", "trimmed", "long but blank"]
)
async def test_three_to_a_thousand_characters_after_trimming_are_taken(http: httpx2.AsyncClient, question: str) -> None:
    assert (await http.post("/api/ask", json={"question": question})).status_code == 200


@pytest.mark.parametrize("top_k", [1, 20])
async def test_top_k_goes_from_1_to_20(http: httpx2.AsyncClient, top_k: int) -> None:
    assert len((await ask(http, COVERED, top_k=top_k))["citations"]) <= top_k


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"question": "   "}, "EMPTY_QUERY"),
        ({"question": ""}, "EMPTY_QUERY"),
        ({"question": "ab"}, "VALIDATION_ERROR"),
        ({"question": " ab "}, "VALIDATION_ERROR"),
        ({"question": "x" * 1001}, "QUERY_TOO_LONG"),
        ({"question": 7}, "VALIDATION_ERROR"),
        ({"question": None}, "EMPTY_QUERY"),
        ({}, "EMPTY_QUERY"),
        ({"question": "\u200b\ufeff\u00ad\u3164\ufe0f\x07"}, "EMPTY_QUERY"),
        ({"question": COVERED, "top_k": 0}, "VALIDATION_ERROR"),
        ({"question": COVERED, "top_k": 21}, "VALIDATION_ERROR"),
        ({"question": COVERED, "top_k": "5"}, "VALIDATION_ERROR"),
        ({"question": COVERED, "top_k": True}, "VALIDATION_ERROR"),
        ("not an object", "VALIDATION_ERROR"),
    ],
)
@pytest.mark.parametrize("endpoint", ["/api/ask", "/api/ask/stream"])
async def test_a_wrong_request_is_told_what_is_wrong(
    http: httpx2.AsyncClient, endpoint: str, body: object, code: str
) -> None:
    assert problem(await http.post(endpoint, json=body)) == (400, code)


async def test_a_citation_leads_to_the_very_words(http: httpx2.AsyncClient) -> None:
    citation = (await ask(http, COVERED))["citations"][0]
    document = (await http.get(f"/api/v1/documents/{citation['document_id']}?text=true")).json()
    chunk = document["text"][citation["start"] : citation["end"]]
    words = citation["excerpt"].split()
    assert " ".join(words[:5]) in " ".join(chunk.split())
    assert words[0] in document["text"].splitlines()[citation["line"] - 1]
    assert citation["source_url"].startswith("https://book.example.org/")
    assert ":~:text=" in citation["source_url"]
    (place,) = [one for one in document["chunks"] if one["id"] == citation["chunk_id"]]
    assert (place["start"], place["end"]) == (citation["start"], citation["end"])
