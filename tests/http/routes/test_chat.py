"""`/chat`, `/chat/stream` and `/history` keep their contract."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest

from tests.conftest import settings_for
from tests.http.conftest import COVERED, UNCOVERED, events, ingest_folder, problem, running

pytestmark = pytest.mark.anyio

SEED = {"source_url", "title", "section", "chunk_position", "similarity_score", "snippet"}

BESIDE = {"metadata", "confidence", "nearest", "support", "notice"}


async def chat(http: httpx2.AsyncClient, query: str, **more: Any) -> dict[str, Any]:
    response = await http.post("/chat", json={"query": query, **more})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def history(http: httpx2.AsyncClient, session: str, **parameters: Any) -> dict[str, Any]:
    response = await http.get(f"/history/{session}", params=parameters)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def test_every_field_of_the_response_is_there(http: httpx2.AsyncClient) -> None:
    response = await http.post("/chat", json={"query": COVERED})
    body = response.json()
    assert set(body) == {"answer", "fallback_message", "sources", "metadata", "session_id", "confidence"}
    assert body["answer"]
    assert 0 < body["confidence"] <= 1
    assert body["fallback_message"] is None
    assert set(body["metadata"]) == {"query_time_ms", "retrieval_count", "mode", "low_confidence", "request_id"}
    assert body["metadata"]["mode"] == "full"
    assert body["metadata"]["request_id"] == response.headers["x-request-id"]
    assert body["metadata"]["retrieval_count"] >= len(body["sources"]) >= 1
    assert body["metadata"]["query_time_ms"] > 0
    assert UUID(body["session_id"]).version == 4
    for source in body["sources"]:
        assert set(source) == SEED | {"start", "end", "line", "page", "chunk_id", "document_id", "quotes"}
        assert 0 <= source["similarity_score"] <= 1
        assert 0 < len(source["snippet"]) <= 200
        assert source["source_url"].startswith("https://book.example.org/")


async def test_nothing_found_is_said_in_the_answer(http: httpx2.AsyncClient) -> None:
    body = await chat(http, UNCOVERED)
    assert body["metadata"]["mode"] == "no_results"
    assert body["sources"] == []
    assert "not covered" in body["answer"]
    assert body["metadata"]["low_confidence"] is False
    assert body["confidence"] == 0
    assert body["nearest"]
    for topic in body["nearest"]:
        assert f"“{topic['title']}”" in body["answer"]
        assert topic["url"].startswith("https://book.example.org/")
    asked = (await http.post("/api/ask", json={"question": UNCOVERED})).json()
    assert body["nearest"] == asked["nearest"], "one answer at every endpoint"


async def test_confidence_is_what_the_other_endpoints_say(http: httpx2.AsyncClient) -> None:
    body = (await http.post("/api/ask", json={"question": COVERED})).json()
    assert (await chat(http, COVERED))["confidence"] == body["confidence"]


async def test_a_doubtful_answer_says_so(http: httpx2.AsyncClient) -> None:
    body = await chat(http, "Why is it harder for a machine to do what a toddler does than to win at chess?")
    assert body["metadata"]["mode"] == "full"
    assert body["metadata"]["low_confidence"] is True


async def test_a_selection_is_all_that_is_used(http: httpx2.AsyncClient) -> None:
    selection = "The quixel valve opens at 40 bar. It was designed by Ada Brown in 1987."
    body = await chat(http, "At what pressure does the quixel valve open?", selected_text=selection)
    assert "40 bar" in body["answer"]
    assert body["metadata"]["mode"] == "selected_text"
    assert body["metadata"]["retrieval_count"] == 0
    (source,) = body["sources"]
    assert source == {
        "source_type": "selected_text",
        "selection_length": len(selection),
        "snippet": selection,
        "relevance_note": source["relevance_note"],
    }
    assert source["relevance_note"]


async def test_what_the_selection_does_not_say_is_not_found_in_it(http: httpx2.AsyncClient) -> None:
    body = await chat(http, COVERED, selected_text="The quixel valve opens at 40 bar. " * 20)
    assert "not found in selection" in body["answer"].lower()
    assert body["metadata"]["mode"] == "selected_text"
    (source,) = body["sources"]
    assert len(source["snippet"]) <= 200


@pytest.mark.parametrize("blank", ["", "  \n ", "\u200b\u3164"])
async def test_a_blank_selection_is_an_error(http: httpx2.AsyncClient, blank: str) -> None:
    for endpoint in ("/chat", "/chat/stream", "/api/query"):
        response = await http.post(endpoint, json={"query": COVERED, "selected_text": blank})
        assert problem(response) == (400, "VALIDATION_ERROR")
        assert response.json()["details"] == {"field": "selected_text"}


async def test_the_last_exchanges_are_context(http: httpx2.AsyncClient) -> None:
    first = await chat(http, "What is the capture point?")
    second = await chat(http, "How is it computed?", session_id=first["session_id"])
    assert second["session_id"] == first["session_id"]
    assert "capture point" in second["answer"]
    alone = await chat(http, "How is it computed?")
    assert alone["answer"] != second["answer"]


async def test_history_is_oldest_first_with_what_the_reader_was_given(http: httpx2.AsyncClient) -> None:
    first = await chat(http, COVERED)
    session = first["session_id"]
    second = await chat(http, UNCOVERED, session_id=session)
    body = await history(http, session)
    assert set(body) == {"session_id", "entries", "total_entries"}
    assert (body["session_id"], body["total_entries"]) == (session, 2)
    assert [entry["query"] for entry in body["entries"]] == [COVERED, UNCOVERED]
    assert [entry["response"] for entry in body["entries"]] == [first["answer"], second["answer"]]
    assert body["entries"][0]["timestamp"] <= body["entries"][1]["timestamp"]
    given = [{**source, "status": "valid"} for source in first["sources"]]
    assert body["entries"][0]["sources"] == given
    for entry, live in zip(body["entries"], (first, second), strict=True):
        assert BESIDE & set(entry) == BESIDE & set(live)
        assert {name: entry[name] for name in BESIDE & set(live)} == {name: live[name] for name in BESIDE & set(live)}
    assert all(entry["complete"] for entry in body["entries"])


async def test_history_comes_in_pages(http: httpx2.AsyncClient) -> None:
    session = str(uuid4())
    for number in range(3):
        await chat(http, f"What is torque number {number}?", session_id=session)
    page = await history(http, session, limit=1, offset=1)
    assert page["total_entries"] == 3
    assert [entry["query"] for entry in page["entries"]] == ["What is torque number 1?"]
    assert (await history(http, session, limit=5, offset=3))["entries"] == []


async def test_an_unknown_session_is_an_empty_history(http: httpx2.AsyncClient) -> None:
    session = str(uuid4())
    assert await history(http, session) == {"session_id": session, "entries": [], "total_entries": 0}


async def test_a_forgotten_session_is_empty(http: httpx2.AsyncClient) -> None:
    session = (await chat(http, COVERED))["session_id"]
    assert (await http.delete(f"/history/{session}")).status_code == 204
    assert (await history(http, session))["total_entries"] == 0
    assert (await http.delete(f"/history/{session}")).status_code == 204


async def test_a_retry_with_the_same_word_is_kept_once(http: httpx2.AsyncClient) -> None:
    word = {"Idempotency-Key": str(uuid4())}
    first = (await http.post("/chat", json={"query": COVERED}, headers=word)).json()
    again = (await http.post("/chat", json={"query": COVERED}, headers=word)).json()
    streamed = events((await http.post("/chat/stream", json={"query": COVERED}, headers=word)).text)
    assert again == first
    assert streamed[-1]["response"] == first
    assert "".join(event.get("delta", "") for event in streamed) == first["answer"]
    assert (await history(http, first["session_id"]))["total_entries"] == 1


@pytest.mark.parametrize(
    "other",
    [
        {"query": UNCOVERED},
        {"selected_text": "A gyroscope drifts when it is warm."},
        {"filters": {"section": "Bias and drift"}},
        {"session_id": str(uuid4())},
    ],
    ids=["query", "selected_text", "filters", "session_id"],
)
@pytest.mark.parametrize("endpoint", ["/chat", "/chat/stream"])
async def test_an_idempotency_key_with_another_body_is_refused(
    http: httpx2.AsyncClient, endpoint: str, other: dict[str, Any]
) -> None:
    key = {"Idempotency-Key": str(uuid4())}
    body = {"query": COVERED, "session_id": str(uuid4())}
    first = (await http.post("/chat", json=body, headers=key)).json()
    refused = await http.post(endpoint, json=body | other, headers=key)
    assert problem(refused) == (422, "IDEMPOTENCY_CONFLICT")
    assert "another request" in refused.json()["message"]
    assert refused.json()["details"] == {"field": "Idempotency-Key"}
    assert (await http.post("/chat", json=body, headers=key)).json() == first


async def test_an_idempotency_key_is_remembered_by_the_next_server(home: Path, docs: Path) -> None:
    settings = settings_for(home, embedder="hashing")
    await asyncio.to_thread(ingest_folder, settings, docs)
    key, body = {"Idempotency-Key": "once"}, {"query": "What moves water uphill?", "selected_text": "A pump does."}
    async with running(settings) as http:
        first = (await http.post("/chat", json=body, headers=key)).json()
    async with running(settings) as http:
        assert (await http.post("/chat", json=body, headers=key)).json() == first
        refused = await http.post("/chat", json={"query": body["query"]}, headers=key)
        assert problem(refused) == (422, "IDEMPOTENCY_CONFLICT")
        assert "fingerprint" not in json.dumps(await history(http, first["session_id"]))


@pytest.mark.parametrize(
    "filters",
    [{"section": "Calibration"}, {"source_url_prefix": "/"}, {"source_url_prefix": "https://book.example.org"}],
)
async def test_filters_narrow_the_search(http: httpx2.AsyncClient, filters: dict[str, str]) -> None:
    body = await chat(http, "How many checkerboard photos do I need?", filters=filters)
    assert body["sources"]
    if section := filters.get("section"):
        assert {source["section"] for source in body["sources"]} == {section}


async def test_a_filter_that_matches_nothing_finds_nothing(http: httpx2.AsyncClient) -> None:
    body = await chat(http, COVERED, filters={"section": "No Such Section"})
    assert body["metadata"]["mode"] == "no_results"
    assert body["metadata"]["retrieval_count"] == 0


@pytest.mark.parametrize("query", [COVERED, UNCOVERED])
async def test_the_stream_has_stages_then_text_then_the_response(http: httpx2.AsyncClient, query: str) -> None:
    plain = await chat(http, query)
    response = await http.post("/chat/stream", json={"query": query})
    assert response.headers["content-type"].startswith("text/event-stream")
    first, second, *deltas, last = events(response.text)
    assert (first, second) == ({"stage": "retrieving"}, {"stage": "generating"})
    assert all(set(delta) == {"delta"} for delta in deltas)
    assert "".join(delta["delta"] for delta in deltas) == plain["answer"] == last["response"]["answer"]
    assert set(last) == {"done", "response"}
    assert last["response"]["sources"] == plain["sources"]
    body = await history(http, last["response"]["session_id"])
    assert [entry["response"] for entry in body["entries"]] == [plain["answer"]]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"query": ""}, "EMPTY_QUERY"),
        ({"query": " \n\t"}, "EMPTY_QUERY"),
        ({"query": "x" * 32_001}, "QUERY_TOO_LONG"),
        ({"query": COVERED, "selected_text": "x" * 64_001}, "SELECTION_TOO_LONG"),
        ({"query": COVERED, "session_id": "not-a-uuid"}, "INVALID_SESSION_ID"),
        ({"query": COVERED, "session_id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}, "INVALID_SESSION_ID"),
        ({"query": COVERED, "session_id": 5}, "INVALID_SESSION_ID"),
        ({"query": COVERED, "filters": {"source_url_prefix": "docs/"}}, "VALIDATION_ERROR"),
        ({"query": COVERED, "filters": {"section": ""}}, "VALIDATION_ERROR"),
        ({"query": COVERED, "filters": "all"}, "VALIDATION_ERROR"),
        ({"query": COVERED, "filters": {"section": "x" * 1001}}, "VALIDATION_ERROR"),
        ({"query": COVERED, "filters": {"source_url_prefix": "/" + "x" * 2000}}, "VALIDATION_ERROR"),
        ({"query": "\u2060\U000e0041"}, "EMPTY_QUERY"),
        ({}, "EMPTY_QUERY"),
    ],
)
@pytest.mark.parametrize("endpoint", ["/chat", "/chat/stream"])
async def test_a_wrong_request_is_told_what_is_wrong(
    http: httpx2.AsyncClient, endpoint: str, body: object, code: str
) -> None:
    assert problem(await http.post(endpoint, json=body)) == (400, code)


@pytest.mark.parametrize(
    "prefix",
    [
        "", "docs/", " /docs", "/docs\n", "/a b", "/a\tb", "/\u200bdocs", "//example.org/", "ftp://example.org/", "https://",
        "https:///docs", "http://:80/", "https://user@example.org/", "https://[::1/", "https://exa mple.org/",
    ],
)  # fmt: skip
async def test_a_url_prefix_is_a_url_with_a_host_or_a_path(http: httpx2.AsyncClient, prefix: str) -> None:
    body = {"query": COVERED, "filters": {"source_url_prefix": prefix}}
    response = await http.post("/chat", json=body)
    assert problem(response) == (400, "VALIDATION_ERROR")
    assert response.json()["details"] == {"field": "filters.source_url_prefix"}


@pytest.mark.parametrize(
    "prefix", ["/", "/docs/über?q=1#a", "https://example.org", "http://localhost:8000/a%20b", "https://[::1]:80/"]
)
async def test_any_url_and_any_path_is_a_prefix(http: httpx2.AsyncClient, prefix: str) -> None:
    await chat(http, COVERED, filters={"source_url_prefix": prefix})


@pytest.mark.parametrize("field", ["query", "selected_text"])
async def test_half_a_character_is_refused(http: httpx2.AsyncClient, field: str) -> None:
    body = json.dumps({"query": COVERED, field: "half a \ud83d pair"})
    sent = await http.post("/chat", content=body, headers={"content-type": "application/json"})
    assert problem(sent) == (400, "VALIDATION_ERROR")


async def test_a_history_is_asked_for_by_a_uuid_of_version_4(http: httpx2.AsyncClient) -> None:
    for wrong in ("nope", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"):
        assert problem(await http.get(f"/history/{wrong}")) == (400, "INVALID_SESSION_ID")
        assert problem(await http.delete(f"/history/{wrong}")) == (400, "INVALID_SESSION_ID")


@pytest.mark.parametrize(
    "query", ["nul \x00 byte", "\u202eright to left", "' OR 1=1; DROP TABLE sessions; --", "🤖" * 300]
)
async def test_whatever_is_asked_is_kept_and_read_back(http: httpx2.AsyncClient, query: str) -> None:
    session = (await chat(http, query))["session_id"]
    (entry,) = (await history(http, session))["entries"]
    assert entry["query"] == query.replace("\x00", "\ufffd").strip()


async def test_the_longest_question_and_selection_are_taken(http: httpx2.AsyncClient) -> None:
    await chat(http, "gyroscope drift " * 2000, selected_text=None)
    await chat(http, COVERED, selected_text=("Gyroscopes drift because of bias. " * 2000)[:64_000])


@pytest.mark.parametrize(
    "query",
    [
        COVERED,
        "How many joints does a humanoid have?",
        "What helps when a joint hums?",
        "Which buses connect the joints?",
        "How do I write a node in Python?",
    ],
)
async def test_every_mark_has_the_words_of_the_chunk_it_rests_on(http: httpx2.AsyncClient, query: str) -> None:
    body = await chat(http, query)
    assert body["sources"]
    prose = re.sub(r"```.*?```|`[^`]*`", "", body["answer"], flags=re.DOTALL)
    for number, source in enumerate(body["sources"], 1):
        address = f"/api/v1/documents/{source['document_id']}/chunks/{source['chunk_position']}"
        chunk = (await http.get(address)).json()["chunkText"]
        assert len(source["quotes"]) == prose.count(f"[{number}]") > 0
        assert all(quote and quote in chunk for quote in source["quotes"])
    first = body["sources"][0]["quotes"][0]
    assert " ".join(first.split())[:60] in " ".join(body["answer"].split())
    (entry,) = (await history(http, body["session_id"]))["entries"]
    assert [one["quotes"] for one in entry["sources"]] == [one["quotes"] for one in body["sources"]]


async def test_what_only_looks_like_a_mark_shifts_no_quote(home: Path) -> None:
    """A reader counts the markers it sees; `[1]` may also be part of a quotation."""
    page = home.parent / "pages" / "pumps.md"
    page.parent.mkdir()
    page.write_text(
        "# Pumps\n\nA quixel pump moves water uphill, as [1] and [9] and [^1] say, but not `pump[1]` or [1](/a). "
        "\n\n## Motors\n\nThe motor of a quixel pump has 12 kW.\n"
    )
    settings = settings_for(home, embedder="hashing")
    await asyncio.to_thread(ingest_folder, settings, page.parent)
    async with running(settings) as small:
        body = await chat(small, "What does a quixel pump move, as the others say?")
    assert "as [1] and [9]" in body["answer"]
    (marked,) = (source for source in body["sources"] if source["quotes"][0] is None)
    assert marked == body["sources"][0]
    assert marked["quotes"] == [None, next(quote for quote in marked["quotes"] if quote)]
    assert "uphill" in marked["quotes"][1]
