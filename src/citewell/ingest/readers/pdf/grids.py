"""Ruled tables: the grid that horizontal and vertical lines make, and the rows of text in it. Pure.

The lines say which words share a cell, in whatever order a program drew them.
"""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_TOLERANCE = 3.0  # points that two lines may miss each other by; also the thickness of a line
_MIN_LENGTH = 6.0
_MAX_LINES = 400  # of one grid in one direction
_MAX_MEAN_CELL_CHARACTERS = 300  # larger boxes are the layout of a page


@dataclass(frozen=True, slots=True)
class Segment:
    """A straight line from (left, bottom) to (right, top), in points."""

    left: float
    bottom: float
    right: float
    top: float

    @classmethod
    def between(cls, first: tuple[float, float], second: tuple[float, float]) -> "Segment":
        (x, y), (u, v) = first, second
        return cls(min(x, u), min(y, v), max(x, u), max(y, v))

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.left + self.bottom + self.right + self.top)

    @property
    def is_horizontal(self) -> bool:
        return self.top - self.bottom <= 1 and self.right - self.left >= _MIN_LENGTH

    @property
    def is_vertical(self) -> bool:
        return self.right - self.left <= 1 and self.top - self.bottom >= _MIN_LENGTH


@dataclass(frozen=True, slots=True)
class Grid:
    """The lines of a table: `columns` from left to right, `rows` from bottom to top."""

    columns: tuple[float, ...]
    rows: tuple[float, ...]

    def place(self, x: float, y: float) -> tuple[int | None, int | None]:
        """Row and column of a point, from 0 at the top left; None outside."""
        row = _band(self.rows, y)
        return None if row is None else len(self.rows) - 2 - row, _band(self.columns, x)


def find_grids(segments: Iterable[Segment]) -> list[Grid]:
    """The grids of at least two rows and two columns that the lines make, from top to bottom."""
    lines = [segment for segment in segments if segment.is_finite and (segment.is_horizontal or segment.is_vertical)]
    grids = []
    for connected in _connect(lines):
        columns = _merge(segment.left for segment in connected if segment.is_vertical)
        rows = _merge(segment.bottom for segment in connected if segment.is_horizontal)
        if 3 <= len(columns) <= _MAX_LINES and 3 <= len(rows) <= _MAX_LINES:
            grids.append(Grid(columns, rows))
    return sorted(grids, key=lambda grid: -grid.rows[-1])


def is_table(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the texts in a grid are a table, not boxes around paragraphs or a form without content."""
    filled = [cell for row in rows for cell in row if cell]
    full_rows = [row for row in rows if sum(map(bool, row)) > 1]
    return len(full_rows) >= 2 and sum(map(len, filled)) <= _MAX_MEAN_CELL_CHARACTERS * len(filled)


def _connect(lines: Sequence[Segment]) -> Iterator[list[Segment]]:
    """The lines in groups; in each, every line touches one of the other direction."""
    parents = list(range(len(lines)))

    def root(number: int) -> int:
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    horizontal = sorted((line.bottom, number) for number, line in enumerate(lines) if line.is_horizontal)
    for number, line in enumerate(lines):
        if not line.is_vertical:
            continue
        near = range(
            bisect_left(horizontal, (line.bottom - _TOLERANCE, 0)),
            bisect_right(horizontal, (line.top + _TOLERANCE, len(lines))),
        )
        for position in near:
            if _touch(lines[other := horizontal[position][1]], line):
                parents[root(other)] = root(number)
    groups: defaultdict[int, list[Segment]] = defaultdict(list)
    for number, line in enumerate(lines):
        groups[root(number)].append(line)
    yield from groups.values()


def _touch(first: Segment, second: Segment) -> bool:
    return (
        first.left <= second.right + _TOLERANCE
        and second.left <= first.right + _TOLERANCE
        and first.bottom <= second.top + _TOLERANCE
        and second.bottom <= first.top + _TOLERANCE
    )


def _merge(places: Iterable[float]) -> tuple[float, ...]:
    """The places in order; those within the tolerance of each other are one."""
    merged: list[float] = []
    for place in sorted(places):
        if not merged or place - merged[-1] > _TOLERANCE:
            merged.append(place)
    return tuple(merged)


def _band(places: Sequence[float], place: float) -> int | None:
    band = bisect_right(places, place) - 1
    return band if 0 <= band < len(places) - 1 else None
