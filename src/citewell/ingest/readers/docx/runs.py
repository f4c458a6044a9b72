"""The words of one Word paragraph: revisions settled, fields read, links and code written as Markdown."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from citewell.ingest.readers.document_builder import clean, code_span, superscript, web_link
from citewell.ingest.readers.docx.math import tex
from citewell.ingest.readers.docx.styles import Styles, child, is_monospaced, is_on, value
from citewell.ingest.readers.xml_tree import Element

NoteKind = Literal["footnote", "endnote"]

# What wraps runs and is itself nothing to see. A deletion (`w:del`, `w:moveFrom`) is not among them.
WRAPPERS = frozenset(
    {"w:ins", "w:moveTo", "w:smartTag", "w:customXml", "w:dir", "w:bdo", "w:sdtContent", "w:fldSimple"}
)
_HYPERLINK = re.compile(r'\s*HYPERLINK\s+"([^"]+)"')
_DEEPEST_FIELD = 8


@dataclass(slots=True)
class Line:
    """A paragraph's words, and what hangs on it."""

    text: str = ""
    code: str = ""
    """The same as code: spaces and tabs as typed, no marks."""
    is_code: bool = False
    """Every word of it is in a font of equal widths."""
    formulas: list[str] = field(default_factory=list)
    boxes: list[Element] = field(default_factory=list)
    notes: list[tuple[NoteKind, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Piece:
    shown: str
    typed: str
    is_code: bool


@dataclass(slots=True)
class _Field:
    """A field while it is read: what it computes, and where its result begins."""

    instruction: str = ""
    result_from: int | None = None


class RunReader:
    """Reads paragraphs of one part; `addresses` are that part's links."""

    def __init__(self, styles: Styles, addresses: Mapping[str, str], *, fonts_tell: bool) -> None:
        self._styles = styles
        self._addresses = addresses
        self._fonts_tell = fonts_tell
        """Whether a font of equal widths means code: not where the whole document is typed in one."""

    def read(self, paragraph: Element) -> Line:
        line = Line()
        pieces: list[_Piece] = []
        self._collect(paragraph.elements, pieces, line, [])
        line.text = _shown(pieces)
        line.code = "".join(piece.typed for piece in pieces)
        written = [piece for piece in pieces if piece.typed.strip()]
        line.is_code = bool(written) and all(piece.is_code for piece in written)
        return line

    def _collect(self, elements: Iterable[Element], pieces: list[_Piece], line: Line, fields: list[_Field]) -> None:
        for element in elements:
            match element.tag:
                case "w:r":
                    self._run(element, pieces, line, fields)
                case "w:hyperlink":
                    start = len(pieces)
                    self._collect(element.elements, pieces, line, fields)
                    _make_link(pieces, start, self._addresses.get(element.get("r:id"), ""))
                case "w:sdt" if not is_on(element, "w:sdtPr", "w:showingPlcHdr"):
                    self._collect(element.elements, pieces, line, fields)
                case "m:oMath":
                    if formula := tex(element):
                        pieces.append(_Piece(f"${formula}$", formula, False))
                case "m:oMathPara":
                    line.formulas += filter(None, [tex(one) for one in element.elements if one.tag == "m:oMath"])
                case "mc:AlternateContent":
                    self._collect(_alternative(element), pieces, line, fields)
                case tag if tag in WRAPPERS:
                    self._collect(element.elements, pieces, line, fields)

    def _run(self, run: Element, pieces: list[_Piece], line: Line, fields: list[_Field]) -> None:
        properties = child(run, "w:rPr")
        if is_on(properties, "w:vanish"):
            return
        is_code = self._is_code(properties)
        is_superscript = value(properties, "w:vertAlign") == "superscript"
        for element in run.elements:
            if (text := _text(element)) is not None:
                pieces.append(_Piece(superscript(text) if is_superscript else text, text, is_code))
            elif element.tag in ("w:footnoteReference", "w:endnoteReference"):
                kind: NoteKind = "footnote" if element.tag == "w:footnoteReference" else "endnote"
                line.notes.append((kind, element.get("w:id")))
                pieces.append(_Piece(f"[^{kind}:{element.get('w:id')}]", "", False))
            elif element.tag == "w:instrText":
                if fields and len(fields[-1].instruction) < 4_000:
                    fields[-1].instruction += element.text
            elif element.tag == "w:fldChar":
                _at_field_mark(element.get("w:fldCharType"), pieces, fields)
            elif element.tag in ("w:drawing", "w:pict", "w:object", "mc:AlternateContent"):
                line.boxes += _boxes(element)

    def _is_code(self, properties: Element | None) -> bool:
        style = value(properties, "w:rStyle")
        if style and self._styles.role(style) == "code":
            return True
        return self._fonts_tell and is_monospaced(properties) is True


def _text(element: Element) -> str | None:
    """What a run's element shows as text; None if it is something else."""
    match element.tag:
        case "w:t":
            return clean(element.text).replace("\n", " ")
        case "w:tab" | "w:ptab":
            return "\t"
        case "w:br" if element.get("w:type") in ("page", "column"):
            return " "
        case "w:br" | "w:cr":
            return "\n"
        case "w:noBreakHyphen":
            return "-"
    return None


def _at_field_mark(kind: str, pieces: list[_Piece], fields: list[_Field]) -> None:
    """A field is marked where it begins, where its result begins, and where it ends."""
    if kind == "begin" and len(fields) < _DEEPEST_FIELD:
        fields.append(_Field())
    elif kind == "separate" and fields:
        fields[-1].result_from = len(pieces)
    elif kind == "end" and fields:
        ended = fields.pop()
        if ended.result_from is not None and (match := _HYPERLINK.match(ended.instruction)):
            _make_link(pieces, ended.result_from, match[1])


def _make_link(pieces: list[_Piece], start: int, address: str) -> None:
    """The pieces from here on become one link, if it leads to the web and none of them is a link already."""
    shown = _shown(pieces[start:]) if address else ""
    if shown and "](" not in shown:
        typed = "".join(piece.typed for piece in pieces[start:])
        gaps = (" " if typed[:1].isspace() else "", " " if typed[-1:].isspace() else "")
        pieces[start:] = [_Piece(f"{gaps[0]}{web_link(' '.join(shown.split()), address)}{gaps[1]}", typed, False)]


def _shown(pieces: Sequence[_Piece]) -> str:
    """The words on as many lines as were forced; neighbouring code is one span."""
    parts: list[str] = []
    for is_code, group in groupby(pieces, key=lambda piece: piece.is_code):
        text = "".join(piece.typed if is_code else piece.shown for piece in group)
        inner = " ".join(text.split())
        if is_code and inner:
            parts += [" " if text[0].isspace() else "", code_span(inner), " " if text[-1].isspace() else ""]
        else:
            parts.append(text)
    lines = "".join(parts).split("\n")
    return "\n".join(" ".join(line.split()) for line in lines).strip()


def _alternative(element: Element) -> Iterable[Element]:
    """Word writes some things twice, for new and old programs; the first is enough."""
    return next(filter(list, (list(one.elements) for one in element.elements)), [])


def _boxes(element: Element) -> list[Element]:
    """The text boxes in a drawing."""
    if element.tag == "w:txbxContent":
        return [element]
    inside = _alternative(element) if element.tag == "mc:AlternateContent" else element.elements
    return [box for one in inside for box in _boxes(one)]
