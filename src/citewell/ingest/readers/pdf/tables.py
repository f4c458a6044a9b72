"""Find tables among the lines of a page. Pure; what is not clearly a table stays text."""

from collections.abc import Sequence
from itertools import pairwise, takewhile
from statistics import mean

from citewell.ingest.readers.pdf.lines import Line, Piece, contents_entry, join_lines

_MAX_COLUMNS = 20
_MAX_AVERAGE_CELL_CHARACTERS = 80  # longer cells are columns of prose

Columns = list[tuple[float, float]]
"""The left and right edge of each column of a table, from left to right."""


def table_at(lines: Sequence[Line], start: int, known_words: frozenset[str]) -> tuple[str, int]:
    """The table that begins at this line, as a pipe table, and the first line after it.

    The text is empty if there is none; then no table begins before the returned line either.
    """
    stop, columns = _find_extent(lines, start)
    run = lines[start:stop]
    full = [line for line in run if len(line.cells) > 1]
    if (
        len(full) < 2
        or 2 * len(full) < len(run)
        or mean(len(cell.text) for line in full for cell in line.cells) > _MAX_AVERAGE_CELL_CHARACTERS
    ):
        return "", max(stop, start + 1)
    em = max(line.size for line in full)
    narrowest = min(after[0] - before[1] for before, after in pairwise(columns))
    if narrowest < (1.5 if len(full) == 2 else 0.5) * em:  # two lines of justified prose may have gaps by chance
        return "", stop
    return _pipe_table(_make_rows(run, columns, known_words), len(columns)), stop


def ruled_table_at(lines: Sequence[Line], start: int) -> tuple[str, int]:
    """The ruled table that begins at this line, as a pipe table without empty columns, and the first line after it."""
    rows = list(takewhile(lambda line: line.table == lines[start].table, lines[start:]))
    columns = [column for column in range(len(rows[0].cells)) if any(row.cells[column].text for row in rows)]
    cells = [{number: row.cells[column].text for number, column in enumerate(columns)} for row in rows]
    return _pipe_table(cells, len(columns)), start + len(rows)


def _find_extent(lines: Sequence[Line], start: int) -> tuple[int, Columns]:
    """The columns, and the line after the last one that keeps to them; a last line of one cell continues a row."""
    extent: tuple[int, Columns] = (start, [])
    columns: Columns = []
    for position in range(start, len(lines)):
        line = lines[position]
        if len(line.cells) > _MAX_COLUMNS or contents_entry(line.text):
            break
        if position > start and _is_separate(lines[position - 1], line):
            break
        widened = columns
        for cell in line.cells:
            if (widened := _widen(widened, cell)) == []:
                return extent
        columns = widened
        tight = position > start and abs(lines[position - 1].baseline - line.baseline) < 1.5 * line.size
        if len(line.cells) > 1 or (tight and _column_index(columns, line.cells[0]) > 0):
            extent = position + 1, columns
    return extent


def _widen(columns: Columns, cell: Piece) -> Columns:
    """The columns with room for the cell; empty if it would cross two."""
    touched = [column for column in columns if cell.left < column[1] and cell.right > column[0]]
    if len(touched) > 1 or len(columns) > _MAX_COLUMNS:
        return []
    left, right = touched[0] if touched else (cell.left, cell.right)
    others = [column for column in columns if column not in touched]
    return sorted([*others, (min(left, cell.left), max(right, cell.right, left + 0.1))])


def _column_index(columns: Columns, cell: Piece) -> int:
    return max((number for number, (left, _) in enumerate(columns) if left <= cell.left), default=0)


def _is_separate(before: Line, line: Line) -> bool:
    gap = before.baseline - line.baseline
    return (
        gap > 3.5 * line.size
        or (gap < 0 and line.left < before.right)  # drawn cell by cell, the next cell is up and to the right
        or abs(before.size - line.size) > 0.2 * line.size
    )


def _make_rows(lines: Sequence[Line], columns: Columns, known_words: frozenset[str]) -> list[dict[int, str]]:
    """The cells of each row by column; the lines of a cell are joined, in whatever order they were drawn."""
    rows: list[dict[int, str]] = []
    heights: dict[int, float] = {}
    last = -1
    for line in lines:
        column = _column_index(columns, line.cells[0])
        below = heights.get(column, line.baseline) - line.baseline
        wrapped = len(line.cells) == 1 and 0 < below < 1.5 * line.size
        starts_small = line.cells[0].text[:1].islower()
        beside = column > last and line.baseline >= min(heights.values(), default=0) - 0.5 * line.size
        if not rows or not (beside or (wrapped and (column > 0 or column == last or starts_small))):
            rows.append({})
            heights = {}
        for cell in line.cells:
            last = _column_index(columns, cell)
            rows[-1][last] = join_lines(rows[-1].get(last, ""), cell.text, known_words)
            heights[last] = cell.baseline
    return rows


def _pipe_table(rows: Sequence[dict[int, str]], width: int) -> str:
    lines = [
        f"| {' | '.join(row.get(column, '').replace('|', chr(92) + '|') for column in range(width))} |" for row in rows
    ]
    return "\n".join([lines[0], f"|{' --- |' * width}", *lines[1:]])
