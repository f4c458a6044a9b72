"""What every Writer promises, with the defaults of each vendor, against an LLM server on loopback."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import pytest

from citewell.adapters.llm_openai_agents import AgentsWriter, LlmEndpoint
from citewell.adapters.vendors import VENDORS, OpenAiCompatible
from citewell.errors import WriterUnavailable
from citewell.models import Exchange, TokenUsage
from citewell.ports import Writer, WritingTask
from citewell.retry import RetryPolicy
from tests.fakes.llm import KEY, LLM, MODEL, Fails, Mind, Reply, Says

pytestmark = pytest.mark.anyio

TASK = WritingTask("Be brief.", "Why do gyroscopes drift?", max_tokens=50)
POLICY = RetryPolicy(attempt_seconds=0.5, total_seconds=10.0, backoff_seconds=0.01)

MakeWriter = Callable[[str], Writer]
"""A writer for the server at a URL."""


@pytest.fixture(params=["openai", "gemini", "ollama", "custom"])
def make_writer(request: pytest.FixtureRequest) -> MakeWriter:
    vendor: OpenAiCompatible = request.param
    defaults = VENDORS[vendor]

    def make(url: str) -> Writer:
        endpoint = LlmEndpoint(
            name=defaults.name or "the LLM server",
            base_url=url,
            model=MODEL,
            key=KEY,
            context_tokens=defaults.context_tokens,
            counts_reasoning=defaults.counts_reasoning,
        )
        return AgentsWriter(endpoint, retry_policy=POLICY)

    return make


@asynccontextmanager
async def serving(make_writer: MakeWriter, *replies: Reply | Mind) -> AsyncIterator[tuple[Writer, LLM]]:
    with LLM(*replies) as llm:
        writer = make_writer(llm.url)
        try:
            yield writer, llm
        finally:
            await writer.close()


async def collect(
    writer: Writer, task: WritingTask = TASK, *, into: list[str | TokenUsage] | None = None
) -> list[str | TokenUsage]:
    """All that is written; `into` has it also if an error ends it."""
    written = [] if into is None else into
    async with aclosing(writer.write(task)) as pieces:
        async for piece in pieces:
            written.append(piece)
    return written


async def test_a_writer_names_its_model_and_how_much_it_can_read(make_writer: MakeWriter) -> None:
    async with serving(make_writer) as (writer, _):
        assert writer.model == MODEL
        assert writer.context_tokens >= 1024


async def test_the_words_come_first_and_what_they_cost_last(make_writer: MakeWriter) -> None:
    async with serving(make_writer, Says("The bias drifts [1].", piece=5)) as (writer, _):
        *words, usage = await collect(writer)
    assert "".join(map(str, words)) == "The bias drifts [1]."
    assert len(words) > 1, "as they come, not all at once"
    assert all(isinstance(piece, str) and piece for piece in words)
    assert usage == TokenUsage(321, 45)


async def test_the_model_reads_the_rules_the_conversation_and_the_question(make_writer: MakeWriter) -> None:
    history = [Exchange("What is drift?", "A slow error.")]
    async with serving(make_writer, Says("Yes.")) as (writer, llm):
        await collect(writer, WritingTask("Be brief.", "And why?", history))
    assert llm.prompt() == "Be brief.\nWhat is drift?\nA slow error.\nAnd why?"


async def test_a_writer_may_search_while_it_writes(make_writer: MakeWriter) -> None:
    queries: list[str] = []

    async def search(query: str, limit: int, score_threshold: float) -> str:
        queries.append(query)
        return '{"results": [], "message": "seven rabbits"}'

    call = Says(tool="search_book_content", arguments='{"query": "rabbits"}')
    async with serving(make_writer, call, Says("Seven.")) as (writer, llm):
        *words, _ = await collect(writer, WritingTask("Be brief.", "How many?", search=search))
        assert "seven rabbits" in llm.prompt()
    assert (words, queries) == (["Seve", "n."], ["rabbits"])


async def test_two_tasks_at_once_get_each_their_own_words(make_writer: MakeWriter) -> None:
    def repeat_question(request: dict[str, list[dict[str, str]]]) -> Reply:
        return Says(request["messages"][-1]["content"])

    async with serving(make_writer, repeat_question) as (writer, _):
        tasks = [WritingTask("Be brief.", f"Question {number}?") for number in range(5)]
        answers = await asyncio.gather(*(collect(writer, task) for task in tasks))
    texts = ["".join(piece for piece in answer if isinstance(piece, str)) for answer in answers]
    assert texts == [task.prompt for task in tasks]


@pytest.mark.parametrize("failure", [Fails(500), Fails(503), Fails(429), Fails(hang=True), Says(cut=True)], ids=str)
async def test_a_transient_failure_is_retried_and_then_raised(make_writer: MakeWriter, failure: Reply) -> None:
    async with serving(make_writer, failure, Says("At last.")) as (writer, llm):
        assert "".join(map(str, (await collect(writer))[:-1])) == "At last."
        assert len(llm.calls) == 2
    async with serving(make_writer, failure) as (writer, llm):
        with pytest.raises(WriterUnavailable) as raised:
            await collect(writer)
        assert len(llm.calls) == POLICY.max_attempts
        assert KEY not in str(raised.value)


async def test_a_server_that_failed_costs_the_next_question_no_wait(make_writer: MakeWriter) -> None:
    async with serving(make_writer, Fails(500)) as (writer, llm):
        for _ in range(2):
            with pytest.raises(WriterUnavailable):
                await collect(writer)
        assert len(llm.calls) == POLICY.max_attempts, "the second question made no request"


async def test_a_server_that_is_down_is_unavailable(make_writer: MakeWriter) -> None:
    with LLM() as llm:
        url = llm.url
    writer = make_writer(url)
    with pytest.raises(WriterUnavailable):
        await collect(writer)
    with pytest.raises(WriterUnavailable):
        await writer.reach()
    await writer.close()


@pytest.mark.parametrize(
    "broken", [Says("Half of", cut=True), Says("Half of", hang=True), Says("Half of", error="no")], ids=str
)
async def test_an_answer_that_breaks_off_is_raised_after_its_first_words(
    make_writer: MakeWriter, broken: Reply
) -> None:
    async with serving(make_writer, broken, Says("Whole.")) as (writer, llm):
        words: list[str | TokenUsage] = []
        with pytest.raises(WriterUnavailable):
            await collect(writer, into=words)
        assert "".join(map(str, words)) == "Half of"
        assert len(llm.calls) == 1, "words that a reader has seen are not written again"


async def test_a_reader_who_leaves_closes_the_connection(make_writer: MakeWriter) -> None:
    async with serving(make_writer, Says("word " * 2000)) as (writer, llm):
        pieces = writer.write(TASK)
        assert await anext(pieces)
        await pieces.aclose()
        for _ in range(6000):
            if not llm.open:
                break
            await asyncio.sleep(0.01)
        assert llm.open == 0


async def test_a_server_that_answers_can_be_reached(make_writer: MakeWriter) -> None:
    async with serving(make_writer) as (writer, llm):
        await writer.reach()
        assert llm.calls == [], "nothing is written for that"
