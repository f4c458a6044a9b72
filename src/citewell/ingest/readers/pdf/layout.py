"""Arrange the text of a page into lines in reading order. Pure: it knows no PDF engine.

The input is pieces (words with a position and a font size) in drawing order, the output is lines. Running headers,
footers and page numbers are recognized because they are in the same place on many pages.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

_EDGE_LINES = 4
_SAME_PLACE_POINTS = 6
_WORD = re.compile(r"\w+(?:[-‐]\w+)*")
_BROKEN_WORD = re.compile(r"(\w+(?:[-‐]\w+)*)[-‐\u00ad]$")
_ROMAN = re.compile(r"[ivxlc]{1,7}", re.IGNORECASE)
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60]")
_DOT_LEADERS = re.compile(r"\s*(?:[.·…_]\s?){4,}\s*")
_MAX_WORD_CHARACTERS = 80
_MAX_CONTENTS_LINE_CHARACTERS = 500  # a line of a table of contents is shorter

_REPLACEMENTS: dict[int, str | None] = {
    **dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), 0x200B, 0x2060, 0xFEFF, 0xFFFC, 0xFFFD, 0xFFFE, 0xFFFF)),
    **dict.fromkeys((0x200E, 0x200F, *range(0x202A, 0x202F)), None),
    **dict.fromkeys((0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0xA0, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F), " "),
    **{0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"},
}


@dataclass(frozen=True, slots=True)
class Piece:
    """Words drawn together; `left` and `right` are in points, `baseline` grows upwards."""

    text: str
    left: float
    right: float
    baseline: float
    size: float
    bold: bool = False
    mono: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """Pieces on one baseline; `cells` are the parts of the line between wide gaps."""

    cells: tuple[Piece, ...]
    size: float
    bold: bool
    mono: bool

    @property
    def text(self) -> str:
        return " ".join(cell.text for cell in self.cells)

    @property
    def left(self) -> float:
        return self.cells[0].left

    @property
    def right(self) -> float:
        return self.cells[-1].right

    @property
    def baseline(self) -> float:
        return self.cells[0].baseline

    @property
    def style(self) -> tuple[float, bool]:
        """The rounded font size and whether it is bold: what a reader notices."""
        return round(self.size), self.bold


def clean(text: str) -> str:
    """The text as it would be typed: no ligatures, control characters or unusual spaces.

    clean("eﬃ\u00adcient\u00a0\x07way") -> "efficient way"; a soft hyphen at the end stays: `join_lines` needs it.
    """
    cleaned = text.translate(_REPLACEMENTS)
    if any("\ud800" <= character <= "\udfff" for character in cleaned):
        cleaned = cleaned.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
    cleaned = unicodedata.normalize("NFC", cleaned.rstrip())
    return " ".join((cleaned[:-1].replace("\u00ad", "") + cleaned[-1:]).split())


def lines_in_order(pieces: Sequence[Piece]) -> list[Line]:
    """The page's lines in drawing order; two columns that were drawn line by line are put one after the other."""
    drawn = list(_group_into_lines(pieces))
    if (gutter := _find_gutter(drawn)) is None:
        return drawn
    ordered: list[Line] = []
    left: list[Piece] = []
    right: list[Piece] = []
    for line in drawn:
        if any(cell.left < gutter - cell.size and cell.right > gutter for cell in line.cells):
            ordered += [*_group_into_lines(left), *_group_into_lines(right), line]
            left, right = [], []
            continue
        for cell in line.cells:
            (left if cell.left < gutter - cell.size else right).append(cell)
    return [*ordered, *_group_into_lines(left), *_group_into_lines(right)]


def _group_into_lines(pieces: Iterable[Piece]) -> Iterator[Line]:
    row: list[Piece] = []
    for piece in pieces:
        if row and not _is_same_row(row, piece):
            yield _make_line(row)
            row = []
        row.append(piece)
    if row:
        yield _make_line(row)


