"""Answers that an LLM writes, at every door: cited truly, checked, and there in some form when it is not."""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from citewell.settings import Settings
from tests.conftest import settings_for
from tests.doors.conftest import DEFAULT, events, running, take_in
from tests.llm import KEY, LLM, MODEL, Fails, Mind, Reply, Says

pytestmark = pytest.mark.anyio

QUESTION = "What moves water uphill?"
UNCOVERED = "How long does a chicken roast?"
PUMP = "A pump moves water uphill"
RAM = "A ram moves water uphill without a motor"

ASK = ("/api/ask", {"question": QUESTION})
QUERY = ("/api/query", {"query": QUESTION})
CHAT = ("/chat", {"query": QUESTION})
V1 = ("/api/v1/chat", {"message": QUESTION, "projectId": str(DEFAULT.id)})
STREAMS = [("/api/ask/stream", ASK[1]), ("/chat/stream", CHAT[1]), ("/api/v1/chat/stream", V1[1])]


def numbers(request: dict[str, Any]) -> dict[str, int]:
    """The number of each passage that a model was given, by the passage's words."""
    told = "\n".join(str(one.get("content") or "") for one in request["messages"])
    shown = re.findall(r"^\[(\d+)\][^\n]*\n<passage (\w+)>\n(.*?)\n</passage \2>$", told, re.DOTALL | re.MULTILINE)
    return {words: int(number) for number, _, words in shown}


def number_of(words: str, request: dict[str, Any]) -> int:
    """The number of the passage that says these words."""
    return next(number for text, number in numbers(request).items() if words in text)


def saying(make: Callable[[Callable[[str], int]], str], **how: Any) -> Mind:
    """A model that reads: what it says is made with the number of the passage in which some words stand."""
    return lambda request: Says(make(lambda words: number_of(words, request)), **how)


WELL = saying(lambda at: f"{PUMP} [{at(PUMP)}]. {RAM} [{at(RAM)}].")


def over(pages: Path, llm: LLM, **values: object) -> Settings:
    return settings_for(pages, embedder="hashing", llm_base_url=llm.url, llm_model=MODEL, llm_api_key=KEY, **values)


@asynccontextmanager
async def writing(
    pages: Path, *replies: Reply | Mind, **values: object
) -> AsyncIterator[tuple[httpx2.AsyncClient, LLM]]:
    with LLM(*replies) as llm:
        async with running(over(pages, llm, **values)) as http:
            yield http, llm


async def told(http: httpx2.AsyncClient, door: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    reply = await http.post(door[0], json=door[1])
    assert reply.status_code == 200, reply.text
    body: dict[str, Any] = reply.json()
    return body


def verdicts(body: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["sentence"], one["verdict"]) for one in body.get("support", [])]


async def test_the_web_chat_is_told_what_the_model_wrote_with_its_citations_counted(pages: Path) -> None:
    async with writing(pages, WELL) as (http, _):
        body = await told(http, ASK)
    assert body["answer"] == f"{PUMP} [1]. {RAM} [2]."
    assert [one["source_file"] for one in body["citations"]] == ["pumps.md", "rams.md"]
    assert verdicts(body) == [(f"{PUMP}.", "supported"), (f"{RAM}.", "supported")]
    assert body["confidence"] > 0
    assert "notice" not in body


async def test_a_citation_shows_the_words_that_the_sentence_rests_on(pages: Path) -> None:
    async with writing(pages, saying(lambda at: f"Without any motor, a ram can move water uphill [{at(RAM)}].")) as (
        http,
        _,
    ):
        (citation,) = (await told(http, ASK))["citations"]
    assert citation["excerpt"] == f"{RAM}."
    assert citation["line"] == 3


async def test_the_project_api_names_chunks_and_counts_tokens(pages: Path) -> None:
    async with writing(pages, WELL) as (http, _):
        body = await told(http, V1)
    ids = re.findall(r"\[([0-9a-f]{64})\]", body["response"])
    assert ids == [source["id"] for source in body["sources"]]
    assert len(ids) == 2
    assert (body["model"], body["promptEvalCount"], body["evalCount"]) == (MODEL, 321, 45)


