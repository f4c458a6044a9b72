"""Word documents (DOCX): the text as it reads with all changes accepted.

Read from the XML directly. python-docx would save little: it shows no revisions, footnotes, text boxes or list
numbers, and those are most of the work.
"""

import re
from collections.abc import Iterator

from citewell.errors import UnreadableFile
from citewell.ingest.readers.document_builder import Container, DocumentBuilder
from citewell.ingest.readers.docx.package import Package
from citewell.ingest.readers.docx.runs import WRAPPERS, Line, NoteKind, RunReader
from citewell.ingest.readers.docx.styles import Numbering, Styles, child, is_monospaced, is_on, roman, value
from citewell.ingest.readers.xml_tree import Element
from citewell.models import ParsedDocument

_NO_TITLE = re.compile(r"(?:microsoft word - .*|(?:document|dokument|untitled)\s*\d*|word document)", re.IGNORECASE)
_NOTE_MARK = re.compile(r"\[\^(footnote|endnote):([^\]]*)\]")
_WIDEST = 100  # columns; Word allows 63
_CONTENT = frozenset({"w:ins", "w:moveTo", "w:customXml", "w:smartTag", "w:sdtContent"})


def read_docx(content: bytes, *, fallback_title: str) -> ParsedDocument:
    """The manuscript in a document; its title is in its properties, on its first page, or its first heading."""
    package = Package(content)
    body = child(package.document, "w:document", "w:body")
    if body is None:
        raise UnreadableFile("it is no Word document: its main part has no body; save it again from Word")
    builder = DocumentBuilder()
    writer = _BodyWriter(builder, package, fonts_tell=not _is_typescript(body))
    writer.write(body)
    writer.finish()
    named = package.title if not _NO_TITLE.fullmatch(package.title) else ""
    headings = (block.title for block in builder.build("").blocks if block.kind == "heading")
    return builder.build(named or writer.title or next(headings, "") or fallback_title)


def _is_typescript(body: Element) -> bool:
    """Whether nearly everything is typed in a font of equal widths, which then says nothing."""
    typed = spaced = 0
    for run in body.walk():
        if run.tag == "w:r":
            length = len(run.text)
            typed += length
            spaced += length if is_monospaced(child(run, "w:rPr")) else 0
    return typed > 2_000 and spaced > 0.8 * typed


class _Notes:
    """Footnotes and endnotes; they are numbered as they are referred to."""

    def __init__(self, package: Package, styles: Styles, *, fonts_tell: bool) -> None:
        self._labels: dict[tuple[str, str], str] = {}
        self._counts = {"footnote": 0, "endnote": 0}
        self._texts: dict[tuple[str, str], str] = {}
        kinds: tuple[NoteKind, ...] = ("footnote", "endnote")
        for kind in kinds:
            runs = RunReader(styles, package.addresses(f"{kind}s"), fonts_tell=fonts_tell)
            for note in package.related(f"{kind}s").walk():
                if note.tag == f"w:{kind}":
                    lines = (runs.read(one).text for one in note.walk() if one.tag == "w:p")
                    self._texts[kind, note.get("w:id")] = _NOTE_MARK.sub("", " ".join(filter(None, lines)))

    def marked(self, text: str) -> str:
        """The text with each reference as its number: `[^2]`."""
        return _NOTE_MARK.sub(lambda match: f"[^{self._label(match[1], match[2])}]", text)

    def note(self, kind: NoteKind, name: str) -> str:
        text = self._texts.pop((kind, name), "")
        return f"[^{self._label(kind, name)}]: {text}" if text else ""

    def _label(self, kind: str, name: str) -> str:
        if (kind, name) not in self._labels:
            self._counts[kind] += 1
            number = self._counts[kind]
            self._labels[kind, name] = str(number) if kind == "footnote" else roman(number % 4_000)
        return self._labels[kind, name]


