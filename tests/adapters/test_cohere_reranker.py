"""Cohere puts passages in order; when it fails, the question is answered all the same."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import httpx2
import pytest

from citewell import wiring
from citewell.adapters.cohere import CohereReranker
from citewell.answer import flow
from citewell.answer.engines import AnswerEngines
from citewell.answer.reply.markers import NumberedMarkers
from citewell.answer.retrieval.search import CANDIDATES
from citewell.models import Answer, Passage
from citewell.retry import RetryPolicy
from tests.conftest import BOOK, PROJECT, Citewell, made_once, serving, settings_for, take_in
from tests.fakes.cohere import KEY, WELL, Reply, Vendor, answer, problem

QUESTION = "Why do gyroscopes drift?"
# A busy machine may take its time over an answer that comes; one that never comes is not waited for.
HURRIED = RetryPolicy(attempt_seconds=10.0, total_seconds=30.0, backoff_seconds=0.001)
BRIEF = replace(HURRIED, attempt_seconds=0.5)
ENGINES = {"embedder": "hashing"}  # what is measured here is order, and this one is quick


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder that holds the example book; nobody changes it."""
    return made_once(tmp_path_factory, "hashed-book", lambda home: take_in(home, BOOK, embedder=ENGINES["embedder"]))


def nothing() -> None:
    pass


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def answered(engines: AnswerEngines, *, top_k: int = 5) -> Answer:
    pieces = flow.answer(QUESTION, project=PROJECT, engines=engines, top_k=top_k)
    return (await flow.collect(pieces, NumberedMarkers().render))[1]


@asynccontextmanager
async def with_vendor(
    home: Path, url: str, *, clock: Clock, retry_policy: RetryPolicy = HURRIED
) -> AsyncIterator[AnswerEngines]:
    reranker = CohereReranker(KEY, base_url=url, retry_policy=retry_policy, now=clock)
    async with wiring.open_for_answers(settings_for(home, **ENGINES)) as reading:
        try:
            yield replace(reading.engines, reranker=reranker)
        finally:
            await reranker.close()


def without_vendor(home: Path, *, top_k: int = 5) -> Answer:
    async def run() -> Answer:
        async with wiring.open_for_answers(settings_for(home, **ENGINES)) as reading:
            return await answered(reading.engines, top_k=top_k)

    return asyncio.run(run())


def answers(
    home: Path, url: str, *between: Callable[[], None], clock: Clock | None = None, retry_policy: RetryPolicy = HURRIED
) -> list[Answer]:
    """The question's answer, and its answer once more after each of the things that happen in between."""

    async def run() -> list[Answer]:
        async with with_vendor(home, url, clock=clock or Clock(), retry_policy=retry_policy) as engines:
            given = []
            for happens in (lambda: None, *between):
                happens()
                given.append(await answered(engines))
            return given

    return asyncio.run(run())


def ids(found: tuple[Passage, ...]) -> list[str]:
    return [passage.chunk.id for passage in found]


@pytest.fixture(scope="module")
def candidates(home: Path) -> tuple[Passage, ...]:
    """What the index finds, in its own order."""

    async def run() -> tuple[Passage, ...]:
        async with wiring.open_for_answers(settings_for(home, **ENGINES)) as reading:
            vector = await reading.engines.embedder.embed_query(QUESTION)
            return await reading.engines.index.search(PROJECT.id, vector=vector, words=QUESTION, limit=CANDIDATES)

    return asyncio.run(run())


@pytest.fixture(scope="module")
def local(home: Path) -> Answer:
    """The answer without a vendor."""
    given = without_vendor(home)
    assert given.mode == "full"
    return given


@pytest.fixture(scope="module")
def theirs(candidates: tuple[Passage, ...]) -> list[str]:
    """The first five as the vendor orders them: it likes long texts."""
    return ids(tuple(sorted(candidates, key=lambda one: -len(f"{one.chunk.label}\n{one.chunk.text}"))))[:5]


def test_passages_come_in_the_order_of_the_vendor_s_scores(home: Path, local: Answer, theirs: list[str]) -> None:
    with Vendor() as cohere:
        (given,) = answers(home, cohere.url)
    assert ids(given.retrieved) == theirs != ids(local.retrieved)
    assert len(cohere.calls) == 1


def test_the_vendor_is_sent_the_question_and_every_candidate_under_its_label(
    home: Path, candidates: tuple[Passage, ...]
) -> None:
    with Vendor() as cohere:
        answers(home, cohere.url)
    (call,) = cohere.calls
    documents = [f"{one.chunk.label}\n{one.chunk.text}" for one in candidates]
    assert call == {"model": "rerank-v3.5", "query": QUESTION, "documents": documents}


def test_the_vendor_is_not_told_what_machine_this_is(home: Path) -> None:
    with Vendor() as cohere:
        answers(home, cohere.url)
    (headers,) = cohere.headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert not headers.keys() & {"x-fern-platform", "x-fern-runtime"}