async def test_a_session_remembers_what_the_model_said(pages: Path) -> None:
    async with writing(pages, WELL) as (http, _):
        body = await told(http, CHAT)
        kept = (await http.get(f"/history/{body['session_id']}")).json()["entries"]
    assert body["answer"] == f"{PUMP} [1]. {RAM} [2]."
    assert (body["metadata"]["mode"], body["fallback_message"]) == ("full", None)
    assert [one["response"] for one in kept] == [body["answer"]]
    assert [one["verdict"] for one in body["support"]] == ["supported", "supported"]


async def test_a_button_in_a_book_gets_an_answer_and_its_sources(pages: Path) -> None:
    async with writing(pages, WELL) as (http, _):
        body = await told(http, QUERY)
    assert body["answer"] == f"{PUMP} [1]. {RAM} [2]."
    assert [one["filename"] for one in body["sources"]] == ["pumps.md", "rams.md"]


@pytest.mark.parametrize("piece", [1, 3, 50])
async def test_every_stream_says_what_the_whole_answer_says(pages: Path, piece: int) -> None:
    wordy = saying(
        lambda at: f"{PUMP} [{at(PUMP)}], and so does something else [99]. `water[1]` is code.\n\n- {RAM}[{at(RAM)}]\n",
        piece=piece,
    )
    async with writing(pages, wordy) as (http, _):
        bodies = [await told(http, door) for door in (ASK, CHAT, V1)]
        said = [await streamed(http, door) for door in STREAMS]
    assert all(one[-1]["done"] for one in said)
    assert ["".join(part.get("content") or part.get("delta") or "" for part in one) for one in said] == [
        body.get("answer") or body["response"] for body in bodies
    ]


async def test_words_stream_as_the_model_writes_them(pages: Path) -> None:
    async with writing(pages, WELL) as (http, _):
        said = [one["delta"] for one in await streamed(http, STREAMS[1]) if "delta" in one]
    assert len(said) > 10


