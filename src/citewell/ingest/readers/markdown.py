"""Markdown and MDX: the canonical text, and where its headings, paragraphs, lists and code stand."""

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

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same in C, where libyaml is there: ten times as fast
_ITEM_ENDS = (yaml.ScalarEvent, yaml.AliasEvent, yaml.CollectionEndEvent)
_NULLS = frozenset({"~", "null", "Null", "NULL"})
_DEEPEST = 50
_EMPHASIS = re.compile(r"(\*\*|__|\*|(?<!\w)_|`+|~~)(?=\S)(.+?)(?<=\S)\1")


def _parser(*, indented_code: bool) -> MarkdownIt:
    """Block structure only: what stands inside a paragraph is text to us, and half of the work."""
    parser = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin, allow_labels=False)
    parser.core.ruler.disable(["inline"])
    parser.block.ruler.disable(["html_block", "reference"] + ([] if indented_code else ["code"]))
    return parser


# MDX has no indented code: content is indented to show which tag it stands in.
_MDX = _parser(indented_code=False)
_MARKDOWN = _parser(indented_code=True)


def read_markdown(source: str, *, mdx: bool, fallback_title: str) -> ParsedDocument:
    """The manuscript in a source; its title is the frontmatter's, the first heading's or the fallback."""
    frontmatter, body = split_frontmatter(source)
    text = plain_markdown(body)
    blocks = _anchored(_blocks((_MDX if mdx else _MARKDOWN).parse(text), text), text, body)
    fields = _fields(frontmatter)
    title = plain_words(fields.get("title", ""))
    if not title:
        title = next((block.title for block in blocks if block.kind == "heading" and block.level == 1), "")
    slug = fields.get("slug", "") or fields.get("id", "")
    return ParsedDocument(title=title or fallback_title, text=text, blocks=blocks, slug=slug)


def plain_words(markdown: str) -> str:
    """A line of Markdown without its emphasis marks: "**Why** `x`" -> "Why x"."""
    return _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", markdown)).strip()


def _fields(frontmatter: str) -> dict[str, str]:
    """The frontmatter's plain values, word for word.

    Read as a stream of events: what is nested is passed over and nothing is built of it, since a few lines of YAML
    can grow to gigabytes, nest until libyaml crashes or stands still, or name a day that no month has.
    """
    fields: dict[str, str] = {}
    depth, name, wants_name = 0, "", True
    try:
        for event in yaml.parse(frontmatter, _Loader):
            if isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth == 1 and isinstance(event, _ITEM_ENDS):
                plain = _plain(event)
                if wants_name:
                    name = plain
                elif plain:
                    fields[name] = plain
                wants_name = not wants_name
            if isinstance(event, yaml.CollectionStartEvent):
                if depth > _DEEPEST or not (depth or isinstance(event, yaml.MappingStartEvent)):
                    return {}
                depth += 1
    except yaml.YAMLError:
        return {}  # a page with broken frontmatter still has text worth answering from
    return fields


def _plain(event: yaml.Event) -> str:
    """A value's words on one line; none for what is nested, or null."""
    if not isinstance(event, yaml.ScalarEvent) or (event.implicit[0] and event.value in _NULLS):
        return ""
    return " ".join(event.value.split())


def _anchored(blocks: Sequence[Block], text: str, body: str) -> tuple[Block, ...]:
    """Headings below the title get the id a browser finds them under: their own, or one made of their words."""
    lines = body.split("\n")
    taken: Counter[str] = Counter()
    line, position = 0, 0
    found = []
    for block in blocks:
        line += text.count("\n", position, block.start)
        position = block.start
        if block.kind != "heading":
            found.append(block)
            continue
        words = re.sub(r"[^\w\- ]", "", block.title.lower()).replace(" ", "-")
        anchor = heading_id(lines[line]) or (f"{words}-{taken[words]}" if taken[words] else words)
        taken[words] += 1
        found.append(replace(block, anchor=anchor if block.level > 1 else ""))
    return tuple(found)


def _blocks(tokens: list[Token], text: str) -> tuple[Block, ...]:
    """The leaves of the token tree, in order; together they cover every line that is not blank."""
    line_starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    found: list[tuple[int, int, BlockKind, int | None, int, str]] = []
    groups = 0
    group: int | None = None
    for position, token in enumerate(tokens):
        if token.level == 0 and token.type in _GROUPS:
            groups += 1
            group = groups
        elif token.level == 0 and token.nesting >= 0:
            group = None
        kind = _LEAVES.get(token.type)
        if kind is None or token.map is None:
            continue
        level, title = 0, ""
        if kind == "heading" and token.level == 0:
            level, title = int(token.tag[1]), plain_words(tokens[position + 1].content)
        elif kind in ("heading", "text"):
            kind = "list" if group is not None else "text"
        found.append((token.map[0], token.map[1], kind, group, level, title))
    return tuple(
        Block(
            kind,
            line_starts[first],
            min(line_starts[last], len(text)),
            group=in_group,
            level=level,
            title=title,
        )
        for first, last, kind, in_group, level, title in found
    )


_GROUPS = frozenset({"bullet_list_open", "ordered_list_open", "table_open", "blockquote_open"})
_LEAVES: dict[str, BlockKind] = {
    "heading_open": "heading",
    "paragraph_open": "text",
    "hr": "text",
    "fence": "code",
    "code_block": "code",
    "math_block": "math",
    "table_open": "table",
}
