"""Read PDF: the text of its pages in reading order, and where each page begins.

This module calls the engine (PDFium) and knows nothing of paragraphs: `layout.py` makes lines from the drawn text, with
the ruled tables that `drawings.py` and `grids.py` find, and `blocks.py` makes paragraphs, headings, lists and tables.
"""

import ctypes
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from threading import Lock

import pypdfium2 as pdfium  # type: ignore[import-untyped]
import pypdfium2.raw as engine  # type: ignore[import-untyped]

from citewell.errors import UnreadableFile
from citewell.ingest.readers.pdf.blocks import OutlineEntry, build_document
from citewell.ingest.readers.pdf.drawings import has_unread_picture, pages_text, read_segments
from citewell.ingest.readers.pdf.grids import Grid, find_grids
from citewell.ingest.readers.pdf.layout import lines_in_order
from citewell.ingest.readers.pdf.lines import Line, Piece, clean
from citewell.models import ParsedDocument

MAX_PAGES = 5_000
MAX_CHARACTERS = 30_000_000
_MAX_BOOKMARKS = 20_000

_ENGINE_LOCK = Lock()  # PDFium has global state: one document at a time

_BOLD = re.compile(rb"bold|black|heavy|demi|cmbx|cmb1|sfbx|-bd", re.IGNORECASE)
_NOT_BOLD = re.compile(rb"regular|light|book|roman|medium", re.IGNORECASE)
_MONO = re.compile(rb"courier|mono(?!type)|consol|menlo|nimbusmon|typewriter|cmtt|sftt|cmsltt|fixed", re.IGNORECASE)
_FIXED_PITCH = 1
_SPACES = frozenset({0x00, 0x09, 0x0A, 0x0D, 0x20, 0xA0})
_PLACEHOLDER_TITLE = re.compile(
    r"(?i)microsoft (?:word|powerpoint|excel|office)\b.*"
    r"|(?:untitled|document|title|slide|presentation|powerpoint|print|layout|unknown|none|no title|cover|template)"
    r"(?: presentation)?[\s\d_-]*"
    r"|.*\.[a-z]{2,5}\d?|[\W\d_]*|\S*[/\\]\S*"  # a file name, no letters, a path
)


def read_pdf(content: bytes, *, fallback_title: str) -> ParsedDocument:
    """Parse a PDF. The title is the metadata's, the largest text of the first page or the fallback."""
    if b"%%EOF" not in content.rstrip(b"\0\r\n\t ")[-4096:]:
        # PDFium would open a truncated file, and nobody would notice the missing pages.
        raise UnreadableFile("not a PDF, or cut off before its end; download or export it again")
    with _ENGINE_LOCK:
        document = _open_document(content)
        try:
            title = _metadata_title(document)
            pictures: list[int] = []
            pages = list(_read_pages(document, pictures))
            outline = list(_read_outline(document))
        finally:
            document.close()
    if not any(pages):
        raise UnreadableFile("no text in it (a scan?); run OCR first")
    parsed = build_document(pages, outline=outline, title=title, fallback_title=fallback_title)
    return replace(parsed, warnings=tuple(_picture_warnings(pictures, pages)))


def _picture_warnings(pictures: Sequence[int], pages: Sequence[Sequence[Line]]) -> Iterator[str]:
    """One line for the pages that are only a picture, and one for those with a picture beside their text."""
    only = [number for number in pictures if not pages[number - 1]]
    beside = [number for number in pictures if pages[number - 1]]
    if only:
        yield f"{pages_text(only)}: only a picture, of which nothing was read; run OCR first"
    if beside:
        yield f"{pages_text(beside)}: a large picture; text in it, if there is any, was not read; run OCR first"


def _open_document(content: bytes) -> "pdfium.PdfDocument":
    try:
        document = pdfium.PdfDocument(content)
    except pdfium.PdfiumError as error:
        match error.err_code:
            case engine.FPDF_ERR_PASSWORD:
                problem = "password-protected; remove the password and try again"
            case engine.FPDF_ERR_SECURITY:
                problem = "encrypted in a way that cannot be read; save it without encryption"
            case _:
                problem = "not a PDF, or a broken one; open it in a PDF viewer and save it again"
        raise UnreadableFile(problem) from error
    if (pages := len(document)) > MAX_PAGES:
        document.close()
        raise UnreadableFile(f"{pages:,} pages; split it into files of at most {MAX_PAGES:,}")
    return document


