"""Answers that an LLM writes, at every endpoint: cited truly and checked."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import settings_for
from tests.fakes.llm import MODEL, Fails, Reply, Says
from tests.http.conftest import ingest_folder
from tests.http.llm.server import (
    ASK,
    CHAT,
    PUMP,
    QUERY,
    QUESTION,
    RAM,
    STREAMS,
    UNCOVERED,
    V1,
    WELL,
    numbers,
    saying,
    streamed,
    told,
    verdicts,
    writing,
)

pytestmark = pytest.mark.anyio


async def test_the_web_chat_is_told_what_the_model_wrote_with_its_citations_counted(pages: Path) -> None:
    async with writing(pages, WELL) as (http, _):
        body = await told(http, ASK)
    assert body["answer"] == f"{PUMP} [1]. {RAM} [2]."
    assert [one["source_file"] for one in body["citations"]] == ["pumps.md", "rams.md"]
    assert verdicts(body) == [(f"{PUMP}.", "supported"), (f"{RAM}.", "supported")]
    assert body["confidence"] > 0
    assert "notice" not in body


async def test_a_citation_shows_the_words_that_the_sentence_rests_on(pages: Path) -> None:
    in_its_words = saying(lambda at: f"Without any motor, a ram can move water uphill [{at(RAM)}].")
    async with writing(pages, in_its_words, unsupported="show") as (http, _):
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
    assert kept[0]["support"] == body["support"]
    assert (kept[0]["metadata"], kept[0]["confidence"]) == (body["metadata"], body["confidence"])


async def test_a_button_in_a_book_gets_an_answer_and_its_sources(pages: Path) -> None:
    async with writing(pages, WELL) as (http, _):
        body = await told(http, QUERY)
    assert body["answer"] == f"{PUMP} [1]. {RAM} [2]."
    assert [one["filename"] for one in body["sources"]] == ["pumps.md", "rams.md"]


async def test_each_mark_tells_the_words_its_own_part_of_the_sentence_rests_on(pages: Path) -> None:
    """Marks that stand before their words, together, twice in a sentence, or beside what only looks like one."""
    wordy = saying(
        lambda at: (
            f"{PUMP} [{at(PUMP)}], and you fill its casing with water [{at('casing')}] to prime it "
            f"[{at('casing')}].\n\n[{at(RAM)}] {RAM}. `water[1]` is code.\n\n- {PUMP}, {RAM} [{at(PUMP)}][{at(RAM)}]\n"
        )
    )
    async with writing(pages, wordy, unsupported="show") as (http, _):
        body = await told(http, CHAT)
        (entry,) = (await http.get(f"/history/{body['session_id']}")).json()["entries"]
        chunks = [(await http.get(_chunk(source))).json()["chunkText"] for source in body["sources"]]
    prose = re.sub("`.*?`", "", body["answer"])
    assert [len(one["quotes"]) for one in body["sources"]] == [prose.count(f"[{n}]") for n in (1, 2, 3)] == [2, 2, 2]
    for source, chunk in zip(body["sources"], chunks, strict=True):
        assert all(quote in chunk for quote in source["quotes"])
    pump, casing, ram = (one["quotes"] for one in body["sources"])
    assert all(quote.startswith(PUMP) for quote in pump)
    assert all(quote.startswith("Fill the casing") for quote in casing)
    assert ram == [f"{RAM}."] * 2
    assert [one["quotes"] for one in entry["sources"]] == [pump, casing, ram]


async def test_where_a_passage_says_nothing_of_it_no_words_are_named(pages: Path) -> None:
    other = "Napoleon besuchte den Mars"
    lies = saying(lambda at: f"{other} [{at(RAM)}]. {RAM} [{at(RAM)}].")
    async with writing(pages, lies, unsupported="show") as (http, _):
        (source,) = (await told(http, CHAT))["sources"]
    assert source["quotes"] == [None, f"{RAM}."]


def _chunk(source: dict[str, Any]) -> str:
    return f"/api/v1/documents/{source['document_id']}/chunks/{source['chunk_position']}"


@pytest.mark.parametrize("piece", [1, 3, 50])
async def test_every_stream_says_what_the_whole_answer_says(pages: Path, piece: int) -> None:
    wordy = saying(
        lambda at: f"{PUMP} [{at(PUMP)}], and so does something else [99]. `water[1]` is code.\n\n- {RAM}[{at(RAM)}]\n",
        piece=piece,
    )
    async with writing(pages, wordy) as (http, _):
        bodies = [await told(http, endpoint) for endpoint in (ASK, CHAT, V1)]
        said = [await streamed(http, endpoint) for endpoint in STREAMS]
    assert all(one[-1]["done"] for one in said)
    assert ["".join(part.get("content") or part.get("delta") or "" for part in one) for one in said] == [
        body.get("answer") or body["response"] for body in bodies
    ]


async def test_sentences_stream_as_the_model_writes_them(pages: Path) -> None:
    async with writing(pages, WELL) as (http, _):
        deltas = [one["delta"] for one in await streamed(http, STREAMS[1]) if one.get("delta")]
    assert len(deltas) > 2
    assert deltas[0] == PUMP, "and nothing of the second sentence with it"


async def test_a_passage_that_was_not_given_cannot_be_cited(pages: Path) -> None:
    async with writing(pages, saying(lambda at: f"{PUMP} [{at(PUMP)}][77]. So it is [99].")) as (http, _):
        body = await told(http, ASK)
    assert body["answer"] == f"{PUMP} [1]."
    assert len(body["citations"]) == 1


async def test_a_made_up_chunk_id_is_no_citation(pages: Path) -> None:
    async with writing(pages, saying(lambda at: f"{PUMP} [{'a1' * 32}][{at(PUMP)}].")) as (http, _):
        body = await told(http, V1)
    (source,) = body["sources"]
    assert body["response"] == f"{PUMP} [{source['id']}]."


async def test_a_citation_that_is_written_as_a_link_is_one(pages: Path) -> None:
    linked = saying(lambda at: f"{PUMP} [{at(PUMP)}](#{at(PUMP)}). {RAM} [{at(RAM)}](https://evil.example/rams).")
    async with writing(pages, linked) as (http, _):
        body = await told(http, ASK)
    assert body["answer"] == f"{PUMP} [1]. {RAM} [2]."
    assert len(body["citations"]) == 2


async def test_a_citation_moves_to_the_passage_that_says_it(pages: Path) -> None:
    async with writing(pages, saying(lambda at: f"{RAM} [{at('gasket')}].")) as (http, _):
        body = await told(http, ASK)
    assert [one["source_file"] for one in body["citations"]] == ["rams.md"]
    assert verdicts(body) == [(f"{RAM}.", "supported")]


async def test_what_no_passage_says_is_marked_where_it_is_to_be_shown(pages: Path) -> None:
    moon = "The Emperor Napoleon built 47 lighthouses on Mars in 1811"
    lies = saying(lambda at: f"{PUMP} [{at(PUMP)}]. {moon} [{at(PUMP)}].")
    async with writing(pages, lies, unsupported="show") as (http, _):
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
        unsupported="show",
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
    assert "do not support" in body["notice"]


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


@pytest.fixture
def long_home(tmp_path: Path) -> Path:
    """A home folder with one long chapter."""
    docs = tmp_path / "docs"
    docs.mkdir()
    sentences = [f"Water moves uphill by pump number {number} of this long chapter." for number in range(120)]
    (docs / "long.md").write_text("# Long\n\n" + " ".join(sentences))
    home = tmp_path / "home"
    ingest_folder(settings_for(home, embedder="hashing"), docs)
    return home


async def test_a_passage_is_cut_to_what_the_model_can_read_and_never_in_a_sentence(long_home: Path) -> None:
    async with writing(long_home, Says("NOT_COVERED"), llm_context_tokens=1600) as (http, llm):
        await told(http, ASK)
    prompt = llm.prompt()
    assert len(prompt) < 1600 * 3
    for text in numbers(llm.calls[0]):
        assert text.strip().endswith("of this long chapter.")


async def test_a_mark_before_its_words_is_of_the_words_that_follow(pages: Path) -> None:
    listed = saying(lambda at: f"One:\n[{at(PUMP)}] {PUMP}.\n[{at(RAM)}] {RAM}.\n- [{at(RAM)}] {RAM}.")
    async with writing(pages, listed) as (http, _):
        body = await told(http, ASK)
    async with writing(pages, listed, strict=True) as (http, _):
        assert (await told(http, ASK))["answer"] == body["answer"]
    assert body["answer"] == f"One:\n[1] {PUMP}.\n[2] {RAM}.\n- [2] {RAM}."
    assert [one["verdict"] for one in body["support"]] == ["supported"] * 3


@pytest.mark.parametrize("says", ["[{n}]", "[{n}] NOT_COVERED", " \n", "<think>[{n}] it is"])
async def test_an_answer_without_a_word_is_none(pages: Path, says: str) -> None:
    async with writing(pages, saying(lambda at: says.format(n=at(PUMP)))) as (http, _):
        body = await told(http, ASK)
        parts = await streamed(http, STREAMS[0])
    assert "".join(one["content"] for one in parts) == body["answer"]
    assert not body["answer"].startswith("[")
    assert "wrote no answer" in body["notice"]
    assert body["citations"], "quotations instead"


@pytest.fixture
def many_home(tmp_path: Path) -> Path:
    """A home folder with a dozen short pages on one subject."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(12):
        (docs / f"{number}.md").write_text(f"# Pump {number}\n\nPump number {number} moves water uphill.\n")
    home = tmp_path / "home"
    ingest_folder(settings_for(home, embedder="hashing"), docs)
    return home


