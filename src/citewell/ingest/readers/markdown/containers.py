"""Markup around blocks: notes, tabs and other containers of Docusaurus, MkDocs and MyST. Keeps the number of lines.

A fence is not always code: `mdx-code-block` is MDX that GitHub shows as code, and MyST writes notes and tabs as fences.
`open_containers` makes such content plain Markdown and marks the tabs; `page.py` does the rest.
"""

import re
from dataclasses import dataclass

from citewell.ingest.readers.markdown.tabs import TAB_MARKS, tab_begin, tab_end
from citewell.text import FENCE, HIDDEN_DIRECTIVES, PROSE_DIRECTIVES, closes_fence

_MKDOCS_BLOCK = re.compile(
    r"(?P<indent> *)(?P<mark>!!!|\?\?\?\+?|===[+!]?(?=[ \t\"]))[ \t]*[\w -]*(?:\"(?P<title>.*)\")?[ \t]*"
)
_MAX_LINE_CHARACTERS = 400  # of a line that opens a container
_MARKS = ("mdx-code-block", "```{", "~~~{", "``` {", ":::", "///")
_DIRECTIVE = re.compile(r"\{(?P<name>[A-Za-z][\w:+-]*)\}[ \t]*(?P<argument>.*)")
_BLOCK = re.compile(r"(?P<indent>[ \t>]*)(?P<mark>:{3,}|/{3,})[ \t]*(?P<rest>.*)")
_BLOCK_NAME = re.compile(r"\{?(?P<name>[\w-]+)\}?[ \t]*(?:\||\[)?[ \t]*(?P<label>[^\]{}]*)")
_TAG = re.compile(r"<[^<>]*>")
_OPTION = re.compile(r"[ \t>]*:[A-Za-z][\w-]*:(?:[ \t]|$)")
_TABS = frozenset({"tab", "tab-item"})
_LAYOUT = frozenset({"div", "grid", "grid-item", "container"})  # what follows the name is no title
_CODE_DIRECTIVES = frozenset({"code", "code-block", "code-cell", "sourcecode", "testcode", "doctest", "testoutput"})


def open_containers(source: str) -> str:
    """The source with the content of its containers as plain Markdown, on the same lines."""
    if "!!!" in source or "???" in source or "===" in source:
        source = _dedent_mkdocs_blocks(source)
    if any(mark in source for mark in _MARKS):
        source = "\n".join(_ContainerReader().read(source.split("\n")))
    return source


def bold_title(indent: str, title: str) -> str:
    """A block's title as a bold line after the indent; without a title, a blank line."""
    bare = _TAG.sub("", title).strip().strip("*").strip()
    return f"{indent}**{bare}**" if bare else indent.rstrip()


def _dedent_mkdocs_blocks(source: str) -> str:
    """MkDocs' `!!! note "Title"` blocks: the title, then the content without its extra indentation.

    Of a tab, `=== "Linux"`, the beginning and the end are marked.
    """
    lines: list[str] = []
    blocks: list[tuple[int, bool]] = []  # the indent of each open block, and whether it is a tab
    fence = ""
    for line in source.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        marks = ""
        while blocks and line.strip() and indent < blocks[-1][0]:
            marks += tab_end if blocks.pop()[1] else ""
        if marks and (not lines[-1].strip() or lines[-1][-1] in TAB_MARKS):
            lines[-1], marks = lines[-1] + marks, ""
        dedented = line[4 * len(blocks) :] if line.strip() else line
        if fence:
            fence = "" if dedented.strip() == fence else fence
        elif opening := FENCE.match(dedented):
            fence = opening["fence"]
            dedented, marks = dedented + marks, ""  # what stands before the fence would hide it
        elif len(line) <= _MAX_LINE_CHARACTERS and (block := _MKDOCS_BLOCK.fullmatch(line)):
            title, is_tab = block["title"] or "", block["mark"].startswith("=")
            outer_indent = dedented[: len(dedented) - len(dedented.lstrip(" "))]
            if not is_tab:
                dedented = bold_title(outer_indent, title)
            elif title:
                dedented = outer_indent + tab_begin(title)
            if title or not is_tab:  # "===" alone underlines a heading
                blocks.append((len(block["indent"]) + 4, is_tab))
        lines.append(marks + dedented)
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Container:
    mark: str
    is_tab: bool


