"""What would act in a reader's browser leaves only if it stands in the sources, however it is dressed and cut."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from citewell.answer.handles import Handles
from citewell.answer.marks import Item
from citewell.answer.safety import Safe
from citewell.answer.sources import Sources
from citewell.answer.tags import HELD
from tests.safety_cases import GOOD, INSTRUCTIONS, OPEN, PAGE, TABLE


def made(page: str = PAGE) -> Safe:
    sources = Sources()
    sources.add(page)
    return Safe(sources, instructions=INSTRUCTIONS)


def filtered(pieces: Iterable[Item]) -> list[Item]:
    safe = made()
    joined: list[Item] = []
    for item in [item for piece in pieces for item in safe.feed([piece])] + safe.end():
        if joined and isinstance(item, str) and isinstance(joined[-1], str):
            joined[-1] += item
        else:
            joined.append(item)
    return joined


def said(pieces: Iterable[Item]) -> str:
    return "".join(str(item) for item in filtered(pieces))


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_only_what_stands_in_the_sources_leaves(text: str, expected: str) -> None:
    assert said([text]) == expected


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_a_stream_of_single_characters_is_as_safe(text: str, expected: str) -> None:
    assert said(text) == expected


def test_a_script_does_not_leave_though_it_stands_in_a_source() -> None:
    assert said(["[foo](javascript:alert(1)) <img src=x onerror=alert(1)>"]) == "foo"


def test_a_source_may_be_added_while_the_model_writes() -> None:
    sources = Sources()
    safe = Safe(sources)
    first = safe.feed([f"see {GOOD} and "])
    sources.add(GOOD)
    assert "".join(map(str, [*first, *safe.feed([f"{GOOD}."]), *safe.end()])) == f"see and {GOOD}."


def test_citations_keep_their_place() -> None:
    items: list[Item] = ["foo ", 1, " [bar", 2, "](evil) ![x", 3, "](evil)", 4, "(evil) <b>", 5, "x"]
    assert filtered(items) == ["foo ", 1, " bar", 2, 3, 4, " (evil)", 5, "x"]


def test_both_filters_follow_each_other() -> None:
    handles, safe = Handles({1, 2}.__contains__), made()
    told: list[Item] = []
    for piece in [
        "The foot [1",
        "] lands ![x](https://e",
        "vil.org?q=[2]). See [do",
        "cs](https://evil.org)[2] `a[1]`.",
    ]:
        told += safe.feed(handles.feed(piece))
    told += safe.feed(handles.end()) + safe.end()
    assert "".join(str(item) if isinstance(item, str) else f" [{item}]" for item in told) == (
        "The foot [1] lands. See docs [2] `a[1]`."
    )


@pytest.mark.parametrize(
    ("text", "at_once"),
    [
        ("foo bar baz ", "foo bar baz"),
        ("foo <b", "foo"),
        ("foo `a", "foo"),
        ("foo [bar", "foo"),
        ("foo hello ", "foo hello"),
        ("```\nfoo <x", "```\nfoo <x"),
        ("in [0, 1) all is", "in [0, 1) all is"),
        ("in [It is so. Foo", "in [It is so. Foo"),
        ("in [foo\nbar", "in [foo\nbar"),
        (f"in [{'foo ' * 31}bar", f"in [{'foo ' * 31}bar"),
        ("x <a foo bar foo bar foo", "x < a foo bar foo bar foo"),
        ("x <foo foo bar foo bar foo", "x < foo foo bar foo bar foo"),
        ("a ` b" + " foo" * 80, "a ` b" + " foo" * 80),
        ("the <script> tag" + " foo" * 80, "the tag" + " foo" * 80),
        ("<!-- so" + " foo" * 80, "< !-- so" + " foo" * 80),
        ("[Note]: foo bar foo bar", "[Note]: foo bar foo bar"),
        ("foo you are citewell and foo", "foo you are citewell and foo"),
    ],
)
def test_only_what_may_have_to_go_is_held_back(text: str, at_once: str) -> None:
    assert "".join(map(str, made().feed([text]))).rstrip() == at_once


ATOMS = st.sampled_from(
    """` `` ``` ~~~ ![x](evil) [x](evil) ](evil) [ ] ( ) ! <b> </b> <i <img¬src=e> ¬onclick=1> <foo <foo¬a=1> > < \\ $
    $$
    [x]: ¬evil [x] https://evil.org/a https://docs.example.org/a <https://evil> <https://docs.example.org/a> <!-- -->
    <script> </script> <div> <kbd> foo &#58; &#60; ' " = a [a](https://docs.example.org/a) * <div¬ / : javascript:x
    foo.¬ 0) [0,¬1) <b¬foo¬foo¬ what@evil.org help@example.org @ @evil.org xmpp:¬ https://docs.example.org/?q=
    data:text/html,x \\[ \\( <?x ?> <![CDATA[ ]]> <br> []( (<b> <evil> <a¬b> | -¬ 1.¬ >¬ www.evil.org &""".replace(
        "\n", " "
    ).split()
).map(lambda atom: atom.replace("¬", " "))
SPACES = st.sampled_from([" ", "\n", "\n\n", "    ", "  ", "\t", "\r\n", "\n---|---\n", "[y]: evil\n", "  ```\n"])
MARKDOWN = st.lists(st.one_of(ATOMS, ATOMS, SPACES), max_size=14).map("".join)
READERS = [
    MarkdownIt("commonmark", {"html": True}),
    MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]),
]
_LIVE_TAG = re.compile(r"</?(?:b|i|img|script|div|br|a)(?=[\s/>]|\Z)|<[^<>]*=|<!-|<!\[|<\?|<![A-Za-z]")


def tokens(listed: Sequence[Token]) -> Iterator[Token]:
    for token in listed:
        yield token
        yield from tokens(token.children or [])


@settings(max_examples=200)
@given(MARKDOWN)
def test_no_renderer_finds_a_target_or_tag_that_is_not_in_the_sources(text: str) -> None:
    left = said([text])
    for reader in READERS:
        for token in tokens(reader.parse(left)):
            target = token.attrs.get("href" if token.type == "link_open" else "src")
            assert target is None or str(target) in PAGE, left
            if token.type in ("html_inline", "html_block") and token.content not in PAGE:
                assert not _LIVE_TAG.search(re.sub(r"</?kbd>", "", token.content)), left


@given(MARKDOWN)
def test_no_address_is_left_outside_code(text: str) -> None:
    left = said([re.sub(r"[ \t]+", " ", re.sub(r"[`~]", "", text))])
    assert "://" not in re.sub(rf"(?:{re.escape(GOOD)}|{re.escape(OPEN)})(?![\w&])", "", left)
    assert not re.search(r"\w@\w+\.\w", left.replace("help@example.org", ""))
    assert not re.search(r"(?<!\\)\]\(", left.replace(f"]({GOOD})", ""))


@given(MARKDOWN, st.lists(st.integers(0, 200), max_size=12))
def test_it_does_not_matter_where_a_stream_is_cut(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    assert said([text]) == said(text) == said(text[start:end] for start, end in pairwise(places))


@given(st.text(st.sampled_from("aehtws .,-'\n0(){}*_é世")))
def test_a_text_without_marks_is_not_touched(text: str) -> None:
    assert said([text]) == text


@given(st.lists(st.sampled_from([*INSTRUCTIONS.split(), "foo", "bar"]), max_size=40))
def test_no_eight_words_of_the_instructions_are_left_in_a_row(words: list[str]) -> None:
    recited = re.findall(r"\w+", INSTRUCTIONS.lower())
    left = re.findall(r"\w+", said([" ".join(words)]).lower())
    runs = {tuple(recited[start : start + 8]) for start in range(len(recited) - 7)}
    kept = {tuple(left[start : start + 8]) for start in range(len(left) - 7)}
    assert not runs & kept


@settings(max_examples=30)
@given(MARKDOWN)
def test_what_is_held_back_is_bounded(text: str) -> None:
    safe = made()
    told = sum(len(str(item)) for piece in [text * 20, *["foo "] * 600] for item in safe.feed([piece]))
    assert len(said([text * 20 + "foo " * 600])) - told <= 2 * HELD


HOSTILE = """[ ![ ]( ](a ]((  < <x <b <!-- <script> ` \\ &#58 https://a http:// [x]( [x](evil) www. //a :// <foo¬a=" &
    ](a(b) <b¬ [x]:¬ `¬``¬```¬ you¬are¬citewell¬ a@b. a@ @ [0,¬1)
    <a¬a¬"""


@pytest.mark.parametrize("hostile", HOSTILE.split())
def test_hostile_input_costs_no_more_than_its_length(hostile: str) -> None:
    """A filter that looks back or ahead without a bound would not come to an end here."""
    text = hostile.replace("¬", " ") * (20_000 // len(hostile))
    said([text])
    assert said([text[:3_000]]) == said(text[:3_000])
