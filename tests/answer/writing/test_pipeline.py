"""What an LLM writes reaches its reader in checked units: cited truly, safe, with a verdict, however it is cut."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from citewell.answer.reply import NumberedMarkers
from citewell.answer.writing.pipeline import Pipeline
from citewell.models import Passage, Piece
from tests.answer.sanitize.sanitize_cases import INSTRUCTIONS, PAGE
from tests.answer.sanitize.sanitize_cases import TABLE as UNSAFE
from tests.answer.sanitize.test_sanitize import LIVE_TAG, MARKDOWN, READERS, tokens
from tests.answer.writing.marker_cases import TABLE as CITED
from tests.conftest import chunk_of

PUMP = "A pump moves water uphill"
RAM = "A ram moves water uphill without a motor"
MOON = "The Emperor Napoleon built 47 lighthouses on Mars in 1811"
PASSAGES = [
    Passage(chunk_of(text, number=number), 0.9, ()) for number, text in enumerate((f"{PUMP}.", f"{RAM}.", PAGE))
]


def made(*, strict: bool = False, selection: Passage | None = None) -> Pipeline:
    return Pipeline(PASSAGES, INSTRUCTIONS, strict=strict, selection=selection)


def rendered(pieces: list[Piece]) -> str:
    markers = NumberedMarkers()
    return "".join(map(markers.render, pieces))


def written(deltas: list[str] | str, *, strict: bool = False) -> tuple[str, list[tuple[str, str]]]:
    pipeline = made(strict=strict)
    pieces = [piece for delta in deltas for piece in pipeline.feed(delta)] + pipeline.end()
    return rendered(pieces), [(one.text, one.support.verdict if one.support else "") for one in pipeline.segments]


def test_a_sentence_is_shown_with_its_citation_and_its_verdict() -> None:
    pipeline = made()
    assert pipeline.feed(f"{PUMP} [1].") == []
    assert rendered(pipeline.feed(" So ")) == f"{PUMP} [1]. "
    (segment,) = pipeline.segments
    assert (segment.text, segment.passages) == (f"{PUMP}.", (PASSAGES[0],))
    assert segment.support is not None
    assert segment.support.verdict == "supported"


def test_a_citation_moves_to_the_passage_that_says_it() -> None:
    pipeline = made()
    pieces = [*pipeline.feed(f"{RAM} [1]."), *pipeline.end()]
    assert [piece.passage for piece in pieces if not isinstance(piece, str) and hasattr(piece, "passage")] == [
        PASSAGES[1]
    ]


def test_when_strict_what_no_passage_supports_is_not_shown() -> None:
    text = f"{PUMP} [1]. {MOON} [1]. {MOON}, twice. {RAM} [2]."
    assert written([text])[0] == f"{PUMP} [1]. {MOON} [1]. {MOON}, twice. {RAM} [2]."
    assert written([text], strict=True)[0] == f"{PUMP} [1]. {RAM} [2]."


def test_code_is_shown_line_by_line_and_has_one_verdict() -> None:
    pipeline = made()
    assert rendered(pipeline.feed("Do:\n\n```sh\npump water\nu")) == "Do:\n\n```sh\npump water\n"
    assert rendered(pipeline.feed("phill\n``` [1]\n")) == "uphill\n``` [1]\n"
    assert [segment.text for segment in pipeline.segments] == ["Do:", "```sh\npump water\nuphill\n```"]


def test_a_citation_before_code_that_goes_on_is_shown_once() -> None:
    text = f"{PUMP} <!-- so\n\n[2] it is:\n```\na\n```\n"
    assert written([text])[0] == text.replace("<!--", "< !--").replace("[2]", "[1]")


def test_when_strict_code_is_shown_whole_or_not_at_all() -> None:
    code = "```sh\nnapoleon --lighthouses 47\n```\n"
    assert written([f"{PUMP} [1].\n\n{code}\n{RAM} [2]."], strict=True)[0] == f"{PUMP} [1].\n\n\n{RAM} [2]."


@pytest.mark.parametrize("code", ["    ![x](evil)\n", "```\n![x](evil)\n```\n", "\n    ![x](evil)\n"])
@pytest.mark.parametrize("lie", [f"{MOON}.\n", f"{MOON}.\n\n", f"So\n{MOON}.\n\n"])
def test_what_strict_mode_drops_turns_no_code_into_prose(lie: str, code: str) -> None:
    shown, _ = written([f"{PUMP} [1]. {lie}{code}"], strict=True)
    assert "<img" not in MarkdownIt("commonmark").render(shown), shown


def test_a_lone_carriage_return_ends_no_code_unseen() -> None:
    shown, _ = written(["It is so:\n\n```\na\n```\rx\n![x](evil)\n"])
    assert "<img" not in MarkdownIt("commonmark").render(shown), shown


def test_citations_alone_are_no_answer() -> None:
    pipeline = made()
    assert [*pipeline.feed("[1]\n\n[2]\n\n**"), *pipeline.end()] == []
    assert not pipeline.has_words


def test_a_selection_is_all_that_is_cited() -> None:
    selection = PASSAGES[2]
    pipeline = made(selection=selection)
    assert rendered([*pipeline.feed(f"{PUMP} [1][2]."), *pipeline.end()]) == f"{PUMP} [1]."
    assert [segment.passages for segment in pipeline.segments] == [(selection,)]


def test_control_characters_of_a_model_are_no_citations() -> None:
    assert written(["A\0 b\1 c."])[0] == "A\ufffd b\ufffd c."


def test_code_after_a_cited_list_is_left_as_it_is() -> None:
    text = f"- {PUMP} [1].\n- {RAM} [2].\n\n```sh\ncurl http://localhost:8000 <in >out\n```\n"
    assert written([text])[0] == text


TEXTS = st.lists(
    st.sampled_from(
        [text for text, _ in [*CITED, *UNSAFE]]
        + [f"{PUMP} [1]. ", f"{RAM}[2]\n", "\n\n", " ", "- ", "NOT_COVERED", "<think>", "</think>", "```\n", ". "]
    ),
    max_size=5,
).map("".join)


@pytest.mark.parametrize("strict", [False, True])
@settings(max_examples=40)
@given(text=TEXTS, cuts=st.lists(st.integers(0, 300), max_size=8))
def test_it_does_not_matter_where_a_stream_is_cut(text: str, cuts: list[int], strict: bool) -> None:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    deltas = [text[start:end] for start, end in pairwise(places)]
    assert written([text], strict=strict) == written(text, strict=strict) == written(deltas, strict=strict)


PARTS = st.one_of(MARKDOWN, st.sampled_from([f"{PUMP} [1]. ", f"{MOON}. ", f"{MOON}\n", "[2]", "\n\n"]))


@pytest.mark.parametrize("strict", [False, True])
@settings(max_examples=100)
@given(parts=st.lists(PARTS))
def test_no_renderer_finds_what_is_not_in_the_sources(parts: list[str], strict: bool) -> None:
    shown, _ = written(["".join(parts)], strict=strict)
    for reader in READERS:
        for token in tokens(reader.parse(shown)):
            target = token.attrs.get("href" if token.type == "link_open" else "src")
            assert target is None or str(target) in PAGE, shown
            if token.type in ("html_inline", "html_block") and token.content not in PAGE:
                assert not LIVE_TAG.search(re.sub(r"</?kbd>", "", token.content)), shown


@pytest.mark.parametrize(
    "text", ["See [the manual](https://evil.org/?q=1", "Look: <img src=x onerror=alert(1)", "`<b> x"]
)
def test_nothing_is_shown_before_it_was_checked(text: str) -> None:
    pipeline = made()
    assert rendered(pipeline.feed(f"{PUMP} [1]. {text}")) == f"{PUMP} [1]. "
