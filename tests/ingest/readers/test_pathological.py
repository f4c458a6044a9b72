"""A hostile file is read in linear time, loses no text, and gives chunks of bounded length."""

from uuid import UUID

import pytest

from citewell.ingest.chunk import ChunkSize, chunk, count_tokens
from citewell.ingest.parse import parse
from citewell.models import Chunk, ParsedDocument
from tests.ingest.readers.docx_files import package
from tests.ingest.readers.steps import count_calls, deadline

SIZE = ChunkSize()
PATTERNS = [
    *("![[", "[`", "- ", "1. ", "[", "[a\n", ">", "> ", "*", "`", "` a", "<", "<a ", "<a{>", "<a {", "{", "|", "|\n"),
    *("![](", "&", "&#1", "a", "é", "<!-- ", "{/* ", "{/* #a */}", "- a\n", "# ", "# a\n", "$", "_", "~", "\\"),
    *("[][", "[a][", "[a]: b\n", "::: a\n", "!!! a\n", '=== "a"\n', "/// a\n", '<TabItem label="x">a\n', "```{note}\n"),
    *("```mdx-code-block\n", "import {\n", "{'", "{`", "{#a", "{ref}`", "{* a *}\n", "{{ a }}\n", "a|b\n-|-\n"),
    *(". ", "<b>", "``` `` ` ", "</style", "<style>", "\\`", "---\n", "=", "(a)=", ":material-", "word "),
]  # fmt: skip


def split(path: str, content: bytes) -> tuple[ParsedDocument, list[Chunk]]:
    parsed = parse(path, content)
    return parsed, chunk(parsed, document_id=UUID(int=0), source=path, size=SIZE)[0]


def repeated(pattern: str, characters: int) -> bytes:
    return (pattern * (characters // len(pattern)) + "\n").encode()


def assert_bounded_and_complete(parsed: ParsedDocument, chunks: list[Chunk]) -> None:
    text, position = parsed.text, 0
    whole = [(block.start, block.end) for block in parsed.blocks if block.kind in ("code", "math")]
    for part in chunks:
        assert text[part.start : part.end] == part.text
        assert not text[position : part.start].strip()
        position = max(position, part.end)
        may_be_long = any(start < part.end and part.start < end for start, end in whole)
        assert may_be_long or (count_tokens(part.text) <= SIZE.largest and len(part.text) <= SIZE.most_characters)
    assert not text[position:].strip()


def assert_linear(path: str, pattern: str) -> None:
    work = []
    for characters in (2_000, 4_000):
        content = repeated(pattern, characters)
        assert_bounded_and_complete(*split(path, content))
        work.append(count_calls(lambda content=content: split(path, content)))  # type: ignore[misc]
    assert work[1] < 2.5 * work[0] + 2_000


@pytest.mark.parametrize("pattern", PATTERNS)
def test_twice_the_markdown_is_twice_the_work(pattern: str) -> None:
    assert_linear("page.md", pattern)


@pytest.mark.parametrize("suffix", [".mdx", ".rst", ".html", ".txt"])
@pytest.mark.parametrize(
    "pattern", ["![[", "[`", "- ", "- a\n", "1. ", "[a\n", "> ", "`", "<a ", "&", "a", "|\n", ". "]
)
def test_twice_the_text_is_twice_the_work_in_every_format(pattern: str, suffix: str) -> None:
    assert_linear("page" + suffix, pattern)


@pytest.mark.parametrize(
    "source",
    [
        "![[" * 40_000,
        "[`" * 100_000,
        "- " * 200_000,
        "1. " * 100_000,
        "<!-- " * 60_000,
        "# " + " " * 1_000_000 + "x",
        "/// " + " " * 1_000_000 + "!",
        "!!! " + " " * 1_000_000 + "!",
        "import " + " " * 1_000_000 + "!",
        "".join("  " * depth + "- a\n" for depth in range(1_000)),
        "".join("> " * depth + "a\n" for depth in range(1_000)),
        "```\ncode\n```\n" + "\n" * 60_000 + "text",
        "a" + " " * 1_000_000 + "b",
    ],
    ids=lambda source: repr(source[:12] + source[-1:]),
)
def test_a_huge_page_is_read_and_its_chunks_are_short(source: str) -> None:
    with deadline():
        parsed, chunks = split("page.md", f"{source}\n".encode())
    assert_bounded_and_complete(parsed, chunks)
    assert max(len(part.text) for part in chunks) <= SIZE.most_characters


@pytest.mark.parametrize("pattern", ["![[", "- ", "a", "`", "[a\n", ". "])
def test_a_word_file_with_one_endless_paragraph_is_split(pattern: str) -> None:
    content = package(f"<w:p><w:r><w:t>{pattern * (100_000 // len(pattern))}</w:t></w:r></w:p>")
    parsed, chunks = split("page.docx", content)
    assert_bounded_and_complete(parsed, chunks)
    assert sum(len(part.text) for part in chunks) >= 99_000


def test_headings_without_text_are_split_between_lines() -> None:
    parsed, chunks = split("page.md", ("# A heading of its own\n" * 3_000 + "\n```\ncode\n```\n").encode())
    assert_bounded_and_complete(parsed, chunks)
    assert all(line == "# A heading of its own" for part in chunks[:-1] for line in part.text.split("\n"))
