"""A reader's selection is answered from alone; a hint only says where the reader looks."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citewell import wiring
from citewell.adapters.hashing import HashingEmbedder
from citewell.answer import flow
from citewell.answer.engines import AnswerEngines
from citewell.answer.question.follow_up import resolve_follow_up
from citewell.answer.reply.markers import NumberedMarkers
from citewell.answer.retrieval.rerank import LocalReranker
from citewell.answer.retrieval.selection import part_spans
from citewell.models import Answer, Exchange, Passage
from citewell.similarity_scale import SimilarityScale
from tests.conftest import BOOK, PROJECT, settings_for

GYROSCOPES = """Gyroscopes measure angular rate. Integrating a bias makes the result drift.

A temperature change shifts the bias. Calibrate the sensor at rest for ten seconds.

- Keep the robot still.
- Average the rate.
"""


class NoIndex:
    """Fails whoever asks it anything."""

    async def search(self, *_: object, **__: object) -> tuple[Passage, ...]:
        raise AssertionError("the index was searched")

    async def frequencies(self, *_: object, **__: object) -> tuple[int, list[int]]:
        raise AssertionError("the index was asked how often words occur")

    async def scale(self) -> SimilarityScale:
        raise AssertionError("the index was asked what cosines are worth")

    def problem(self) -> str | None:
        return None

    async def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> AnswerEngines:
    """The real embedder and no index at all."""

    async def made() -> AnswerEngines:
        async with wiring.open_for_answers(settings_for(tmp_path_factory.mktemp("empty"))) as reading:
            return replace(reading.engines, index=NoIndex())

    return asyncio.run(made())


def ask(engines: AnswerEngines, question: str, selection: str, *history: Exchange) -> tuple[str, Answer]:
    pieces = flow.answer(question, project=PROJECT, engines=engines, selection=selection, history=history)
    return asyncio.run(flow.collect(pieces, NumberedMarkers().render))


def test_a_selection_is_answered_from_alone_and_cited_as_one(engines: AnswerEngines) -> None:
    text, answer = ask(engines, "Why do gyroscopes drift?", GYROSCOPES)
    assert "Integrating a bias makes the result drift." in text
    assert answer.mode == "selected_text"
    assert 0 < answer.confidence <= 1
    (cited,) = answer.cited
    assert cited.chunk.text == GYROSCOPES
    assert set(re.findall(r"\[\d+\]", text)) == {"[1]"}
    for segment in answer.segments:
        assert segment.start is not None
        assert GYROSCOPES[segment.start :].startswith(segment.text.split("\n")[0].split(". ")[0])


@pytest.mark.parametrize(
    "question",
    ["Who won the world cup in 1954?", "What does a Dynamixel servo cost?", "How long does a chicken roast?"],
)
def test_what_a_selection_does_not_say_is_not_found_in_it(engines: AnswerEngines, question: str) -> None:
    text, answer = ask(engines, question, GYROSCOPES)
    assert "not found in selection" in text
    assert (answer.mode, answer.confidence, answer.cited, answer.nearest) == ("selected_text", 0, (), ())


@pytest.mark.parametrize(
    "question",
    ["What does this mean?", "why?", "tell me more", "explain this", "Summarize this, please", "Was bedeutet das?"],
)
def test_a_question_about_the_selection_itself_gets_what_it_says_best(engines: AnswerEngines, question: str) -> None:
    before = [Exchange("Who was Ada Lovelace?", "A mathematician.")] if "this" in question.casefold() else []
    _, answer = ask(engines, question, GYROSCOPES, *before)
    assert answer.confidence > 0
    assert all(flat(segment.text) in flat(GYROSCOPES) for segment in answer.segments)


@pytest.mark.parametrize(
    ("question", "selection"),
    [
        ("Should I commit it?", "The lock file pins every package. It should be checked into version control."),
        ("Is it required?", "The `name` field is mandatory for every plugin."),
        ("Can I delete it?", "The cache folder is created anew by every build and may be removed at any time."),
    ],
)
def test_a_yes_or_no_question_about_a_short_selection_is_answered_in_other_words(
    engines: AnswerEngines, question: str, selection: str
) -> None:
    _, answer = ask(engines, question, selection)
    assert answer.segments
    assert 0 < answer.confidence < 0.6, "no word of the question is in the selection"


@pytest.mark.parametrize(
    "question", ["How much does it cost?", "Who invented it?", "Does it work on Windows?", "Is it delicious?"]
)
def test_a_short_selection_does_not_answer_every_question_about_it(engines: AnswerEngines, question: str) -> None:
    assert "not found in selection" in ask(engines, question, "This file should be checked into version control.")[0]


def test_a_follow_up_with_a_selection_goes_on_about_the_last_question(engines: AnswerEngines) -> None:
    before = Exchange("Does temperature shift the bias?", "It does. [1]")
    text, answer = ask(engines, "why?", GYROSCOPES, before)
    assert answer.question == "why (temperature shift the bias)?"
    assert "A temperature change shifts the bias." in text


def test_thanks_are_returned_though_something_is_selected(engines: AnswerEngines) -> None:
    text, answer = ask(engines, "thanks", GYROSCOPES)
    assert (text, answer.mode, answer.confidence) == ("You're welcome.", "selected_text", 0)


def test_a_selection_that_only_repeats_the_question_is_no_answer(engines: AnswerEngines) -> None:
    assert "not found in selection" in ask(engines, "What is backlash?", "backlash")[0]
    assert ask(engines, "What does this mean?", "backlash")[0] == "backlash [1]"


@pytest.mark.parametrize(
    ("question", "selection", "quoted"),
    [
        ("Warum driftet das Gyroskop?", "Der Turm ist hoch. Ein Gyroskop driftet, weil sich Fehler summieren.", "weil"),
        ("陀螺仪为什么漂移？", "塔很高。陀螺仪会漂移，因为零偏被积分。", "零偏"),
        ("What is the code to start the pump?", "Start it:\n\n```bash\npumpctl start\n\npumpctl wait\n```", "pumpctl"),
    ],
)
def test_a_selection_may_be_in_any_language_and_hold_code(
    engines: AnswerEngines, question: str, selection: str, quoted: str
) -> None:
    text, answer = ask(engines, question, selection)
    assert quoted in text
    assert answer.confidence > 0


@pytest.mark.parametrize(
    "selection",
    ["a" * 64_000, "😀" * 64_000, "word " * 12_800, "a\n\n" * 21_000, "* a\n" * 16_000, "| a " * 16_000, "[" * 64_000,
     "```\n" + "x = 1\n\n" * 9_000, "!!!", "\ud800 half", "\n\n\n# \n"],
    ids=lambda text: ascii(text[:6]),
)  # fmt: skip
def test_whatever_is_selected_is_answered_somehow(selection: str) -> None:
    engines = AnswerEngines(HashingEmbedder(), NoIndex(), LocalReranker())
    for question in ("What is a word?", "What does this mean?"):
        assert ask(engines, question, selection)[1].mode == "selected_text"


def test_the_answer_is_found_at_the_end_of_a_long_selection(engines: AnswerEngines) -> None:
    pages = "\n\n".join(path.read_text() for path in sorted(BOOK.rglob("*.mdx")))
    pages = pages[: 60_000 - pages[:60_000][::-1].index("\n\n")]
    text, answer = ask(
        engines, "How often is the zorbulator greased?", f"{pages}The zorbulator is greased twice a year.\n"
    )
    assert "twice a year" in text
    assert answer.line(answer.cited[0]) == 1 + pages.count("\n")


@given(st.text(alphabet="ab. \n`#é。", max_size=9000))
def test_the_parts_of_a_selection_are_all_of_its_words_in_order(text: str) -> None:
    found = part_spans(text)
    assert "".join("".join(text[start:end].split()) for start, end in found) == "".join(text.split())
    assert all(end - start <= 8000 for start, end in found)


HINT = "Integrating a bias makes the result drift."


@pytest.fixture(scope="module")
def hinted(book_home: Path, engines: AnswerEngines) -> "Hinted":
    return Hinted(book_home, engines)


class Hinted:
    """Asks the example book with something to look at."""

    def __init__(self, home: Path, engines: AnswerEngines) -> None:
        self._home = home
        self._embedder = engines.embedder  # loaded once

    def ask(self, question: str, hint: str) -> tuple[str, Answer]:
        async def run() -> tuple[str, Answer]:
            async with wiring.open_for_answers(settings_for(self._home)) as reading:
                engines = replace(reading.engines, embedder=self._embedder)
                pieces = flow.answer(question, project=PROJECT, engines=engines, hint=hint)
                return await flow.collect(pieces, NumberedMarkers().render)

        return asyncio.run(run())


@pytest.mark.parametrize("question", ["What does this mean?", "why?", "Explain this", "How is it measured?"])
def test_a_question_about_the_hint_finds_the_passage_it_comes_from(hinted: Hinted, question: str) -> None:
    text, answer = hinted.ask(question, HINT)
    assert HINT in flat(answer.retrieved[0].chunk.text)
    assert answer.mode == "full"
    assert HINT not in text, "the reader has these words before them"


def test_a_question_that_stands_alone_looks_at_the_same_passages_whatever_the_hint(hinted: Hinted) -> None:
    question = "Which gearbox has almost no backlash?"
    plain, near, far = (hinted.ask(question, hint)[1] for hint in ("", "strain wave gear", HINT))
    for other in (near, far):
        assert {one.chunk.id for one in other.retrieved} == {one.chunk.id for one in plain.retrieved}
        assert other.confidence == plain.confidence
    assert far.segments == plain.segments


def test_a_hint_does_not_make_the_book_cover_what_it_does_not(hinted: Hinted) -> None:
    _, answer = hinted.ask("Who won the 1998 world cup final?", HINT)
    assert (answer.mode, answer.confidence) == ("no_results", 0)


def flat(text: str) -> str:
    return " ".join(line.strip().removeprefix("- ") for line in " ".join(text.split(" ")).splitlines()).replace(
        "  ", " "
    )


def test_with_something_marked_nothing_is_unclear() -> None:
    for asked in ("why?", "tell me more", "an example?", "the second one?"):
        assert resolve_follow_up(asked).kind == "unclear"
        assert resolve_follow_up(asked, marked="words").refers_to_marked_text
    assert resolve_follow_up("thanks", marked="words").kind == "courtesy"


@pytest.mark.parametrize("asked", ["Why do gyroscopes drift?", "What does this book say about gears?"])
def test_a_question_that_stands_alone_does_not_point(asked: str) -> None:
    assert resolve_follow_up(asked, marked="words") == resolve_follow_up(asked)
