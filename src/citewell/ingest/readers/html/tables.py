"""HTML tables as rows of cells, and which tables are none: those that only arrange a page."""

from collections.abc import Iterator
from dataclasses import dataclass

from citewell.ingest.readers.html.content import HEADINGS
from citewell.ingest.readers.html.inline import line
from citewell.ingest.readers.xml_tree import Element, Node

_WIDEST = 100  # columns; a table with more is not read as one
_LONGEST_REPEAT = 200  # characters of a cell that are said again in the rows it spans
_MOST_REPEATS = 50


@dataclass(frozen=True, slots=True)
class Table:
    header: list[str]
    rows: list[list[str]]


@dataclass(slots=True)
class _Spanning:
    """A cell that reaches into the rows below."""

    text: str
    rows_left: int
    repeats_left: int = _MOST_REPEATS


def is_layout(table: Element) -> bool:
    """Whether the table arranges text on the page rather than saying something by its rows and columns."""
    if table.get("role") in ("presentation", "none") or "highlighttable" in table.classes:
        return True
    rows = [list(_cells(row)) for row, _ in _rows(table)]
    headed = any(cell.tag == "th" for row in rows for cell in row)
    if max(map(len, rows), default=0) <= 1 and not (headed and len(rows) > 1):
        return True
    within = [element for element in table.walk() if element.tag in (*HEADINGS, "table", "pre")]
    return any(element.tag != "pre" or "\n" in element.text.strip() for element in within)


def table_of(table: Element) -> Table | None:
    """Header and rows; a cell that spans rows is said in each, since a row is quoted alone. None if too wide."""
    head: list[list[str]] = []
    body: list[list[str]] = []
    spanning: dict[int, _Spanning] = {}
    for row, in_head in _rows(table):
        cells = list(_cells(row))
        is_header = bool(cells) and (in_head or (not body and _names_columns(cells)))
        if (filled := _filled(cells, spanning, repeat_across=is_header)) is None:
            return None
        (head if is_header and not body else body).append(filled)
    return Table(_joined(head), body)


def strays(table: Element) -> list[Node]:
    """What stands in a table but in no cell of it."""
    found: list[Node] = []
    for child in table.children:
        if isinstance(child, Element) and child.tag in ("thead", "tbody", "tfoot", "tr"):
            found += strays(child)
        elif isinstance(child, str) or child.tag not in ("td", "th", "caption", "colgroup", "col"):
            found.append(child)
    return found


def _names_columns(cells: list[Element]) -> bool:
    """All cells are `<th>`, or bold as people made headers by hand."""
    return all(cell.tag == "th" for cell in cells) or (len(cells) > 1 and all(_is_bold(cell) for cell in cells))


def _is_bold(cell: Element) -> bool:
    inner = [child for child in cell.children if isinstance(child, Element) or child.strip()]
    return len(inner) == 1 and isinstance(inner[0], Element) and inner[0].tag in ("b", "strong")


def _rows(table: Element, *, in_head: bool = False) -> Iterator[tuple[Element, bool]]:
    for child in table.elements:
        if child.tag == "tr":
            yield child, in_head
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from _rows(child, in_head=child.tag == "thead")


def _cells(row: Element) -> Iterator[Element]:
    return (child for child in row.elements if child.tag in ("td", "th"))


def _filled(cells: list[Element], spanning: dict[int, _Spanning], *, repeat_across: bool) -> list[str] | None:
    """The row's cells, each in its column."""
    row: list[str] = []
    for cell in cells:
        row += _from_above(spanning, len(row))
        text, column = line(cell.children), len(row)
        width = _span(cell, "colspan")
        row += [text, *[text if repeat_across else ""] * (width - 1)]
        if len(row) > _WIDEST:
            return None
        if (height := _span(cell, "rowspan", limit=10_000)) > 1:
            repeated = text if len(text) <= _LONGEST_REPEAT else ""
            for place in range(column, column + width):
                spanning[place] = _Spanning(repeated if place == column else "", height - 1)
    row += _from_above(spanning, len(row))
    while row and not row[-1]:
        row.pop()
    return row if len(row) <= _WIDEST else None


def _from_above(spanning: dict[int, _Spanning], column: int) -> list[str]:
    """What cells of earlier rows put into the columns from here on."""
    found: list[str] = []
    while (above := spanning.get(column + len(found))) is not None:
        found.append(above.text if above.repeats_left > 0 else "")
        above.rows_left -= 1
        above.repeats_left -= 1
        if above.rows_left <= 0:
            del spanning[column + len(found) - 1]
    return found


def _span(cell: Element, name: str, *, limit: int = _WIDEST) -> int:
    value = cell.get(name).strip()
    return min(max(int(value), 1), limit) if value.isascii() and value.isdigit() and len(value) < 9 else 1


def _joined(head: list[list[str]]) -> list[str]:
    """Several header rows as one: "2023" over "Q1" is "2023 Q1"."""
    width = max(map(len, head), default=0)
    columns = ([row[column] for row in head if column < len(row)] for column in range(width))
    return [" ".join(dict.fromkeys(part for part in column if part)) for column in columns]
