"""Markdown and MDX as the built page shows it, line for line.

`plain_markdown` removes what a page does not show (imports, JSX tags, comments, directives). Line numbers stay the
same: line 40 of the result is line 40 of the file. Fenced and inline code is never changed. This package does not
parse headings or blocks here; `__init__.py` does.
"""

import io
import re
from collections.abc import Iterable, Iterator

from citewell.ingest.readers.markdown.containers import bold_title, open_containers
from citewell.ingest.readers.markdown.markup import LinkTargets, reference_key, replace_markup
from citewell.ingest.readers.markdown.tabs import label_tabs, without_tab_marks
from citewell.text import FENCE, closes_fence

_ESM = re.compile(
    r"import\s+(?:[\w*${}\s,]+\s+from\s+)?['\"]|import\s+[\w*$,\s]*\{[^}]*$"
    r"|export\s+(?:default|const|let|var|function|async|class|\{|\*)"
)
_MAX_ESM_CHARACTERS = 300
_ADMONITION = re.compile(
    r"^(?P<indent>[ \t>]*):::+[ \t]*(?:[\w-]+)?(?:\[(?P<label>[^\]]*)\])?[ \t]*(?:\{[^}]*\})?(?P<title>.*)$"
)
_SLASH_BLOCK = re.compile(r"^(?P<indent>[ \t>]*)///+[ \t]*(?:[\w-]+)?[ \t]*(?:\|[ \t]*(?P<title>.*))?$")
_MAX_DIRECTIVE_CHARACTERS = 1000
_MYST_LABEL = re.compile(r"^\([\w:.-]+\)=$")  # a label for the heading that follows
_HEADING = re.compile(r"[ \t>]*#{1,6}[ \t]")
_HEADING_ID = re.compile(r"\{:?[ \t]*#(?P<id>[^}\s]+)(?:[ \t][^}]*)?\}|\{/\*[ \t]*#(?P<mdx_id>[^*\s]+)[ \t]*\*/\}")
_ATTRIBUTES = re.compile(r"\{:?[ \t]*(?:#[\w-]|\.[A-Za-z]|[a-z-]{1,30}=[\"'])[^{}]*\}|\{/\*[ \t]*#[^*\s]+[ \t]*\*/\}")
_TEMPLATE_LINE = re.compile(r"[ \t]*(?:\{\{[^{}]{0,300}\}\}\.?|\{%[^{}]{0,300}%\}|\{:[^{}]{0,300}\})[ \t]*")
_ICON = re.compile(r":(?:material|simple|octicons|fontawesome)-[a-z0-9-]{1,80}:(?:\{[^{}\n]{0,200}\})?[ \t]?")
_DEFINITION = re.compile(
    r"^ {0,3}\[(?P<label>[^\]\[^\n][^\]\[\n]{0,200})\]:[ \t]*<?(?P<url>[^\s<>]{1,2000})>?"
    r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^)\n]*\)))?[ \t]*$",
    re.MULTILINE,
)
_TAB_VALUE = re.compile(
    r"\{\s{0,20}label:\s{0,20}['\"](?P<label>[^'\"\n]{1,100})['\"],\s{0,20}value:\s{0,20}['\"](?P<value>[^'\"\n]{1,100})['\"]"
)


def plain_markdown(source: str) -> str:
    """The source without imports, JSX tags and comments; line numbers stay the same."""
    parts = list(_split_fenced_code(open_containers(without_tab_marks(source))))
    targets = _find_targets(text for is_code, text in parts if not is_code)
    return label_tabs("".join(text if is_code else _without_markup(text, targets) for is_code, text in parts))


def heading_id(line: str) -> str:
    """The explicit id of a heading line: "## Setup {#set-up}" -> "set-up"; "" if it has none."""
    bare = line.rstrip()
    match = _HEADING_ID.fullmatch(bare, max(bare.rfind("{"), 0)) if _HEADING.match(line) else None
    return (match["id"] or match["mdx_id"]) if match else ""


def _find_targets(prose: Iterable[str]) -> LinkTargets:
    urls: dict[str, str] = {}
    labels: dict[str, str] = {}
    for text in prose:
        if "]:" in text:
            for definition in _DEFINITION.finditer(text):
                urls.setdefault(reference_key(definition["label"]), definition["url"])
        if "<Tabs" in text:
            labels |= {found["value"]: found["label"] for found in _TAB_VALUE.finditer(text)}
    return LinkTargets(urls, labels)


def _split_fenced_code(source: str) -> Iterator[tuple[bool, str]]:
    """The source in parts, in order: whether a part is fenced code, and its text."""
    prose: list[str] = []
    code: list[str] = []
    fence = ""
    for line in io.StringIO(source, newline="\n"):  # as CommonMark: a line ends at "\n" alone
        if fence:
            code.append(line)
            if closes_fence(line.rstrip("\n"), fence):
                yield True, "".join(code)
                fence, code = "", []
        elif opening := FENCE.match(line.rstrip("\n")):
            yield False, "".join(prose)
            fence, prose, code = opening["fence"], [], [line]
        else:
            prose.append(line)
    yield bool(fence), "".join(code or prose)


def _without_markup(text: str, targets: LinkTargets) -> str:
    text = _without_esm(text)
    if targets.urls:
        text = _DEFINITION.sub("", text)
    return "\n".join(_without_directive(line) for line in replace_markup(text, targets).split("\n"))


def _without_directive(line: str) -> str:
    """`:::tip Watch out` becomes "**Watch out**", `## Title {#id}` loses the id."""
    if len(line) <= _MAX_DIRECTIVE_CHARACTERS:
        if ":::" in line and (match := _ADMONITION.match(line)):
            return bold_title(match["indent"], match["label"] or match["title"])
        if line.endswith(")=") and _MYST_LABEL.match(line):
            return ""
        if "///" in line and (match := _SLASH_BLOCK.match(line)):
            return bold_title(match["indent"], match["title"] or "")
        if "}" in line and _TEMPLATE_LINE.fullmatch(line):
            return ""
    if ":" in line and "-" in line:
        line = _ICON.sub("", line)
    return _without_attributes(line) if line.rstrip().endswith("}") else line


def _without_attributes(line: str) -> str:
    """The line without the id or the attribute list at its end: `{#id}`, `{ #id .class }`, `{/* #id */}`."""
    bare = line.rstrip()
    start = bare.rfind("{")
    if start > 0 and not bare[start - 1].isspace() and bare[start - 1] not in ")]`*>#":
        return line
    return bare[:start].rstrip() if _ATTRIBUTES.fullmatch(bare, start) else line


def _without_esm(text: str) -> str:
    """The text with `import` and `export` statements made blank; a statement ends where its brackets close."""
    if "import" not in text and "export" not in text:
        return text
    lines: list[str] = []
    depth = 0
    inside = False
    for line in text.split("\n"):
        if not inside and _ESM.match(line, 0, _MAX_ESM_CHARACTERS):
            inside, depth = True, 0
        if not inside:
            lines.append(line)
            continue
        depth += sum(line.count(bracket) for bracket in "([{") - sum(line.count(bracket) for bracket in ")]}")
        lines.append("")
        if depth <= 0:
            inside = False
    return "\n".join(lines)
