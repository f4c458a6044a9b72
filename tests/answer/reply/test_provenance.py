"""A citation can be checked: it links to the very words, and says what became of them."""

import re
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from citewell.answer.reply.markers import ChunkIdMarkers
from citewell.answer.reply.provenance import (
    CitationStatus,
    Location,
    citation_status,
    cited_ids,
    excerpt_after,
    excerpt_before,
    fragment_url,
    locate,
)
from citewell.models import Answer, Cite, Passage, Piece, Segment, Trace
from tests.conftest import chunk_of

URL = "https://book.example/walking#balance"
ONE, OTHER = "a" * 64, "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("quoted", "fragment"),
    [
        ("The foot lands flat.", "The%20foot%20lands%20flat"),
        ("The **capture point**, as `xCoM`, is *near*.", "The%20capture%20point%2C%20as%20xCoM%2C%20is%20near"),
        ("See [the guide](https://a.example/b_(c)) now", "See%20the%20guide%20now"),
        ("Read [the long guide](../guide.md#x) before you start.", "Read%20the%20long%20guide%20before%20you%20start"),
        ("A state-of-the-art R&D, gearbox", "A%20state%2Dof%2Dthe%2Dart%20R%26D%2C%20gearbox"),
        (
            "One two three four five six seven eight nine ten eleven.",
            "One%20two%20three%20four%20five,seven%20eight%20nine%20ten%20eleven",
        ),
        ("- [ ] Tighten the left screw", "Tighten%20the%20left%20screw"),
        ("It moves at $v = 3$ until the very end of it.", "It%20moves%20at,the%20very%20end%20of%20it"),
        ("Use `__init__` or snake_case with care", "or%20snake_case%20with%20care"),
        ("One says **Stepping. A foot moves over", "A%20foot%20moves%20over"),
        ("Sie sagte “ja” zum neuen Getriebe", "Sie%20sagte%20%E2%80%9Cja%E2%80%9D%20zum%20neuen%20Getriebe"),
        (
            "陀螺仪会漂移，因为零偏被积分。",
            "%E9%99%80%E8%9E%BA%E4%BB%AA%E4%BC%9A%E6%BC%82%E7%A7%BB%EF%BC%8C%E5%9B%A0%E4%B8%BA",
        ),
        ("```bash\npumpctl start --slowly\n```", None),
        ("| part | force |\n| --- | --- |\n| the wrist | 40 N |", None),
        ("$$\na long formula here\n$$", None),
        ("It is [1].", None),
        ("", None),
    ],
)
def test_a_link_leads_to_words_that_the_page_shows(quoted: str, fragment: str | None) -> None:
    found = fragment_url(URL, quoted)
    assert found.startswith(f"{URL}:~:text={fragment}") if fragment else found == URL


def test_a_page_without_an_anchor_gets_one_for_the_words() -> None:
    assert fragment_url("https://a.example/b", "Grease the chain weekly.").startswith("https://a.example/b#:~:text=Gr")


WORDS = st.sampled_from(
    ["gear", "the", "**bold**", "`code`", "*soft*", "[link](a.md)", "[1]", "snake_case", "2*3", "R&D", "a-b", "(so)",
     "don't", "\\*", "$x$", "<br/>", "&amp;", "**two", "words**", "`a", "b`", "![x](y.png)", "end.", "well,", "\n",
     "- ", "\n\n", "_", "*", "[^2]", "“so”", "...", "--", "__init__", "`__init__`", "Ω", "漂移，", "~~no~~"]
)  # fmt: skip


@given(st.lists(WORDS, max_size=30).map(" ".join))
@example("**two words** gear **two gear words** gear")
@example("*gear the gear* words")
def test_a_browser_finds_the_words_of_any_quote_in_the_page_that_shows_it(quoted: str) -> None:
    found = fragment_url(URL, quoted)
    if found == URL:
        return
    directive = found.removeprefix(f"{URL}:~:text=")
    assert re.fullmatch(r"[\w.~%]+(?:,[\w.~%]+)?", directive, re.ASCII)
    shown = [" ".join(block.split()) for block in _blocks(MarkdownIt().enable("strikethrough").parse(quoted))]
    parts = [unquote(part) for part in directive.split(",")]
    assert any(all(part in block for part in parts) for block in shown), (parts, shown)