def test_results_are_matched_by_index_in_whatever_order_they_come(home: Path, candidates: tuple[Passage, ...]) -> None:
    rows = [{"index": n, "relevance_score": n / CANDIDATES} for n in range(CANDIDATES)]
    with Vendor(answer(rows), answer(rows[::-1]), answer(rows[7:] + rows[:7])) as cohere:
        given = answers(home, cohere.url, nothing, nothing)
    assert [ids(one.retrieved) for one in given] == [ids(candidates[::-1])[:5]] * 3


def test_a_vendor_changes_the_order_and_not_what_a_score_means(home: Path, candidates: tuple[Passage, ...]) -> None:
    known = {one.chunk.id: one.score for one in candidates}
    with Vendor() as cohere:
        (given,) = answers(home, cohere.url)
    assert [one.score for one in given.retrieved] == [known[one.chunk.id] for one in given.retrieved]


AN_HOUR_AGO = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)
PASSING = {
    "429": problem(429),
    "429 with no time": problem(429, Retry_After="0"),
    "429 with an odd time": problem(429, Retry_After="soon"),
    "429 with a date": problem(429, Retry_After=AN_HOUR_AGO),
    "500": problem(500),
    "503": problem(503),
    "a proxy's page": Reply(502, b"<html>bad gateway</html>"),
    "hung": Reply(hang=True),
    "cut off": Reply(body=b'{"results": [', cut=True),
}


@pytest.mark.parametrize("reply", PASSING.values(), ids=PASSING.keys())
def test_what_passes_is_tried_again(home: Path, theirs: list[str], reply: Reply) -> None:
    with Vendor(reply, WELL) as cohere:
        (given,) = answers(home, cohere.url, retry_policy=BRIEF if reply.hang else HURRIED)
    assert ids(given.retrieved) == theirs
    assert len(cohere.calls) == 2


