"""Read Markdown and MDX: the canonical text and its blocks (headings, paragraphs, lists, tables, code)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

from citewell.ingest.readers.markdown.frontmatter import frontmatter_fields, split_frontmatter
from citewell.ingest.readers.markdown.includes import Includes, expand_includes
from citewell.ingest.readers.markdown.page import heading_id, plain_markdown
from citewell.models import Block, BlockKind, ParsedDocument

__all__ = ["Includes", "plain_markdown", "read_markdown", "without_emphasis"]

_MAX_TITLE_CHARACTERS = 300
_EMPHASIS = re.compile(r"(\*\*|__|\*|(?<!\w)_|`+|~~)(?=\S)(.+?)(?<=\S)\1")


def _make_parser(*, indented_code: bool) -> MarkdownIt:
    """A parser of the block structure only: inline markup stays as text, which halves the time."""
    parser = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin, allow_labels=False)
    parser.core.ruler.disable(["inline"])
    parser.block.ruler.disable(["html_block", "reference"] + ([] if indented_code else ["code"]))
    return parser


# MDX has no indented code: its content is indented to show which tag it is in.
_MDX_PARSER = _make_parser(indented_code=False)
_MARKDOWN_PARSER = _make_parser(indented_code=True)


def read_markdown(source: str, *, mdx: bool, fallback_title: str, includes: Includes | None = None) -> ParsedDocument:
    """Parse a source. The title is the frontmatter's, the first heading's or the fallback."""
    frontmatter, unexpanded = split_frontmatter(source)
    expanded = expand_includes(unexpanded, includes)
    body = expanded.source
    text = plain_markdown(body)
    blocks = _add_anchors(_find_blocks((_MDX_PARSER if mdx else _MARKDOWN_PARSER).parse(text), text), text, body)
    fields = frontmatter_fields(frontmatter)
    title = without_emphasis(fields.get("title", ""))
    if not title:
        title = next((block.title for block in blocks if block.kind == "heading" and block.level == 1), "")
    slug = fields.get("slug", "") or fields.get("id", "")
    warnings = [_missing_includes(expanded.missing)] if expanded.missing and includes and includes.root else []
    return ParsedDocument(
        *(title or fallback_title, text, blocks, slug), lines=expanded.lines, warnings=tuple(warnings)
    )


def _missing_includes(targets: Sequence[str]) -> str:
    if len(targets) == 1:
        return f"left out an included file that is not in the ingested folder: {targets[0]}"
    names = ", ".join(targets[:2]) + (", …" if len(targets) > 2 else "")
    return f"left out {len(targets)} included files that are not in the ingested folder: {names}"


def without_emphasis(markdown: str) -> str:
    """A line of Markdown without its emphasis marks, cut to the length of a title: "**Why** `x`" -> "Why x"."""
    markdown = markdown[:_MAX_TITLE_CHARACTERS]
    return _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", markdown)).strip()


def _add_anchors(blocks: Sequence[Block], text: str, body: str) -> tuple[Block, ...]:
    """Add anchors to the headings below the title: the id that the author gave, or one made from the title."""
    lines = body.split("\n")
    uses: Counter[str] = Counter()
    line, position = 0, 0
    anchored = []
    for block in blocks:
        line += text.count("\n", position, block.start)
        position = block.start
        if block.kind != "heading":
            anchored.append(block)
            continue
        slug = re.sub(r"[^\w\- ]", "", block.title.lower()).replace(" ", "-")
        anchor = heading_id(lines[line]) or (f"{slug}-{uses[slug]}" if uses[slug] else slug)
        uses[slug] += 1
        anchored.append(replace(block, anchor=anchor if block.level > 1 else ""))
    return tuple(anchored)


def _find_blocks(tokens: list[Token], text: str) -> tuple[Block, ...]:
    """The leaves of the token tree, in order; together they cover every line that is not blank."""
    line_starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    blocks: list[Block] = []
    groups = 0
    group: int | None = None
    for position, token in enumerate(tokens):
        if token.level == 0 and token.type in _GROUP_TOKENS:
            groups += 1
            group = groups
        elif token.level == 0 and token.nesting >= 0:
            group = None
        kind = _LEAF_KINDS.get(token.type)
        if kind is None or token.map is None:
            continue
        level, title = 0, ""
        if kind == "heading" and token.level == 0:
            level, title = int(token.tag[1]), without_emphasis(tokens[position + 1].content)
        elif kind in ("heading", "text"):
            kind = "list" if group is not None else "text"
        start, end = line_starts[token.map[0]], min(line_starts[token.map[1]], len(text))
        blocks.append(Block(kind, start, end, group=group, level=level, title=title))
    return tuple(_fill_gaps(blocks, text))


def _fill_gaps(blocks: Sequence[Block], text: str) -> Iterator[Block]:
    """The blocks, and one for text that none has: the parser gives up on lists and quotations nested too deeply."""
    end = 0
    for block in (*blocks, None):
        gap = text[end : block.start if block else len(text)]
        if gap.strip():
            start = end + len(gap) - len(gap.lstrip("\n"))
            yield Block("text", start, end + len(gap))
        if block:
            yield block
            end = max(end, block.end)


_GROUP_TOKENS = frozenset({"bullet_list_open", "ordered_list_open", "table_open", "blockquote_open"})
_LEAF_KINDS: dict[str, BlockKind] = {
    "heading_open": "heading",
    "paragraph_open": "text",
    "hr": "text",
    "fence": "code",
    "code_block": "code",
    "math_block": "math",
    "table_open": "table",
}
