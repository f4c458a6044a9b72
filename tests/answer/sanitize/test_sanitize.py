"""What would act in a reader's browser leaves only if it stands in the sources, however it is dressed and cut."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from citewell.answer.sanitize import AllowedTargets, PromptLeakFilter, Sanitizer
from citewell.answer.writing.markdown import adds_block
from citewell.answer.writing.unit_stream import Unit, UnitStream
from tests.answer.sanitize.sanitize_cases import GOOD, INSTRUCTIONS, OPEN, PAGE, TABLE
from tests.answer.writing.counting import calls


class Cleaning:
    """Cuts a stream into units and cleans each."""

    def __init__(self, sources: Sequence[str] = (PAGE,), instructions: str = INSTRUCTIONS) -> None:
        self._leak_filter = PromptLeakFilter(instructions)
        self._stream = UnitStream(lambda text: not self._leak_filter.may_continue(text))
        self._sanitizer = Sanitizer(AllowedTargets(lambda: sources))

    def feed(self, text: str) -> str:
        return "".join(map(self._clean, self._stream.feed(text)))

    def end(self) -> str:
        return "".join(map(self._clean, self._stream.end()))

    def _clean(self, unit: Unit) -> str:
        text = self._leak_filter.remove(unit.text, self._sanitizer.tail)
        text = self._sanitizer.clean(text, is_code=unit.is_verbatim)
        if adds_block(unit.text, text):
            self._stream.renderers_agree = False
        return text


def shown(pieces: Iterable[str]) -> str:
    cleaning = Cleaning()
    return "".join([*map(cleaning.feed, pieces), cleaning.end()])


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_only_what_stands_in_the_sources_leaves(text: str, expected: str) -> None:
    assert shown([text]) == expected


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_a_stream_of_single_characters_is_as_safe(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_a_script_does_not_leave_though_it_stands_in_a_source() -> None:
    assert shown(["[foo](javascript:alert(1)) <img src=x onerror=alert(1)>"]) == "foo"


def test_a_source_may_be_added_while_the_model_writes() -> None:
    sources: list[str] = []
    cleaning = Cleaning(sources)
    first = cleaning.feed(f"see {GOOD} and so on. Or ")
    sources.append(GOOD)
    assert first + cleaning.feed(f"{GOOD}.") + cleaning.end() == f"see and so on. Or {GOOD}."


def test_citations_keep_their_place() -> None:
    sanitizer = Sanitizer(AllowedTargets(lambda: [PAGE]))
    text = "foo \0 [bar\0](evil) ![x\0](evil)\0(evil) <b>\0x"
    assert sanitizer.clean(text) == "foo \0 bar\0\0\0 (evil)\0x"


def test_what_a_parser_finds_that_was_not_looked_at_does_not_act() -> None:
    """Should a rule of ours miss something, the parsed text tells."""
    sanitizer = Sanitizer(AllowedTargets(lambda: [PAGE]))
    assert sanitizer.clean("[x]: <b>evil") == "[x] : evil"


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
LIVE_TAG = re.compile(r"</?(?:b|i|img|script|div|br|a)(?=[\s/>]|\Z)|<[^<>]*=|<!-|<!\[|<\?|<![A-Za-z]")


def tokens(listed: Sequence[Token]) -> Iterator[Token]:
    for token in listed:
        yield token
        yield from tokens(token.children or [])


@settings(max_examples=200)
@given(MARKDOWN)
def test_no_renderer_finds_a_target_or_tag_that_is_not_in_the_sources(text: str) -> None:
    left = shown([text])
    for reader in READERS:
        for token in tokens(reader.parse(left)):
            target = token.attrs.get("href" if token.type == "link_open" else "src")
            assert target is None or str(target) in PAGE, left
            if token.type in ("html_inline", "html_block") and token.content not in PAGE:
                assert not LIVE_TAG.search(re.sub(r"</?kbd>", "", token.content)), left


@given(MARKDOWN)
def test_no_address_is_left_outside_code(text: str) -> None:
    left = shown([re.sub(r"[ \t]+", " ", re.sub(r"[`~]", "", text))])
    assert "://" not in re.sub(rf"(?:{re.escape(GOOD)}|{re.escape(OPEN)})(?![\w&])", "", left)
    assert not re.search(r"\w@\w+\.\w", left.replace("help@example.org", ""))
    assert not re.search(r"(?<!\\)\]\(", left.replace(f"]({GOOD})", ""))


@given(MARKDOWN, st.lists(st.integers(0, 200), max_size=12))
def test_it_does_not_matter_where_a_stream_is_cut(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    assert shown([text]) == shown(text) == shown(text[start:end] for start, end in pairwise(places))


@given(st.text(st.sampled_from("aehtws .,-'\n0(){}*_é世")))
def test_a_text_without_marks_is_not_touched(text: str) -> None:
    assert shown([text]) == text


@given(st.lists(st.sampled_from([*INSTRUCTIONS.split(), "foo", "bar"]), max_size=40))
def test_no_eight_words_of_the_instructions_are_left_in_a_row(words: list[str]) -> None:
    recited = re.findall(r"\w+", INSTRUCTIONS.lower())
    left = re.findall(r"\w+", shown([" ".join(words)]).lower())
    runs = {tuple(recited[start : start + 8]) for start in range(len(recited) - 7)}
    kept = {tuple(left[start : start + 8]) for start in range(len(left) - 7)}
    assert not runs & kept


HOSTILE = """[ ![ ]( ](a ]((  < <x <b <!-- <script> ` \\ &#58 https://a http:// [x]( [x](evil) www. //a :// <foo¬a=" &
    ](a(b) <b¬ [x]:¬ `¬``¬```¬ you¬are¬citewell¬ a@b. a@ @ [0,¬1)
    <a¬a¬"""


@pytest.mark.parametrize("hostile", HOSTILE.split())
def test_hostile_input_costs_no_more_than_its_length(hostile: str) -> None:
    """Five times the text takes about five times the calls, and not twenty-five times."""
    text = hostile.replace("¬", " ") * (20_000 // len(hostile))
    assert calls(lambda: shown([text])) < 10 * calls(lambda: shown([text[: len(text) // 5]]))
    assert shown([text[:3_000]]) == shown(text[:3_000])
