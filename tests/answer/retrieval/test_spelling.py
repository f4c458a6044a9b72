"""Typing errors are corrected against the words of the documents; names, code and English words are not touched."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from citewell.answer.retrieval.spelling import correct_spelling, edit_distance, misspelt_words, suggest
from citewell.models import Filters
from citewell.text import keywords, stems
from tests.conftest import ask, take_in

TEXTS = [
    "A whistleblower reports to the privacy officer.",
    "Set the number of mermaid diagrams.",
    "Configuration logic. Stream the response. Recommended tokenizers.",
    "The recorded and managed files are readable.",
]


def corrected(question: str, *, unknown: frozenset[str] | None = None, found: Sequence[str] = TEXTS) -> str:
    """The question as it is searched for, in documents of which a first search found some."""
    counts = Counter(stem for text in TEXTS for stem in set(stems(text)))
    if unknown is None:
        unknown = frozenset(stem for stem in keywords(question) if not counts[stem])
    return correct_spelling(question, suggest(misspelt_words(question, unknown), found), counts)


@pytest.mark.parametrize("found", [TEXTS, []], ids=["found", "nothing found"])
@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("who counts as a wistleblower?", "who counts as a whistleblower?"),
        ("the nubmer of diagrams", "the number of diagrams"),
        ("is mermiad supported", "is mermaid supported"),
        ("which configuraton", "which configuration"),
        ("how do i strem a large respons", "how do i stream a large response"),
        ("what do you reccomend for tokenizrs?", "what do you recommend for tokenizers?"),
        ("wich number shoud I set?", "which number should I set?"),
        ("pre-configuraton", "pre-configuration"),
        ("Strem it", "stream it"),
    ],
)
def test_a_typing_error_becomes_the_word_of_the_documents(question: str, right: str, found: Sequence[str]) -> None:
    assert corrected(question, found=found) == right


@pytest.mark.parametrize(
    "question",
    [
        "How do I use Mermiad?",  # a name, as far as its capital tells
        "what does useMermiad do",
        "where is @theme/mermiad or `mermiad` or --mermiad or mermiad_theme",
        "is there a login page",  # one letter from "logic", which is another word
        "are the reworded pages reachable?",  # English words, near "recorded" and "readable"
        "nubmer mermiad strem respons configuraton",  # so many are another language, or code
        "which diagram",
        "Wie viele Diagramme unterstützt mermiad?",
        "",
    ],
)
def test_what_is_no_typing_error_stays(question: str) -> None:
    assert corrected(question, unknown=frozenset(keywords(question))) == question


def test_a_word_that_the_documents_have_is_not_corrected() -> None:
    assert corrected("the nubmer", unknown=frozenset()) == "the nubmer"


def test_a_word_that_only_other_documents_have_is_not_corrected() -> None:
    question = "stream the response"
    assert corrected(question, unknown=frozenset(keywords(question))) == question


def test_only_whole_words_are_replaced() -> None:
    assert corrected("is mermiad in mermiadx?") == "is mermaid in mermiadx?"


@pytest.mark.parametrize(
    ("first", "second", "distance"), [("number", "nubmer", 1), ("", "abc", 3), ("same", "same", 0), ("abcd", "abd", 1)]
)
def test_edit_distance_counts_swaps_as_one(first: str, second: str, distance: int) -> None:
    assert edit_distance(first, second) == edit_distance(second, first) == distance


def test_a_question_with_several_typing_errors_is_answered(home: Path, tmp_path: Path) -> None:
    docs = tmp_path / "client"
    docs.mkdir()
    (docs / "streaming.md").write_text(
        "# Streaming\n\nTo stream a large response, call `client.stream()` and read it in pieces.\n"
    )
    for number in range(60):  # more than a search returns
        (docs / f"{number}.md").write_text(f"# Page {number}\n\nSetting {number} controls how large a page is.\n")
    take_in(home, docs)
    text, answer = ask(home, "how do i strem a large respons")
    assert "client.stream()" in text
    assert answer.confidence > 0
    text, answer = ask(home, "how do i strem a large respons", where=Filters(path="5.md"))
    assert answer.confidence == 0, "the word is in another file"


def test_a_word_that_is_far_too_long_to_be_one_is_not_corrected() -> None:
    """Of 2,000 letters, more than 100,000 spellings are one edit away, and each would be looked up."""
    for word, misspelt in (("x" * 32, ["x" * 32]), ("x" * 33, []), ("x" * 32_000, [])):
        assert misspelt_words(word, frozenset(keywords(word))) == misspelt
