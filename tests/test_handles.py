"""What a model cites is found in its stream, however it is cut, and nothing else is touched."""

import re
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from citewell.answer.handles import HELD, Handles
from citewell.answer.marks import Item

Case = tuple[str, str]

# Handles 1 to 5 exist, and 12. What is cited is shown as [1], after a blank, as the doors do.
KNOWN = frozenset({1, 2, 3, 4, 5, 12})

CITATIONS: list[Case] = [
    ("foo [1].", "foo [1]."),
    ("foo[1].", "foo [1]."),
    ("foo.[1] Bar", "foo. [1] Bar"),
    ("foo. [1] Bar", "foo. [1] Bar"),
    ("foo [1] bar", "foo [1] bar"),
    ("foo [12].", "foo [12]."),
    ("foo\u00a0[1].", "foo [1]."),
    ("foo\t[1].", "foo [1]."),
    ("foo\n[1] bar", "foo\n[1] bar"),
    ("foo  [1]", "foo  [1]"),
    ("[1] says so", "[1] says so"),
    ("[1][3]", "[1] [3]"),
    ("foo [1][3].", "foo [1] [3]."),
    ("foo [1] [3].", "foo [1] [3]."),
    ("foo [1], [3].", "foo [1], [3]."),
    ("foo [1],[3].", "foo [1], [3]."),
    ("foo [1]; [3].", "foo [1]; [3]."),
    ("foo [1] and [3].", "foo [1] and [3]."),
    ("foo [1, 3].", "foo [1] [3]."),
    ("foo [1,3].", "foo [1] [3]."),
    ("foo [1; 3].", "foo [1] [3]."),
    ("foo [1;3].", "foo [1] [3]."),
    ("foo [1 , 3].", "foo [1] [3]."),
    ("foo [1, 2, 3, 4].", "foo [1] [2] [3] [4]."),
    ("foo [1, 2 and 3].", "foo [1] [2] [3]."),
    ("foo [1 and 3].", "foo [1] [3]."),
    ("foo [1 & 3].", "foo [1] [3]."),
    ("foo [3, 1].", "foo [3] [1]."),
    ("foo [1, 1].", "foo [1]."),
    ("foo [1-3].", "foo [1] [2] [3]."),
    ("foo [1–3].", "foo [1] [2] [3]."),
    ("foo [1—3].", "foo [1] [2] [3]."),
    ("foo [1 - 3].", "foo [1] [2] [3]."),
    ("foo [1-3, 5].", "foo [1] [2] [3] [5]."),
    ("foo [5, 1-2].", "foo [5] [1] [2]."),
    ("foo [2-2].", "foo [2]."),
    ("foo 【1】.", "foo [1]."),
    ("foo【1】【3】.", "foo [1] [3]."),
    ("foo【1†source】.", "foo [1]."),
    ("foo【1†L12-L14】 bar", "foo [1] bar"),
    ("foo【12†manual.pdf】", "foo [12]"),
    ("foo ［1］.", "foo [1]."),
    ("研究表明［1］。", "研究表明 [1]。"),
    ("研究表明[1]。", "研究表明 [1]。"),
    ("foo [ 1 ].", "foo [1]."),
    ("foo [^1].", "foo [1]."),
    ("foo[^1][^2].", "foo [1] [2]."),
    ("foo [^1, ^2].", "foo [1] [2]."),
    ("foo [Source 1].", "foo [1]."),
    ("foo [source: 1].", "foo [1]."),
    ("foo [Sources 1, 3].", "foo [1] [3]."),
    ("foo [Source 1, Source 3].", "foo [1] [3]."),
    ("foo [passage 2].", "foo [2]."),
    ("foo [Passage #2].", "foo [2]."),
    ("foo [Ref. 2].", "foo [2]."),
    ("foo [doc 2].", "foo [2]."),
    ("foo (see [1]).", "foo (see [1])."),
    ("foo (see [1] and [2]).", "foo (see [1] and [2])."),
    ("(foo [1])", "(foo [1])"),
    ("**foo**[1]", "**foo** [1]"),
    ("**foo [1]**", "**foo [1]**"),
    ("*foo*[1], bar", "*foo* [1], bar"),
    ("“foo”[1]", "“foo” [1]"),
    ("`foo`[1]", "`foo` [1]"),
    ("`foo` [1]", "`foo` [1]"),
    ("- foo [1]\n- bar [2]\n", "- foo [1]\n- bar [2]\n"),
    ("> foo [1]\n", "> foo [1]\n"),
    ("## Foo [1]\n", "## Foo [1]\n"),
    ("| foo [1] | bar[2] |", "| foo [1] | bar [2] |"),
    ("as in [1]: foo", "as in [1]: foo"),
    ("Great![1]", "Great! [1]"),
    ("really?[1]", "really? [1]"),
]

