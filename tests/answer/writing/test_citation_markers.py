"""What an LLM cites is found in its stream, however it is cut, and nothing else is touched."""

import re
from collections.abc import Container, Iterable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from citewell.answer.sanitize import CITATION_PLACEHOLDER
from citewell.answer.writing.citation_markers import Resolver, mark_citations
from citewell.answer.writing.references import PassageNames
from citewell.answer.writing.unit_stream import Unit, UnitStream
from tests.answer.writing.counting import calls
from tests.answer.writing.marker_cases import CHUNK, KNOWN, PASSAGES, TABLE

Item = str | int


def knowing(numbers: Container[int]) -> Resolver:
    """Resolves these numbers, and the names of the passages with the numbers from 1 to 5."""
    names = PassageNames(PASSAGES)

    def resolve(reference: str) -> Sequence[int]:
        found = [int(reference)] if reference.isdecimal() else names.resolve(reference)
        return [number for number in found if number in numbers]

    return resolve


class Marking:
    """Cuts a stream into units and marks the citations in each."""

    def __init__(self, known: Container[int]) -> None:
        self._resolve = knowing(known)
        self._stream = UnitStream()
        self._before = ""

    def feed(self, text: str) -> list[Item]:
        return [item for unit in self._stream.feed(text) for item in self._mark(unit)]

    def end(self) -> list[Item]:
        return [item for unit in self._stream.end() for item in self._mark(unit)]

    def _mark(self, unit: Unit) -> list[Item]:
        text, numbers = unit.text, list[int]()
        if not unit.is_code:
            text, numbers = mark_citations(unit.text, self._resolve, before=self._before)
        self._before = (self._before + text)[-64:]
        cited = iter(numbers)
        parts = (part for part in re.split(f"({CITATION_PLACEHOLDER})", text) if part)
        return [next(cited) if part == CITATION_PLACEHOLDER else part for part in parts]


def filtered(pieces: Iterable[str], known: frozenset[int] = KNOWN) -> list[Item]:
    """What comes out, with neighbouring texts joined."""
    marking = Marking(known)
    joined: list[Item] = []
    for item in [item for piece in pieces for item in marking.feed(piece)] + marking.end():
        if joined and isinstance(item, str) and isinstance(joined[-1], str):
            joined[-1] += item
        else:
            joined.append(item)
    return joined


def filter_texts(text: str) -> list[str]:
    return [item for item in filtered([text]) if isinstance(item, str)]


def shown(items: Sequence[Item]) -> str:
    text = ""
    for item in items:
        gap = "" if not text or text.endswith("\n") else " "
        text += item if isinstance(item, str) else f"{gap}[{item}]"
    return text


def test_the_table_is_long_enough_to_trust() -> None:
    assert len({text for text, _ in TABLE}) >= 150


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_citations_are_found_and_nothing_else(text: str, expected: str) -> None:
    assert shown(filtered([text])) == expected


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_a_stream_of_single_characters_reads_the_same(text: str, expected: str) -> None:
    assert shown(filtered(text)) == expected
    assert filtered(text) == filtered([text])


def test_a_number_may_begin_to_exist_while_the_model_writes() -> None:
    known = {1}
    marking = Marking(known)
    first = marking.feed("a [1] b [2] so. It goes on ")
    known.add(2)
    assert first == ["a", 1, " b so. "]
    assert [*marking.feed("[2] d"), *marking.end()] == ["It goes on", 2, " d"]


def test_a_known_year_is_cited() -> None:
    assert filtered(["foo [2024]."], frozenset({2024})) == ["foo", 2024, "."]


CUT = st.lists(
    st.one_of(
        st.sampled_from([one for one, _ in TABLE]),
        st.sampled_from(
            [*"[]()【】［］†`~$\\ \n\t123490,;-–^.=:a_", "[1]", "[9]", " and ", "[source ", "foo", "\n\n", "    "]
        ),
    ),
    max_size=12,
).map("".join)


@st.composite
def texts_in_pieces(draw: st.DrawFn) -> list[str]:
    text = draw(CUT)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(texts_in_pieces())
