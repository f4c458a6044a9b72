"""Read the text of a Word paragraph from its runs: changes accepted, links and code as Markdown."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from citewell.ingest.readers.document_builder import clean, code_span, superscript, web_link
from citewell.ingest.readers.docx.math import formula_to_tex
from citewell.ingest.readers.docx.styles import Styles, child, is_monospaced, is_on, value
from citewell.ingest.readers.xml_tree import Element

NoteKind = Literal["footnote", "endnote"]

# Elements around runs that show nothing themselves. A deletion (`w:del`, `w:moveFrom`) is not among them.
WRAPPERS = frozenset(
    {"w:ins", "w:moveTo", "w:smartTag", "w:customXml", "w:dir", "w:bdo", "w:sdtContent", "w:fldSimple"}
)
_HYPERLINK = re.compile(r'\s*HYPERLINK\s+"([^"]+)"')
_MAX_FIELD_DEPTH = 8


@dataclass(slots=True)
class ParagraphText:
    """A paragraph's text, and the formulas, text boxes and notes attached to it."""

    text: str = ""
    code: str = ""
    """The same as code: spaces and tabs as typed, no markup."""
    is_code: bool = False
    """Whether all of it is in a monospaced font."""
    formulas: list[str] = field(default_factory=list)
    boxes: list[Element] = field(default_factory=list)
    notes: list[tuple[NoteKind, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Piece:
    markdown: str
    typed: str
    is_code: bool


@dataclass(slots=True)
class _Field:
    """A field while it is read: its instruction, and where its result begins."""

    instruction: str = ""
    result_start: int | None = None


class RunReader:
    """Reads the paragraphs of one part; `link_targets` are that part's links."""

    def __init__(self, styles: Styles, link_targets: Mapping[str, str], *, monospace_is_code: bool) -> None:
        self._styles = styles
        self._link_targets = link_targets
        self._monospace_is_code = monospace_is_code
        """Whether a monospaced font means code; False if the whole document is in one."""

    def read(self, paragraph: Element) -> ParagraphText:
        """The text of a paragraph and what is attached to it."""
        line = ParagraphText()
        pieces: list[_Piece] = []
        self._collect(paragraph.elements, pieces, line, [])
        line.text = _join_pieces(pieces)
        line.code = "".join(piece.typed for piece in pieces)
        written = [piece for piece in pieces if piece.typed.strip()]
        line.is_code = bool(written) and all(piece.is_code for piece in written)
        return line

    def _collect(
        self, elements: Iterable[Element], pieces: list[_Piece], line: ParagraphText, fields: list[_Field]
    ) -> None:
        for element in elements:
            match element.tag:
                case "w:r":
                    self._collect_run(element, pieces, line, fields)
                case "w:hyperlink":
                    start = len(pieces)
                    self._collect(element.elements, pieces, line, fields)
                    _make_link(pieces, start, self._link_targets.get(element.get("r:id"), ""))
                case "w:sdt" if not is_on(element, "w:sdtPr", "w:showingPlcHdr"):
                    self._collect(element.elements, pieces, line, fields)
                case "m:oMath":
                    if formula := formula_to_tex(element):
                        pieces.append(_Piece(f"${formula}$", formula, False))
                case "m:oMathPara":
                    line.formulas += filter(
                        None, [formula_to_tex(math) for math in element.elements if math.tag == "m:oMath"]
                    )
                case "mc:AlternateContent":
                    self._collect(_first_alternative(element), pieces, line, fields)
                case tag if tag in WRAPPERS:
                    self._collect(element.elements, pieces, line, fields)

    def _collect_run(self, run: Element, pieces: list[_Piece], line: ParagraphText, fields: list[_Field]) -> None:
        properties = child(run, "w:rPr")
        if is_on(properties, "w:vanish"):
            return
        is_code = self._is_code_run(properties)
        is_superscript = value(properties, "w:vertAlign") == "superscript"
        for element in run.elements:
            if (text := _element_text(element)) is not None:
                pieces.append(_Piece(superscript(text) if is_superscript else text, text, is_code))
            elif element.tag in ("w:footnoteReference", "w:endnoteReference"):
                kind: NoteKind = "footnote" if element.tag == "w:footnoteReference" else "endnote"
                line.notes.append((kind, element.get("w:id")))
                pieces.append(_Piece(f"[^{kind}:{element.get('w:id')}]", "", False))
            elif element.tag == "w:instrText":
                if fields and len(fields[-1].instruction) < 4_000:
                    fields[-1].instruction += element.text
            elif element.tag == "w:fldChar":
                _handle_field_mark(element.get("w:fldCharType"), pieces, fields)
            elif element.tag in ("w:drawing", "w:pict", "w:object", "mc:AlternateContent"):
                line.boxes += _text_boxes(element)

    def _is_code_run(self, properties: Element | None) -> bool:
        style = value(properties, "w:rStyle")
        if style and self._styles.role(style) == "code":
            return True
        return self._monospace_is_code and is_monospaced(properties) is True


def _element_text(element: Element) -> str | None:
    """The text of an element of a run; None if it has none."""
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


def _handle_field_mark(kind: str, pieces: list[_Piece], fields: list[_Field]) -> None:
    """Track the begin, the start of the result and the end of a field; a HYPERLINK field becomes a link."""
    if kind == "begin" and len(fields) < _MAX_FIELD_DEPTH:
        fields.append(_Field())
    elif kind == "separate" and fields:
        fields[-1].result_start = len(pieces)
    elif kind == "end" and fields:
        ended = fields.pop()
        if ended.result_start is not None and (match := _HYPERLINK.match(ended.instruction)):
            _make_link(pieces, ended.result_start, match[1])


def _make_link(pieces: list[_Piece], start: int, url: str) -> None:
    """Replace the pieces from `start` on by one link, unless one of them is a link already."""
    text = _join_pieces(pieces[start:]) if url else ""
    if text and "](" not in text:
        typed = "".join(piece.typed for piece in pieces[start:])
        gaps = (" " if typed[:1].isspace() else "", " " if typed[-1:].isspace() else "")
        pieces[start:] = [_Piece(f"{gaps[0]}{web_link(' '.join(text.split()), url)}{gaps[1]}", typed, False)]


def _join_pieces(pieces: Sequence[_Piece]) -> str:
    """The text as Markdown, with the forced line breaks; adjacent code becomes one span."""
    parts: list[str] = []
    for is_code, group in groupby(pieces, key=lambda piece: piece.is_code):
        text = "".join(piece.typed if is_code else piece.markdown for piece in group)
        inner = " ".join(text.split())
        if is_code and inner:
            parts += [" " if text[0].isspace() else "", code_span(inner), " " if text[-1].isspace() else ""]
        else:
            parts.append(text)
    lines = "".join(parts).split("\n")
    return "\n".join(" ".join(line.split()) for line in lines).strip()


def _first_alternative(element: Element) -> Iterable[Element]:
    """Word stores some content twice, for new and old programs; the first is enough."""
    return next(filter(list, (list(choice.elements) for choice in element.elements)), [])


def _text_boxes(element: Element) -> list[Element]:
    """The text boxes in a drawing."""
    if element.tag == "w:txbxContent":
        return [element]
    inside = _first_alternative(element) if element.tag == "mc:AlternateContent" else element.elements
    return [box for element in inside for box in _text_boxes(element)]