def _is_same_row(row: Sequence[Piece], piece: Piece) -> bool:
    last = row[-1]
    em = max(last.size, piece.size)
    near = min(abs(last.baseline - piece.baseline), abs(row[0].baseline - piece.baseline)) < 0.5 * em
    return near and piece.left > last.right - 0.5 * em


def _make_line(row: Sequence[Piece]) -> Line:
    weights: Counter[float] = Counter()
    for piece in row:
        weights[piece.size] += len(piece.text)
    total = weights.total()
    size = max(weights, key=lambda size: (weights[size], size))
    cells: list[Piece] = []
    for piece in row:
        gap = piece.left - cells[-1].right if cells else 0
        if cells and gap < max(cells[-1].size, piece.size):
            cells[-1] = _merge_pieces(cells[-1], piece, space=gap > 0.15 * size)
        else:
            cells.append(piece)
    return Line(
        tuple(cells),
        size,
        bold=2 * sum(len(piece.text) for piece in row if piece.bold) > total,
        mono=5 * sum(len(piece.text) for piece in row if piece.mono) > 4 * total,
    )


def _merge_pieces(first: Piece, second: Piece, *, space: bool) -> Piece:
    between = " " if space else ""
    main = first if len(first.text) >= len(second.text) else second
    return Piece(
        f"{first.text}{between}{second.text}",
        first.left,
        max(first.right, second.right),
        main.baseline,
        main.size,
        main.bold,
        main.mono,
    )


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


def collect_words(pages: Iterable[Iterable[Line]]) -> frozenset[str]:
    """The words of the document that no line end breaks; `join_lines` uses them to join broken words."""
    known_words: set[str] = set()
    broken = False
    for page in pages:
        for line in page:
            words = _WORD.findall(line.text.casefold())
            if broken:
                words = words[1:]
            broken = bool(_BROKEN_WORD.search(line.text[-_MAX_WORD_CHARACTERS:]))
            known_words.update(words[:-1] if broken else words)
    return frozenset(known_words | {part for word in known_words for part in re.split("[-‐]", word)})


def join_lines(first: str, second: str, known_words: frozenset[str]) -> str:
    """Two lines as one; a word that was broken between them is joined.

    join_lines("robo-", "tics is", ...) -> "robotics is"; join_lines("state-of-the-", "art", ...) -> "state-of-the-art"
    """
    if not first or not second:
        return first or second
    if first[-1] == "\u00ad":
        return first[:-1] + second
    head, tail = _BROKEN_WORD.search(first[-_MAX_WORD_CHARACTERS:]), _WORD.match(second)
    if head and tail:
        return (first[:-1] if _is_one_word(head[1], tail[0], known_words) else first) + second
    if _UNSPACED.match(first[-1]) and _UNSPACED.match(second[0]):
        return first + second
    return f"{first} {second}"


def _is_one_word(head: str, tail: str, known_words: frozenset[str]) -> bool:
    """Whether a hyphen at a line end only breaks a word, judged by the document's other words."""
    whole, compound = f"{head}{tail}".casefold(), f"{head}-{tail}".casefold()
    if compound in known_words or not tail[0].islower() or not head[-1].isalpha():
        return False
    if whole in known_words:
        return True
    # "state-of-the-" is a compound already; "long-" and "term" are words of their own.
    parts = {head.casefold(), tail.casefold()}
    return not re.search("[-‐]", head) and not (parts <= known_words and len(head) > 1)


def contents_entry(text: str) -> str | None:
    """A line of a table of contents without its dots, "Pumps … 12"; None if it is none."""
    if len(text) > _MAX_CONTENTS_LINE_CHARACTERS or not text[-1:].isalnum():
        return None
    parts = _DOT_LEADERS.split(text)
    return " … ".join(parts) if len(parts) == 2 and all(parts) and len(parts[1]) <= 6 else None
