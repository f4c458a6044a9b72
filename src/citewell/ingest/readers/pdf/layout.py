"""Arrange the text of a page into lines in reading order. Pure: it knows no PDF engine.

The input is pieces (words with a position and a font size) in drawing order, the output is lines. Running headers,
footers and page numbers are recognized because they are in the same place on many pages.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import reduce
from statistics import median

from citewell.ingest.readers.pdf.grids import Grid, is_table
from citewell.ingest.readers.pdf.lines import Line, Piece, group_into_lines, join_lines, make_line

_EDGE_LINES = 4
_MAX_BANDS_OF_ROWS = 2  # a header and a body
_MIN_LINES_OF_BODY = 3
_MAX_COLUMN_LINES = 100  # of a table that was drawn column by column
_MAX_MEAN_FIGURE_CHARACTERS = 30
_SAME_PLACE_POINTS = 6
_ROMAN = re.compile(r"[ivxlc]{1,7}", re.IGNORECASE)


def lines_in_order(pieces: Sequence[Piece], grids: Sequence[Grid] = ()) -> list[Line]:
    """The page's lines in drawing order; two columns that were drawn line by line are put one after the other.

    The rows of a ruled table stand where the table does.
    """
    tables = []
    for number, grid in enumerate(grids):
        rows, outside = _table_rows(pieces, grid, number)
        if is_table([[cell.text for cell in row.cells] for row in rows]):
            tables.append((grid, rows))
            pieces = outside
    lines = _prose_in_order(pieces)
    for grid, rows in tables:
        place = _place_of(grid, lines)
        lines[place:place] = rows
    return lines


def _table_rows(pieces: Sequence[Piece], grid: Grid, number: int) -> tuple[list[Line], list[Piece]]:
    """The rows of a ruled table, and the pieces outside it."""
    inside: defaultdict[int, defaultdict[int, list[Piece]]] = defaultdict(lambda: defaultdict(list))
    outside: list[Piece] = []
    for piece in pieces:
        row, column = grid.place(piece.left + 0.3 * piece.size, piece.baseline + 0.3 * piece.size)
        if row is None or column is None:
            outside.append(piece)
        else:
            inside[row][column].append(piece)
    width = len(grid.columns) - 1
    rows = []
    for _, bands in sorted(inside.items()):
        for band in _split_band(bands, is_body=len(inside) <= _MAX_BANDS_OF_ROWS):
            drawn = [piece for pieces in band.values() for piece in pieces]
            baseline, size = max(piece.baseline for piece in drawn), max(piece.size for piece in drawn)
            cells = tuple(_cell(band[column], grid, column, baseline) for column in range(width))
            rows.append(Line(cells, size, bold=False, mono=False, table=number))
    return rows, outside


def _cell(pieces: Sequence[Piece], grid: Grid, column: int, baseline: float) -> Piece:
    """The text of a table's cell; its lines are joined."""
    ordered = sorted(pieces, key=lambda piece: (-round(piece.baseline), piece.left))
    text = reduce(lambda first, line: join_lines(first, line.text, frozenset()), group_into_lines(ordered), "")
    size = max((piece.size for piece in pieces), default=1.0)
    return Piece(text, grid.columns[column], grid.columns[column + 1], baseline, size)


def _split_band(band: dict[int, list[Piece]], *, is_body: bool) -> Iterator[defaultdict[int, list[Piece]]]:
    """The rows between two rules: one, or one for each line where nothing but the header and the frame is ruled."""
    heights = [{round(piece.baseline) for piece in pieces} for pieces in band.values()]
    common = set.intersection(*heights) if len(heights) > 1 else set()
    if not is_body or len(common) < _MIN_LINES_OF_BODY or any(own != common for own in heights):
        yield defaultdict(list, band)
        return
    for height in sorted(common, reverse=True):
        row = {
            column: [piece for piece in pieces if round(piece.baseline) == height] for column, pieces in band.items()
        }
        yield defaultdict(list, row)


def _place_of(grid: Grid, lines: Sequence[Line]) -> int:
    """Where a table stands among the lines: after the last one above it, or else before the first one below it."""
    left, right, bottom, top = grid.columns[0], grid.columns[-1], grid.rows[0], grid.rows[-1]
    beside = [(place, line) for place, line in enumerate(lines) if line.left < right and line.right > left]
    above = [place for place, line in beside if line.baseline >= top]
    below = [place for place, line in beside if line.baseline <= bottom]
    return max(above) + 1 if above else min(below, default=len(lines))


def _prose_in_order(pieces: Sequence[Piece]) -> list[Line]:
    drawn = _join_columns(list(group_into_lines(pieces)))
    if (gutter := _find_gutter(drawn)) is None:
        return drawn
    ordered: list[Line] = []
    left: list[Piece] = []
    right: list[Piece] = []
    for line in drawn:
        if any(cell.left < gutter - cell.size and cell.right > gutter for cell in line.cells):
            ordered += [*group_into_lines(left), *group_into_lines(right), line]
            left, right = [], []
            continue
        for cell in line.cells:
            (left if cell.left < gutter - cell.size else right).append(cell)
    return [*ordered, *group_into_lines(left), *group_into_lines(right)]


def _join_columns(lines: list[Line]) -> list[Line]:
    """The lines, with the rows of a table of figures that was drawn column by column put together again.

    Only a table whose cells are short, and of which a later column has digits: two columns of prose look alike.
    """
    joined: list[Line] = []
    position = 0
    while position < len(lines):
        line, last = lines[position], joined[-1] if joined else None
        if last is None or line.baseline < last.baseline + 0.5 * line.size or line.left <= last.right:
            joined.append(line)
            position += 1
            continue
        columns, after = _columns_at(joined, lines, position)
        if columns:
            del joined[len(joined) - len(columns[0]) :]
            joined += _rows_of(columns)
            position = after
        else:
            joined.append(line)
            position += 1
    return joined