async def test_an_endpoint_with_five_sources_has_no_sixth_mark(many_home: Path) -> None:
    def cites_all(request: dict[str, Any]) -> Reply:
        found = json.loads(next(one["content"] for one in request["messages"] if one["role"] == "tool"))
        assert len(found["results"]) > 5
        sentences = [one["chunk_text"].rpartition("\n")[2].rstrip(".") for one in found["results"]]
        cited = zip(sentences, found["results"], strict=True)
        return Says(" ".join(f"{sentence} {one['cite_as']}." for sentence, one in cited))

    search = Says(tool="search_book_content", arguments='{"query": "pump moves water uphill", "limit": 10}')
    async with writing(many_home, search, cites_all) as (http, _):
        body = await told(http, QUERY)
    marks = {int(number) for number in re.findall(r"\[(\d+)\]", body["answer"])}
    assert marks <= set(range(1, len(body["sources"]) + 1))
    assert len(body["sources"]) == 5


async def test_what_claims_nothing_gets_no_verdict(pages: Path) -> None:
    announced = saying(lambda at: f"Here is what moves it: [{at(PUMP)}]\n\n{PUMP} [{at(PUMP)}].")
    async with writing(pages, announced) as (http, _):
        assert verdicts(await told(http, ASK)) == [(f"{PUMP}.", "supported")]


