"""What becomes of a writer's words on their way to a reader, piece by piece."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citewell.answer.opening import Opening
from citewell.answer.sentences import Sentences

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
    cutter = Sentences()
    ended = [one for piece in pieces for one in cutter.feed(piece)]
    return ended + cutter.end()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One is. Two are.", ["One is. ", "Two are."]),
        ("Use a filter, e.g. a Kalman filter. It works.", ["Use a filter, e.g. a Kalman filter. ", "It works."]),
        ("See Eq. 4 for it. Then go on.", ["See Eq. 4 for it. ", "Then go on."]),
        ("Is it? Yes! So it is.", ["Is it? ", "Yes! ", "So it is."]),
        ("- first\n- second. More of it.\n", ["- first\n", "- second. ", "More of it.\n"]),
        ("Do:\n\n```py\na = b[1]. c\n\nd = 2\n```\nDone.", ["Do:\n\n", "```py\na = b[1]. c\n\nd = 2\n```\n", "Done."]),
        ("A line\nthat wraps. Next.", ["A line\nthat wraps. ", "Next."]),
        ("这是一个句子。这是另一个。", ["这是一个句子。", "这是另一个。"]),
        ("", []),
        ("   \n ", []),
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


def opened(pieces: list[str]) -> tuple[str, bool]:
    opening = Opening()
    said = "".join([*map(opening.feed, pieces), opening.end()])
    return said, opening.declined


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
    assert opened([text]) == (said, declined)


@given(TEXTS, st.lists(st.integers(1, 9), min_size=1))
def test_what_is_heard_does_not_depend_on_how_it_comes_in(text: str, lengths: list[int]) -> None:
    assert opened(cut(text, lengths)) == opened([text])


@pytest.mark.parametrize("make", [lambda n: "a" * n, lambda n: ". a" * n, lambda n: "a. B " * n, lambda n: "\n" * n])
def test_hostile_text_is_cut_in_linear_time(make: Callable[[int], str]) -> None:
    from time import perf_counter

    def seconds(size: int) -> float:
        text = make(size)
        began = perf_counter()
        sentences([text])
        return perf_counter() - began

    seconds(1000)
    assert min(seconds(20_000) for _ in range(3)) < 40 * min(seconds(2_000) for _ in range(3)), "ten times the text"
