"""What a model writes and no passage supports, at every endpoint: a reader gets cited sentences only, or quotations."""

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from citewell.answer.support import needs_support
from citewell.answer.writing.unit_stream import UnitStream
from tests.conftest import settings_for
from tests.fakes.llm import LLM, Fails, Mind, Reply, Says
from tests.http.conftest import ingest_folder, running
from tests.http.llm.server import (
    ASK,
    CHAT,
    PUMP,
    QUERY,
    QUESTION,
    RAM,
    STREAMS,
    V1,
    numbers,
    over,
    saying,
    streamed,
    told,
    writing,
)

pytestmark = pytest.mark.anyio

CHEESE = "The moon is made of cheese"
QUOTED = "quotes"
CALL = '{"name": "search_book_content", "arguments": {"query": "what moves water uphill"}}'
PRETTY = json.dumps(json.loads(CALL), indent=2)

NO_ANSWERS = {
    "a tool call": CALL,
    "a tool call in a fence": f"```json\n{PRETTY}\n```",
    "a tool call in lines": PRETTY,
    "a tool call in a tag": f"<tool_call>\n{CALL}\n</tool_call>",
    "a tool call as code": 'search_book_content(query="what moves water uphill")',
    "an echo": QUESTION,
    "an echo without its mark": "what moves water uphill",
    "an echo with a label": f"The reader's question: {QUESTION.rstrip('?')}",
    "nothing": "",
    "blanks": " \n\n ",
    "small talk": "Sure! I hope this helps.",
    "a refusal": "The passages do not say what moves water uphill.",
    "a refusal that cites": "The provided passages do not mention what moves water uphill [1].",
    "a short refusal": "I don't know.",
    "the word of an old prompt": "NOT_COVERED",
    "the word and more": "**NOT_COVERED**\n\nThe passages speak of other things.",
}
UNSUPPORTED = {
    "a lie": f"{CHEESE}.",
    "a lie that cites": f"{CHEESE} [1].",
    "several": f"{CHEESE}. So it is. It was always so [2].",
    "a belief": "I believe that astronauts do that in general.",
}
SHOWN = {
    "without a citation": (f"{PUMP}.", f"{PUMP} [1]."),
    "two without citations": (f"{PUMP}. {RAM}.", f"{PUMP} [1]. {RAM} [2]."),
    "in a list": (f"These do:\n\n- {PUMP}\n- {RAM}\n", f"These do:\n\n- {PUMP} [1]\n- {RAM} [2]"),
    "with small talk": (f"Sure! {PUMP}. I hope this helps.", f"{PUMP} [1]."),
    "with a lie": (f"{CHEESE}. {PUMP}. {CHEESE} [1]. {RAM}.", f"{PUMP} [1]. {RAM} [2]."),
    "after a tool call": (f"{CALL}\n\n{PUMP}.", f"{PUMP} [1]."),
    "with a refusal": (f"{PUMP}. The passages do not say more.", f"{PUMP} [1]."),
    "below a heading": (f"## Pumps\n\n{PUMP}.\n\n## The moon\n\n{CHEESE}.\n", f"## Pumps\n\n{PUMP} [1]."),
}


@pytest.fixture(scope="module")
async def quotations(pages: Path) -> dict[str, Any]:
    """What there is without a model."""
    async with running(settings_for(pages, embedder="hashing")) as http:
        return await told(http, ASK)


def _numbered(text: str) -> str:
    """The text with chunk ids as numbers."""
    ids = list(dict.fromkeys(re.findall(r"\[([0-9a-f]{64})\]", text)))
    return re.sub(r"\[([0-9a-f]{64})\]", lambda mark: f"[{ids.index(mark[1]) + 1}]", text)