async def test_an_answer_that_was_cut_off_says_so(pages: Path) -> None:
    async with writing(pages, WELL, llm_context_tokens=1024) as (http, llm):
        assert "notice" not in await told(http, ASK)
        assert llm.calls[0]["max_tokens"] > 45
    short = saying(lambda at: f"{PUMP} [{at(PUMP)}]. And th", written=10_000)
    async with writing(pages, short) as (http, _):
        assert "cut off" in (await told(http, ASK))["notice"]


async def test_half_a_character_harms_nobody(pages: Path) -> None:
    async with writing(pages, saying(lambda at: f"{PUMP} \ud83d [{at(PUMP)}].")) as (http, _):
        for endpoint in (ASK, CHAT, V1, QUERY):
            await told(http, endpoint)
        for endpoint in STREAMS:
            assert "error" not in (await streamed(http, endpoint))[-1]


async def test_a_question_that_leaves_no_room_for_passages_is_answered_by_quotations(long_home: Path) -> None:
    asked = ("/chat", {"query": "water uphill pump " * 1500})
    async with writing(long_home, Says("I know it by heart."), llm_context_tokens=1024) as (http, llm):
        body = await told(http, asked)
    if llm.calls:
        assert numbers(llm.calls[0]), "it is given something to answer from"
    else:
        assert body["metadata"]["mode"] == "retrieval_only"


async def test_of_a_very_long_question_the_end_is_read_too(pages: Path) -> None:
    asked = ("/chat", {"query": "I read a lot. " * 1500 + QUESTION})
    async with writing(pages, WELL) as (http, llm):
        await told(http, asked)
    if llm.calls:
        assert llm.prompt().endswith(QUESTION)
        assert numbers(llm.calls[0])
