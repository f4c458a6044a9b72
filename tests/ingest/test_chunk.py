"""Chunks are exact slices with ids that never change meaning."""

import re
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from citewell.errors import SettingsError
from citewell.ingest.chunk import ChunkSize, count_tokens
from citewell.ingest.chunk import chunk as split_into_chunks
from citewell.ingest.readers.markdown import read_markdown
from citewell.models import Chunk
from tests.conftest import BOOK

DOCUMENT = UUID("00000000-0000-5000-8000-000000000000")
SMALL = ChunkSize(smallest=12, largest=20, overlap=5)


def cut(source: str, size: ChunkSize = SMALL, *, mdx: bool = False) -> tuple[str, list[Chunk]]:
    parsed = read_markdown(source, mdx=mdx, fallback_title="Page")
    chunks, _ = split_into_chunks(parsed, document_id=DOCUMENT, source="page.md", size=size)
    return parsed.text, chunks


_word = st.sampled_from(["pump", "valve", "0.5", "é", "流体", "don't", "**bold**", "`x = [1]`", "$a_1$", "Dr.", "e.g."])
_sentence = st.lists(_word, min_size=1, max_size=12).map(lambda words: " ".join(words) + ".")
_paragraph = st.lists(_sentence, min_size=1, max_size=5).map(" ".join)
_code = st.lists(
    st.sampled_from(["x = 1", "", "# not a heading", "    indented", "<b>", "- no item"]), max_size=12
).map(lambda lines: "\n".join(["```py", *lines, "```"]))
_item = st.one_of(_sentence, _sentence.flatmap(lambda s: _code.map(lambda c: s + "\n\n  " + c.replace("\n", "\n  "))))
_list = st.lists(_item, min_size=1, max_size=4).map(lambda items: "\n".join(f"- {item}" for item in items))
_heading = st.tuples(st.integers(1, 4), _sentence).map(lambda pair: f"{'#' * pair[0]} {pair[1]}")
_table = st.lists(_word, min_size=1, max_size=9).map(
    lambda cells: "\n".join(["| a |", "|---|", *(f"| {c} |" for c in cells)])
)
_formula = st.just("$$\na = b\n$$")
_noise = st.text(alphabet="ab .#`~->|*\n\t0_[]", max_size=60)
markdown_pages = st.lists(st.one_of(_paragraph, _code, _list, _heading, _table, _formula, _noise), max_size=12).map(
    "\n\n".join
)


@given(markdown_pages)
@settings(max_examples=150)
def test_every_chunk_is_the_text_where_it_says_it_stands(source: str) -> None:
    text, chunks = cut(source)
    for position, chunk in enumerate(chunks):
        assert chunk.index == position
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.text.strip()
        assert chunk.first_line == text.count("\n", 0, chunk.start) + 1
        assert chunk.last_line == text.count("\n", 0, chunk.end) + 1
    assert len({chunk.id for chunk in chunks}) == len(chunks)


@given(markdown_pages)
@settings(max_examples=150)
def test_chunks_in_order_cover_every_line_that_is_not_blank(source: str) -> None:
    text, chunks = cut(source)
    covered = {line for chunk in chunks for line in range(chunk.first_line, chunk.last_line + 1)}
    written = {number for number, line in enumerate(text.split("\n"), start=1) if line.strip()}
    assert written <= covered
    assert [chunk.start for chunk in chunks] == sorted(chunk.start for chunk in chunks)


@given(markdown_pages)
@settings(max_examples=150)
def test_a_code_block_is_never_split(source: str) -> None:
    text, chunks = cut(source)
    line_starts = [0, *(match.end() for match in re.finditer("\n", text)), len(text)]
    for token in MarkdownIt("commonmark").enable("table").disable("html_block").parse(text):
        if token.type in ("fence", "code_block") and token.map and token.content.strip():
            lines = text[line_starts[token.map[0]] : line_starts[token.map[1]]].rstrip()
            start = line_starts[token.map[0]]
            touching = [chunk for chunk in chunks if chunk.start < start + len(lines) and chunk.end > start]
            assert touching
            assert all(chunk.start <= start and chunk.end >= start + len(lines) for chunk in touching)


@given(markdown_pages)
@settings(max_examples=100)
def test_only_code_and_formulas_make_a_chunk_longer_than_allowed(source: str) -> None:
    _, chunks = cut(source)
    for chunk in chunks:
        whole = re.search(r"```|~~~|\$\$|^(    |\t)|^#", chunk.text, re.MULTILINE)  # so is a heading without text
        assert count_tokens(chunk.text) <= SMALL.largest or whole