VANISHED: list[Case] = [
    ("foo [9].", "foo."),
    ("foo [9] bar", "foo bar"),
    ("foo [9], bar", "foo, bar"),
    ("foo[9].", "foo."),
    ("foo[9] bar", "foo bar"),
    ("foo [9]bar", "foo bar"),
    ("foo [9]", "foo"),
    ("foo [9]\nbar", "foo\nbar"),
    ("[9] foo", "foo"),
    ("foo.\n[9] Bar", "foo.\nBar"),
    ("- [9] foo", "- foo"),
    ("foo. [9] Bar", "foo. Bar"),
    ("foo [99].", "foo."),
    ("foo [9999].", "foo."),
    ("foo [1, 9].", "foo [1]."),
    ("foo [9, 1].", "foo [1]."),
    ("foo [8, 9].", "foo."),
    ("foo [1][9].", "foo [1]."),
    ("foo [9][1].", "foo [1]."),
    ("foo [9] [1] bar", "foo [1] bar"),
    ("foo [1] [9] bar", "foo [1] bar"),
    ("foo [8] [9] bar", "foo bar"),
    ("foo [1], [9].", "foo [1]."),
    ("foo [9], [1].", "foo [1]."),
    ("foo [8], [9].", "foo."),
    ("foo [1] and [9].", "foo [1]."),
    ("foo [1], [9], and [2].", "foo [1], and [2]."),
    ("foo [4-9].", "foo [4] [5]."),
    ("foo [7-9].", "foo."),
    ("foo [1-999999999].", "foo [1] [2] [3] [4] [5] [12]."),
    ("foo ( [9] ) bar", "foo bar"),
    ("foo ([9]).", "foo."),
    ("foo ([8], [9]).", "foo."),
    ("foo (see [9]).", "foo."),
    ("foo (see also [9]) bar", "foo bar"),
    ("foo (Source: [9]) bar", "foo bar"),
    ("foo (see [9] and page 3)", "foo (see and page 3)"),
    ("(foo [9])", "(foo)"),
    ("([9] foo)", "(foo)"),
    ("foo 【9】.", "foo."),
    ("foo【9†source】。", "foo。"),
    ("foo ［9］ bar", "foo bar"),
    ("foo [^9].", "foo."),
    ("foo [Source 9].", "foo."),
    ("**foo** [9].", "**foo**."),
]

CODE: list[Case] = [
    (text, text)
    for text in (
        "```\nfoo [1] [9]\n```",
        "```python\nx = a[1]\n``` ",
        "```\nfoo [1]",
        "````\n```\nfoo [1]\n```\n````",
        "~~~\nfoo [1]\n~~~",
        "~~~~ py\n~~~\nfoo [9]\n~~~~\n",
        "~~~\n```\n~~~\n",
        "  ```\n  foo [1]\n  ```",
        "1. foo\n   ```\n   bar [1]\n   ```",
        "- foo\n    ```\n    bar [1]\n    ```",
        "> ```\n> foo [1]\n> ```",
        "foo\n\n    bar [1]\n    baz [9]\n",
        "foo\n\n\tbar [1]\n",
        "    bar [1]",
        "foo\n\n    bar [1]\n\n    baz [9]",
        "- foo\n\n      bar [1]\n",
        "`foo [1]`",
        "`foo [9]` bar",
        "`` foo ` [1] ``",
        "```foo [1]``` bar",
        "foo `a[1]` and `b[9]`",
        "``foo [1]",
        "\\`foo\\` bar",
    )
]

AFTER_CODE: list[Case] = [
    ("```\nfoo [1]\n```\nbar [1]", "```\nfoo [1]\n```\nbar [1]"),
    ("```\nfoo [9]\n```\nbar [9].", "```\nfoo [9]\n```\nbar."),
    ("~~~\nfoo [9]\n~~~\n[9] bar", "~~~\nfoo [9]\n~~~\nbar"),
    ("`foo [9]` bar [9].", "`foo [9]` bar."),
    ("`a` b [9] `c[9]`", "`a` b `c[9]`"),
    ("foo ` bar\nbaz [9].", "foo ` bar\nbaz."),
    ("\\`foo [9]\\` bar", "\\`foo \\` bar"),
    ("foo\n\n    bar [9]\n\nbaz [9].", "foo\n\n    bar [9]\n\nbaz."),
    ("- foo\n\n    bar [9].", "- foo\n\n    bar."),
    ("foo\n    bar [9].", "foo\n    bar."),
    ("$x[9]$ foo [9].", "$x[9]$ foo."),
    ("It costs $5 [9] or $6 [9].", "It costs $5 or $6."),
    ("$$\nx[9]\n$$\nfoo [9].", "$$\nx[9]\n$$\nfoo."),
    ("\\(x[9]\\) foo [9].", "\\(x[9]\\) foo."),
    ("\\[ x[9] \\] foo [9].", "\\[ x[9] \\] foo."),
    ("\\begin{align}x[9]\\end{align} foo [9].", "\\begin{align}x[9]\\end{align} foo."),
    ("\\beta foo [9].", "\\beta foo."),
    ("\\$5 [9], \\$6", "\\$5, \\$6"),
]

