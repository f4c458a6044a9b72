"""Build a parsed document block by block: its canonical text, and the offsets of each block.

It knows no file format.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from citewell.models import Block, BlockKind, ParsedDocument

_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_NO_BREAK = re.compile("[\u00a0\u2007\u202f]")
_LOOKS_LIKE_MARKUP = re.compile(r"#{1,6}[ \t]|`{3}|~{3}|\$\$|\|")
_POWER = re.compile(r"[-+−]?(?:\d{1,6}|[^\W\d_])")
_EXPONENT = re.compile(r"(?=.*[-+−*/])(?:[\d\s()+−*/.-]|(?<![^\W\d_])[^\W\d_](?![^\W\d_])){2,20}")
_FORMULA = re.compile(r"\$\$(.+)\$\$|\\\[(.+)\\\]", re.DOTALL)
_MAX_INDENT_LEVELS = 8  # more would let a small hostile file grow large


def clean(text: str) -> str:
    """The text without invisible characters. Line ends become "\\n", non-breaking spaces become spaces."""
    return _NO_BREAK.sub(" ", _INVISIBLE.sub("", _LINE_END.sub("\n", text)))


def code_span(text: str) -> str:
    """Inline code between backticks, with more of them than the text itself has in a row."""
    ticks = "`" * (_longest_run(text, "`") + 1)
    gap = " " if len(ticks) > 1 else ""
    return f"{ticks}{gap}{text}{gap}{ticks}"


def web_link(text: str, url: str) -> str:
    """A Markdown link for a web URL; for any other URL only the text, since its target moves."""
    url = re.sub(r"\s+", "", url)
    if not text or not re.match(r"https?://.", url, re.IGNORECASE) or url == text:
        return text
    return f"[{text}]({url.replace('(', '%28').replace(')', '%29')})"


def superscript(text: str) -> str:
    """A superscript as text: 10⁶ is "10^6", never "106", and 2ⁿ⁻¹ is "2^(n-1)"; the "st" of "1st" stays "st"."""
    if _POWER.fullmatch(text):
        return f"^{text}"
    return f"^({text})" if _EXPONENT.fullmatch(text) else text


def _longest_run(text: str, character: str) -> int:
    return max((len(run) for run in re.findall(f"{character}+", text)), default=0)


class Container:
    """The list item or quotation that blocks are in; without a parent, the top level of the document.

    The marker ("- ") goes before the first line in the container, an indent before all others.
    """

    def __init__(self, parent: "Container | None" = None, *, marker: str = "", kind: BlockKind = "text") -> None:
        self._parent = parent
        self._depth: int = parent._depth + 1 if parent else 0
        self._marker = marker
        self._used = False
        self.kind: BlockKind = "list" if parent and parent.kind == "list" else kind
        self.group: int | None = parent.group if parent else None
        self.lead = ""
        """Text that goes before the next paragraph: a defined term, the title of a note."""

    @property
    def nested(self) -> bool:
        return self._parent is not None

    def take_prefixes(self, *, marker: bool = True) -> tuple[str, str]:
        """The prefix of the first line and of the others. The marker is in the first call's result only."""
        if self._parent is None:
            return "", ""
        first, rest = self._parent.take_prefixes(marker=marker)
        indent = self._marker if self._marker.startswith(">") else " " * len(self._marker)
        indent = indent if self._depth <= _MAX_INDENT_LEVELS else ""
        fresh = marker and not self._used
        self._used = self._used or marker
        return first + (self._marker if fresh and (indent or self._marker[:1] != ">") else indent), rest + indent


class DocumentBuilder:
    """Collects blocks; `build` returns the parsed document."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []
        self._groups = 0

    def new_group(self) -> int:
        self._groups += 1
        return self._groups

    def build(self, title: str) -> ParsedDocument:
        return ParsedDocument(title=title, text="".join(self._parts), blocks=tuple(self._blocks))

    def add_heading(self, level: int, text: str, *, title: str, anchor: str = "") -> None:
        """Add a heading on one line; an empty heading is skipped."""
        words = " ".join(text.split())
        if words and title:
            level = min(max(level, 1), 6)
            self._append([f"{'#' * level} {words}"], Block("heading", 0, 0, level=level, title=title, anchor=anchor))

    def add_paragraph(self, text: str, container: Container) -> None:
        """Add prose. A line that looks like a fence, a heading or a table gets a backslash before it."""
        lines = [stripped for line in text.split("\n") if (stripped := line.strip())]
        if not lines and not container.lead:
            return
        if not container.lead and (formula := _FORMULA.fullmatch("\n".join(lines))):
            self.add_formula(formula[1] or formula[2], container)
            return
        lines = ["\\" + line if _LOOKS_LIKE_MARKUP.match(line) else line for line in lines]
        if container.lead:
            lines = [" ".join([container.lead, *lines[:1]]), *lines[1:]]
            container.lead = ""
        self._add_block(container.kind, lines, container)

    def flush_lead(self, container: Container) -> None:
        """Write the lead as a paragraph of its own, where no paragraph followed it."""
        if container.lead:
            self.add_paragraph("", container)

    def add_code(self, text: str, container: Container, *, language: str = "") -> None:
        """Add a fenced code block; its fence is longer than any run of backticks inside."""
        lines = [line.rstrip() for line in text.split("\n")]
        while lines and not lines[0]:
            lines.pop(0)
        while lines and not lines[-1]:
            lines.pop()
        if lines:
            self.flush_lead(container)
            fence = "`" * max(3, _longest_run(text, "`") + 1)
            self._add_block("code", [fence + language, *lines, fence], container)

    def add_formula(self, tex: str, container: Container) -> None:
        lines = [stripped for line in tex.replace("$$", "").split("\n") if (stripped := line.strip())]
        if lines:
            self.flush_lead(container)
            self._add_block("math", ["$$", *lines, "$$"], container, marker=False)

    def add_table(self, header: Sequence[str], rows: Sequence[Sequence[str]], container: Container) -> None:
        """Add a pipe table; rows shorter than the header stay short, as GFM allows."""
        rows = [row for row in rows if any(row)]
        if not rows and not any(header):
            return
        self.flush_lead(container)
        width = max(map(len, [header, *rows]))
        header = [*header, *[""] * (width - len(header))]
        lines = [_table_row(header), _table_row(["---"] * width), *map(_table_row, rows)]
        self._add_block("table", lines, container, marker=False)

    def _add_block(self, kind: BlockKind, lines: list[str], container: Container, *, marker: bool = True) -> None:
        first, rest = container.take_prefixes(marker=marker)
        group = container.group
        if group is None and kind == "table":
            group = self.new_group()
        lines = [f"{rest if number else first}{line}".rstrip() for number, line in enumerate(lines)]
        before = self._blocks[-1] if self._blocks else None
        next_item = first != rest and before is not None and (before.kind, before.group) == ("list", group)
        self._append(lines, Block(kind, 0, 0, group=group), tight=kind == "list" and next_item)

    def _append(self, lines: list[str], block: Block, *, tight: bool = False) -> None:
        if self._blocks and not tight:
            self._parts.append("\n")
            self._length += 1
        text = "\n".join(lines) + "\n"
        start, self._length = self._length, self._length + len(text)
        self._parts.append(text)
        self._blocks.append(replace(block, start=start, end=self._length))


def _table_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"