async def streamed(http: httpx2.AsyncClient, door: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return events((await http.post(door[0], json=door[1])).text)


async def test_a_passage_that_was_not_given_cannot_be_cited(pages: Path) -> None:
    async with writing(pages, saying(lambda at: f"{PUMP} [{at(PUMP)}][77]. So it is [99].")) as (http, _):
        body = await told(http, ASK)
    assert body["answer"] == f"{PUMP} [1]. So it is."
    assert len(body["citations"]) == 1


async def test_a_citation_moves_to_the_passage_that_says_it(pages: Path) -> None:
    async with writing(pages, saying(lambda at: f"{RAM} [{at('gasket')}].")) as (http, _):
        body = await told(http, ASK)
    assert [one["source_file"] for one in body["citations"]] == ["rams.md"]
    assert verdicts(body) == [(f"{RAM}.", "supported")]


async def test_what_no_passage_says_is_marked(pages: Path) -> None:
    moon = "The Emperor Napoleon built 47 lighthouses on Mars in 1811"
    async with writing(pages, saying(lambda at: f"{PUMP} [{at(PUMP)}]. {moon} [{at(PUMP)}].")) as (http, _):
        body = await told(http, ASK)
        honest = await told(http, ("/api/ask", {"question": QUESTION}))
    assert verdicts(body) == [(f"{PUMP}.", "supported"), (f"{moon}.", "unsupported")]
    assert moon in body["answer"]
    assert 0 < body["confidence"] <= honest["confidence"]


async def test_half_of_what_is_said_being_unsupported_costs_confidence(pages: Path) -> None:
    moon = "The Emperor Napoleon built 47 lighthouses on Mars in 1811"
    async with writing(
        pages,
        saying(lambda at: f"{PUMP} [{at(PUMP)}]."),
        saying(lambda at: f"{PUMP} [{at(PUMP)}]. {moon} [{at(PUMP)}]."),
    ) as (http, _):
        sound, half = [(await told(http, ASK))["confidence"] for _ in (1, 2)]
    assert half < sound


async def test_when_strict_what_no_passage_says_is_not_said(pages: Path) -> None:
    moon = "The Emperor Napoleon built 47 lighthouses on Mars in 1811"
    lies = saying(lambda at: f"{PUMP} [{at(PUMP)}]. {moon} [{at(PUMP)}]. {moon}, twice. {RAM} [{at(RAM)}].")
    async with writing(pages, lies, strict=True) as (http, _):
        body = await told(http, ASK)
        parts = await streamed(http, STREAMS[0])
    assert body["answer"] == f"{PUMP} [1]. {RAM} [2]."
    assert "".join(one["content"] for one in parts) == body["answer"]


async def test_when_strict_and_nothing_holds_there_are_quotations(pages: Path) -> None:
    moon = "The Emperor Napoleon built 47 lighthouses on Mars in 1811."
    async with writing(pages, Says(moon), strict=True) as (http, _):
        body = await told(http, ASK)
    assert "Napoleon" not in body["answer"]
    assert "uphill" in body["answer"]
    assert "not borne out" in body["notice"]


async def test_an_answer_that_cites_nothing_has_no_confidence_and_says_so(pages: Path) -> None:
    async with writing(pages, Says("I believe that pumps do that in general.")) as (http, _):
        body = await told(http, ASK)
        asked = await told(http, QUERY)
    assert body["citations"] == []
    assert body["confidence"] == 0
    assert [verdict for _, verdict in verdicts(body)] == ["uncited"]
    assert asked["sources"], "the nearest topics there are"


@pytest.mark.parametrize("says", ["NOT_COVERED", "**NOT_COVERED**\n\nThe passages speak of other things."])
async def test_a_model_that_finds_no_answer_is_understood(pages: Path, says: str) -> None:
    async with writing(pages, Says(says)) as (http, _):
        body = await told(http, ASK)
        session = await told(http, CHAT)
    assert body["answer"].startswith("This is not covered by this book.")
    assert (body["citations"], body["confidence"]) == ([], 0)
    assert body["nearest"]
    assert session["metadata"]["mode"] == "no_results"


async def test_what_the_book_does_not_cover_is_not_asked_of_a_model(pages: Path) -> None:
    async with writing(pages, Says("About an hour.")) as (http, llm):
        body = await told(http, ("/api/ask", {"question": UNCOVERED}))
    assert body["confidence"] == 0
    assert llm.calls == []


async def test_what_a_model_thinks_is_not_said(pages: Path) -> None:
    async with writing(pages, saying(lambda at: f"<think>Hm, the user wants [1].</think>\n\n{PUMP} [{at(PUMP)}].")) as (
        http,
        _,
    ):
        assert (await told(http, ASK))["answer"] == f"{PUMP} [1]."


async def test_a_model_may_search_for_more_and_cite_what_it_found(pages: Path) -> None:
    def cites(request: dict[str, Any]) -> Reply:
        found = json.loads(next(one["content"] for one in request["messages"] if one["role"] == "tool"))
        assert found["message"] == f"Found {found['total_results']} relevant passages"
        gasket = next(one for one in found["results"] if "gasket" in one["chunk_text"])
        assert set(gasket) == {
            "cite_as",
            "chunk_text",
            "source_url",
            "title",
            "section",
            "similarity_score",
            "chunk_position",
        }
        return Says(f"Replace the gasket yearly {gasket['cite_as']}.")

    arguments = json.dumps({"query": "Replace the gasket", "limit": 10})
    narrow = ("/api/ask", {"question": QUESTION, "top_k": 1})
    async with writing(pages, Says(tool="search_book_content", arguments=arguments), cites) as (http, llm):
        body = await told(http, narrow)
    assert body["answer"] == "Replace the gasket yearly [1]."
    assert [one["source_file"] for one in body["citations"]] == ["valves.md"]
    assert [one["verdict"] for one in body["support"]] == ["supported"]
    assert "gasket" not in llm.prompt(0)


SELECTED = ("/chat", {"query": "What does the ferret eat?", "selected_text": "The ferret eats figs. It sleeps a lot."})


async def test_a_selection_is_all_that_a_model_sees(pages: Path) -> None:
    async with writing(pages, saying(lambda at: f"The ferret eats figs [{at('ferret')}].")) as (http, llm):
        body = await told(http, SELECTED)
    (call,) = llm.calls
    assert "tools" not in call
    assert "uphill" not in llm.prompt()
    assert body["answer"] == "The ferret eats figs [1]."
    assert body["metadata"]["mode"] == "selected_text"
    assert [one["source_type"] for one in body["sources"]] == ["selected_text"]


async def test_what_is_not_in_a_selection_is_said_to_be_missing(pages: Path) -> None:
    async with writing(pages, Says("NOT_COVERED")) as (http, _):
        body = await told(http, SELECTED)
    assert "not found in selection" in body["answer"]


async def test_a_follow_up_is_understood_by_the_model(pages: Path) -> None:
    async with writing(pages, WELL) as (http, llm):
        session = (await told(http, CHAT))["session_id"]
        llm.replies = [Says("Does a ram have a motor?"), saying(lambda at: f"{RAM} [{at(RAM)}].")]
        body = await told(http, ("/chat", {"query": "And has the second one a motor?", "session_id": session}))
    rewriting, answering = llm.calls[-2:]
    assert [one["content"] for one in rewriting["messages"][1:]] == [
        QUESTION,
        f"{PUMP}. {RAM}.",
        "And has the second one a motor?",
    ]
    assert "Does a ram have a motor?" in llm.prompt()
    assert "tools" not in rewriting
    assert answering["messages"][1]["content"] == QUESTION, "what was said before is told, too"
    assert body["answer"] == f"{RAM} [1]."


@pytest.mark.parametrize(
    "nonsense",
    [Says("Napoleon was born in Corsica."), Says("A ram has none.\nBut why?"), Says("x " * 500), Fails(400, "no")],
    ids=["made up", "two lines", "too long", "refused"],
)
async def test_a_follow_up_that_the_model_garbles_is_understood_by_rules(pages: Path, nonsense: Reply) -> None:
    history = [{"role": "user", "content": "What is a ram?"}, {"role": "assistant", "content": RAM}]
    asked = ("/api/v1/chat", {**V1[1], "message": "how does it move water?", "history": history})
    async with writing(pages, nonsense, saying(lambda at: f"{RAM} [{at(RAM)}].")) as (http, llm):
        await told(http, asked)
    assert "The reader's question: how does a ram move water?" in llm.prompt()


async def test_at_most_five_exchanges_are_told(pages: Path) -> None:
    history = [
        {"role": role, "content": f"{role} {number} on water"} for number in range(8) for role in ("user", "assistant")
    ]
    asked = ("/api/v1/chat", {**V1[1], "history": history})
    async with writing(pages, Says(QUESTION), WELL) as (http, llm):
        await told(http, asked)
    prompt = llm.prompt()
    assert "user 3 on water" in prompt
    assert "user 2 on water" not in prompt


DEAD: list[Reply] = [Fails(500), Fails(401)]


@pytest.mark.parametrize("fault", DEAD, ids=str)
async def test_without_its_model_every_door_still_answers(pages: Path, fault: Reply) -> None:
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
        asked, session, v1 = [await streamed(http, door) for door in STREAMS]
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


@pytest.fixture
def long_home(tmp_path: Path) -> Path:
    """A home folder with one long chapter."""
    docs = tmp_path / "docs"
    docs.mkdir()
    sentences = [f"Water moves uphill by pump number {number} of this long chapter." for number in range(120)]
    (docs / "long.md").write_text("# Long\n\n" + " ".join(sentences))
    home = tmp_path / "home"
    take_in(settings_for(home, embedder="hashing"), docs)
    return home


async def test_a_passage_is_cut_to_what_the_model_can_read_and_never_in_a_sentence(long_home: Path) -> None:
    async with writing(long_home, Says("NOT_COVERED"), llm_context_tokens=1600) as (http, llm):
        await told(http, ASK)
    prompt = llm.prompt()
    assert len(prompt) < 1600 * 3
    for text in numbers(llm.calls[0]):
        assert text.strip().endswith("of this long chapter.")


async def test_an_error_of_a_door_never_names_the_key(pages: Path) -> None:
    async with writing(pages, Fails(400, f"what is {KEY}?")) as (http, _):
        for door in (ASK, CHAT, V1, QUERY):
            reply = await http.post(door[0], json=door[1])
            assert KEY not in reply.text
        assert KEY not in (await http.get("/health")).text
