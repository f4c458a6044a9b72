"""A question for a definition finds the sentence that defines, wherever the ranking has put its passage."""

import pytest

from citewell.answer.retrieval import defined_thing, definition_sentence


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
