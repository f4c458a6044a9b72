"""What the LLM writer promises, against a server that speaks OpenAI's chat completions, well and badly."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from citewell.adapters.llm_openai_agents import AgentsWriter, LlmEndpoint
from citewell.errors import SettingsError, WriterUnavailable
from citewell.models import Exchange, TokenUsage
from citewell.ports import WritingTask
from citewell.retry import RetryPolicy
from tests.fakes.llm import KEY, LLM, MODEL, Fails, Mind, Raw, Reply, Says

pytestmark = pytest.mark.anyio

QUICK = RetryPolicy(attempt_seconds=0.5, total_seconds=10.0, backoff_seconds=0.01, open_seconds=30.0)
WORK = WritingTask("Be brief.", "Why?", max_tokens=50)


@dataclass(slots=True)
class Clock:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


@dataclass(slots=True)
class Written:
    """What came of one assignment."""

    words: list[str] = field(default_factory=list)
    spent: TokenUsage | None = None
    error: str = ""

    @property
    def text(self) -> str:
        return "".join(self.words)


class Desk:
    """A writer beside its server."""

    def __init__(self, llm: LLM, writer: AgentsWriter) -> None:
        self.llm = llm
        self.writer = writer

    async def write(self, work: WritingTask = WORK) -> Written:
        told = Written()
        try:
            async with aclosing(self.writer.write(work)) as words:
                async for piece in words:
                    if isinstance(piece, TokenUsage):
                        told.spent = piece
                    else:
                        told.words.append(piece)
        except WriterUnavailable as error:
            told.error = str(error)
        return told


@asynccontextmanager
async def desk(
    *replies: Reply | Mind, key: str = KEY, retry_policy: RetryPolicy = QUICK, now: Callable[[], float] | None = None
) -> AsyncIterator[Desk]:
    with LLM(*replies) as llm:
        writer = AgentsWriter(
            LlmEndpoint("The Oracle", llm.url, MODEL, key), retry_policy=retry_policy, now=now or Clock()
        )
        yield Desk(llm, writer)
        await writer.close()


async def test_words_come_as_they_are_written_and_then_what_they_cost() -> None:
    async with desk(Says("It is the bias [1].", piece=5)) as at:
        told = await at.write()
    assert told.words == ["It is", " the ", "bias ", "[1]."]
    assert told.spent == TokenUsage(321, 45)


async def test_a_server_that_counts_nothing_is_not_said_to_have_counted() -> None:
    async with desk(Says("Yes.", usage=False)) as at:
        assert (await at.write()).spent == TokenUsage(None, None)


async def test_the_server_gets_the_rules_what_was_said_and_the_wish() -> None:
    said = [Exchange("What is drift?", "A slow error."), Exchange("Why?", "")]
    async with desk(Says("Yes.")) as at:
        await at.write(WritingTask("Be brief.", "And how?", said, max_tokens=50))
    (call,) = at.llm.calls
    assert [(one["role"], one["content"]) for one in call["messages"]] == [
        ("system", "Be brief."),
        ("user", "What is drift?"),
        ("assistant", "A slow error."),
        ("user", "Why?"),
        ("user", "And how?"),
    ]
    assert (call["model"], call["max_tokens"], call["stream"]) == (MODEL, 50, True)
    assert "tools" not in call


async def test_a_model_may_search_and_reads_what_was_found() -> None:
    asked: list[tuple[str, int, float]] = []

    async def search(query: str, limit: int, score_threshold: float) -> str:
        asked.append((query, limit, score_threshold))
        return json.dumps({"results": [], "total_results": 0, "message": "Found 7 rabbits"})

    wanted = {"query": "rabbits", "limit": 3, "score_threshold": 0.25}
    called = Says(tool="search_book_content", arguments=json.dumps(wanted))
    async with desk(called, Says("Seven.")) as at:
        told = await at.write(WritingTask("Be brief.", "How many?", search=search))
    assert told.text == "Seven."
    assert asked == [("rabbits", 3, 0.25)]
    assert told.spent == TokenUsage(2 * 321, 2 * 45), "both calls count"
    assert "Found 7 rabbits" in at.llm.prompt()
    (tool,) = at.llm.calls[0]["tools"]
    assert tool["function"]["name"] == "search_book_content"
    assert set(tool["function"]["parameters"]["properties"]) == {"query", "limit", "score_threshold"}


@pytest.mark.parametrize(
    "arguments",
    ['{"query": "x", "limit": 11}', '{"query": "x", "limit": 0}', '{"query": ""}', '{"query": ', "[]", '{"limit": 2}'],
)
async def test_a_search_that_makes_no_sense_is_explained_to_the_model(arguments: str) -> None:
    async def search(query: str, limit: int, score_threshold: float) -> str:
        raise AssertionError("nobody should search for this")

    async with desk(Says(tool="search_book_content", arguments=arguments), Says("So be it.")) as at:
        told = await at.write(WritingTask("Be brief.", "How many?", search=search))
    assert told.text == "So be it."
    assert len(at.llm.calls) == 2


async def test_a_model_that_calls_what_is_not_there_is_told_so() -> None:
    async with desk(Says(tool="delete_everything", arguments="{}"), Says("Oh.")) as at:
        told = await at.write(WritingTask("Be brief.", "How many?", search=_finds_nothing))
    assert told.text == "Oh."


async def test_a_model_that_only_searches_is_stopped() -> None:
    async with desk(Says(tool="search_book_content", arguments='{"query": "more"}')) as at:
        told = await at.write(WritingTask("Be brief.", "How many?", search=_finds_nothing))
    assert (told.text, told.error) == ("", ""), "the server works; there is just no answer"
    assert len(at.llm.calls) <= 6


async def test_a_server_that_takes_no_tools_is_asked_without_from_then_on() -> None:
    refuses = Fails(400, "loopback-1 does not support tools")

    def mind(request: dict[str, object]) -> Reply:
        return refuses if "tools" in request else Says("Without.")

    work = WritingTask("Be brief.", "How many?", search=_finds_nothing)
    async with desk(mind) as at:
        assert (await at.write(work)).text == "Without."
        assert (await at.write(work)).text == "Without."
    assert len(at.llm.calls) == 3, "once with, then never again"


async def _finds_nothing(query: str, limit: int, score_threshold: float) -> str:
    return "{}"


PASSING: list[Reply] = [
    Fails(429, "slow down", headers={"Retry-After": "0"}),
    Fails(500),
    Fails(503, "overloaded"),
    Fails(hang=True),
    Says(cut=True),
    Says(error="overloaded"),
    Raw(b"data: {nonsense\n\n"),
]


@pytest.mark.parametrize("fault", PASSING, ids=str)
async def test_what_may_pass_is_tried_three_times(fault: Reply) -> None:
    async with desk(fault, fault, Says("At last.")) as at:
        told = await at.write()
    assert (told.text, told.error) == ("At last.", "")
    assert len(at.llm.calls) == 3


@pytest.mark.parametrize("fault", PASSING, ids=str)
async def test_after_three_tries_nobody_asks_for_a_while(fault: Reply) -> None:
    clock = Clock()
    async with desk(fault, fault, fault, Says("Back again."), now=clock) as at:
        assert (await at.write()).error
        tried = len(at.llm.calls)
        again = await at.write()
        assert "not retried yet" in again.error
        assert len(at.llm.calls) == tried == 3, "a dead provider costs nothing now"
        clock.seconds = QUICK.open_seconds + 1
        assert (await at.write()).text == "Back again."
        assert (await at.write()).text == "Back again.", "and the pause is over"


async def test_whether_it_is_over_is_found_out_by_one_try() -> None:
    clock = Clock()
    async with desk(Fails(500), now=clock) as at:
        await at.write()
        clock.seconds = QUICK.open_seconds + 1
        await at.write()
    assert len(at.llm.calls) == 4


async def test_a_server_that_asks_for_time_gets_it() -> None:
    moments: list[float] = []

    def mind(request: dict[str, object]) -> Reply:
        moments.append(time.monotonic())
        return Fails(429, headers={"Retry-After": "1"}) if len(moments) == 1 else Says("Now.")

    async with desk(mind) as at:
        assert (await at.write()).text == "Now."
    assert [late - early >= 1 for early, late in pairwise(moments)] == [True]


async def test_a_server_that_asks_for_too_much_time_is_given_up() -> None:
    async with desk(Fails(429, headers={"Retry-After": "3600"})) as at:
        assert "429" in (await at.write()).error
    assert len(at.llm.calls) == 1


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Fails(400, "maximum context length is 512 tokens"), "maximum context length"),
        (Fails(404, "model not found"), "model not found"),
    ],
    ids=str,
)
async def test_what_cannot_pass_is_tried_once_and_told(fault: Reply, says: str) -> None:
    async with desk(fault) as at:
        assert says in (await at.write()).error
    assert len(at.llm.calls) == 1


SILENT: list[Reply] = [Says(""), Says(refusal="I would rather not."), Says(finish="content_filter")]


@pytest.mark.parametrize("fault", [*SILENT, Fails(400)], ids=str)
async def test_what_one_question_is_met_with_is_not_tried_again_and_shuts_nobody_out(fault: Reply) -> None:
    async with desk(fault, Says("Gladly.")) as at:
        told = await at.write()
        assert told.text == ""
        assert bool(told.error) == (fault not in SILENT), "a server that says nothing has not failed"
        assert len(at.llm.calls) == 1
        assert (await at.write()).text == "Gladly."


async def test_a_server_that_answers_anything_at_all_is_not_dead_any_more() -> None:
    clock = Clock()
    async with desk(Fails(500), Fails(500), Fails(500), Fails(400, "too long"), Says("Back."), now=clock) as at:
        await at.write()
        clock.seconds = QUICK.open_seconds + 1
        assert "too long" in (await at.write()).error
        assert (await at.write()).text == "Back."


async def test_whoever_still_tries_learns_what_others_found_out() -> None:
    slow = RetryPolicy(attempt_seconds=5.0, total_seconds=30.0, backoff_seconds=0.2, open_seconds=30.0)
    async with desk(Fails(500), retry_policy=slow) as at:
        told = await asyncio.gather(*(at.write() for _ in range(10)))
    assert all(one.error for one in told)
    assert any("not retried yet" in one.error for one in told)
    assert len(at.llm.calls) < 3 * len(told)


async def test_a_model_that_thinks_and_searches_is_not_silent() -> None:
    """Each of its turns is short enough; all of them together are not."""

    async def search(query: str, limit: int, score_threshold: float) -> str:
        await asyncio.sleep(0.3)
        return "{}"

    called = Says(tool="search_book_content", arguments='{"query": "x"}', first_seconds=0.3)
    async with desk(called, called, Says("At last.", first_seconds=0.3)) as at:
        told = await at.write(WritingTask("Be brief.", "How many?", search=search))
    assert (told.text, len(at.llm.calls)) == ("At last.", 3)


async def test_a_server_that_hangs_is_asked_once_in_the_time_for_the_first_words() -> None:
    with LLM(Fails(hang=True)) as llm:
        writer = AgentsWriter(LlmEndpoint("The Oracle", llm.url, MODEL, KEY, timeout_seconds=0.5))
        told = await Desk(llm, writer).write()
        await writer.close()
    assert "did not answer in time" in told.error
    assert len(llm.calls) == 1


async def test_first_words_that_come_after_the_deadline_are_not_waited_for() -> None:
    """However alive the server is: each search is a sign of life, and no words."""
    search = Says(tool="search_book_content", arguments='{"query": "x"}', first_seconds=0.2)
    policy = RetryPolicy(attempt_seconds=5.0, total_seconds=5.0, backoff_seconds=0.01)
    async with desk(search, search, Says("Too late.", first_seconds=0.2), retry_policy=policy) as at:
        deadline = asyncio.get_running_loop().time() + 0.3
        told = await at.write(WritingTask("Be brief.", "Why?", search=_finds_nothing, deadline=deadline))
    assert (told.text, bool(told.error)) == ("", True)
    assert len(at.llm.calls) == 2


async def test_no_retry_starts_after_the_deadline() -> None:
    slow = RetryPolicy(attempt_seconds=5.0, total_seconds=60.0, backoff_seconds=20.0)
    async with desk(Fails(500), retry_policy=slow) as at:
        deadline = asyncio.get_running_loop().time() + 10
        assert "500" in (await at.write(WritingTask("Be brief.", "Why?", deadline=deadline))).error
    assert len(at.llm.calls) == 1


async def test_a_slow_first_byte_is_waited_for() -> None:
    async with desk(Says("Late, but there.", first_seconds=0.3)) as at:
        assert (await at.write()).text == "Late, but there."
    assert len(at.llm.calls) == 1


async def test_what_is_said_before_a_search_stands_apart_from_what_is_said_after() -> None:
    called = Says("Let me look.", tool="search_book_content", arguments='{"query": "x"}')
    async with desk(called, Says("Seven.")) as at:
        told = await at.write(WritingTask("Be brief.", "How many?", search=_finds_nothing))
    assert told.text == "Let me look.\n\nSeven."


async def test_a_character_in_two_pieces_arrives_whole_and_half_of_one_harmlessly() -> None:
    robot = "\N{ROBOT FACE}"
    halves = robot.encode("utf-16-be", "surrogatepass")
    high, low = (halves[n : n + 2].decode("utf-16-be", "surrogatepass") for n in (0, 2))
    async with desk(Says(f"a{high}{low}b{high}c", piece=1)) as at:
        assert (await at.write()).text == f"a{robot}b\ufffdc"


async def test_an_answer_that_was_cut_off_says_so() -> None:
    async with desk(Says("Half of")) as at:
        assert (await at.write(WritingTask("Be brief.", "Why?", max_tokens=45))).spent == TokenUsage(
            321, 45, truncated=True
        )
        assert (await at.write(WritingTask("Be brief.", "Why?", max_tokens=46))).spent == TokenUsage(
            321, 45, truncated=False
        )


async def test_one_question_that_is_refused_closes_the_door_for_no_other() -> None:
    async with desk(Fails(400, "your prompt offends me"), Says("Gladly.")) as at:
        assert "offends" in (await at.write()).error
        assert (await at.write()).text == "Gladly."


async def test_a_key_that_is_refused_is_named_and_never_shown() -> None:
    wrong = "sk-another-secret"
    async with desk(Fails(401, f"bad key {wrong}"), key=wrong) as at:
        told = await at.write()
        again = await at.write()
    assert "CITEWELL_LLM_API_KEY" in told.error
    assert wrong not in told.error + again.error


async def test_a_message_that_repeats_the_key_is_shown_without() -> None:
    async with desk(Fails(400, f"I saw {KEY}!")) as at:
        assert (await at.write()).error.endswith("I saw …!")


def test_a_key_that_cannot_be_sent_is_refused_at_once() -> None:
    with pytest.raises(SettingsError, match="CITEWELL_LLM_API_KEY"):
        AgentsWriter(LlmEndpoint("The Oracle", "http://127.0.0.1:1/v1", MODEL, "schlüssel"))


@pytest.mark.parametrize(
    "broken", [Says("Half of it", cut=True), Says("Half of it", hang=True), Says("Half of it", error="no")], ids=str
)
async def test_what_was_said_before_it_broke_off_is_not_said_again(broken: Reply) -> None:
    async with desk(broken, Says("Whole.")) as at:
        told = await at.write()
        assert (told.text, bool(told.error)) == ("Half of it", True)
        assert len(at.llm.calls) == 1
        assert (await at.write()).text == "Whole.", "one accident closes no door"


async def test_who_stops_listening_leaves_no_connection_behind() -> None:
    async with desk(Says("word " * 2000)) as at:
        words = at.writer.write(WORK)
        assert await anext(words)
        await words.aclose()
        for _ in range(200):
            if not at.llm.open:
                break
            await asyncio.sleep(0.01)
        assert at.llm.open == 0


async def test_whether_it_can_be_reached_is_told_without_the_vendor_s_words() -> None:
    async with desk(Fails(500, "quota of org-secret exhausted")) as at:
        await at.writer.reach()
        await at.write()
        with pytest.raises(WriterUnavailable, match=r"500$"):
            await at.writer.reach()


async def test_a_server_that_is_not_there_is_said_to_be() -> None:
    with LLM() as llm:
        url = llm.url
    writer = AgentsWriter(LlmEndpoint("The Oracle", url, MODEL, KEY), retry_policy=QUICK)
    with pytest.raises(WriterUnavailable, match="cannot be reached"):
        await writer.reach()
    await writer.close()


async def test_text_that_is_no_text_can_be_sent() -> None:
    async with desk(Says("Fine.")) as at:
        told = await at.write(WritingTask("Be brief.\ud800", "Why\udfff?", [Exchange("\ud83d", "x")]))
    assert told.text == "Fine."
