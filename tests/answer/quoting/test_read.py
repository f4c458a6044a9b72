"""A model reads the most promising windows; what it thinks decides what is quoted and which passage comes first."""

from dataclasses import replace

import pytest

from citewell.answer.quoting import Reading, quote, read_passages
from citewell.answer.quoting.read import MAX_WINDOWS
from citewell.answer.retrieval import Retrieval
from citewell.models import Passage
from citewell.text import sentence_stems
from tests.answer.quoting.test_select import TEXT, Question, retrieval_of
from tests.conftest import chunk_of
from tests.fakes.reader import BrokenReader, MarkedWords

pytestmark = pytest.mark.anyio


def passage_of(text: str, score: float = 0.8) -> Passage:
    stems = tuple(map(tuple, sentence_stems(text)))
    return Passage(chunk_of(text), score, (), mean_score=score, sentence_stems=stems)


def with_further(retrieval: Retrieval, *texts: str) -> Retrieval:
    return replace(retrieval, further=tuple(map(passage_of, texts)))


def texts_of(reading: Reading) -> list[str]:
    return [passage.chunk.text for passage in reading.retrieval.passages]


async def test_the_sentence_that_the_reader_likes_is_quoted() -> None:
    text = "Gyroscopes drift over time. Gyroscopes drift in the cold. An offset adds up, so the angle wanders."
    reading = await read_passages(Question(), retrieval_of(text), MarkedWords("offset"))
    assert reading.was_read
    assert quote(Question(), reading).quotes[0].text.startswith("An offset adds up")


async def test_a_passage_that_was_ranked_lower_moves_up_if_it_answers() -> None:
    better = "The bias of a gyroscope is integrated, and so the angle drifts."
    retrieval = with_further(retrieval_of("Gyroscopes drift. Drift of gyroscopes is a topic."), better)
    assert texts_of(await read_passages(Question(), retrieval, MarkedWords("integrated"))) == [better]
    assert texts_of(await read_passages(Question(), retrieval, None)) != [better]


async def test_windows_cross_no_heading_and_carry_it() -> None:
    text = (
        "Gyroscopes drift because of bias.\n\n## Temperature\n\nGyroscopes drift when warm.\n\n## Cure\n\nCalibrate it."
    )
    reader = MarkedWords("bias")
    await read_passages(Question(), retrieval_of(text), reader)
    headings = {window.heading.rpartition(" > ")[2]: window.units for window in reader.windows}
    assert headings["Temperature"] == ("Gyroscopes drift when warm.",)
    assert headings["Cure"] == ("Calibrate it.",)


async def test_only_the_most_promising_windows_are_read() -> None:
    text = "\n\n".join(f"## Part {n}\n\nGyroscopes drift by {n} degrees an hour." for n in range(40))
    reader = MarkedWords("degrees")
    await read_passages(Question(), retrieval_of(text), reader)
    assert len(reader.windows) == MAX_WINDOWS


async def test_without_a_reader_the_words_decide() -> None:
    reading = await read_passages(Question(), retrieval_of(TEXT), None)
    assert not reading.was_read
    assert quote(Question(), reading).quotes


async def test_a_reader_that_fails_costs_no_answer() -> None:
    reading = await read_passages(Question(), retrieval_of(TEXT), BrokenReader())
    assert not reading.was_read
    assert quote(Question(), reading).quotes


@pytest.mark.parametrize(
    "retrieval",
    [
        replace(retrieval_of("Bread is baked at 220 °C.", 0.1), unknown=frozenset({"gyroscop"})),
        replace(retrieval_of(TEXT), from_selection=True),
    ],
    ids=["another topic", "a selection"],
)
async def test_what_is_about_something_else_or_selected_is_not_read(retrieval: Retrieval) -> None:
    reader = MarkedWords("bias")
    await read_passages(Question(), retrieval, reader)
    assert reader.windows == []


async def test_a_question_in_another_language_is_not_read() -> None:
    reader = MarkedWords("bias")
    german = "Warum driften die Kreisel, wenn man sie nicht kalibriert?"
    await read_passages(Question(question=german, search_text=german), retrieval_of(TEXT), reader)
    assert reader.windows == []
