"""What every Reader promises."""

import asyncio
import math
from collections.abc import AsyncIterator

import pytest

from citewell.adapters.minilm_reader import MiniLmReader
from citewell.ports import ReadableWindow, Reader

pytestmark = pytest.mark.anyio

QUESTION = "How often are backups made?"
ANSWERS = ReadableWindow("Backups", ("Backups are made every six hours.", "They are stored in another building."))
BESIDE = ReadableWindow("Kitchen", ("The kitchen is on the second floor.", "Lunch is served at noon."))


@pytest.fixture
async def reader() -> AsyncIterator[Reader]:
    made: Reader = MiniLmReader(threads=1)
    yield made
    await made.close()


async def test_every_window_and_unit_gets_a_finite_score(reader: Reader) -> None:
    windows = [ANSWERS, BESIDE, ReadableWindow("", ("One.",)), ReadableWindow("Only a heading", ())]
    scores = await reader.read(QUESTION, windows)
    assert [len(window.units) for window in scores] == [2, 2, 1, 0]
    assert all(math.isfinite(value) for window in scores for value in (window.answers, window.supports, *window.units))


async def test_what_answers_scores_higher_than_what_does_not(reader: Reader) -> None:
    beside, answers = await reader.read(QUESTION, [BESIDE, ANSWERS])
    assert answers.answers > beside.answers
    assert answers.units[0] > max(beside.units)
    assert answers.units[0] > answers.units[1]


async def test_a_supported_claim_scores_higher_than_an_opposite_one(reader: Reader) -> None:
    window = ReadableWindow("", ("The bridge was opened in 1932 and carries eight lanes of traffic.",))
    (supported,) = await reader.read("The bridge was opened in 1932.", [window])
    (refuted,) = await reader.read("The bridge was never opened to traffic.", [window])
    assert supported.supports > refuted.supports


async def test_the_scores_of_a_window_do_not_depend_on_the_others(reader: Reader) -> None:
    (alone,) = await reader.read(QUESTION, [ANSWERS])
    beside_others = (await reader.read(QUESTION, [BESIDE] * 9 + [ANSWERS]))[-1]
    assert alone.answers == pytest.approx(beside_others.answers, abs=0.2)


async def test_no_window_is_no_score(reader: Reader) -> None:
    assert await reader.read(QUESTION, []) == []


async def test_text_that_is_too_long_is_read_as_far_as_possible(reader: Reader) -> None:
    long = ReadableWindow("Heading " * 500, tuple(f"Sentence {number} " + "word " * 200 for number in range(40)))
    (scores,) = await reader.read("Why? " * 5000, [long])
    assert 0 < len(scores.units) < 40


@pytest.mark.parametrize("text", ["", "\ud800 half a pair", "漢字 😀", "\x00\x01"])
async def test_any_text_can_be_read(reader: Reader, text: str) -> None:
    (scores,) = await reader.read(text, [ReadableWindow(text, (text, "A sentence."))])
    assert len(scores.units) == 2


async def test_many_questions_at_once_get_the_scores_they_get_alone(reader: Reader) -> None:
    alone = await reader.read(QUESTION, [ANSWERS])
    together = await asyncio.gather(*(reader.read(QUESTION, [ANSWERS]) for _ in range(8)))
    assert all(scores == alone for scores in together)
