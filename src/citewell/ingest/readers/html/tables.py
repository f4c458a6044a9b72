"""HTML tables as rows of cells, and how to recognize tables that only lay out a page."""

from collections.abc import Iterator
from dataclasses import dataclass

from citewell.ingest.readers.html.content import HEADINGS
from citewell.ingest.readers.html.inline import markdown_line
from citewell.ingest.readers.xml_tree import Element, Node

_MAX_COLUMNS = 100  # a wider table is not read as a table
_MAX_REPEATED_CHARACTERS = 200  # a longer cell is not repeated in the rows it spans
_MAX_REPEATS = 50


@dataclass(frozen=True, slots=True)
class Table:
    header: list[str]
    rows: list[list[str]]


@dataclass(slots=True)
class _SpanningCell:
    """A cell that spans the rows below."""

    text: str
    rows_left: int
    repeats_left: int = _MAX_REPEATS


def is_layout(table: Element) -> bool:
    """Whether the table only lays out the page, so that its rows and columns mean nothing."""
    if table.get("role") in ("presentation", "none") or "highlighttable" in table.classes:
        return True
    rows = [list(_row_cells(row)) for row, _ in _table_rows(table)]
    has_header = any(cell.tag == "th" for row in rows for cell in row)
    if max(map(len, rows), default=0) <= 1 and not (has_header and len(rows) > 1):
        return True
    nested = [element for element in table.walk() if element.tag in (*HEADINGS, "table", "pre")]
    return any(element.tag != "pre" or "\n" in element.text.strip() for element in nested)


def read_table(table: Element) -> Table | None:
    """Header and rows; None if too wide. A cell that spans rows is repeated, since a row can be quoted alone."""
    head: list[list[str]] = []
    body: list[list[str]] = []
    spanning: dict[int, _SpanningCell] = {}
    for row, in_head in _table_rows(table):
        cells = list(_row_cells(row))
        is_header = bool(cells) and (in_head or (not body and _names_columns(cells)))
        if (texts := _cell_texts(cells, spanning, repeat_across=is_header)) is None:
            return None
        (head if is_header and not body else body).append(texts)
    return Table(_join_header_rows(head), body)


def content_outside_cells(table: Element) -> list[Node]:
    """Content that is inside the table but in none of its cells."""
    nodes: list[Node] = []
    for child in table.children:
        if isinstance(child, Element) and child.tag in ("thead", "tbody", "tfoot", "tr"):
            nodes += content_outside_cells(child)
        elif isinstance(child, str) or child.tag not in ("td", "th", "caption", "colgroup", "col"):
            nodes.append(child)
    return nodes


def _names_columns(cells: list[Element]) -> bool:
    """Whether all cells are `<th>`, or bold, as in a header made by hand."""
    return all(cell.tag == "th" for cell in cells) or (len(cells) > 1 and all(_is_bold(cell) for cell in cells))


def _is_bold(cell: Element) -> bool:
    inner = [child for child in cell.children if isinstance(child, Element) or child.strip()]
    return len(inner) == 1 and isinstance(inner[0], Element) and inner[0].tag in ("b", "strong")


def _table_rows(table: Element, *, in_head: bool = False) -> Iterator[tuple[Element, bool]]:
    for child in table.elements:
        if child.tag == "tr":
            yield child, in_head
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from _table_rows(child, in_head=child.tag == "thead")


def _row_cells(row: Element) -> Iterator[Element]:
    return (child for child in row.elements if child.tag in ("td", "th"))


def _cell_texts(cells: list[Element], spanning: dict[int, _SpanningCell], *, repeat_across: bool) -> list[str] | None:
    """The texts of a row's cells, each in its column; None if the row is too wide."""
    row: list[str] = []
    for cell in cells:
        row += _spanning_texts(spanning, len(row))
        text, column = markdown_line(cell.children), len(row)
        width = _span_of(cell, "colspan")
        row += [text, *[text if repeat_across else ""] * (width - 1)]
        if len(row) > _MAX_COLUMNS:
            return None
        if (height := _span_of(cell, "rowspan", limit=10_000)) > 1:
            repeated = text if len(text) <= _MAX_REPEATED_CHARACTERS else ""
            for spanned in range(column, column + width):
                spanning[spanned] = _SpanningCell(repeated if spanned == column else "", height - 1)
    row += _spanning_texts(spanning, len(row))
    while row and not row[-1]:
        row.pop()
    return row if len(row) <= _MAX_COLUMNS else None


def _spanning_texts(spanning: dict[int, _SpanningCell], column: int) -> list[str]:
    """The texts of cells in earlier rows that span into this row, from the column on."""
    texts: list[str] = []
    while (above := spanning.get(column + len(texts))) is not None:
        texts.append(above.text if above.repeats_left > 0 else "")
        above.rows_left -= 1
        above.repeats_left -= 1
        if above.rows_left <= 0:
            del spanning[column + len(texts) - 1]
    return texts


def _span_of(cell: Element, name: str, *, limit: int = _MAX_COLUMNS) -> int:
    value = cell.get(name).strip()
    return min(max(int(value), 1), limit) if value.isascii() and value.isdigit() and len(value) < 9 else 1


def _join_header_rows(head: list[list[str]]) -> list[str]:
    """Several header rows as one: "2023" over "Q1" is "2023 Q1"."""
    width = max(map(len, head), default=0)
    columns = ([row[column] for row in head if column < len(row)] for column in range(width))
    return [" ".join(dict.fromkeys(part for part in column if part)) for column in columns]