@example(["[1", "]", "(", "u)"])
def test_it_does_not_matter_where_a_stream_is_cut(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert filtered(pieces) == filtered([text]) == filtered(text)


@given(CUT, st.frozensets(st.integers(1, 12)))
def test_every_citation_is_one_of_the_known(text: str, known: frozenset[int]) -> None:
    assert {item for item in filtered([text], known) if isinstance(item, int)} <= known


_REMOVABLE = re.compile(
    r"[\[【［][^\[\]【】［］\n$\\]*[\]】］]"
    r"|[(（](?:see |from |sources?|passages?|chunk|doc|来源)[^()（）\[\]【】［］\n]*[)）]",
    re.IGNORECASE,
)
_WITH_IT = re.compile(
    r"[ \t\u00a0\u202f,;:()（）&*_]+|\b(?:and|or|see also|see|cf\.?|e\.g\.|sources?|ref|from)", re.IGNORECASE
)


def _rest(text: str) -> str:
    while (shorter := _REMOVABLE.sub("", text)) != text:
        text = shorter
    return _WITH_IT.sub("", text)


@given(CUT)
def test_nothing_goes_but_brackets_with_numbers_and_what_belongs_to_them(text: str) -> None:
    """A blank, the comma or "and" of a list of citations, the parenthesis around them, the target of a link."""
    left = "".join(filter_texts(text))
    if "](" not in text:
        assert _rest(left) == _rest(text)
    characters = iter(text)
    assert all(char in characters for char in left)


WORDS = st.lists(
    st.sampled_from(["foo", "bar,", "baz.", "don't", "–", "“quoted”", "**bold**", "3.5"]), min_size=1, max_size=4
)


@given(st.lists(st.tuples(WORDS.map(" ".join), st.lists(st.integers(1, 9), min_size=1, max_size=3)), max_size=5))
def test_the_text_is_what_stands_between_the_citations(sentences: list[tuple[str, list[int]]]) -> None:
    """Exactly: the input without the citations and the one blank before each."""
    text = " ".join(f"{words} {' '.join(f'[{one}]' for one in cited)}" for words, cited in sentences)
    expected: list[Item] = []
    for place, (words, cited) in enumerate(sentences):
        said = f" {words}" if place else words
        if expected and isinstance(expected[-1], str):
            expected[-1] += said
        else:
            expected.append(said)
        expected += [one for one in cited if one in KNOWN]
    assert filtered([text]) == expected


@given(st.text(st.characters(exclude_characters="[【［\0\1")))
def test_a_text_without_brackets_is_not_touched(text: str) -> None:
    assert filtered([text]) == ([text] if text else [])


@pytest.mark.parametrize(
    "hostile",
    [
        "[" + "1" * 100_000,
        "[" * 100_000,
        "【1" * 50_000,
        "[1," * 33_000,
        "(" * 100_000,
        "([1]" * 25_000,
        "[1-999999999]" * 8_000,
        "`" * 100_000,
        "` `` ``` " * 11_000,
        "\\" * 100_000,
        "$" * 100_000,
        "[source " * 12_500,
        f"[{CHUNK}" * 1_500,
        f"[{CHUNK}]" * 1_500,
        "[1](" * 6_000,
        "[1](" + "a()" * 33_000,
        "([9](a" * 4_000,
        "[chunk_docid_5]" * 7_000,
        "[chunk_" * 14_000,
        "[" + "chunk_" * 16_000,
        "[" + "a1b2c3d4" * 12_000,
        "[b2c3d4e5]" * 10_000,
        "[" + "a.md, " * 16_000,
        "[" + "a.md, " * 60 + "]",
        ("[" + "x.md, 5 > " * 30 + "]") * 300,
        "[01-pumps.md, chunk 5]" * 4_000,
        "(source " * 12_500,
        "(source 3)" * 10_000,
        "(source: " + "a " * 50_000,
        "(see [x.md], " * 8_000,
        "(see " + "[x.md], " * 12_000,
        "[[9], " * 16_000,
        "[" * 3 + "[9], " * 16_000,
        "So. (see a " * 9_000,
        "So. [see a " * 9_000,
        "So. [1] (source 1)" * 5_000,
        "**[9]**" * 14_000,
        "a" * 100_000 + "[1]",
        ")" * 99_997 + "[1]",
        " " * 100_000,
        "\n" * 100_000,
    ],
    ids=lambda text: f"{text[:9]!r}",
)
def test_hostile_input_costs_no_more_than_its_length(hostile: str) -> None:
    """Five times the text takes about five times the calls, and not twenty-five times."""
    assert calls(lambda: filtered([hostile[:20_000]])) < 10 * calls(lambda: filtered([hostile[:4_000]]))
    assert filtered([hostile[:5_000]]) == filtered(hostile[:5_000])