def _read_pages(document: "pdfium.PdfDocument", pictures: list[int]) -> Iterator[list[Line]]:
    """The lines of each page; a page is closed before the next one is opened.

    The numbers of pages with a picture that may contain text are added to `pictures`.
    """
    characters_left = MAX_CHARACTERS
    for number in range(len(document)):
        try:
            page = document[number]
        except pdfium.PdfiumError as error:
            raise UnreadableFile(
                f"page {number + 1} is broken; open the file in a PDF viewer and save it again"
            ) from error
        try:
            text_page = page.get_textpage()
            try:
                characters_left -= (count := max(text_page.count_chars(), 0))
                if characters_left < 0:
                    raise UnreadableFile(f"more than {MAX_CHARACTERS:,} characters; split it into several files")
                grids = find_grids(read_segments(page))
                pieces_by_direction = _read_pieces(text_page.raw, count, grids)
            finally:
                text_page.close()
            if has_unread_picture(page, has_text=bool(pieces_by_direction)):
                pictures.append(number + 1)
        except pdfium.PdfiumError as error:
            raise UnreadableFile(
                f"page {number + 1} is broken; open the file in a PDF viewer and save it again"
            ) from error
        finally:
            page.close()
        yield [
            line
            for turns, pieces in pieces_by_direction.items()
            for line in lines_in_order(pieces, () if turns else grids)
        ]


@dataclass(frozen=True, slots=True)
class _Style:
    """The style of all characters of one drawing operation; `quarter_turns` is the rotation of the text."""

    baseline: float
    size: float
    bold: bool
    mono: bool
    quarter_turns: int


@dataclass(slots=True)
class _PieceBuilder:
    """A piece while its words are collected."""

    style: _Style
    left: float
    right: float
    words: list[str] = field(default_factory=list)

    def build(self) -> Piece:
        style = self.style
        return Piece(
            clean("".join(self.words)), self.left, self.right, style.baseline, style.size, style.bold, style.mono
        )


def _read_pieces(page: "engine.FPDF_TEXTPAGE", count: int, grids: Sequence[Grid]) -> dict[int, list[Piece]]:
    """The pieces of text in drawing order for each direction, in quarter turns; the one with most text is first."""
    pieces: defaultdict[int, list[Piece]] = defaultdict(list)
    lengths: defaultdict[int, int] = defaultdict(int)
    for builder in _collect_pieces(page, count, grids):
        if (piece := builder.build()).text:
            pieces[builder.style.quarter_turns].append(piece)
            lengths[builder.style.quarter_turns] += len(piece.text)
    return {turns: pieces[turns] for turns in sorted(pieces, key=lambda turns: (-lengths[turns], turns))}


def _collect_pieces(page: "engine.FPDF_TEXTPAGE", count: int, grids: Sequence[Grid]) -> Iterator[_PieceBuilder]:
    """Collect pieces word by word: calling the engine for each character takes three times as long."""
    box = engine.FS_RECTF()
    operation, style = -1, _Style(0, 1, bold=False, mono=False, quarter_turns=0)
    current: _PieceBuilder | None = None
    for start, stop, word in _split_words([engine.FPDFText_GetUnicode(page, index) for index in range(count)]):
        drawn_by = engine.FPDFText_GetTextObject(page, start)
        address = ctypes.addressof(drawn_by.contents) if drawn_by else 0
        if address != operation:
            operation, style = address, _read_style(page, start)
        edges = [_character_edges(page, index, style.quarter_turns, box) for index in (start, stop - 1)]
        left, right = min(edge[0] for edge in edges), max(edge[1] for edge in edges)
        is_new_cell = current and grids and not style.quarter_turns and _is_ruled_off(current, left, grids)
        if current and (is_new_cell or not _belongs_to_piece(current, style, left, right)):
            yield current
            current = None
        if current is None:
            current = _PieceBuilder(style, left, right)
        current.words.append(word)
        current.left, current.right = min(current.left, left), max(current.right, right)
    if current:
        yield current


