"""The sheet a page of reStructuredText is copied to: its lines, where we are among them, and what is put where.

A line of the sheet is blank until something is put on it, so whatever is not copied is gone and every
line stays on its line. Only the rows of a table, and code without a blank line after it, move up inside
their own lines. Which markup means what is not known here: `rst/__init__.py` reads.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from citewell.ingest.readers.rst.inline import Targets, shown
from citewell.ingest.readers.rst.tables import Table, pipe_table
from citewell.models import Block, BlockKind

_LONG_RUN = re.compile(r"`{3,}|~{3,}")


@dataclass(frozen=True, slots=True)
class Level:
    """What the lines at `indent` stand in: a directive, list item or quote that began at `column`.

    `margin` is the indentation they are shown with, `style` the kind of mark of a list item.
    """

    indent: int
    margin: int
    column: int
    group: int | None = None
    style: str = ""


@dataclass(frozen=True, slots=True)
class BlockSpan:
    """A block by its lines."""

    kind: BlockKind
    first: int
    end: int
    group: int | None = None
    level: int = 0
    title: str = ""
    anchor: str = ""


class RstOutput:
    """The lines of a source, which readers may rewrite, and the lines of the page."""

    def __init__(self, lines: list[str], targets: Targets) -> None:
        self.lines = lines
        self.targets = targets
        self.found: list[BlockSpan] = []
        self.left: Level | None = None
        """The list item that ended just before this line, at its indentation: the line may go on with its list."""
        self._out = [""] * len(lines)
        self._levels: list[Level] = []
        self._groups = 0

    def text(self) -> str:
        return "\n".join(self._out)

    def blocks(self) -> tuple[Block, ...]:
        starts = [0, *accumulate(len(line) + 1 for line in self._out)]
        length = starts[-1] - 1
        return tuple(
            Block(
                one.kind,
                starts[one.first],
                min(starts[one.end], length),
                group=one.group,
                level=one.level,
                title=one.title,
                anchor=one.anchor,
            )
            for one in self.found
        )

    # Where we are.

    @property
    def margin(self) -> int:
        return self._levels[-1].margin if self._levels else 0

    @property
    def group(self) -> int | None:
        """The number of the outermost list we stand in."""
        return self._levels[-1].group if self._levels else None

    def settle(self, indent: int) -> None:
        """Leave what ends before this indentation; a deeper one that nothing announced is a quote."""
        self.left = None
        while self._levels and self._levels[-1].indent > indent:
            level = self._levels.pop()
            self.left = level if level.style and level.column == indent else None
        if indent > (self._levels[-1].indent if self._levels else 0):
            self.enter(indent, column=indent)

    def enter(self, indent: int, *, column: int) -> None:
        """Go into a directive or quote: its lines are shown where it began."""
        self._levels.append(Level(indent, self.margin, column, self.group))

    def enter_item(self, indent: int, *, column: int, mark: str, style: str) -> None:
        """Go into a list item, of the list that we just left where the style is the same."""
        group = self.group
        if group is None and self.left and self.left.style == style:
            group = self.left.group
        if group is None:
            group = self.new_group()
        self._levels.append(Level(indent, self.margin + len(mark), column, group, style))

    def new_group(self) -> int:
        self._groups += 1
        return self._groups

    # What the source says.

    def is_blank(self, line: int) -> bool:
        return line >= len(self.lines) or not self.lines[line].strip()

    def block_end(self, line: int, indent: int) -> int:
        """The line after everything below this one that is indented deeper, without blank lines at its end."""
        end = line + 1
        for place in range(line + 1, len(self.lines)):
            if self.lines[place].strip():
                if indent_of(self.lines[place]) <= indent:
                    break
                end = place + 1
        return end

    def first_written(self, line: int, end: int) -> int:
        """The first line from here that is not blank, or the end."""
        return next((place for place in range(line, end) if self.lines[place].strip()), end)

    def inner_indent(self, line: int, indent: int, *, default: int) -> int:
        """The indentation of what this line holds."""
        following = self.first_written(line + 1, len(self.lines))
        depth = indent_of(self.lines[following]) if following < len(self.lines) else 0
        return depth if depth > indent else default

    # What is put on the page.

    def put(self, kind: BlockKind, first: int, lines: Sequence[str]) -> BlockSpan | None:
        """Put lines on the page and remember them as a block, unless all are blank."""
        if first + len(lines) > len(self._out):
            self._out.append("")  # for a fence after the last line of a file that does not end with a newline
        self._out[first : first + len(lines)] = lines
        if not any(line.strip() for line in lines):
            return None
        self.found.append(BlockSpan(kind, first, first + len(lines), self.group))
        return self.found[-1]

    def put_heading(self, line: int, words: str, *, level: int, title: str, anchor: str) -> None:
        if found := self.put("heading", line, [f"{'#' * level} {words}"]):
            self.found[-1] = replace(found, group=None, level=level, title=title, anchor=anchor)

    def put_text(self, first: int, words: Sequence[str], *, mark: str = "") -> None:
        """Put a paragraph; in a list its first line begins with the mark, and the others stand below its words."""
        text = shown("\n".join(words), self.targets)
        if "```" in text or "~~~" in text:
            text = _LONG_RUN.sub(lambda run: run[0][:2], text)  # in prose it must not open a code block
        lines = [" " * self.margin + line.strip() if line.strip() else "" for line in text.split("\n")]
        if mark and lines[0]:
            lines[0] = " " * (self.margin - len(mark)) + mark + lines[0].lstrip()
        self.put("text" if self.group is None else "list", first, lines)

    def put_code(self, start: int, end: int, *, owned: int, language: str = "") -> None:
        """Put lines as code, with fences on a line before them, from `owned` on, and on the blank line after them."""
        code = self._dedented(start, end)
        runs = [len(run[0]) for line in code for run in re.finditer("`{3,}", line)]
        fence = " " * self.margin + "`" * (max(runs, default=2) + 1)
        fenced = [fence + language, *code, fence]
        if start - 1 >= owned and self.is_blank(end):
            self.put("code", start - 1, fenced)
        elif start - 2 >= owned:
            self.put("code", start - 2, fenced)
        else:
            self.put_text(start, code)

    def put_math(self, line: int, argument: str, end: int) -> None:
        """Put a formula that begins in the directive's argument or below it."""
        margin = " " * self.margin
        start = self.first_written(line + 1, end)
        if start == end:
            self.put("math", line, [f"{margin}$$ {argument} $$" if argument else ""])
            return
        first = line if argument else start - 1
        formula = [f"{margin}$$ {argument}".rstrip(), *([""] * (start - first - 1)), *self._dedented(start, end)]
        if self.is_blank(end):
            formula.append(f"{margin}$$")
        else:
            formula[-1] += " $$"
        self.put("math", first, formula)

    def put_table(self, table: Table, start: int, end: int, *, owned: int, title: str = "") -> bool:
        """Put a table where its first row stands, or as far before as it needs room; False where there is none.

        The lines from `owned` on are its own; a title stands on the first of them.
        """
        lines = [" " * self.margin + line for line in pipe_table(table, lambda cell: shown(cell, self.targets))]
        first = min(start, end - len(lines))
        if first < owned + bool(title):
            return False
        if title:
            self.put_text(owned, [title])
        if (found := self.put("table", first, lines)) and found.group is None:
            self.found[-1] = replace(found, group=self.new_group())
        return True

    def _dedented(self, start: int, end: int) -> list[str]:
        body = self.lines[start:end]
        depth = min(indent_of(line) for line in body if line.strip())
        return [" " * self.margin + line[depth:].rstrip() if line.strip() else "" for line in body]


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