FORMULAS: list[Case] = [
    (text, text)
    for text in (
        "$a[1] + [9]$",
        "$x \\$ [9]$",
        "$$ [1, 2] $$",
        "$$\n[1]\n[9]\n$$",
        "\\(a[1]\\)",
        "\\( x \\in [1, 2] \\)",
        "\\[ [1, 2] \\]",
        "\\[\nx = [9]\n\\]",
        "\\begin{bmatrix} [1] \\\\ [9] \\end{bmatrix}",
        "\\[1\\]",
        "\\[9\\]",
    )
]

LOOKALIKES: list[Case] = [
    (text, text)
    for text in (
        "[1](https://a.org)",
        "[9](https://a.org) foo",
        "![1](a.png)",
        "![9](a.png)",
        "![alt][1]",
        "[text](https://a.org)",
        "[1]: https://a.org",
        "foo\n[9]: https://a.org\n",
        "[^1]: A note.",
        "foo [2024] bar",
        "foo [1999].",
        "foo [1990-1995]",
        "foo [1, 2024]",
        "foo [2024-01-05]",
        "foo [2024-01]",
        "foo [12345]",
        "foo [3-1]",
        "- [x] done",
        "- [ ] to do",
        "- [X] done",
        "[sic]",
        "[]",
        "[ ]",
        "foo [a] bar",
        "foo [Source] bar",
        "foo [see 1] bar",
        "arr[0]",
        "arr[1]",
        "a[1]",
        "a[9]",
        "x1[1]",
        "my_list[1]",
        "MAX_SIZES[9]",
        "myList[1]",
        "self.items[1]",
        "os.environ[9]",
        "f(x)[1]",
        "rows[i][1]",
        "grid[0][1]",
        "grid[1][i]",
        "users[1].name",
        "users[9].name",
        "row[1] = 5",
        "row[1]=5",
        "row[1] += 5",
        "row[1] + 5",
        "row[1] == 5",
        "x = [1, 2, 3]",
        "x ∈ [1, 2]",
        "sum([1, 2])",
        "[0]",
        "[0, 1]",
        "[0; 1]",
        "[0-9]",
        "[01]",
        "[a-z1]",
        "[1-9a-f]",
        "[1, 2)",
        "(1, 2]",
        "[1.5, 2]",
        "[1, 2.5]",
        "[-1]",
        "[+1]",
        "[1:3]",
        "[1/2]",
        "[1%]",
        "[1, x]",
        "[1",
        "1]",
        "[1, ",
        "[1-",
        "【1",
        "【1]",
        "[1】",
        "［1",
        "[[",
        "[1\n]",
        "(",
        "(see",
        "(see [x])",
        "[source",
        "foo ",
    )
]

PROSE_WORDS: list[Case] = [
    ("the robot[1] walks", "the robot [1] walks"),
    ("IPv6[1]", "IPv6 [1]"),
    ("H2O[1]", "H2O [1]"),
    ("Node.js[1]", "Node.js [1]"),
    ("in 2024[1].", "in 2024 [1]."),
    ("COVID-19[1]", "COVID-19 [1]"),
    ("3.5[1]", "3.5 [1]"),
    ("JavaScript[1]", "JavaScript [1]"),
    ("U.S.[1]", "U.S. [1]"),
    ("a regulator (LQR)[1]", "a regulator (LQR) [1]"),
    ("word(s)[1]", "word(s) [1]"),
    ("[text](https://a.org)[1]", "[text](https://a.org) [1]"),
    ("[text][1]", "[text] [1]"),
    ("[text][9].", "[text]."),
    ("robot[1].Next", "robot [1].Next"),
    ("robot[1]. Next", "robot [1]. Next"),
    ("robot[1] – and", "robot [1] – and"),
    ("robot[1][2]", "robot [1] [2]"),
    ("robot[1]<br>", "robot [1]<br>"),
    ("[x][1]", "[x] [1]"),
]

TABLE = [*CITATIONS, *VANISHED, *CODE, *AFTER_CODE, *FORMULAS, *LOOKALIKES, *PROSE_WORDS]


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
        ("foo [1234567890", ["foo", " ", "[1234567890"]),
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
    """A blank, the comma or "and" of a list of citations, the parenthesis around them."""
    left = "".join(item for item in filtered([text]) if isinstance(item, str))
    assert _rest(left) == _rest(text)


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
        before = "".join(pieces)[:fed]
        fed += len(piece)
        told += sum(len(item) for item in handles.feed(piece) if isinstance(item, str))
        dropped = max(0, len("".join(pieces)[:fed]) - len(shown(filtered(["".join(pieces)[:fed]], frozenset()))))
        assert fed - told - dropped <= HELD, before


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
