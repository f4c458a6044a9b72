"""What a model cites is found in its stream, however it is cut, and nothing else is touched."""

import re
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from citewell.answer.handles import HELD, HELD_ID, HELD_LINK, Handles
from citewell.answer.marks import Item
from tests.handle_cases import CHUNK, KNOWN, TABLE


def filtered(pieces: Iterable[str], known: frozenset[int] = KNOWN) -> list[Item]:
    """What comes out, with neighbouring texts joined."""
    handles = Handles(known.__contains__)
    items = [item for piece in pieces for item in handles.feed(piece)] + handles.end()
    joined: list[Item] = []
    for item in items:
        if joined and isinstance(item, str) and isinstance(joined[-1], str):
            joined[-1] += item
        elif item != "":
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


def test_a_handle_may_begin_to_exist_while_the_model_writes() -> None:
    known = {1}
    handles = Handles(known.__contains__)
    first = handles.feed("a [1] b [2] c")
    known.add(2)
    assert [*first, *handles.feed(" [2] d"), *handles.end()] == ["a", 1, " b", " c", 2, " d"]


def test_a_known_year_is_cited() -> None:
    assert filtered(["foo [2024]."], frozenset({2024})) == ["foo", 2024, "."]


@pytest.mark.parametrize(
    ("text", "at_once"),
    [
        ("foo bar", ["foo bar"]),
        ("foo ", ["foo"]),
        ("foo [x", ["foo", " ", "[x"]),
        ("foo [1] b", ["foo", 1, " b"]),
        ("foo (bar", ["foo", " ", "(bar"]),
        ("foo [1234567890x", ["foo", " ", "[1234567890x"]),
        ("foo [add the", ["foo", " ", "[add the"]),
        ("foo [1](see the", ["foo", 1, "(see the"]),
        ("foo [1](https://a.org) bar", ["foo", 1, " bar"]),
        ("arr[0]", ["arr", "[0]"]),
        ("`foo [1", ["`foo [1"]),
        ("(see [1", []),
        ("(see [1]", ["(see"]),
    ],
)
def test_only_what_may_become_a_citation_is_held_back(text: str, at_once: list[Item]) -> None:
    handles = Handles(KNOWN.__contains__)
    assert "".join(map(str, handles.feed(text))) == "".join(map(str, at_once))


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


_REMOVABLE = re.compile(r"[\[【［][^\[\]【】［］\n`$\\]*\d[^\[\]【】［］\n`$\\]*[\]】］]")
_WITH_IT = re.compile(
    r"[ \t\u00a0\u202f,;:()&]+|\b(?:and|or|see also|see|cf\.?|e\.g\.|sources?|ref|from)", re.IGNORECASE
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


@given(st.text(st.characters(exclude_characters="[【［")))
def test_a_text_without_brackets_is_not_touched(text: str) -> None:
    assert filtered([text]) == ([text] if text else [])


@given(texts_in_pieces())
def test_what_is_held_back_is_a_few_characters(pieces: list[str]) -> None:
    handles = Handles(frozenset[int]().__contains__)
    fed = told = dropped = 0
    for piece in pieces:
        fed += len(piece)
        so_far = "".join(pieces)[:fed]
        told += sum(len(item) for item in handles.feed(piece) if isinstance(item, str))
        dropped = max(0, fed - len(shown(filtered([so_far], frozenset()))))
        most = HELD_LINK if "](" in so_far else HELD_ID if CHUNK[:10] in so_far else HELD
        assert fed - told - dropped <= most, so_far


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
        "a" * 100_000 + "[1]",
        ")" * 99_997 + "[1]",
        " " * 100_000,
        "\n" * 100_000,
    ],
    ids=lambda text: f"{text[:9]!r}",
)
def test_hostile_input_costs_no_more_than_its_length(hostile: str) -> None:
    """A filter that looks back or ahead without a bound would not come to an end here."""
    filtered([hostile])
    assert filtered([hostile[:20_000]]) == filtered(hostile[:20_000])