def test_a_long_section_is_cut_between_sentences_with_overlap() -> None:
    sentences = [f"Sentence number {n} says something about pump {n} and valve {n} today." for n in range(60)]
    _, chunks = cut("## Long\n\n" + " ".join(sentences), ChunkSize(100, 160, 30))
    assert len(chunks) > 3
    for chunk in chunks[:-1]:
        assert 100 <= count_tokens(chunk.text) <= 160
        assert chunk.text.endswith("today.")
    for before, after in pairwise(chunks):
        assert after.start < before.end
        assert count_tokens(before.text[after.start - before.start :]) <= 30
        assert after.text.startswith("Sentence number")


def test_a_paragraph_inserted_in_one_section_leaves_the_ids_of_the_others() -> None:
    page = "# Book\n\nIntro.\n\n## One\n\nFirst.\n\n## Two\n\nSecond.\n"
    _, before = cut(page)
    _, after = cut(page.replace("First.", "First.\n\nAnother thought."))
    old, new = {chunk.section: chunk.id for chunk in before}, {chunk.section: chunk.id for chunk in after}
    assert {name for name in old if old[name] != new[name]} == {"One"}


def test_the_same_words_twice_are_two_chunks_that_keep_their_ids() -> None:
    _, chunks = cut("## A\n\nSame.\n\n## B\n\nOther.\n\n## A\n\nSame.\n")
    assert len({chunk.id for chunk in chunks}) == 3
    _, again = cut("## A\n\nSame.\n\n## New\n\nOther.\n\n## A\n\nSame.\n")
    assert (chunks[0].id, chunks[2].id) == (again[0].id, again[2].id)


def test_a_heading_without_text_travels_with_the_next() -> None:
    _, chunks = cut("# Book\n\n## Part\n\n### Detail\n\nText.\n", ChunkSize())
    (only,) = chunks
    assert only.section == "Detail"
    assert only.headings == ("Part", "Detail")
    assert only.text.startswith("# Book")


def test_a_code_block_longer_than_a_chunk_is_one_chunk_and_a_warning() -> None:
    code = "```py\n" + "\n".join(f"value_{n} = {n}" for n in range(300)) + "\n```"
    parsed = read_markdown(f"## Code\n\nBefore.\n\n{code}\n\nAfter.\n", mdx=False, fallback_title="Page")
    chunks, warnings = split_into_chunks(parsed, document_id=DOCUMENT, source="page.md", size=ChunkSize())
    assert sum(code in chunk.text for chunk in chunks) == 1
    assert len(warnings) == 1
    assert warnings[0].startswith("page.md:")


def test_ids_are_the_same_on_every_machine() -> None:
    _, (only,) = cut("# Pumps\n\nA pump moves water.\n", ChunkSize())
    assert only.content_hash == "11e48f2498c2eaac59d11a36af003ce5c8aa6b9b386cf154bce3d6fc67bb352d"
    assert only.id == "aa703ec4a5adb2bea90a43b8fd0768b0e294ad9cff9e778150f0340e4408f30d"


@pytest.mark.parametrize("path", sorted(BOOK.rglob("*.mdx")), ids=lambda path: path.name)
def test_a_real_chapter_reads_clean(path: "object") -> None:
    source = path.read_text(encoding="utf-8")  # type: ignore[attr-defined]
    text, chunks = cut(source, ChunkSize(), mdx=True)
    prose = re.sub(r"^```.*?^```", "", "\n\n".join(chunk.text for chunk in chunks), flags=re.MULTILINE | re.DOTALL)
    for left_over in (r"^import ", r"^export ", r"</?[A-Z]\w*", r"^:::", r"\{/\*", r"^sidebar_", r"\{#"):
        assert not re.search(left_over, re.sub(r"`[^`]*`|\$[^$]*\$", "", prose), re.MULTILINE), left_over
    assert sum(source.count(f"\n{fence}") for fence in ("```",)) % 2 == 0
    for chunk in chunks:
        assert chunk.text.count("```") % 2 == 0
        assert text[chunk.start : chunk.end] == chunk.text


@pytest.mark.parametrize(("smallest", "largest", "overlap"), [(0, 10, 0), (20, 10, 0), (10, 20, 10), (10, 20, -1)])
def test_chunk_sizes_that_make_no_sense_are_refused(smallest: int, largest: int, overlap: int) -> None:
    with pytest.raises(SettingsError, match="chunk"):
        ChunkSize(smallest, largest, overlap)