def _split_words(codes: list[int]) -> Iterator[tuple[int, int, str]]:
    """The start, the end and the text of each word, with a space where one follows it."""
    start = 0
    for index, code in enumerate([*codes, 0x20]):
        # PDFium marks a hyphen at a line's end as U+0002, and puts nothing between it and the next line.
        is_hyphen, is_space = code == 0x02, code in _SPACES
        if not is_hyphen and not is_space:
            continue
        if index > start or is_hyphen:
            letters = "".join(chr(character) for character in codes[start:index] if character < 0x110000)
            yield start, max(index, start + 1), letters + ("-" if is_hyphen else " ")
        start = index + 1


def _belongs_to_piece(current: _PieceBuilder, style: _Style, left: float, right: float) -> bool:
    """Whether a word belongs to the piece: same style, same line, no wide gap before it."""
    old = current.style
    if style is not old and (
        abs(style.baseline - old.baseline) > 0.1 * old.size
        or abs(style.size - old.size) > 0.05 * old.size
        or (style.bold, style.mono, style.quarter_turns) != (old.bold, old.mono, old.quarter_turns)
    ):
        return False
    return left - current.right < old.size and right > current.left - old.size


def _is_ruled_off(current: _PieceBuilder, left: float, grids: Sequence[Grid]) -> bool:
    """Whether the line of a table stands between the piece and the next word."""
    height, em = current.style.baseline + 0.3 * current.style.size, 0.3 * current.style.size
    return any(grid.place(current.left + em, height) != grid.place(left + em, height) for grid in grids)


def _read_style(page: "engine.FPDF_TEXTPAGE", index: int) -> _Style:
    matrix = engine.FS_MATRIX()
    engine.FPDFText_GetMatrix(page, index, matrix)
    x, y = ctypes.c_double(), ctypes.c_double()
    engine.FPDFText_GetCharOrigin(page, index, x, y)
    turns = math.atan2(matrix.b, matrix.a) / (math.pi / 2)
    quarter_turns = round(turns) % 4 if math.isfinite(turns) else 0
    baseline = (y.value, -x.value, -y.value, x.value)[quarter_turns]
    # The font size is before scaling: some programs write size 1 and scale the text instead.
    size = engine.FPDFText_GetFontSize(page, index) * math.hypot(matrix.c, matrix.d)
    name, flags = ctypes.create_string_buffer(256), ctypes.c_int()
    engine.FPDFText_GetFontInfo(page, index, name, 256, flags)
    font = name.value
    heavy = engine.FPDFText_GetFontWeight(page, index) >= 700 and not _NOT_BOLD.search(font)
    return _Style(
        baseline=baseline if math.isfinite(baseline) else 0.0,
        size=round(size, 1) if math.isfinite(size) and size > 0.1 else 1.0,
        bold=bool(_BOLD.search(font)) or heavy,
        mono=bool(_MONO.search(font)) or (flags.value & _FIXED_PITCH == _FIXED_PITCH and b"Glyph" not in font),
        quarter_turns=quarter_turns,
    )


def _character_edges(
    page: "engine.FPDF_TEXTPAGE", index: int, quarter_turns: int, box: "engine.FS_RECTF"
) -> tuple[float, float]:
    """The left and right edge of a character, along the direction of its line."""
    engine.FPDFText_GetLooseCharBox(page, index, box)
    sides = (box.left, box.bottom, -box.right, -box.top), (box.right, box.top, -box.left, -box.bottom)
    left, right = sides[0][quarter_turns], sides[1][quarter_turns]
    return (left, right) if math.isfinite(left + right) else (0.0, 0.0)


def _read_outline(document: "pdfium.PdfDocument") -> Iterator[OutlineEntry]:
    for bookmark in islice(document.get_toc(max_depth=6), _MAX_BOOKMARKS):
        target = bookmark.get_dest()
        page = target.get_index() if target else None
        if page is not None and (title := clean(bookmark.get_title())):
            yield OutlineEntry(title, page, bookmark.level + 1)


def _metadata_title(document: "pdfium.PdfDocument") -> str:
    """The title in the file's metadata; "" for a placeholder that a program wrote."""
    title = clean(document.get_metadata_value("Title"))
    return "" if len(title) > 300 or len(title) < 3 or _PLACEHOLDER_TITLE.fullmatch(title) else title