async def _everywhere(pages: Path, *says: Reply | Mind, **values: object) -> list[dict[str, Any]]:
    """The answers of all endpoints, which are all the same, streamed or not, and in the history."""
    async with writing(pages, *says, **values) as (http, _):
        bodies = [await told(http, endpoint) for endpoint in (ASK, QUERY, CHAT, V1)]
        streams = [await streamed(http, endpoint) for endpoint in STREAMS]
        session = bodies[2]["session_id"]
        (entry,) = (await http.get(f"/history/{session}")).json()["entries"]
    texts = [_numbered(body.get("answer") or body["response"]) for body in bodies]
    texts += [_numbered("".join(one.get("content") or one.get("delta") or "" for one in events)) for events in streams]
    assert len({*texts, entry["response"]}) == 1, texts
    ends = [streams[0][-1], streams[1][-1]["response"], streams[2][-1]["response"]]
    for body in (*bodies, *ends, entry):
        for field in ("notice", "unsupported", "support"):
            assert body.get(field) == bodies[0].get(field)
    assert bodies[2]["metadata"]["mode"] == entry["metadata"]["mode"] == "full"
    return bodies


@pytest.mark.parametrize("says", NO_ANSWERS.values(), ids=NO_ANSWERS.keys())
async def test_text_that_is_no_answer_is_replaced_by_quotations(
    pages: Path, quotations: dict[str, Any], says: str
) -> None:
    body, query, session, v1 = await _everywhere(pages, Says(says))
    assert (body["answer"], body["citations"]) == (quotations["answer"], quotations["citations"])
    assert body["confidence"] == quotations["confidence"]
    assert body["notice"] == "The language model wrote no answer; this answer quotes the documents instead."
    assert "unsupported" not in body
    assert (session["fallback_message"], v1["model"]) == (None, "extractive")
    assert [one["filename"] for one in query["sources"]] == ["pumps.md", "rams.md"], "what the answer rests on"


@pytest.mark.parametrize("policy", ["drop", "fold", "show"])
@pytest.mark.parametrize("says", UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
async def test_an_answer_of_which_nothing_is_supported_is_not_shown(
    pages: Path, quotations: dict[str, Any], says: str, policy: str
) -> None:
    body, *_ = await _everywhere(pages, Says(says), unsupported=policy)
    assert (body["answer"], body["citations"]) == (quotations["answer"], quotations["citations"])
    assert body["confidence"] == quotations["confidence"]
    assert body["notice"].startswith("The documents do not support what the language model wrote")
    assert ("unsupported" in body) == (policy == "show")
    assert policy == "show" or "cheese" not in json.dumps(body)


@pytest.mark.parametrize("policy", ["drop", "fold"])
@pytest.mark.parametrize(("says", "shown"), SHOWN.values(), ids=SHOWN.keys())
async def test_what_is_right_is_shown_with_a_citation_and_what_is_wrong_is_not(
    pages: Path, says: str, shown: str, policy: str
) -> None:
    body, query, *_ = await _everywhere(pages, Says(says), unsupported=policy)
    assert body["answer"] == shown
    assert "notice" not in body
    assert "unsupported" not in body
    assert body["confidence"] > 0
    assert {one["verdict"] for one in body["support"]} == {"supported"}
    assert all(one["chunk_ids"] for one in body["support"])
    marks = {int(number) for number in re.findall(r"\[(\d)\]", shown)}
    assert len(body["citations"]) == len(query["sources"]) == len(marks)


async def test_where_it_is_to_be_shown_a_cited_lie_keeps_its_verdict_and_an_uncited_one_stands_beside(
    pages: Path,
) -> None:
    says = saying(lambda at: f"{PUMP} [{at(PUMP)}]. {CHEESE} [{at(RAM)}]. {CHEESE}, twice.")
    body, *_ = await _everywhere(pages, says, unsupported="show")
    assert body["answer"] == f"{PUMP} [1]. {CHEESE} [2]."
    assert [one["verdict"] for one in body["support"]] == ["supported", "unsupported"]
    assert body["unsupported"] == [f"{CHEESE}, twice."]


async def test_what_is_too_little_is_replaced_by_quotations_and_the_rest_is_given_beside(
    pages: Path, quotations: dict[str, Any]
) -> None:
    """One claim has some support: less than the quotations are worth."""
    says = saying(lambda at: f"A pump helps to move things uphill [{at(PUMP)}]. {CHEESE}.")
    body, *_ = await _everywhere(pages, says)
    assert body["answer"] == quotations["answer"]
    assert body["unsupported"] == [f"{CHEESE}."]
    assert body["notice"].startswith("The documents do not support enough of what the language model wrote")
    assert "cheese" not in body["answer"]
    dropped, *_ = await _everywhere(pages, says, unsupported="drop")
    assert "unsupported" not in dropped


@pytest.mark.parametrize(
    ("values", "policy"),
    [
        ({}, "fold"),
        ({"strict": False}, "fold"),
        ({"strict": True}, "drop"),
        ({"strict": True, "unsupported": "show"}, "show"),
        ({"strict": False, "unsupported": "drop"}, "drop"),
    ],
)
def test_the_old_name_of_the_setting_still_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, object], policy: str
) -> None:
    for name, value in values.items():
        monkeypatch.setenv(f"CITEWELL_{name.upper()}", str(value))
    assert settings_for(tmp_path).unsupported_policy == policy