def _blocks(tokens: list[Token]) -> list[str]:
    """The words of each paragraph or heading as a browser sees them."""
    return ["".join(map(_text, token.children or [])) for token in tokens if token.type == "inline"]


def _text(token: Token) -> str:
    return "\n" if token.type in ("softbreak", "hardbreak") else token.content if token.type != "image" else ""


@given(st.text(max_size=400))
@example("[" * 3000)
@example("**a " * 3000)
@example("`a " * 3001)
@example("\ud800 lone surrogates are not words")
def test_any_quote_gives_an_address_of_the_same_page(quoted: str) -> None:
    found = fragment_url(URL, quoted)
    assert found.isascii()
    assert found.split(":~:")[0] == URL


def test_a_receipt_says_where_the_passage_and_the_quoted_words_stand() -> None:
    passage = Passage(chunk_of("First line.\n\nThe foot lands flat on the ground."), 1.0, ())
    said = Segment("The foot lands flat on the ground.", (passage,), 13)
    given = Answer((said,), 0.9, "full", "extractive", (passage,))
    assert locate(given, passage) == Location(start=0, end=47, line=3, page=None, source_url=None)


@pytest.mark.parametrize(
    ("trace", "start", "expected"),
    [
        (Trace(current=chunk_of("x"), known=True), None, "valid"),
        (Trace(current=chunk_of("x"), known=True), 0, "valid"),
        (Trace(current=chunk_of("x"), known=True), 7, "moved"),
        (Trace(moved_to=chunk_of("x"), successor=chunk_of("y"), known=True), None, "moved"),
        (Trace(successor=chunk_of("y"), known=True), None, "changed"),
        (Trace(known=True), None, "deleted"),
        (Trace(), 3, "unknown"),
    ],
)
def test_a_citation_says_what_became_of_it(trace: Trace, start: int | None, expected: CitationStatus) -> None:
    assert citation_status(trace, start) == expected


def test_the_ids_that_an_answer_cites_are_read_in_order_and_nothing_else_is() -> None:
    text = f"A [{ONE}] b [{OTHER}][{ONE}] c [1] d [{ONE[:-1]}] e [{ONE}a] f {ONE} g [{ONE.upper()}] h [[{OTHER}]]"
    assert cited_ids(text) == (ONE, OTHER)
    assert cited_ids("[" + "1" * 5000) == cited_ids("[" * 100_000) == cited_ids(f"[{'a' * 63}" * 5000) == ()


def test_marks_name_the_chunk_and_are_read_back() -> None:
    first, second = (Passage(chunk_of(text, number=int(text)), 1.0, ()) for text in ("1", "2"))
    marks = ChunkIdMarkers()
    pieces: list[Piece] = ["A", Cite(second), "\n\n", Cite(first), " B", Cite(second)]
    assert "".join(map(marks.render, pieces)) == "A [2]\n\n[1] B [2]"
    assert marks.passages == [second, first]


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("short", "short", "short"),
        ("the pump.\nFill the casing.\nWait.", "Fill the casing.\nWait.", "the pump.\nFill the"),
        ("one two three four five six", "three four five six", "one two three four"),
        ("水" * 40, "水" * 24, "水" * 24),
    ],
)
def test_what_is_shown_around_begins_and_ends_where_one_can_read(text: str, before: str, after: str) -> None:
    most = 24 if "水" in text or "pump" in text else 20
    assert (excerpt_before(text, most), excerpt_after(text, most)) == (before, after)


@given(st.text("ab \n水", max_size=200), st.integers(1, 60))
def test_what_is_shown_around_adjoins_and_is_never_too_long(text: str, most: int) -> None:
    before, after = excerpt_before(text, most), excerpt_after(text, most)
    assert text.endswith(before)
    assert text.startswith(after)
    assert max(len(before), len(after)) <= most
    assert min(len(before), len(after)) >= min(len(text), most // 2) - 1, "not much is given away"