class _ContainerReader:
    """Goes through the lines of a page; `_open` are the containers that it is in."""

    def __init__(self) -> None:
        self._open: list[_Container] = []
        self._code_fence = ""
        self._hidden_fence = ""
        self._expects_option = False

    def read(self, lines: list[str]) -> list[str]:
        return [self._read_line(line) for line in lines]

    def _read_line(self, line: str) -> str:
        if self._hidden_fence:
            self._hidden_fence = "" if closes_fence(line, self._hidden_fence) else self._hidden_fence
            return ""
        if self._expects_option and _OPTION.match(line):
            return ""
        self._expects_option = False
        if self._code_fence:
            self._code_fence = "" if closes_fence(line, self._code_fence) else self._code_fence
            return line
        if self._open and line.lstrip(" \t>")[:3] in ("```", "~~~") and (closed := self._close_fence(line)) is not None:
            return closed
        return self._open_container(line) if len(line) <= _MAX_LINE_CHARACTERS else line

    def _open_container(self, line: str) -> str:
        if opening := FENCE.match(line):
            return self._open_fence(line, opening)
        block = _BLOCK.fullmatch(line)
        return self._read_block(block) if block else line

    def _close_fence(self, line: str) -> str | None:
        """The line that closes the innermost fence around prose; None if it closes none."""
        for position in range(len(self._open) - 1, -1, -1):
            container = self._open[position]
            if container.mark[0] in "`~":
                if not closes_fence(line, container.mark):
                    return None
                closed = self._open[position:]
                del self._open[position:]
                return tab_end * sum(container.is_tab for container in closed)
        return None

    def _open_fence(self, line: str, opening: re.Match[str]) -> str:
        indent, fence, info = line[: opening.start("fence")], opening["fence"], line[opening.end() :].strip()
        if info.split(" ", 1)[0] == "mdx-code-block":
            self._open.append(_Container(fence, is_tab=False))
            return ""
        directive = _DIRECTIVE.match(info)
        name = directive["name"].lower() if directive else ""
        if directive and name in _CODE_DIRECTIVES:
            self._code_fence, self._expects_option = fence, True
            return f"{indent}{fence}{directive['argument']}"
        if name == "figure" or name in PROSE_DIRECTIVES:
            self._open.append(_Container(fence, is_tab=name in _TABS))
            self._expects_option = True
            title = directive["argument"] if directive and name != "figure" and name not in _LAYOUT else ""
            return indent + tab_begin(title) if name in _TABS else bold_title(indent, title)
        if name in HIDDEN_DIRECTIVES and name != "eval-rst":
            self._hidden_fence = fence
            return ""
        self._code_fence = fence
        return line

    def _read_block(self, block: re.Match[str]) -> str:
        """A `:::` or `///` line; `page.py` replaces those of other blocks than tabs."""
        mark, rest = block["mark"], block["rest"].strip()
        if not rest:
            innermost = self._open[-1] if self._open else None
            if innermost is None or innermost.mark[0] != mark[0] or len(innermost.mark) > len(mark):
                return block[0]
            self._open.pop()
            return tab_end if innermost.is_tab else block[0]
        found = _BLOCK_NAME.match(rest)
        name = found["name"].lower() if found else ""
        self._open.append(_Container(mark, is_tab=name in _TABS))
        self._expects_option = rest.startswith("{")
        if found and name in _TABS:
            return block["indent"] + tab_begin(found["label"])
        return "" if rest.startswith("{") and name in _LAYOUT else block[0]