def _columns_at(before: Sequence[Line], lines: Sequence[Line], position: int) -> tuple[list[dict[int, Line]], int]:
    """The columns of a table whose second column begins here, by row, and the line after it; none if it is no table."""
    top = lines[position]
    first: list[Line] = []
    for line in reversed(before[-_MAX_COLUMN_LINES:]):
        if len(line.cells) > 1 or line.right >= top.left or (first and line.baseline <= first[0].baseline):
            return [], position
        first.insert(0, line)
        if line.baseline > top.baseline - 0.5 * line.size:
            break
    columns = [dict(enumerate(first))]
    while position < len(lines):
        edge = max(line.right for line in columns[-1].values())
        column = _match_rows(first, lines[position : position + len(first)], edge)
        if len(column) < 2 or 0 not in column:
            break
        columns.append(column)
        position += len(column)
    return (columns if len(columns) > 1 and _are_figures(columns) else []), position


def _match_rows(first: Sequence[Line], lines: Sequence[Line], edge: float) -> dict[int, Line]:
    """The next column of a table: lines right of the edge, each beside a line of the first column."""
    column: dict[int, Line] = {}
    row = -1
    for line in lines:
        tolerance = 0.5 * line.size
        row = next(
            (r for r in range(row + 1, len(first)) if first[r].baseline <= line.baseline + tolerance), len(first)
        )
        is_beside = row < len(first) and first[row].baseline >= line.baseline - tolerance
        if len(line.cells) > 1 or line.left <= edge or not is_beside:
            break
        column[row] = line
    return column


def _are_figures(columns: Sequence[dict[int, Line]]) -> bool:
    """Whether columns are a table of figures: at least three rows of short cells, with digits in a later column."""
    if len(columns[0]) < 3:
        return False
    for column in columns:
        if sum(len(line.text) for line in column.values()) > _MAX_MEAN_FIGURE_CHARACTERS * len(column):
            return False
    with_digits = [sum(any(map(str.isdigit, line.text)) for line in column.values()) for column in columns[1:]]
    return any(2 * count >= len(column) for count, column in zip(with_digits, columns[1:], strict=True))


def _rows_of(columns: Sequence[dict[int, Line]]) -> Iterator[Line]:
    for row in columns[0]:
        yield make_line([cell for column in columns if row in column for cell in column[row].cells])


def _find_gutter(lines: Sequence[Line]) -> float | None:
    """Where the right of two columns begins; None unless most lines are two lines of prose side by side.

    The cells of a table are short or of uneven width. A page drawn column by column is in order already.
    """
    pairs = [line.cells for line in lines if len(line.cells) == 2]
    if len(pairs) < 8 or len(pairs) < 0.6 * len(lines):
        return None
    gutter = median(right.left for _, right in pairs)
    em = median(right.size for _, right in pairs)
    pairs = [pair for pair in pairs if abs(pair[1].left - gutter) <= em]
    for side in (0, 1):
        cells = [pair[side] for pair in pairs]
        edge = max((cell.right for cell in cells), default=0)
        width = edge - min((cell.left for cell in cells), default=0)
        full = [cell for cell in cells if cell.right > edge - 0.15 * width and len(cell.text) >= 20]
        if len(full) < max(0.6 * len(cells), 5):
            return None
    return gutter - 0.25 * em


def without_running_lines(pages: Sequence[Sequence[Line]], *, body_size: float) -> list[list[Line]]:
    """The pages without running headers, footers and page numbers.

    Those are lines near the top or bottom, at the same height, with the same text except for digits or with a
    number that grows with the page, on at least three pages and a third of all pages.
    """
    occurrences: defaultdict[tuple[str, str], list[tuple[int, Line]]] = defaultdict(list)
    for number, page in enumerate(pages):
        by_height = sorted(page, key=lambda line: -line.baseline)
        for edge, near in (("top", by_height[:_EDGE_LINES]), ("bottom", by_height[-_EDGE_LINES:])):
            for line in near:
                if line.table is not None:  # a table over several pages repeats its header
                    continue
                for pattern in _running_patterns(line, number, body_size):
                    occurrences[edge, pattern].append((number, line))
    enough = max(3, -(-len(pages) // 3))
    running: set[tuple[int, Line]] = set()
    has_numbers = False
    for (_, pattern), lines in occurrences.items():
        height = median(line.baseline for _, line in lines)
        level = [(number, line) for number, line in lines if abs(line.baseline - height) <= _SAME_PLACE_POINTS]
        if len({number for number, _ in level}) >= enough:
            running.update(level)
            has_numbers = has_numbers or "#" in pattern or pattern.startswith("page +")
    if has_numbers:  # so any number alone at the edge of a page is a page number
        running.update(line for edge in ("top", "bottom") for line in occurrences.get((edge, "#"), []))
    return [[line for line in page if (number, line) not in running] for number, page in enumerate(pages)]


def _running_patterns(line: Line, page: int, body_size: float) -> Iterator[str]:
    """What stays the same in a running line from page to page. In large type digits must be the same too."""
    text = line.text.casefold()
    if line.size >= 1.2 * body_size:  # "Lesson 1", "Lesson 2" at the top of every page are its headings
        yield text
        return
    yield "#" if _ROMAN.fullmatch(text) else re.sub(r"\d+", "#", text)
    for number in re.findall(r"^\d{1,5}(?=\D|$)|(?<!\d)\d{1,5}$", text):
        yield f"page + {int(number) - page}"