WORDS = st.sampled_from(
    (
        *(f"{PUMP}. ", f"{RAM} [1]. ", f"{CHEESE}. ", f"{CHEESE} [2]. ", "Sure! ", "Why? ", "I don't know. "),
        *("\n\n", "- ", "# Water\n\n", "So:\n", "```\n", "**", CALL, "[9]", " "),
        *("| a | b |\n", "| --- | --- |\n", f"| {RAM} | x |\n"),
    )
)


@pytest.fixture(scope="module")
def llm() -> Any:
    with LLM(Says("")) as llm:
        yield llm


@pytest.fixture(scope="module")
async def http(pages: Path, llm: LLM) -> Any:
    async with running(over(pages, llm)) as http:
        yield http


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(WORDS, max_size=8))
async def test_whatever_a_model_writes_every_sentence_that_is_shown_has_a_citation(
    http: httpx2.AsyncClient, llm: LLM, words: list[str]
) -> None:
    llm.replies = [Says("".join(words))]
    body = await told(http, ASK)
    assert body["citations"]
    assert body["confidence"] > 0
    units = UnitStream()
    found = [*units.feed(body["answer"]), *units.end()]
    for unit, following in zip(found, [*found[1:], None], strict=True):
        text = unit.text + (following.text if following and following.text.strip().startswith("[") else "")
        is_label = unit.text.lstrip(" \t>-*").startswith(("#", "| a |", "| ---")) or unit.text.rstrip(" *\n").endswith(
            ":"
        )
        assert re.search(r"\[\d\]", text) or is_label or unit.is_code or not needs_support(unit.text), body["answer"]


NOTE = "relevance_note"
FERRET = ("/chat", {"query": "What does the ferret eat?", "selected_text": "The ferret eats figs. It sleeps a lot."})


@pytest.mark.parametrize(
    ("says", "values", "note"),
    [
        (Says("The ferret eats figs."), {}, "The answer rests on this selection."),
        (Says(f"{CHEESE}."), {}, "The answer rests on this selection."),
        (Says(f"The ferret eats figs. {CHEESE} [1]."), {"unsupported": "show"}, "rests only partly on this selection"),
        (Fails(401), {}, "no language model was available"),
    ],
    ids=["all of it", "quotations instead", "a part", "no model"],
)
async def test_the_note_on_a_selection_says_what_the_check_found(
    pages: Path, says: Reply, values: dict[str, object], note: str
) -> None:
    async with writing(pages, says, **values) as (http, _):
        body = await told(http, FERRET)
    (source,) = body["sources"]
    assert note in source[NOTE]
    assert "cheese" not in str(body["answer"]) or values


async def test_a_selection_that_does_not_answer_is_said_not_to(pages: Path) -> None:
    asked = {"query": "How tall is the Eiffel tower?", "selected_text": "The ferret eats figs. It sleeps a lot."}
    async with writing(pages, Says("The ferret eats figs.")) as (http, llm):
        body = await told(http, ("/chat", asked))
    assert llm.calls == []
    assert body["sources"][0][NOTE] == "This selection does not answer the question."


