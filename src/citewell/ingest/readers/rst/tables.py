"""The tables of reStructuredText, drawn or listed, as rows of cells; and rows as a pipe table. Pure.

Cells come as source text: `rst/__init__.py` knows what their markup shows.
"""

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

_GRID_BORDER = re.compile(r"\+[-=+]*[-=][-=+]*\+")
_GRID_RULE = re.compile(r"\+[-=]+(?=\+)")
_SIMPLE_BORDER = re.compile(r"=+(?: +=+)+")
_SPAN_RULE = re.compile(r"-[- ]*")
LISTED_ROW = re.compile(r"(?P<lead>[*+-] +)[*+-](?: +|$)(?P<cell>.*)")
_LISTED_CELL = re.compile(r"[*+-](?: +|$)(?P<cell>.*)")
_CELL_DIRECTIVE = re.compile(r"\.\. +(?P<name>[\w:-]+)::(?P<argument>.*)")
_CELL_OPTION = re.compile(r":(?P<name>[\w-]+):(?P<value>.*)")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; `headed` says that the first row names the columns."""

    rows: tuple[tuple[str, ...], ...]
    headed: bool
    is_list: bool = False
    """Whether it is but a list: rows of one cell each, under no header."""


def pipe_table(table: Table, show: Callable[[str], str]) -> list[str]:
    """The table in GFM, a line for each row: the header (empty where there is none), the rule, the rest."""
    width = max(map(len, table.rows))
    rows = table.rows if table.headed else (("",) * width, *table.rows)
    lines = ["| " + " | ".join(_escaped(show(" ".join(cell.split()))) for cell in row) + " |" for row in rows]
    missing = width - len(rows[0])
    return [lines[0] + "  |" * missing, "|" + " --- |" * width, *lines[1:]]


def grid_end(lines: Sequence[str], first: int) -> int | None:
    """The line after the grid table that begins here, if one does."""
    if not _GRID_BORDER.fullmatch(lines[first].strip()):
        return None
    end = first
    while end < len(lines) and lines[end].lstrip().startswith(("+", "|")):
        end += 1
    return end if end - first > 2 and _GRID_BORDER.fullmatch(lines[end - 1].strip()) else None


def grid_table(lines: Sequence[str]) -> Table | None:
    """A drawn table; a cell over several columns stands in its first, one over several rows in its first."""
    lines = [line.strip() for line in lines]
    borders = [line for line in lines if _GRID_BORDER.fullmatch(line)]
    edges = sorted({place for line in borders for place, mark in enumerate(line) if mark == "+"})
    if _too_wide(len(edges), lines):
        return None
    rows: list[tuple[str, ...]] = []
    row: list[list[str]] = [[] for _ in edges[1:]]
    headed = False
    for line in lines[1:]:
        if _GRID_RULE.search(line):
            rows.append(tuple(" ".join(parts) for parts in row))
            row = [[] for _ in edges[1:]]
            headed = headed or (len(rows) == 1 and "=" in line and bool(_GRID_BORDER.fullmatch(line)))
        for parts, cell in zip(row, _grid_cells(line, edges), strict=True):
            if cell.strip("+-= |"):
                parts.append(cell.strip())
    return _table(rows, headed=headed)


def simple_end(lines: Sequence[str], first: int) -> int | None:
    """The line after the simple table that begins here, if one does: at its third border, or one before a blank."""
    if not _SIMPLE_BORDER.fullmatch(lines[first].strip()):
        return None
    borders = 0
    for place in range(first + 1, len(lines)):
        if not _SIMPLE_BORDER.fullmatch(lines[place].strip()):
            continue
        borders += 1
        if borders == 2 or place + 1 == len(lines) or not lines[place + 1].strip():
            return place + 1 if place > first + 1 else None
    return None


def simple_table(lines: Sequence[str]) -> Table | None:
    """A table under `=== ===`; a line without a first cell goes on with the row before it."""
    indent = len(lines[0]) - len(lines[0].lstrip())
    border = lines[0].strip()
    columns = [match.span() for match in re.finditer("=+", border)]
    if _too_wide(len(columns), lines):
        return None
    rows: list[tuple[str, ...]] = []
    headed = after_break = False
    for source in lines[1:-1]:
        line = source[indent:].rstrip()
        if _SIMPLE_BORDER.fullmatch(line):
            headed, after_break = len(rows) > 0, True
        elif not line or _SPAN_RULE.fullmatch(line):
            after_break = True
        else:
            cells = _simple_cells(line, columns)
            if cells[0] or not rows or after_break:
                rows.append(cells)
            else:
                rows[-1] = tuple(f"{before} {more}" for before, more in zip(rows[-1], cells, strict=True))
            after_break = False
    return _table(rows, headed=headed)


def listed_table(lines: Sequence[str], *, headed: bool) -> Table | None:
    """The rows of a `list-table`: a list of lists."""
    rows: list[list[list[str]]] = []
    row_column = cell_column = -1
    for line in lines:
        bare = line.strip()
        column = len(line) - len(line.lstrip())
        if (row := LISTED_ROW.match(bare)) and column == (row_column if rows else column):
            row_column, cell_column = column, column + len(row["lead"])
            rows.append([[row["cell"]]])
        elif rows and column == cell_column and (cell := _LISTED_CELL.match(bare)):
            rows[-1].append([cell["cell"]])
        elif rows:
            rows[-1][-1].append(bare)
        elif bare:
            return None
    table = _table([tuple(_cell_words(cell) for cell in row) for row in rows], headed=headed)
    return replace(table, is_list=not headed and max(map(len, rows)) == 1) if table else None


def csv_table(lines: Sequence[str], *, header: str, headed: bool, delimiter: str) -> Table | None:
    """The rows of a `csv-table`, under the header that its options give."""
    try:
        rows = [
            tuple(cell.strip() for cell in row)
            for row in csv.reader([header, *lines], delimiter=delimiter, skipinitialspace=True)
            if row
        ]
    except csv.Error:
        return None
    return _table(rows, headed=headed or bool(header))


def _table(rows: Sequence[tuple[str, ...]], *, headed: bool) -> Table | None:
    kept = tuple(row for row in rows if any(cell.strip() for cell in row))
    return Table(kept, headed) if kept else None


def _too_wide(columns: int, lines: Sequence[str]) -> bool:
    """Whether a border promises more cells than its lines can hold: not a table a person drew."""
    return columns * len(lines) > 10 * sum(map(len, lines)) + 1000


def _grid_cells(line: str, edges: Sequence[int]) -> list[str]:
    if line.startswith("|") and line.count("|") == len(edges):
        return line.split("|")[1:-1]  # wide characters move the edges of their line
    cells: list[str] = []
    begin = edges[0]
    for edge in edges[1:]:
        if line[edge : edge + 1] in ("|", "+", ""):
            cells.append(line[begin + 1 : edge])
            begin = edge
        else:
            cells.append("")
    # A cell over several columns was found at the last of them; it belongs to the first.
    return _moved_left(cells, [line[edge : edge + 1] in ("|", "+", "") for edge in edges[1:]])


def _moved_left(cells: list[str], closed: Sequence[bool]) -> list[str]:
    first = 0
    for place, is_closed in enumerate(closed):
        if is_closed:
            cells[first], cells[place] = cells[place], cells[first]
            first = place + 1
    return cells


def _simple_cells(line: str, columns: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """The line cut at its columns; words that run over a gap go with the column they begin in."""
    cells: list[str] = []
    begin = columns[0][0]
    skipped = 0
    for (_, end), (after, _) in zip(columns, [*columns[1:], (len(line) + 1, 0)], strict=True):
        if after <= len(line) and line[end:after].strip():
            skipped += 1
            continue
        cells.extend([line[begin:after].strip(), *([""] * skipped)])
        begin, skipped = after, 0
    return (*cells, *([""] * (len(columns) - len(cells))))


def _cell_words(lines: Sequence[str]) -> str:
    """A cell's words: of a directive in it, what the page shows in one line."""
    words: list[str] = []
    in_directive = False
    for line in lines:  # "| " begins a line that ends where its author wants
        if directive := _CELL_DIRECTIVE.match(line):
            in_directive = True
            words.append(
                "" if directive["name"] in ("image", "figure", "code-block", "code") else directive["argument"]
            )
        elif in_directive and (option := _CELL_OPTION.match(line)):
            words.append(option["value"] if option["name"] == "alt" else "")
        else:
            in_directive = in_directive and not line
            words.append(line[1:] if f"{line} ".startswith("| ") else line)
    return " ".join(" ".join(words).split())


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")