class _BodyWriter:
    """Walks the body, a cell or a text box, and writes it to a builder."""

    def __init__(self, builder: DocumentBuilder, package: Package, *, fonts_tell: bool) -> None:
        self.title = ""
        self._builder = builder
        self._styles = Styles(package.related("styles"))
        self._numbering = Numbering(package.related("numbering"))
        self._runs = RunReader(self._styles, package.addresses(), fonts_tell=fonts_tell)
        self._notes = _Notes(package, self._styles, fonts_tell=fonts_tell)
        self._code: list[str] = []
        self._waiting: list[str] = []
        """Notes referred to, to be said once the paragraph or list is over."""
        self._list: tuple[str, int] | None = None
        """The list that is being written, and its group."""

    def write(self, element: Element) -> None:
        for one in element.elements:
            match one.tag:
                case "w:p":
                    self._paragraph(one)
                case "w:tbl":
                    self._table(one)
                case "w:sdt" if not _is_contents(one) and not is_on(one, "w:sdtPr", "w:showingPlcHdr"):
                    self.write(one)
                case "mc:AlternateContent":
                    self.write(next(one.elements, Element("")))
                case tag if tag in _CONTENT:
                    self.write(one)

    def finish(self) -> None:
        self._end_code()
        self._end_list()

    def _paragraph(self, paragraph: Element) -> None:
        properties = child(paragraph, "w:pPr")
        style = value(properties, "w:pStyle")
        role = self._styles.role(style)
        if role == "contents":
            return
        line = self._runs.read(paragraph)
        line.text = self._notes.marked(line.text)
        level = self._styles.heading_level(properties, style)
        list_id, depth = self._styles.list_of(properties, style)
        label = self._numbering.label(list_id, depth) if list_id else ""
        is_code = not level and not list_id and (role == "code" or line.is_code)
        if not is_code:
            self._end_code()
        if is_code:
            self._end_list()
            self._code += line.code.split("\n")
        elif role == "title" or level:
            self._heading(line, level or 1, label, is_title=role == "title")
        elif list_id and line.text:
            self._item(line, list_id, depth, label)
        elif line.text:
            self._end_list()
            self._builder.add_paragraph(
                line.text, Container(Container(), marker="> ") if role == "quote" else Container()
            )
        self._attached(line)

    def _heading(self, line: Line, level: int, label: str, *, is_title: bool) -> None:
        self._end_list()
        text = f"{label} {line.text}" if label and line.text else line.text
        title = " ".join(re.sub(r"\[\^\w+\]|`|\[([^\]]*)\]\([^)]*\)", r"\1", text).split())
        self._builder.add_heading(level, text, title=title)
        if is_title and not self.title:
            self.title = title

    def _item(self, line: Line, list_id: str, depth: int, label: str) -> None:
        """A list item; a label that is more than a number, like "b)" or "1.2", is part of its words."""
        if self._list is None or (self._list[0] != list_id and depth == 0):
            self._end_list()
            self._list = (list_id, self._builder.new_group())
        is_number = re.fullmatch(r"\d{1,9}[.)]", label)
        container = Container(Container(), marker="  " * depth + (f"{label} " if is_number else "- "), kind="list")
        container.group = self._list[1]
        self._builder.add_paragraph(line.text if is_number or not label else f"{label} {line.text}", container)

    def _attached(self, line: Line) -> None:
        """What hangs on a paragraph, after it: formulas, text boxes, and its notes when the list is over."""
        for formula in line.formulas:
            self._end_code()
            self._end_list()
            self._builder.add_formula(formula, Container())
        self._waiting += filter(None, [self._notes.note(kind, name) for kind, name in line.notes])
        for box in line.boxes:
            self._end_code()
            self._end_list()
            self.write(box)

    def _end_code(self) -> None:
        code, self._code = self._code, []
        self._builder.add_code("\n".join(code).expandtabs(4), Container())

    def _end_list(self) -> None:
        self._list = None
        notes, self._waiting = self._waiting, []
        for note in notes:
            self._builder.add_paragraph(note, Container())

    def _table(self, table: Element) -> None:
        self._end_code()
        self._end_list()
        rows = [list(_cells(row)) for row in _rows(table)]
        if sum(map(len, rows)) == 1 or any(self._arranges(cell) for row in rows for cell in row):
            for cell in (cell for row in rows for cell in row):
                self.write(cell)
            self.finish()
            return
        filled = [self._row(row) for row in rows]
        if filled:
            self._builder.add_table(filled[0], filled[1:], Container())

    def _arranges(self, cell: Element) -> bool:
        """Whether a cell holds so much that its table only arranges the page."""
        for one in cell.walk():
            if one.tag == "w:tbl":
                return True
            properties = child(one, "w:pPr") if one.tag == "w:p" else None
            if properties and self._styles.heading_level(properties, value(properties, "w:pStyle")):
                return True
        return False

    def _row(self, cells: list[Element]) -> list[str]:
        """The texts of a row; a merged cell has its text once, where it begins."""
        row: list[str] = []
        for cell in cells:
            properties = child(cell, "w:tcPr")
            merged = child(properties, "w:vMerge")
            continued = merged is not None and merged.get("w:val") != "restart"
            row.append("" if continued else " ".join(self._cell_lines(cell)))
            span = value(properties, "w:gridSpan")
            wider = int(span) - 1 if re.fullmatch(r"[0-9]{1,3}", span) else 0
            row += [""] * min(wider, max(_WIDEST - len(row), 0))
        return row

    def _cell_lines(self, cell: Element) -> Iterator[str]:
        for paragraph in _paragraphs(cell):
            line = self._runs.read(paragraph)
            yield " ".join(filter(None, [self._notes.marked(line.text), *(f"${one}$" for one in line.formulas)]))
            self._waiting += filter(None, [self._notes.note(kind, name) for kind, name in line.notes])
            for box in line.boxes:
                yield from self._cell_lines(box)


def _is_contents(sdt: Element) -> bool:
    """A table of contents that Word made."""
    return value(sdt, "w:sdtPr", "w:docPartObj", "w:docPartGallery") == "Table of Contents"


def _rows(element: Element) -> Iterator[Element]:
    """A table's rows; one whose deletion is tracked is gone."""
    for one in element.elements:
        if one.tag == "w:tr":
            if child(one, "w:trPr", "w:del") is None:
                yield one
        elif one.tag in WRAPPERS or one.tag == "w:sdt":
            yield from _rows(one)


def _cells(element: Element) -> Iterator[Element]:
    for one in element.elements:
        if one.tag == "w:tc":
            yield one
        elif one.tag in WRAPPERS or one.tag == "w:sdt":
            yield from _cells(one)


def _paragraphs(element: Element) -> Iterator[Element]:
    for one in element.elements:
        if one.tag == "w:p":
            yield one
        elif one.tag in WRAPPERS or one.tag == "w:sdt":
            yield from _paragraphs(one)
