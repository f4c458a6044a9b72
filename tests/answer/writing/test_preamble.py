"""What is not for the reader is taken out of what an LLM writes, piece by piece."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citewell.answer.writing import PreambleFilter
from tests.answer.writing.test_unit_stream import TEXTS, cut


def taken_out(pieces: list[str]) -> tuple[str, bool]:
    preamble = PreambleFilter()
    said = "".join([*map(preamble.feed, pieces), preamble.end()])
    return said, preamble.declined


@pytest.mark.parametrize(
    ("text", "said", "declined"),
    [
        ("Plainly said.", "Plainly said.", False),
        ("NOT_COVERED", "", True),
        ("**NOT_COVERED** The passages speak of something else.", "", True),
        ("It is so. NOT_COVERED", "It is so. ", True),
        ("<think>Is it NOT_COVERED?</think>\n\nIt is so.", "It is so.", False),
        ("<think>and never an end", "", False),
        ("A <think> of it", "A <think> of it", False),
        ("not covered", "not covered", False),
        ("NOT_", "NOT_", False),
        ("", "", False),
    ],
)
def test_what_is_not_for_the_reader_is_heard_and_not_said(text: str, said: str, declined: bool) -> None:
    assert taken_out([text]) == (said, declined)


@given(TEXTS, st.lists(st.integers(1, 9), min_size=1))
def test_what_is_heard_does_not_depend_on_how_it_comes_in(text: str, lengths: list[int]) -> None:
    assert taken_out(cut(text, lengths)) == taken_out([text])
