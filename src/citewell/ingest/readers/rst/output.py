"""The output of the reStructuredText parser: the lines of the text, the current nesting, and the blocks so far.

Every output line is blank until a block is added there, so what is not added is removed and line numbers stay the
same. Only the rows of a table, and code without a blank line after it, move up within the lines of their own
block. What markup means is decided in `rst/__init__.py`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from citewell.ingest.readers.rst.inline import Targets, render_inline
from citewell.ingest.readers.rst.tables import Table, pipe_table
from citewell.models import Block, BlockKind, ParsedDocument

_LONG_RUN = re.compile(r"`{3,}|~{3,}")


@dataclass(frozen=True, slots=True)
class Nesting:
    """The directive, list item or quote that contains the lines at `indent`; it began at `column`.

    `margin` is the indent of these lines in the output, `style` the kind of marker of a list item.
    """

    indent: int
    margin: int
    column: int
    group: int | None = None
    style: str = ""


@dataclass(frozen=True, slots=True)
class BlockSpan:
    """A block by its line numbers; `end` is the line after it."""

    kind: BlockKind
    first: int
    end: int
    group: int | None = None
    level: int = 0
    title: str = ""
    anchor: str = ""


class RstOutput:
    """The source lines, which the parser may rewrite, and the output lines."""

    def __init__(self, lines: list[str], targets: Targets) -> None:
        self.lines = lines
        self.targets = targets
        self.blocks: list[BlockSpan] = []
        self.last_item: Nesting | None = None
        """The list item at the current indent that ended just before: the next item may belong to its list."""
        self._output_lines = [""] * len(lines)
        self._nesting: list[Nesting] = []
        self._groups = 0

    def build(self, title: str) -> ParsedDocument:
        """The parsed document, with the blocks' line numbers turned into offsets."""
        starts = [0, *accumulate(len(line) + 1 for line in self._output_lines)]
        length = starts[-1] - 1
        blocks = tuple(
            Block(
                block.kind,
                starts[block.first],
                min(starts[block.end], length),
                group=block.group,
                level=block.level,
                title=block.title,
                anchor=block.anchor,
            )
            for block in self.blocks
        )
        return ParsedDocument(title=title, text="\n".join(self._output_lines), blocks=blocks)

    # The current nesting.

    @property
    def margin(self) -> int:
        return self._nesting[-1].margin if self._nesting else 0

    @property
    def group(self) -> int | None:
        """The number of the outermost list that contains the current line."""
        return self._nesting[-1].group if self._nesting else None

    def move_to_indent(self, indent: int) -> None:
        """Leave what ends before a line with this indent; a deeper indent without markup begins a quote."""
        self.last_item = None
        while self._nesting and self._nesting[-1].indent > indent:
            ended = self._nesting.pop()
            self.last_item = ended if ended.style and ended.column == indent else None
        if indent > (self._nesting[-1].indent if self._nesting else 0):
            self.enter(indent, column=indent)

    def enter(self, indent: int, *, column: int) -> None:
        """Enter a directive or quote; its lines get the margin of the line where it began."""
        self._nesting.append(Nesting(indent, self.margin, column, self.group))

    def enter_item(self, indent: int, *, column: int, marker: str, style: str) -> None:
        """Enter a list item. It belongs to the list of the last item if the style is the same."""
        group = self.group
        if group is None and self.last_item and self.last_item.style == style:
            group = self.last_item.group
        if group is None:
            group = self.new_group()
        self._nesting.append(Nesting(indent, self.margin + len(marker), column, group, style))

    def new_group(self) -> int:
        self._groups += 1
        return self._groups

    # Questions about the source.

    def is_blank(self, line: int) -> bool:
        return line >= len(self.lines) or not self.lines[line].strip()

    def block_end(self, line: int, indent: int) -> int:
        """The line after everything below this one that is indented deeper, without blank lines at its end."""
        end = line + 1
        for number in range(line + 1, len(self.lines)):
            if self.lines[number].strip():
                if indent_of(self.lines[number]) <= indent:
                    break
                end = number + 1
        return end

    def first_nonblank(self, line: int, end: int) -> int:
        """The first line from here that is not blank; `end` if there is none."""
        return next((number for number in range(line, end) if self.lines[number].strip()), end)

    def inner_indent(self, line: int, indent: int, *, default: int) -> int:
        """The indent of the content below this line; the default if there is none."""
        following = self.first_nonblank(line + 1, len(self.lines))
        depth = indent_of(self.lines[following]) if following < len(self.lines) else 0
        return depth if depth > indent else default

    # Adding blocks.

    def add(self, kind: BlockKind, first: int, lines: Sequence[str]) -> BlockSpan | None:
        """Write the lines from `first` on and add them as a block, unless all are blank."""
        if first + len(lines) > len(self._output_lines):
            self._output_lines.append("")  # for a fence after the last line of a file that does not end with a newline
        self._output_lines[first : first + len(lines)] = lines
        if not any(line.strip() for line in lines):
            return None
        self.blocks.append(BlockSpan(kind, first, first + len(lines), self.group))
        return self.blocks[-1]

    def add_heading(self, line: int, words: str, *, level: int, title: str, anchor: str) -> None:
        if block := self.add("heading", line, [f"{'#' * level} {words}"]):
            self.blocks[-1] = replace(block, group=None, level=level, title=title, anchor=anchor)

    def add_text(self, first: int, words: Sequence[str], *, marker: str = "") -> None:
        """Add a paragraph. Its first line begins with the list marker, if any; the others line up with the text."""
        text = render_inline("\n".join(words), self.targets)
        if "```" in text or "~~~" in text:
            text = _LONG_RUN.sub(lambda run: run[0][:2], text)  # in prose it must not open a code block
        lines = [" " * self.margin + line.strip() if line.strip() else "" for line in text.split("\n")]
        if marker and lines[0]:
            lines[0] = " " * (self.margin - len(marker)) + marker + lines[0].lstrip()
        self.add("text" if self.group is None else "list", first, lines)

    def add_code(self, start: int, end: int, *, available_from: int, language: str = "") -> None:
        """Add lines as fenced code.

        The opening fence needs a line before the code, not before `available_from`; the closing fence uses the
        blank line after it. Without such lines the code is added as text.
        """
        code = self._dedented(start, end)
        runs = [len(run[0]) for line in code for run in re.finditer("`{3,}", line)]
        fence = " " * self.margin + "`" * (max(runs, default=2) + 1)
        fenced = [fence + language, *code, fence]
        if start - 1 >= available_from and self.is_blank(end):
            self.add("code", start - 1, fenced)
        elif start - 2 >= available_from:
            self.add("code", start - 2, fenced)
        else:
            self.add_text(start, code)

    def add_formula(self, line: int, argument: str, end: int) -> None:
        """Add a formula that begins in the directive's argument or below it."""
        margin = " " * self.margin
        start = self.first_nonblank(line + 1, end)
        if start == end:
            self.add("math", line, [f"{margin}$$ {argument} $$" if argument else ""])
            return
        first = line if argument else start - 1
        formula = [f"{margin}$$ {argument}".rstrip(), *([""] * (start - first - 1)), *self._dedented(start, end)]
        if self.is_blank(end):
            formula.append(f"{margin}$$")
        else:
            formula[-1] += " $$"
        self.add("math", first, formula)

    def add_table(self, table: Table, start: int, end: int, *, available_from: int, title: str = "") -> bool:
        """Add a table at the line of its first row, or earlier if it needs more lines; False if they are not enough.

        It may use the lines from `available_from` on; a title is written on the first of them.
        """
        lines = [" " * self.margin + line for line in pipe_table(table, lambda cell: render_inline(cell, self.targets))]
        first = min(start, end - len(lines))
        if first < available_from + bool(title):
            return False
        if title:
            self.add_text(available_from, [title])
        if (block := self.add("table", first, lines)) and block.group is None:
            self.blocks[-1] = replace(block, group=self.new_group())
        return True

    def _dedented(self, start: int, end: int) -> list[str]:
        body = self.lines[start:end]
        depth = min(indent_of(line) for line in body if line.strip())
        return [" " * self.margin + line[depth:].rstrip() if line.strip() else "" for line in body]


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
