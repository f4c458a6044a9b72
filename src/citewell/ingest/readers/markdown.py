"""Read Markdown and MDX: the canonical text and its blocks (headings, paragraphs, lists, tables, code)."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

from citewell.ingest.readers.mdx import heading_id, plain_markdown, split_frontmatter
from citewell.models import Block, BlockKind, ParsedDocument

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C parser is ten times as fast
_ITEM_ENDS = (yaml.ScalarEvent, yaml.AliasEvent, yaml.CollectionEndEvent)
_NULLS = frozenset({"~", "null", "Null", "NULL"})
_MAX_YAML_DEPTH = 50
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


def read_markdown(source: str, *, mdx: bool, fallback_title: str) -> ParsedDocument:
    """Parse a source. The title is the frontmatter's, the first heading's or the fallback."""
    frontmatter, body = split_frontmatter(source)
    text = plain_markdown(body)
    blocks = _add_anchors(_find_blocks((_MDX_PARSER if mdx else _MARKDOWN_PARSER).parse(text), text), text, body)
    fields = _frontmatter_fields(frontmatter)
    title = without_emphasis(fields.get("title", ""))
    if not title:
        title = next((block.title for block in blocks if block.kind == "heading" and block.level == 1), "")
    slug = fields.get("slug", "") or fields.get("id", "")
    return ParsedDocument(title=title or fallback_title, text=text, blocks=blocks, slug=slug)


def without_emphasis(markdown: str) -> str:
    """A line of Markdown without its emphasis marks: "**Why** `x`" -> "Why x"."""
    return _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", markdown)).strip()


def _frontmatter_fields(frontmatter: str) -> dict[str, str]:
    """The top-level string values of the frontmatter, unchanged.

    The YAML is read as a stream of events, and nested values are skipped: a few lines of YAML can expand to
    gigabytes, nest until libyaml crashes or hangs, or contain an invalid date.
    """
    fields: dict[str, str] = {}
    depth, name, expects_name = 0, "", True
    try:
        for event in yaml.parse(frontmatter, _Loader):
            if isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth == 1 and isinstance(event, _ITEM_ENDS):
                text = _scalar_text(event)
                if expects_name:
                    name = text
                elif text:
                    fields[name] = text
                expects_name = not expects_name
            if isinstance(event, yaml.CollectionStartEvent):
                if depth > _MAX_YAML_DEPTH or not (depth or isinstance(event, yaml.MappingStartEvent)):
                    return {}
                depth += 1
    except yaml.YAMLError:
        return {}  # a page with broken frontmatter still has text worth answering from
    return fields


def _scalar_text(event: yaml.Event) -> str:
    """A scalar's text on one line; "" for a nested value or null."""
    if not isinstance(event, yaml.ScalarEvent) or (event.implicit[0] and event.value in _NULLS):
        return ""
    return " ".join(event.value.split())


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
    return tuple(blocks)


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
