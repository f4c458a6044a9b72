"""An answer is quoted from the book, cites the chunk it stands in, or says that the book does not say."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citewell.answer.engines import DECLINE_BELOW
from citewell.answer.reply.markers import NumberedMarkers
from citewell.models import Cite
from citewell.settings import Settings
from citewell.text.terms import keywords, specific_terms
from citewell.text.units import split_units, unit_text
from tests.conftest import ask, document, take_in

QUESTIONS = [
    "Why do gyroscopes drift?",
    "What is the capture point?",
    "How do I keep student robots on one network from hearing each other?",
    "Which gearbox has almost no backlash?",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_sentence_of_an_answer_stands_in_the_chunk_it_cites(book_home: Path, question: str) -> None:
    text, answer = ask(book_home, question)
    assert answer.mode == "full"
    assert 0 < answer.confidence <= 1
    assert answer.segments
    for segment in answer.segments:
        (passage,) = segment.passages
        for line in segment.text.split("\n"):  # a table row is quoted under its header
            assert _flat(line) in _flat(passage.chunk.text)
        stored = document(book_home, passage)
        assert stored is not None
        assert stored.text[passage.chunk.start : passage.chunk.end] == passage.chunk.text
    marks = {int(mark) for mark in re.findall(r"\[(\d+)\]", text)}
    assert marks == set(range(1, len(answer.cited) + 1))


def test_quotes_after_the_first_come_in_reading_order(book_home: Path) -> None:
    _, answer = ask(book_home, "What are the stages of reinforcement learning for walking robots?")
    places: dict[object, list[int]] = {}
    for segment in answer.segments[1:]:
        chunk = segment.passages[0].chunk
        places.setdefault(chunk.document_id, []).append(chunk.start + chunk.text.find(segment.text[:20]))
    assert all(found == sorted(found) for found in places.values())


@pytest.mark.parametrize("question", ["How long does a chicken roast?", "Who won the 1998 world cup final?"])
def test_what_the_book_does_not_say_is_declined_with_the_nearest_topics(book_home: Path, question: str) -> None:
    text, answer = ask(book_home, question)
    assert answer.mode == "no_results"
    assert answer.confidence == 0
    assert answer.cited == ()
    assert "not covered by these documents" in text
    topics = [passage.chunk.topic for passage in answer.nearest]
    assert 1 <= len(topics) <= 3
    assert all(f"“{topic}”" in text for topic in topics)
    assert not any(f"{one} > ".startswith(f"{other} > ") for one in topics for other in topics if one is not other)


def test_an_answer_is_a_short_paragraph(book_home: Path) -> None:
    for question in QUESTIONS:
        text, answer = ask(book_home, question)
        assert 1 <= len(answer.segments) <= 6
        assert len(text) < 1000


def test_code_and_tables_are_quoted_whole(home: Path, docs: Path) -> None:
    (docs / "limits.md").write_text(
        "# Limits\n\n| part | force |\n| --- | --- |\n| wrist | 40 N |\n| ankle | 90 N |\n\n"
        "Start the pump test bench like this:\n\n```bash\npumpctl bench --start\n```\n"
    )
    take_in(home, docs)
    text, _ = ask(home, "What force may the ankle bear?")
    assert text.count("| part | force |\n| --- | --- |\n") == 1
    assert "\n| ankle | 90 N |\n\n[1]" in text
    text, _ = ask(home, "How do I start the pump test bench?")
    assert "```bash\npumpctl bench --start\n```\n\n[" in text


def test_who_asks_for_code_gets_it_and_who_does_not_gets_words(book_home: Path) -> None:
    text, _ = ask(book_home, "Give me the code for the capture point in Python")
    assert "```python" in text
    assert "def capture_point" in text
    text, _ = ask(book_home, "What is the capture point?")
    assert "```" not in text


def test_units_are_slices_that_cover_no_heading() -> None:
    prose = "## Title\n\nOne. Two is\nlonger.\n\n- item a\n- item b\n\n"
    text = f"{prose}```py\nx = 1\n\ny = 2\n```\n\n$$\na\n$$\n\n> quoted\n> text.\n"
    found = [(unit.kind, unit_text(text, unit)) for unit in split_units(text)]
    assert found == [
        ("sentence", "One."),
        ("sentence", "Two is longer."),
        ("item", "item a"),
        ("item", "item b"),
        ("code", "```py\nx = 1\n\ny = 2\n```"),
        ("math", "$$\na\n$$"),
        ("sentence", "quoted text."),
    ]


@given(st.text(alphabet="ab. \n`~|$#>-*1)é", max_size=300))
def test_any_text_falls_into_units_in_order(text: str) -> None:
    found = split_units(text)
    assert all(0 <= unit.start < unit.end <= len(text) for unit in found)
    assert all(before.end <= after.start for before, after in pairwise(found))


def test_the_subject_of_a_question_is_what_it_asks_about() -> None:
    assert list(keywords("How do I calibrate the cameras?")) == ["calibr", "camera"]
    assert list(keywords("What is it?")), "a question of nothing but wrapping keeps its words"
    assert specific_terms("Does nitinol beat a Dynamixel MX64 motor?") == {"nitinol", "dynamixel", "mx64"}


def test_marks_are_numbered_by_first_use(book_home: Path) -> None:
    _, answer = ask(book_home, "What is the capture point?")
    first, second = answer.retrieved[:2]
    marks = NumberedMarkers()
    rendered = [marks.render(piece) for piece in ("A", Cite(second), " B", Cite(first), " C", Cite(second))]
    assert "".join(rendered) == "A [1] B [2] C [1]"
    assert marks.passages == [second, first]


def _flat(text: str) -> str:
    return " ".join(text.split())


TODDLER = "Why is it harder for a machine to do what a toddler does than to win at chess?"


def test_an_answer_that_is_likelier_wrong_than_right_says_so(book_home: Path) -> None:
    asked = ["Why do gyroscopes drift?", TODDLER, "Who won the 1954 world cup?"]
    answers = [ask(book_home, question)[1] for question in asked]
    assert [(one.mode, one.low_confidence) for one in answers] == [
        ("full", False),
        ("full", True),
        ("no_results", False),
    ]
    assert 0 < answers[1].confidence < 0.5 < answers[0].confidence


def test_the_model_that_reads_lets_the_book_answer_and_declines_what_it_lacks(book_home: Path) -> None:
    text, answer = ask(book_home, "How many checkerboard photos do I need?", reader="minilm")
    assert "20 to 40 images" in text
    assert answer.confidence > 0.5
    _, declined = ask(book_home, "Does the EU AI Act classify a household humanoid as high-risk?", reader="minilm")
    assert declined.mode == "no_results"


def test_the_operator_decides_how_likely_an_answer_must_be_right(book_home: Path) -> None:
    question = "Why do gyroscopes drift?"
    assert ask(book_home, question, decline_below=0.0)[1].mode == "full"
    text, answer = ask(book_home, question, decline_below=1.0)
    assert (answer.mode, answer.confidence) == ("no_results", 0)
    assert "The nearest topics they cover are" in text
    assert Settings().decline_below == DECLINE_BELOW
