"""What is drawn on a PDF page beside text: the lines of ruled tables, and pictures. Calls the engine (PDFium)."""

import ctypes
from collections.abc import Iterator, Sequence
from itertools import islice

import pypdfium2 as pdfium  # type: ignore[import-untyped]
import pypdfium2.raw as engine  # type: ignore[import-untyped]

from citewell.ingest.readers.pdf.grids import Segment

_MAX_OBJECTS = 20_000
_MAX_SEGMENTS = 2_000
_MIN_PICTURE_SHARE = 0.08  # of the page; smaller ones are logos and ornaments
_MIN_BACKGROUND_SHARE = 0.8  # a scan or a backdrop behind the text
_MIN_DRAWN_PATHS = 50  # on a page without text: a drawing, or text as outlines


def read_segments(page: "pdfium.PdfPage") -> list[Segment]:
    """The horizontal and vertical lines of the page; the edges of rectangles too."""
    paths = page.get_objects(filter=[engine.FPDF_PAGEOBJ_PATH], max_depth=1)
    found = (segment for path in islice(paths, _MAX_OBJECTS) for segment in _path_segments(path))
    return list(islice(found, _MAX_SEGMENTS))


def has_unread_picture(page: "pdfium.PdfPage", *, has_text: bool) -> bool:
    """Whether the page has a picture that may contain text; small ones and backdrops of text do not count."""
    width, height = page.get_size()
    area = paths = 0.0
    for item in islice(page.get_objects(max_depth=3), _MAX_OBJECTS):
        if item.type == engine.FPDF_PAGEOBJ_PATH:
            paths += 1
        elif item.type == engine.FPDF_PAGEOBJ_IMAGE:
            left, bottom, right, top = item.get_bounds()
            area += min(abs(right - left), width) * min(abs(top - bottom), height)
    share = area / max(width * height, 1.0)
    if not has_text:
        return bool(share >= _MIN_PICTURE_SHARE or paths >= _MIN_DRAWN_PATHS)
    return bool(_MIN_PICTURE_SHARE <= share < _MIN_BACKGROUND_SHARE)


def pages_text(numbers: Sequence[int]) -> str:
    """Page numbers in words: [1, 2, 3, 7] -> "pages 1-3, 7"."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    names = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    return f"page{'s' if len(numbers) > 1 else ''} {', '.join(names)}"


def _path_segments(path: "pdfium.PdfObject") -> Iterator[Segment]:
    raw = path.raw
    matrix = path.get_matrix()
    x, y = ctypes.c_float(), ctypes.c_float()
    start = last = (0.0, 0.0)
    for index in range(min(engine.FPDFPath_CountSegments(raw), _MAX_SEGMENTS)):
        segment = engine.FPDFPath_GetPathSegment(raw, index)
        engine.FPDFPathSegment_GetPoint(segment, x, y)
        point = matrix.on_point(x.value, y.value)
        kind = engine.FPDFPathSegment_GetType(segment)
        if kind == engine.FPDF_SEGMENT_LINETO:
            yield Segment.between(last, point)
        if kind == engine.FPDF_SEGMENT_MOVETO:
            start = point
        last = point
        if engine.FPDFPathSegment_GetClose(segment):
            yield Segment.between(last, start)
