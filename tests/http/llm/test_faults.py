"""A model that is down, breaks off or says too much: every endpoint still answers."""

import json
from pathlib import Path

import httpx2
import pytest

from tests.fakes.llm import KEY, LLM, Fails, Reply, Says
from tests.http.live import live, until
from tests.http.llm.server import (
    ASK,
    CHAT,
    PUMP,
    QUERY,
    QUESTION,
    STREAMS,
    V1,
    WELL,
    over,
    saying,
    streamed,
    told,
    writing,
)

pytestmark = pytest.mark.anyio


DEAD: list[Reply] = [Fails(500), Fails(401)]


@pytest.mark.parametrize("fault", DEAD, ids=str)
async def test_without_its_model_every_endpoint_still_answers(pages: Path, fault: Reply) -> None:
    async with writing(pages, fault) as (http, llm):
        session = await told(http, CHAT)
        tried = len(llm.calls)
        bodies = [await told(http, ASK), await told(http, QUERY), await told(http, V1)]
        assert len(llm.calls) == tried, "the others do not wait for a dead model"
        health = (await http.get("/health")).json()
    assert session["answer"] is None
    assert session["fallback_message"] == "AI summarization unavailable"
    assert session["metadata"]["mode"] == "retrieval_only"
    assert session["sources"]
    for body in bodies:
        assert "uphill" in (body.get("answer") or body["response"])
        assert "language model is unavailable" in body["notice"]
    assert bodies[2]["model"] == "extractive"
    assert (health["status"], health["services"]["llm"]["status"]) == ("degraded", "degraded")


async def test_without_its_model_a_stream_has_sources_and_no_words(pages: Path) -> None:
    async with writing(pages, Fails(500)) as (http, _):
        said = await streamed(http, STREAMS[1])
    assert [one for one in said if "delta" in one] == []
    assert said[-1]["response"]["metadata"]["mode"] == "retrieval_only"


HALF = saying(lambda at: f"{PUMP} [{at(PUMP)}]. Then it bro", cut=True)


async def test_a_stream_that_breaks_off_says_so_after_what_was_said(pages: Path) -> None:
    async with writing(pages, HALF) as (http, _):
        asked, session, v1 = [await streamed(http, endpoint) for endpoint in STREAMS]
    assert "".join(one["content"] for one in asked).startswith(f"{PUMP} [1]")
    assert asked[-1]["done"] is True
    assert "broke off" in asked[-1]["error"]
    for said in (session, v1):
        assert "".join(one.get("delta", "") for one in said)
        assert said[-1]["error"]["error_code"] == "GEMINI_UNAVAILABLE"
        assert KEY not in json.dumps(said)


async def test_what_was_said_before_it_broke_off_is_kept_as_incomplete(pages: Path) -> None:
    session = "11111111-1111-4111-8111-111111111112"
    async with writing(pages, HALF) as (http, _):
        await http.post("/chat/stream", json={"query": QUESTION, "session_id": session})
        (entry,) = (await http.get(f"/history/{session}")).json()["entries"]
    assert entry["response"].startswith(f"{PUMP} [1]")
    assert entry["complete"] is False
    assert entry["metadata"]["mode"] == "full"
    assert "confidence" not in entry, "nobody knows how it would have ended"


async def test_whoever_did_not_read_along_gets_a_whole_answer_anyway(pages: Path) -> None:
    async with writing(pages, HALF) as (http, _):
        body = await told(http, ASK)
        session = await told(http, CHAT)
    assert "Then it bro" not in body["answer"]
    assert "language model is unavailable" in body["notice"]
    assert session["metadata"]["mode"] == "retrieval_only"


async def test_a_model_that_is_back_is_used_again(pages: Path) -> None:
    async with writing(pages, Fails(400, "not today"), WELL) as (http, _):
        first, second = await told(http, ASK), await told(http, ASK)
    assert "notice" in first
    assert "notice" not in second


async def test_an_error_of_an_endpoint_never_names_the_key(pages: Path) -> None:
    async with writing(pages, Fails(400, f"what is {KEY}?")) as (http, _):
        for endpoint in (ASK, CHAT, V1, QUERY):
            reply = await http.post(endpoint[0], json=endpoint[1])
            assert KEY not in reply.text
        assert KEY not in (await http.get("/health")).text


async def test_half_a_sentence_is_not_said_when_it_breaks_off(pages: Path) -> None:
    open_ended = saying(lambda at: f"{PUMP} [{at(PUMP)}]. See [the man", cut=True)
    async with writing(pages, open_ended) as (http, _):
        said = await streamed(http, STREAMS[1])
    assert "".join(one.get("delta", "") for one in said).endswith(f"{PUMP} [1].")


async def test_a_selection_is_not_blamed_for_a_dead_model(pages: Path) -> None:
    asked = {"query": "What does the ferret eat?", "selected_text": "The ferret eats figs. It sleeps a lot."}
    async with writing(pages, Fails(500)) as (http, _):
        body = await told(http, ("/chat", asked))
    assert body["metadata"]["mode"] == "retrieval_only"
    (source,) = body["sources"]
    assert "does not answer" not in source["relevance_note"]


async def test_a_model_is_not_told_that_it_was_unavailable(pages: Path) -> None:
    async with writing(pages, Fails(400, "not now"), Says(QUESTION), WELL) as (http, llm):
        session = (await told(http, CHAT))["session_id"]
        await told(http, ("/chat", {"query": "Which of them needs no motor?", "session_id": session}))
    assert "unavailable" not in str(llm.calls)


async def test_health_tells_nobody_what_a_vendor_said(pages: Path) -> None:
    async with writing(pages, Fails(429, "quota of org-secret exhausted", headers={"Retry-After": "900"})) as (http, _):
        await told(http, CHAT)
        llm = (await http.get("/health")).json()["services"]["llm"]
    assert (llm["status"], llm["error"]) == ("degraded", "the LLM server answered with status 429")


def test_a_stream_begins_before_the_model_does(pages: Path) -> None:
    with (
        LLM(Fails(hang=True)) as llm,
        live(over(pages, llm)) as server,
        httpx2.stream("POST", f"{server.address}/api/ask/stream", json=ASK[1], timeout=30) as reply,
    ):
        lines = reply.iter_lines()
        assert next(lines).startswith("data:")
        until(lambda: llm.open == 1, "the model is asked, and has said nothing")
