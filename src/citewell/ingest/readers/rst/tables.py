"""Parse the tables of reStructuredText into rows of cells, and write rows as a pipe table. Pure.

Cells stay source text: `rst/inline.py` renders their markup.
"""

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

_GRID_BORDER = re.compile(r"\+[-=+]*[-=][-=+]*\+")
_GRID_RULE = re.compile(r"\+[-=]+(?=\+)")
_SIMPLE_BORDER = re.compile(r"=+(?: +=+)+")
_SPAN_RULE = re.compile(r"-[- ]*")
LIST_TABLE_ROW = re.compile(r"(?P<lead>[*+-] +)[*+-](?: +|$)(?P<cell>.*)")
_LIST_TABLE_CELL = re.compile(r"[*+-](?: +|$)(?P<cell>.*)")
_CELL_DIRECTIVE = re.compile(r"\.\. +(?P<name>[\w:-]+)::(?P<argument>.*)")
_CELL_OPTION = re.compile(r":(?P<name>[\w-]+):(?P<value>.*)")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; `has_header` means that the first row names the columns."""

    rows: tuple[tuple[str, ...], ...]
    has_header: bool
    is_list: bool = False
    """Whether it is only a list: rows of one cell each, without a header."""


def pipe_table(table: Table, render_cell: Callable[[str], str]) -> list[str]:
    """The table in GFM, one line per row: the header (empty if there is none), the delimiter row, the other rows."""
    width = max(map(len, table.rows))
    rows = table.rows if table.has_header else (("",) * width, *table.rows)
    lines = [
        "| " + " | ".join(_escape_pipes(render_cell(" ".join(cell.split()))) for cell in row) + " |" for row in rows
    ]
    missing = width - len(rows[0])
    return [lines[0] + "  |" * missing, "|" + " --- |" * width, *lines[1:]]


def grid_end(lines: Sequence[str], first: int) -> int | None:
    """The line after the grid table that begins here; None if there is none."""
    if not _GRID_BORDER.fullmatch(lines[first].strip()):
        return None
    end = first
    while end < len(lines) and lines[end].lstrip().startswith(("+", "|")):
        end += 1
    return end if end - first > 2 and _GRID_BORDER.fullmatch(lines[end - 1].strip()) else None


def grid_table(lines: Sequence[str]) -> Table | None:
    """Parse a grid table. A cell that spans columns or rows is put into the first of them."""
    lines = [line.strip() for line in lines]
    borders = [line for line in lines if _GRID_BORDER.fullmatch(line)]
    edges = sorted({column for line in borders for column, character in enumerate(line) if character == "+"})
    if _too_wide(len(edges), lines):
        return None
    rows: list[tuple[str, ...]] = []
    row: list[list[str]] = [[] for _ in edges[1:]]
    has_header = False
    for line in lines[1:]:
        if _GRID_RULE.search(line):
            rows.append(tuple(" ".join(parts) for parts in row))
            row = [[] for _ in edges[1:]]
            has_header = has_header or (len(rows) == 1 and "=" in line and bool(_GRID_BORDER.fullmatch(line)))
        for parts, cell in zip(row, _grid_cells(line, edges), strict=True):
            if cell.strip("+-= |"):
                parts.append(cell.strip())
    return _make_table(rows, has_header=has_header)


def simple_end(lines: Sequence[str], first: int) -> int | None:
    """The line after the simple table that begins here; None if there is none.

    The table ends at its third border, or at a border before a blank line.
    """
    if not _SIMPLE_BORDER.fullmatch(lines[first].strip()):
        return None
    borders = 0
    for number in range(first + 1, len(lines)):
        if not _SIMPLE_BORDER.fullmatch(lines[number].strip()):
            continue
        borders += 1
        if borders == 2 or number + 1 == len(lines) or not lines[number + 1].strip():
            return number + 1 if number > first + 1 else None
    return None


def simple_table(lines: Sequence[str]) -> Table | None:
    """Parse a table under `=== ===`; a line without a first cell continues the row before it."""
    indent = len(lines[0]) - len(lines[0].lstrip())
    border = lines[0].strip()
    columns = [match.span() for match in re.finditer("=+", border)]
    if _too_wide(len(columns), lines):
        return None
    rows: list[tuple[str, ...]] = []
    has_header = after_break = False
    for source in lines[1:-1]:
        line = source[indent:].rstrip()
        if _SIMPLE_BORDER.fullmatch(line):
            has_header, after_break = len(rows) > 0, True
        elif not line or _SPAN_RULE.fullmatch(line):
            after_break = True
        else:
            cells = _simple_cells(line, columns)
            if cells[0] or not rows or after_break:
                rows.append(cells)
            else:
                rows[-1] = tuple(f"{before} {more}" for before, more in zip(rows[-1], cells, strict=True))
            after_break = False
    return _make_table(rows, has_header=has_header)


def list_table(lines: Sequence[str], *, has_header: bool) -> Table | None:
    """Parse the rows of a `list-table`: a list of lists."""
    rows: list[list[list[str]]] = []
    row_column = cell_column = -1
    for line in lines:
        stripped = line.strip()
        column = len(line) - len(line.lstrip())
        if (row := LIST_TABLE_ROW.match(stripped)) and column == (row_column if rows else column):
            row_column, cell_column = column, column + len(row["lead"])
            rows.append([[row["cell"]]])
        elif rows and column == cell_column and (cell := _LIST_TABLE_CELL.match(stripped)):
            rows[-1].append([cell["cell"]])
        elif rows:
            rows[-1][-1].append(stripped)
        elif stripped:
            return None
    table = _make_table([tuple(_cell_text(cell) for cell in row) for row in rows], has_header=has_header)
    return replace(table, is_list=not has_header and max(map(len, rows)) == 1) if table else None


def csv_table(lines: Sequence[str], *, header: str, has_header: bool, delimiter: str) -> Table | None:
    """Parse the rows of a `csv-table`, below the header from its options."""
    try:
        rows = [
            tuple(cell.strip() for cell in row)
            for row in csv.reader([header, *lines], delimiter=delimiter, skipinitialspace=True)
            if row
        ]
    except csv.Error:
        return None
    return _make_table(rows, has_header=has_header or bool(header))


def _make_table(rows: Sequence[tuple[str, ...]], *, has_header: bool) -> Table | None:
    filled_rows = tuple(row for row in rows if any(cell.strip() for cell in row))
    return Table(filled_rows, has_header) if filled_rows else None


def _too_wide(columns: int, lines: Sequence[str]) -> bool:
    """Whether a border has more columns than its lines can hold: no table that a person drew."""
    return columns * len(lines) > 10 * sum(map(len, lines)) + 1000


def _grid_cells(line: str, edges: Sequence[int]) -> list[str]:
    if line.startswith("|") and line.count("|") == len(edges):
        return line.split("|")[1:-1]  # wide characters shift the edges of their line
    cells: list[str] = []
    begin = edges[0]
    for edge in edges[1:]:
        if line[edge : edge + 1] in ("|", "+", ""):
            cells.append(line[begin + 1 : edge])
            begin = edge
        else:
            cells.append("")
    # A cell that spans columns was put into the last of them; it belongs to the first.
    return _move_to_first_column(cells, [line[edge : edge + 1] in ("|", "+", "") for edge in edges[1:]])


def _move_to_first_column(cells: list[str], closed: Sequence[bool]) -> list[str]:
    first = 0
    for column, is_closed in enumerate(closed):
        if is_closed:
            cells[first], cells[column] = cells[column], cells[first]
            first = column + 1
    return cells


def _simple_cells(line: str, columns: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """The line split at its columns; words that cross a gap belong to the column they begin in."""
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


def _cell_text(lines: Sequence[str]) -> str:
    """A cell's text on one line; of a directive in it, what the page shows."""
    words: list[str] = []
    in_directive = False
    for line in lines:  # "| " begins a line of a line block
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


def _escape_pipes(cell: str) -> str:
    return cell.replace("|", "\\|")
