"""What is not for the reader is taken out of what an LLM writes, piece by piece."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citewell.answer.writing import PreambleFilter
from tests.answer.writing.test_unit_stream import TEXTS, cut


def taken_out(pieces: list[str]) -> str:
    preamble = PreambleFilter()
    return "".join([*map(preamble.feed, pieces), preamble.end()])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Plainly said.", "Plainly said."),
        ("NOT_COVERED", ""),
        ("**NOT_COVERED** The passages speak of something else.", ""),
        ("It is so. NOT_COVERED", "It is so. "),
        ("<think>Is it NOT_COVERED?</think>\n\nIt is so.", "It is so."),
        ("<think>and never an end", ""),
        ("A <think> of it", "A <think> of it"),
        ("not covered", "not covered"),
        ("NOT_", "NOT_"),
        ("", ""),
    ],
)
def test_what_is_not_for_the_reader_is_heard_and_not_said(text: str, said: str) -> None:
    assert taken_out([text]) == said


@given(TEXTS, st.lists(st.integers(1, 9), min_size=1))
def test_what_is_heard_does_not_depend_on_how_it_comes_in(text: str, lengths: list[int]) -> None:
    assert taken_out(cut(text, lengths)) == taken_out([text])