async def test_a_refusal_about_a_selection_is_replaced_by_its_words(pages: Path) -> None:
    async with writing(pages, Says("The selection does not say what it eats.")) as (http, _):
        body = await told(http, FERRET)
    assert body["answer"].startswith("The ferret eats figs.")
    assert "wrote no answer" in body["notice"]


async def test_a_search_gives_the_text_of_passages_that_were_given_before(pages: Path) -> None:
    results: list[dict[str, Any]] = []

    def reads(request: dict[str, Any]) -> Reply:
        results.extend(
            json.loads(next(one["content"] for one in request["messages"] if one["role"] == "tool"))["results"]
        )
        return Says(f"{PUMP}.")

    search = Says(tool="search_book_content", arguments=json.dumps({"query": "water uphill", "limit": 10}))
    async with writing(pages, search, reads) as (http, llm):
        body = await told(http, ASK)
    assert body["answer"] == f"{PUMP} [1]."
    again = [one for one in results if PUMP in one["chunk_text"]]
    assert again, "it was in the prompt, and is in the result"
    assert PUMP in llm.prompt(0)
    assert all(len(one["chunk_text"]) > 20 and "given before" not in one["chunk_text"] for one in results)


@pytest.fixture
def long_pages(tmp_path: Path) -> Path:
    """A home folder with a dozen long pages on one subject."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(12):
        sentences = " ".join(f"Pump {number} moves water uphill in its way number {way}." for way in range(20))
        (docs / f"{number}.md").write_text(f"# Pump {number}\n\n{sentences}\n")
    home = tmp_path / "home"
    ingest_folder(settings_for(home, embedder="hashing"), docs)
    return home


async def test_a_search_in_a_full_context_window_gives_what_fits_and_never_an_empty_text(long_pages: Path) -> None:
    requests: list[dict[str, Any]] = []

    def reads(request: dict[str, Any]) -> Reply:
        requests.append(request)
        return Says("Pump 1 moves water uphill in its way number 1.")

    search = Says(tool="search_book_content", arguments=json.dumps({"query": "pump moves water uphill", "limit": 10}))
    async with writing(long_pages, search, search, reads, llm_context_tokens=2048) as (http, _):
        await told(http, ASK)
    (request,) = requests
    sent = sum(len(str(message.get("content") or "")) for message in request["messages"])
    assert sent < 2048 * 3, "what does not fit is left out"
    tools = [json.loads(one["content"]) for one in request["messages"] if one["role"] == "tool"]
    assert all(one["chunk_text"].startswith("Pump") for found in tools for one in found["results"])


async def test_a_model_that_hangs_is_asked_once_and_then_there_are_quotations(pages: Path) -> None:
    async with writing(pages, Fails(hang=True), llm_timeout_seconds=1) as (http, llm):
        body = await told(http, ASK)
        session = await told(http, CHAT)
        assert len(llm.calls) == 1, "the budget is spent once; then the circuit breaker is open"
    assert "language model is unavailable" in body["notice"]
    assert session["metadata"]["mode"] == "retrieval_only"


async def test_quick_failures_are_retried_inside_the_budget(pages: Path) -> None:
    async with writing(pages, Fails(503), Fails(429), Says(f"{PUMP}.")) as (http, llm):
        body = await told(http, ASK)
    assert (body["answer"], len(llm.calls)) == (f"{PUMP} [1].", 3)


async def test_the_rewrite_of_a_question_shares_the_budget_of_its_answer(pages: Path) -> None:
    """A model that hangs is asked for both, once each."""
    history = [{"role": "user", "content": "What is a ram?"}, {"role": "assistant", "content": RAM}]
    asked = ("/api/v1/chat", {**V1[1], "message": "how does it move water?", "history": history})
    async with writing(pages, Fails(hang=True), llm_timeout_seconds=1) as (http, llm):
        body = await told(http, asked)
    assert [bool(numbers(call)) for call in llm.calls] == [False, True], "passages are for the answer alone"
    assert "language model is unavailable" in body["notice"]
