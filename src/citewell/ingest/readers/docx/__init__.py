"""Read Word documents (DOCX): the text with all tracked changes accepted.

The XML is read directly. python-docx would save little: it gives no revisions, footnotes, text boxes or list
numbers, and those are most of the work.
"""

import re
from collections.abc import Iterator

from citewell.errors import UnreadableFile
from citewell.ingest.readers.document_builder import Container, DocumentBuilder
from citewell.ingest.readers.docx.package import Package
from citewell.ingest.readers.docx.runs import WRAPPERS, NoteKind, ParagraphText, RunReader
from citewell.ingest.readers.docx.styles import Numbering, Styles, child, is_monospaced, is_on, to_roman, value
from citewell.ingest.readers.xml_tree import Element
from citewell.models import ParsedDocument

_PLACEHOLDER_TITLE = re.compile(
    r"(?:microsoft word - .*|(?:document|dokument|untitled)\s*\d*|word document)", re.IGNORECASE
)
_NOTE_REFERENCE = re.compile(r"\[\^(footnote|endnote):([^\]]*)\]")
_MAX_COLUMNS = 100  # Word allows 63
_WRAPPER_TAGS = frozenset({"w:ins", "w:moveTo", "w:customXml", "w:smartTag", "w:sdtContent"})


def read_docx(content: bytes, *, fallback_title: str) -> ParsedDocument:
    """Parse a document. The title is that of its properties, its title paragraph, its first heading or the fallback."""
    package = Package(content)
    body = child(package.document, "w:document", "w:body")
    if body is None:
        raise UnreadableFile("it is not a Word document: its main part has no body; save it again from Word")
    builder = DocumentBuilder()
    writer = _BodyWriter(builder, package, monospace_is_code=not _is_all_monospaced(body))
    writer.write(body)
    writer.finish()
    title = package.title if not _PLACEHOLDER_TITLE.fullmatch(package.title) else ""
    headings = (block.title for block in builder.build("").blocks if block.kind == "heading")
    return builder.build(title or writer.title or next(headings, "") or fallback_title)


def _is_all_monospaced(body: Element) -> bool:
    """Whether nearly all text is in a monospaced font, which then does not mean code."""
    total = monospaced = 0
    for run in body.walk():
        if run.tag == "w:r":
            length = len(run.text)
            total += length
            monospaced += length if is_monospaced(child(run, "w:rPr")) else 0
    return total > 2_000 and monospaced > 0.8 * total


class _Notes:
    """Footnotes and endnotes, numbered in the order of their references."""

    def __init__(self, package: Package, styles: Styles, *, monospace_is_code: bool) -> None:
        self._labels: dict[tuple[str, str], str] = {}
        self._counts = {"footnote": 0, "endnote": 0}
        self._texts: dict[tuple[str, str], str] = {}
        kinds: tuple[NoteKind, ...] = ("footnote", "endnote")
        for kind in kinds:
            runs = RunReader(styles, package.link_targets(f"{kind}s"), monospace_is_code=monospace_is_code)
            for note in package.related(f"{kind}s").walk():
                if note.tag == f"w:{kind}":
                    lines = (runs.read(paragraph).text for paragraph in note.walk() if paragraph.tag == "w:p")
                    self._texts[kind, note.get("w:id")] = _NOTE_REFERENCE.sub("", " ".join(filter(None, lines)))

    def number_references(self, text: str) -> str:
        """The text with each reference replaced by its number: `[^2]`."""
        return _NOTE_REFERENCE.sub(lambda match: f"[^{self._label(match[1], match[2])}]", text)

    def take_note(self, kind: NoteKind, name: str) -> str:
        """The text of a note after its number; "" if it was taken before or is empty."""
        text = self._texts.pop((kind, name), "")
        return f"[^{self._label(kind, name)}]: {text}" if text else ""

    def _label(self, kind: str, name: str) -> str:
        if (kind, name) not in self._labels:
            self._counts[kind] += 1
            number = self._counts[kind]
            self._labels[kind, name] = str(number) if kind == "footnote" else to_roman(number % 4_000)
        return self._labels[kind, name]


