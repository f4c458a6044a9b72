"""An LLM's text is cut into units where a sentence or a line ends, whatever pieces it comes in."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citewell.answer.writing.unit_stream import MAX_UNIT_CHARACTERS, UnitStream
from tests.answer.writing.counting import calls

TEXTS = st.lists(
    st.sampled_from(
        ["One. ", "Two", "e.g. ", "Eq. 4 ", "Dr. Smith ", "\n", "\n\n", "- item ", "1. ", "```\n", "x = a[1].y\n", "。",
         "句子", "? ", "! ", "… ", "NOT_COVERED", "NOT_", "<think>", "</think>", "**", " ", "It is so. ",
         "3.5 m. ", "(see). "]
    )
).map("".join)  # fmt: skip


def cut(text: str, lengths: list[int]) -> list[str]:
    """The text in pieces of these lengths, over and over."""
    pieces, start, turn = [], 0, 0
    while start < len(text):
        end = start + lengths[turn % len(lengths)]
        pieces.append(text[start:end])
        start, turn = end, turn + 1
    return pieces


def sentences(pieces: list[str]) -> list[str]:
    stream = UnitStream()
    units = [unit for piece in pieces for unit in stream.feed(piece)] + [*stream.end()]
    return [unit.text for unit in units]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One is. Two are.", ["One is. ", "Two are."]),
        ("Use a filter, e.g. a Kalman filter. It works.", ["Use a filter, e.g. a Kalman filter. ", "It works."]),
        ("See Eq. 4 for it. Then go on.", ["See Eq. 4 for it. ", "Then go on."]),
        ("One is. [Source 1] Two are.", ["One is. [Source 1] ", "Two are."]),
        ("One is. [chunk_docid_5] Two are.", ["One is. [chunk_docid_5] ", "Two are."]),
        ("One is. [02-pumps.mdx] Two are.", ["One is. [02-pumps.mdx] ", "Two are."]),
        ("One is.[02-pumps.mdx] Two are.", ["One is.[02-pumps.mdx] ", "Two are."]),
        ("One is. [pumps.md, chunk 3] [308b9271] Two.", ["One is. [pumps.md, chunk 3] [308b9271] ", "Two."]),
        ("One is. (source 3) Two are.", ["One is. (source 3) ", "Two are."]),
        ("One is. (Source: The Pump Manual) Two are.", ["One is. (Source: The Pump Manual) ", "Two are."]),
        ("One is. (see [1] and [pumps.md]) Two are.", ["One is. (see [1] and [pumps.md]) ", "Two are."]),
        ("One is. [[1]] Two are.", ["One is. [[1]] ", "Two are."]),
        ("One is.【4:0†source】 Two are.", ["One is.【4:0†source】 ", "Two are."]),
        ("One is. [Not needed] Two are.", ["One is. ", "[Not needed] Two are."]),
        ("One is. [Docs](a.md) are here. Two.", ["One is. ", "[Docs](a.md) are here. ", "Two."]),
        ("One is. (Two are. Three are.) Four.", ["One is. ", "(Two are. ", "Three are.) Four."]),
        ("这是。（来源 3）另一个。", ["这是。（来源 3）", "另一个。"]),
        ("Is it? Yes! So it is.", ["Is it? ", "Yes! ", "So it is."]),
        ("- first\n- second. More of it.\n", ["- first\n", "- second. ", "More of it.\n"]),
        ("Do:\n\n```py\na. B\n\nd\n```\nDone.", ["Do:\n\n", "```py\n", "a. B\n", "\n", "d\n", "```\n", "Done."]),
        ("A line\nthat wraps. Next.", ["A line\nthat wraps. ", "Next."]),
        ("这是一个句子。这是另一个。", ["这是一个句子。", "这是另一个。"]),
        ("", []),
        ("   \n ", ["   \n "]),
        ("No stop", ["No stop"]),
    ],
)  # fmt: skip
def test_text_is_cut_where_a_sentence_ends(text: str, expected: list[str]) -> None:
    assert sentences([text]) == expected


@given(TEXTS, st.lists(st.integers(1, 9), min_size=1))
def test_sentences_do_not_depend_on_how_the_text_comes_in(text: str, lengths: list[int]) -> None:
    whole = sentences([text])
    assert sentences(cut(text, lengths)) == whole
    assert "".join(whole).strip() == text.strip()


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("One is. Two", 0),
        ("One is. Two ", 1),
        ("One is. [1] Two ", 1),
        ("One is.[1]", 0),
        ("One is.\n\nT", 1),
        ("One is. [Source 1] ", 0),
        ("One is. [Source 1] Two ", 1),
        ("One is. (see source ", 0),
        ("One is, e.g. this ", 0),
        ("See [one. Two ](a) ", 0),
        ("See `one. Two ` ", 0),
        ("See $one. Two$ ", 0),
        ("See <a one. Two ", 0),
        ("in [0, 1) it is. Two ", 1),
        ("- first", 0),
        ("- first\n- ", 1),
        ("- first\n  goes on", 0),
        ("| a | b |\n", 1),
        ("# Title\n", 1),
        ("```py\n", 1),
        ("```py\na = 1\nb", 2),
        ("$$\na = 1\nB = 2\n", 0),
        ("$$\na = 1\n$$\nT", 1),
        ("这是一个句子。这", 1),
        ("这是一个句子。[1]", 0),
        ("word " * 400, 1),
        ("a" * 4000, 1),
    ],
)
def test_what_is_finished_is_released_at_once_and_nothing_else(text: str, units: int) -> None:
    stream = UnitStream()
    assert len([unit for char in text for unit in stream.feed(char)]) == units


def test_a_unit_does_not_end_where_it_may_not() -> None:
    stream = UnitStream(lambda text: not text.rstrip().endswith("not."))
    assert [unit.text for unit in stream.feed("It may not. But it may. Or so ")] == ["It may not. But it may. "]


def test_a_block_of_code_comes_line_by_line_and_its_last_line_is_known() -> None:
    stream = UnitStream()
    units = [*stream.feed("Do:\n\n```py\na = b[1]\n```\nSo it is.\n"), *stream.end()]
    assert [(unit.text, unit.is_code, unit.is_verbatim, unit.is_last) for unit in units] == [
        ("Do:\n\n", False, False, True),
        ("```py\n", False, False, False),
        ("a = b[1]\n", True, True, False),
        ("```\n", True, True, True),
        ("So it is.\n", False, False, True),
    ]


@pytest.mark.parametrize("text", ["> ```\n> a\n", "- ```\n  a\n", "```a|b\na\n", "$$\n```\na\n"])
def test_code_that_a_renderer_may_take_for_something_else_is_not_trusted(text: str) -> None:
    stream = UnitStream()
    units = [*stream.feed(text + "```\nand\n```\nmore\n\n    code\n"), *stream.end()]
    assert not any(unit.is_verbatim for unit in units)


@pytest.mark.parametrize("make", [lambda n: "a" * n, lambda n: ". a" * n, lambda n: "a. B " * n, lambda n: "\n" * n])
def test_hostile_text_is_cut_in_linear_time(make: Callable[[int], str]) -> None:
    """Counted in calls: five times the text takes about five times as many."""
    assert calls(lambda: sentences([make(10_000)])) < 10 * calls(lambda: sentences([make(2_000)]))


@given(TEXTS)
def test_no_unit_is_longer_than_a_bound(text: str) -> None:
    assert all(len(unit) <= 2 * MAX_UNIT_CHARACTERS + 1 for unit in sentences([text * 10]))
