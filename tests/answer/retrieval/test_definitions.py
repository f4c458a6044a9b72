"""A question for a definition finds the sentence that defines, wherever the ranking has put its passage."""

from pathlib import Path

import pytest

from citewell.answer.retrieval import defined_thing, definition_sentence
from citewell.answer.retrieval.definitions import defines_symbol
from tests.conftest import ask, take_in


@pytest.mark.parametrize(
    ("question", "thing"),
    [
        ("What is Docusaurus?", "Docusaurus"),
        ("what's an alias?", "alias"),
        ("What exactly is a preset, in this framework's vocabulary?", "preset"),
        ("What is TypeAdapter good for?", "TypeAdapter"),
        ("what does target_ongoing_requests stand for", "target_ongoing_requests"),
        ("hydration meaning", "hydration"),
        ("What is the difference between a pump and a fan?", ""),
        ("What is the name of the file that holds all settings?", ""),
        ("How do I install it?", ""),
        ("", ""),
    ],
)
def test_a_question_for_a_definition_names_its_thing(question: str, thing: str) -> None:
    assert defined_thing(question) == thing


@pytest.mark.parametrize(
    ("text", "defines"),
    [
        ("A pump is a machine.", True),
        ("**Pumps** are the heart of it.", True),
        ("It leaks. The pump (P1) is a small one.", True),
        ("- `pump` is the first option", True),
        ("In contrast, a pump is loud.", False),
        ("The heat pump is a machine.", False),
        ("A pump is loud.", False),
    ],
)
def test_only_a_sentence_that_begins_with_the_thing_defines_it(text: str, defines: bool) -> None:
    assert bool(definition_sentence("pump").search(text)) == defines


@pytest.mark.parametrize(
    ("text", "defines"),
    [
        ("The best k passages are read, where `k` is the number of candidates.", True),
        ("Let n be the batch size; k denotes the stiffness; k is an option.", True),
        ("- **k**: stiffness", True),
        ("Vitamin K is the one that clots.", False),
        ("Set k to 5. In k-means, k is large.", False),
    ],
)
def test_a_letter_is_defined_where_a_sentence_says_what_it_stands_for(text: str, defines: bool) -> None:
    assert defines_symbol("k", text) == defines


@pytest.mark.parametrize("question", ["What is x?", "x", "what does x mean?", "What is 7?"])
def test_a_letter_that_no_document_defines_is_declined(book_home: Path, question: str) -> None:
    text, answer = ask(book_home, question)
    assert text.startswith("This is not covered by these documents.")
    assert (answer.confidence, answer.cited) == (0, ())


def test_a_letter_is_answered_by_its_definition(home: Path, docs: Path) -> None:
    (docs / "flow.md").write_text("# Flow\n\nThe flow is q = v A.\n\nHere q is the volume of water per second.\n")
    take_in(home, docs)
    retrieved = ask(home, "What is q?")[1].retrieved
    assert [passage.chunk.source for passage in retrieved] == ["flow.md"]
    assert ask(home, "What is v?")[1].retrieved == ()


def test_a_long_text_asks_for_no_definition() -> None:
    """The patterns try every place of a text as its end; 32,000 symbols took them half a minute."""
    assert defined_thing("What is a pump, " + "please, " * 30) == "pump"
    assert defined_thing("What is a pump, " + "please, " * 40) == ""
    assert defined_thing("🤖" * 32_000) == ""