class _BodyWriter:
    """Walks the body, a cell or a text box, and adds its blocks to a document builder."""

    def __init__(self, builder: DocumentBuilder, package: Package, *, monospace_is_code: bool) -> None:
        self.title = ""
        self._builder = builder
        self._styles = Styles(package.related("styles"))
        self._numbering = Numbering(package.related("numbering"))
        self._runs = RunReader(self._styles, package.link_targets(), monospace_is_code=monospace_is_code)
        self._notes = _Notes(package, self._styles, monospace_is_code=monospace_is_code)
        self._code: list[str] = []
        self._pending_notes: list[str] = []
        """Notes to write after the current paragraph or list."""
        self._list: tuple[str, int] | None = None
        """The id of the current list, and its group."""

    def write(self, element: Element) -> None:
        for block in element.elements:
            match block.tag:
                case "w:p":
                    self._write_paragraph(block)
                case "w:tbl":
                    self._write_table(block)
                case "w:sdt" if not _is_table_of_contents(block) and not is_on(block, "w:sdtPr", "w:showingPlcHdr"):
                    self.write(block)
                case "mc:AlternateContent":
                    self.write(next(block.elements, Element("")))
                case tag if tag in _WRAPPER_TAGS:
                    self.write(block)

    def finish(self) -> None:
        self._end_code()
        self._end_list()

    def _write_paragraph(self, paragraph: Element) -> None:
        properties = child(paragraph, "w:pPr")
        style = value(properties, "w:pStyle")
        role = self._styles.role(style)
        if role == "table of contents":
            return
        line = self._runs.read(paragraph)
        line.text = self._notes.number_references(line.text)
        level = self._styles.heading_level(properties, style)
        list_id, depth = self._styles.list_of(properties, style)
        label = self._numbering.next_label(list_id, depth) if list_id else ""
        is_code = not level and not list_id and (role == "code" or line.is_code)
        if not is_code:
            self._end_code()
        if is_code:
            self._end_list()
            self._code += line.code.split("\n")
        elif role == "title" or level:
            self._write_heading(line, level or 1, label, is_title=role == "title")
        elif list_id and line.text:
            self._write_list_item(line, list_id, depth, label)
        elif line.text:
            self._end_list()
            self._builder.add_paragraph(
                line.text, Container(Container(), marker="> ") if role == "quote" else Container()
            )
        self._write_attachments(line)

    def _write_heading(self, line: ParagraphText, level: int, label: str, *, is_title: bool) -> None:
        self._end_list()
        text = f"{label} {line.text}" if label and line.text else line.text
        title = " ".join(re.sub(r"\[\^\w+\]|`|\[([^\]]*)\]\([^)]*\)", r"\1", text).split())
        self._builder.add_heading(level, text, title=title)
        if is_title and not self.title:
            self.title = title

    def _write_list_item(self, line: ParagraphText, list_id: str, depth: int, label: str) -> None:
        """Write a list item; a label that is more than a number, like "b)" or "1.2", becomes part of its text."""
        if self._list is None or (self._list[0] != list_id and depth == 0):
            self._end_list()
            self._list = (list_id, self._builder.new_group())
        is_number = re.fullmatch(r"\d{1,9}[.)]", label)
        container = Container(Container(), marker="  " * depth + (f"{label} " if is_number else "- "), kind="list")
        container.group = self._list[1]
        self._builder.add_paragraph(line.text if is_number or not label else f"{label} {line.text}", container)

    def _write_attachments(self, line: ParagraphText) -> None:
        """Write what is attached to a paragraph: formulas and text boxes now, its notes after the list."""
        for formula in line.formulas:
            self._end_code()
            self._end_list()
            self._builder.add_formula(formula, Container())
        self._pending_notes += filter(None, [self._notes.take_note(kind, name) for kind, name in line.notes])
        for box in line.boxes:
            self._end_code()
            self._end_list()
            self.write(box)

    def _end_code(self) -> None:
        code, self._code = self._code, []
        self._builder.add_code("\n".join(code).expandtabs(4), Container())

    def _end_list(self) -> None:
        self._list = None
        notes, self._pending_notes = self._pending_notes, []
        for note in notes:
            self._builder.add_paragraph(note, Container())

    def _write_table(self, table: Element) -> None:
        self._end_code()
        self._end_list()
        rows = [list(_cells(row)) for row in _rows(table)]
        if sum(map(len, rows)) == 1 or any(self._is_layout_cell(cell) for row in rows for cell in row):
            for cell in (cell for row in rows for cell in row):
                self.write(cell)
            self.finish()
            return
        texts = [self._row_texts(row) for row in rows]
        if texts:
            self._builder.add_table(texts[0], texts[1:], Container())

    def _is_layout_cell(self, cell: Element) -> bool:
        """Whether a cell contains a table or heading, so that its table only lays out the page."""
        for element in cell.walk():
            if element.tag == "w:tbl":
                return True
            properties = child(element, "w:pPr") if element.tag == "w:p" else None
            if properties and self._styles.heading_level(properties, value(properties, "w:pStyle")):
                return True
        return False

    def _row_texts(self, cells: list[Element]) -> list[str]:
        """The texts of a row; a merged cell has its text only where it begins."""
        row: list[str] = []
        for cell in cells:
            properties = child(cell, "w:tcPr")
            merged = child(properties, "w:vMerge")
            continued = merged is not None and merged.get("w:val") != "restart"
            row.append("" if continued else " ".join(self._cell_lines(cell)))
            span = value(properties, "w:gridSpan")
            wider = int(span) - 1 if re.fullmatch(r"[0-9]{1,3}", span) else 0
            row += [""] * min(wider, max(_MAX_COLUMNS - len(row), 0))
        return row

    def _cell_lines(self, cell: Element) -> Iterator[str]:
        for paragraph in _paragraphs(cell):
            line = self._runs.read(paragraph)
            yield " ".join(
                filter(None, [self._notes.number_references(line.text), *(f"${formula}$" for formula in line.formulas)])
            )
            self._pending_notes += filter(None, [self._notes.take_note(kind, name) for kind, name in line.notes])
            for box in line.boxes:
                yield from self._cell_lines(box)


def _is_table_of_contents(sdt: Element) -> bool:
    """Whether Word generated this as a table of contents."""
    return value(sdt, "w:sdtPr", "w:docPartObj", "w:docPartGallery") == "Table of Contents"


def _rows(element: Element) -> Iterator[Element]:
    """A table's rows, without those that a tracked change deletes."""
    rows = _unwrapped(element, "w:tr")
    return (row for row in rows if child(row, "w:trPr", "w:del") is None)


def _cells(row: Element) -> Iterator[Element]:
    return _unwrapped(row, "w:tc")


def _paragraphs(cell: Element) -> Iterator[Element]:
    return _unwrapped(cell, "w:p")


def _unwrapped(element: Element, tag: str) -> Iterator[Element]:
    """The children with the tag, also those inside wrapper elements."""
    for inner in element.elements:
        if inner.tag == tag:
            yield inner
        elif inner.tag in WRAPPERS or inner.tag == "w:sdt":
            yield from _unwrapped(inner, tag)