@pytest.mark.parametrize("reply", PASSING.values(), ids=PASSING.keys())
def test_after_three_tries_the_answer_goes_on_in_the_local_order(
    home: Path, local: Answer, reply: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    with Vendor(reply) as cohere:
        (given,) = answers(home, cohere.url, retry_policy=BRIEF if reply.hang else HURRIED)
    assert given == local
    assert len(cohere.calls) == 3
    assert [one.levelname for one in caplog.records if one.levelno >= logging.WARNING] == ["WARNING"]


def test_the_sdk_adds_no_tries_of_its_own(home: Path, local: Answer) -> None:
    """It would, a second after a failure: here there is time for that."""
    with Vendor(problem(500)) as cohere:
        assert answers(home, cohere.url) == [local]
    assert len(cohere.calls) == 3


def test_a_vendor_that_asks_for_time_gets_it(home: Path, theirs: list[str]) -> None:
    with Vendor(shut_seconds=1) as cohere:
        (given,) = answers(home, cohere.url)
    assert ids(given.retrieved) == theirs
    assert len(cohere.calls) == 2


def test_a_vendor_that_asks_for_more_time_than_there_is_is_not_waited_for(home: Path, local: Answer) -> None:
    with Vendor(problem(429, Retry_After="3600")) as cohere:
        (given,) = answers(home, cohere.url)
    assert given == local
    assert len(cohere.calls) == 1


def test_no_question_waits_longer_than_all_tries_may_take(home: Path, local: Answer) -> None:
    with Vendor(Reply(hang=True)) as cohere:
        (given,) = answers(home, cohere.url, retry_policy=RetryPolicy(attempt_seconds=60, total_seconds=1.0))
    assert given == local
    assert len(cohere.calls) == 1


ROWS = [{"index": n, "relevance_score": 0.5} for n in range(CANDIDATES)]
SENSELESS = {
    "no JSON": Reply(body=b"<html>hello</html>"),
    "no text": Reply(body=b"\xff\xfe\x00garbage"),
    "nothing": Reply(body=b""),
    "a list": Reply(body=b"[]"),
    "null": Reply(body=b"null"),
    "deep": Reply(body=b"[" * 100_000),
    "no results": Reply(body=b'{"id": "x"}'),
    "results of another kind": answer("twenty"),
    "rows of another kind": answer([1, 2, 3]),
    "one missing": answer(ROWS[:-1]),
    "one twice": answer([*ROWS[:-1], ROWS[0]]),
    "one too many": answer([*ROWS, ROWS[0]]),
    "out of range": answer([*ROWS[:-1], {"index": 20, "relevance_score": 0.5}]),
    "negative": answer([*ROWS[:-1], {"index": -1, "relevance_score": 0.5}]),
    "an index in words": answer([*ROWS[:-1], {"index": "nineteen", "relevance_score": 0.5}]),
    "no score": answer([*ROWS[:-1], {"index": 19}]),
    "a score that is no number": answer([*ROWS[:-1], {"index": 19, "relevance_score": float("nan")}]),
    "an endless score": answer([*ROWS[:-1], {"index": 19, "relevance_score": float("inf")}]),
    "a score in words": answer([*ROWS[:-1], {"index": 19, "relevance_score": "high"}]),
    "a redirect": Reply(307, b"{}", {"location": "/elsewhere"}),
}


@pytest.mark.parametrize("reply", SENSELESS.values(), ids=SENSELESS.keys())
def test_an_answer_that_makes_no_sense_is_no_answer(
    home: Path, local: Answer, reply: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    with Vendor(reply) as cohere:
        (given,) = answers(home, cohere.url)
    assert given == local
    assert len(cohere.calls) == 1
    assert [one.levelname for one in caplog.records if one.levelno >= logging.WARNING] == ["WARNING"]


def test_a_vendor_that_nobody_reaches_costs_its_opinion_only(home: Path, local: Answer) -> None:
    with Vendor() as cohere:
        nothing()
    assert answers(home, cohere.url) == [local]


def test_what_the_vendor_says_of_a_wrong_request_is_in_the_log(
    home: Path, local: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    with Vendor(problem(404, f"model 'rerank-v0' not found\nfor {KEY}")) as cohere:
        (given,) = answers(home, cohere.url)
    assert given == local
    assert len(cohere.calls) == 1
    (warning,) = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    assert warning.endswith("Cohere answered with status 404: model 'rerank-v0' not found for …")


@pytest.mark.parametrize("status", [401, 403, 498])
def test_a_refused_key_is_an_error_in_the_log_that_names_the_setting(
    home: Path, local: Answer, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with Vendor(problem(status, f"invalid api token: {KEY}")) as cohere:
        (given,) = answers(home, cohere.url)
    assert given == local
    assert len(cohere.calls) == 1
    (line,) = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert line.levelname == "ERROR"
    assert "COHERE_API_KEY" in line.getMessage()
    assert KEY not in caplog.text


def test_after_a_failure_the_vendor_is_left_alone_for_a_while(home: Path, local: Answer, theirs: list[str]) -> None:
    clock = Clock()

    def wait(seconds: float) -> Callable[[], None]:
        return lambda: setattr(clock, "now", clock.now + seconds)

    with Vendor(problem(500), problem(500), problem(500), WELL) as cohere:
        given = answers(home, cohere.url, nothing, wait(29), wait(2), nothing, clock=clock)
    assert given[:3] == [local] * 3
    assert [ids(one.retrieved) for one in given[3:]] == [theirs] * 2
    assert len(cohere.calls) == 3 + 0 + 0 + 1 + 1


def test_a_vendor_that_stays_dead_is_looked_at_once_after_each_pause(home: Path, local: Answer) -> None:
    clock = Clock()

    def wait() -> None:
        clock.now += 31

    with Vendor(problem(500)) as cohere:
        assert answers(home, cohere.url, wait, nothing, wait, nothing, clock=clock) == [local] * 5
    assert len(cohere.calls) == 3 + 1 + 0 + 1 + 0


def test_while_one_question_looks_the_others_do_not_wait(home: Path, local: Answer) -> None:
    clock = Clock()

    async def run(url: str) -> list[Answer]:
        async with with_vendor(home, url, clock=clock, retry_policy=BRIEF) as engines:
            first = await answered(engines)
            clock.now += 31
            rest = await asyncio.gather(*[answered(engines) for _ in range(5)])
            return [first, *rest]

    with Vendor(problem(500), problem(500), problem(500), Reply(hang=True)) as cohere:
        assert asyncio.run(run(cohere.url)) == [local] * 6
    assert len(cohere.calls) == 3 + 1


def test_the_command_line_asks_cohere(
    home: Path, citewell: Citewell, candidates: tuple[Passage, ...], theirs: list[str]
) -> None:
    with Vendor() as cohere:
        environment = {
            "CITEWELL_EMBEDDER": "hashing",
            "CITEWELL_RERANKER": "cohere",
            "CITEWELL_COHERE_BASE_URL": cohere.url,
            "CITEWELL_COHERE_RERANK_MODEL": "rerank-x",
            "COHERE_API_KEY": KEY,
        }
        done = citewell("search", QUESTION, "--top-k", "1", home=home, **environment)
    assert done.returncode == 0, done.stderr
    best = next(one for one in candidates if one.chunk.id == theirs[0])
    assert done.stdout.startswith(f"1. {best.chunk.source}")
    assert cohere.calls[0]["model"] == "rerank-x"


def test_the_key_is_in_no_log_and_no_answer(home: Path) -> None:
    with Vendor(WELL, problem(401, f"invalid api token: {KEY}"), problem(500, KEY)) as cohere:
        server = serving(
            home,
            CITEWELL_LOG_LEVEL="debug",
            CITEWELL_EMBEDDER="hashing",
            CITEWELL_RERANKER="cohere",
            CITEWELL_COHERE_BASE_URL=cohere.url,
            COHERE_API_KEY=KEY,
        )
        with server as address:
            replies = [httpx2.post(f"{address}/api/ask", json={"question": QUESTION}) for _ in range(3)]
    assert [one.status_code for one in replies] == [200] * 3
    assert len(cohere.calls) == 2
    assert "error   answering in the local order: Cohere refuses the key in COHERE_API_KEY" in server.log
    assert "warning answering in the local order: Cohere failed a moment ago" in server.log
    assert "COHERE_API_KEY is set" not in server.log
    assert KEY not in server.log + "".join(one.text for one in replies)
