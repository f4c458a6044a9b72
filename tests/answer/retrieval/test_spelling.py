"""Typing errors are corrected against the words of the documents; names and English words are not touched."""

import pytest

from citewell.answer.retrieval.spelling import correct_spelling, edit_distance
from citewell.text import keywords

TEXTS = [
    "A whistleblower reports to the privacy officer.",
    "Set the number of mermaid diagrams.",
    "Configuration logic.",
]


@pytest.mark.parametrize(
    ("question", "corrected"),
    [
        ("who counts as a wistleblower?", "who counts as a whistleblower?"),
        ("the nubmer of diagrams", "the number of diagrams"),
        ("is mermiad supported", "is mermaid supported"),
        ("which configuraton", "which configuration"),
    ],
)
def test_a_typing_error_becomes_the_word_of_the_documents(question: str, corrected: str) -> None:
    assert correct_spelling(question, frozenset(keywords(question)), TEXTS) == corrected


@pytest.mark.parametrize(
    "question",
    [
        "How do I use Mermiad?",  # a name, as far as its capital tells
        "is there a login page",  # one letter from "logic", which is another word
        "which diagram",
        "Wie viele Diagramme unterstützt mermiad?",
        "",
    ],
)
def test_what_is_no_typing_error_stays(question: str) -> None:
    assert correct_spelling(question, frozenset(keywords(question)), TEXTS) == question


def test_a_word_that_the_documents_have_is_not_corrected() -> None:
    assert correct_spelling("the nubmer", frozenset(), TEXTS) == "the nubmer"


@pytest.mark.parametrize(
    ("first", "second", "distance"), [("number", "nubmer", 1), ("", "abc", 3), ("same", "same", 0), ("abcd", "abd", 1)]
)
def test_edit_distance_counts_swaps_as_one(first: str, second: str, distance: int) -> None:
    assert edit_distance(first, second) == edit_distance(second, first) == distance
