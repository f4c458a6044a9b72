"""One call quotes the passages: scored, held against what the reader has seen, and none where they do not answer."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from citewell.answer.quoting import CONFIDENCE_BANDS, QuoteSelection, quote, read_passages
from citewell.answer.retrieval import Retrieval
from citewell.models import Passage
from citewell.text import keywords, sentence_stems
from tests.conftest import chunk_of

TEXT = "Gyroscopes drift because a bias is integrated. Gyroscopes drift faster when the bias shifts with temperature."
FIRST, SECOND = (f"{sentence}." for sentence in TEXT.rstrip(".").split(". "))


@dataclass(frozen=True)
class Question:
    """What quoting asks of a question."""

    question: str = "Why do gyroscopes drift?"
    search_text: str = "Why do gyroscopes drift?"
    wants_answer: bool = True
    refers_to_marked_text: bool = False
    shown: str = ""

    def was_shown(self, quote: str) -> bool:
        return quote in self.shown


def retrieval_of(text: str, score: float = 0.9) -> Retrieval:
    stems = tuple(map(tuple, sentence_stems(text)))
    weights = keywords("Why do gyroscopes drift?")
    return Retrieval(
        passages=(Passage(chunk_of(text), score, (), mean_score=score, sentence_stems=stems),),
        background=0.1,
        weights=dict.fromkeys(weights, 1 / len(weights)),
        unknown=frozenset(),
    )


def select(question: Question, retrieval: Retrieval) -> QuoteSelection:
    return quote(question, asyncio.run(read_passages(question, retrieval, None)))


def quoted(question: Question, retrieval: Retrieval) -> str:
    return " ".join(selected.text for selected in select(question, retrieval).quotes)


def test_what_answers_is_quoted_with_the_confidence_of_it() -> None:
    selection = select(Question(), retrieval_of(TEXT))
    assert FIRST in selection.quotes[0].text
    assert CONFIDENCE_BANDS["refuse"] <= selection.confidence <= 1


def test_passages_that_do_not_answer_are_not_quoted() -> None:
    selection = select(
        Question(), replace(retrieval_of("Bread is baked at 220 °C.", 0.1), unknown=frozenset({"gyroscop"}))
    )
    assert not selection.quotes
    assert 0 < selection.confidence < CONFIDENCE_BANDS["refuse"]


@pytest.mark.parametrize(
    ("question", "retrieval"),
    [(Question(wants_answer=False), retrieval_of(TEXT)), (Question(), replace(retrieval_of(TEXT), passages=()))],
)
def test_no_question_or_no_passage_is_no_quote(question: Question, retrieval: Retrieval) -> None:
    selection = select(question, retrieval)
    assert (list(selection.quotes), selection.confidence) == ([], 0)


def test_what_the_reader_has_seen_is_not_quoted_again() -> None:
    assert FIRST not in quoted(Question(shown=FIRST), retrieval_of(TEXT))
    assert quoted(Question(shown=TEXT), retrieval_of(TEXT)) == ""


def test_marked_text_is_quoted_where_there_is_nothing_else() -> None:
    assert FIRST in quoted(Question(shown=TEXT, refers_to_marked_text=True), retrieval_of(TEXT))
    assert FIRST not in quoted(Question(shown=FIRST, refers_to_marked_text=True), retrieval_of(TEXT))


def test_a_selection_that_only_repeats_the_question_answers_nothing() -> None:
    selection = replace(retrieval_of(f"Gyroscopes drift. {FIRST}"), from_selection=True)
    assert quoted(Question(), selection) == FIRST


def test_a_question_what_a_selection_means_is_answered_from_all_of_it() -> None:
    selection = replace(retrieval_of(TEXT), from_selection=True, weights={})
    question = Question("What does this mean?", search_text="", refers_to_marked_text=True)
    assert select(question, selection).confidence == 0.5
    assert quoted(question, selection)
