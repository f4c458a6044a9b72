"""Rows of cells among the lines of a page. Pure, and careful: what is not evidently a table stays lines of text."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import mean

from citewell.ingest.readers.pdf.layout import Line, Piece, contents_entry, join

_MOST_COLUMNS = 20
_LONGEST_CELL = 80  # characters of a line in a cell, on average; above it is prose set side by side

Spans = list[tuple[float, float]]
"""The stretches of a page's width that a table's cells keep to, from left to right."""


def table_at(lines: Sequence[Line], start: int, known: frozenset[str]) -> tuple[str, int]:
    """The table that begins with this line, as pipe rows, and the first line after it.

    The text is empty where there is none; then no table begins before that line either.
    """
    stop, columns = _reach(lines, start)
    run = lines[start:stop]
    full = [line for line in run if len(line.cells) > 1]
    if (
        len(full) < 2
        or 2 * len(full) < len(run)
        or mean(len(c.text) for line in full for c in line.cells) > _LONGEST_CELL
    ):
        return "", max(stop, start + 1)
    em = max(line.size for line in full)
    narrowest = min(after[0] - before[1] for before, after in pairwise(columns))
    if narrowest < (1.5 if len(full) == 2 else 0.5) * em:  # two lines of justified prose may have gaps by chance
        return "", stop
    return _pipes(_rows(run, columns, known), len(columns)), stop


def _reach(lines: Sequence[Line], start: int) -> tuple[int, Spans]:
    """How far lines keep to columns of their own, and these; a last line of one cell must continue a row."""
    reached: tuple[int, Spans] = (start, [])
    columns: Spans = []
    for position in range(start, len(lines)):
        line = lines[position]
        if len(line.cells) > _MOST_COLUMNS or contents_entry(line.text):
            break
        if position > start and _is_apart(lines[position - 1], line):
            break
        widened = columns
        for cell in line.cells:
            if (widened := _widened(widened, cell)) == []:
                return reached
        columns = widened
        tight = position > start and abs(lines[position - 1].baseline - line.baseline) < 1.5 * line.size
        if len(line.cells) > 1 or (tight and _column(columns, line.cells[0]) > 0):
            reached = position + 1, columns
    return reached


def _widened(columns: Spans, cell: Piece) -> Spans:
    """The columns with room for the cell; none where it would lie across two."""
    touched = [span for span in columns if cell.left < span[1] and cell.right > span[0]]
    if len(touched) > 1 or len(columns) > _MOST_COLUMNS:
        return []
    left, right = touched[0] if touched else (cell.left, cell.right)
    others = [span for span in columns if span not in touched]
    return sorted([*others, (min(left, cell.left), max(right, cell.right, left + 0.1))])


def _column(columns: Spans, cell: Piece) -> int:
    return max((number for number, (left, _) in enumerate(columns) if left <= cell.left), default=0)


def _is_apart(before: Line, line: Line) -> bool:
    gap = before.baseline - line.baseline
    return (
        gap > 3.5 * line.size
        or (gap < 0 and line.left < before.right)  # drawn cell by cell, the next cell is up and to the right
        or abs(before.size - line.size) > 0.2 * line.size
    )


def _rows(lines: Sequence[Line], columns: Spans, known: frozenset[str]) -> list[dict[int, str]]:
    """The cells of each row by column; a cell of several lines is one, drawn in whichever order."""
    rows: list[dict[int, str]] = []
    heights: dict[int, float] = {}
    last = -1
    for line in lines:
        column = _column(columns, line.cells[0])
        below = heights.get(column, line.baseline) - line.baseline
        wrapped = len(line.cells) == 1 and 0 < below < 1.5 * line.size
        starts_small = line.cells[0].text[:1].islower()
        beside = column > last and line.baseline >= min(heights.values(), default=0) - 0.5 * line.size
        if not rows or not (beside or (wrapped and (column > 0 or column == last or starts_small))):
            rows.append({})
            heights = {}
        for cell in line.cells:
            last = _column(columns, cell)
            rows[-1][last] = join(rows[-1].get(last, ""), cell.text, known)
            heights[last] = cell.baseline
    return rows


def _pipes(rows: Sequence[dict[int, str]], width: int) -> str:
    written = [
        f"| {' | '.join(row.get(column, '').replace('|', chr(92) + '|') for column in range(width))} |" for row in rows
    ]
    return "\n".join([written[0], f"|{' --- |' * width}", *written[1:]])
