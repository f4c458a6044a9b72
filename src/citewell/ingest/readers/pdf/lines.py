"""The lines of a PDF page: pieces of text on one baseline, and how the texts of lines are joined. Pure."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"\w+(?:[-‐]\w+)*")
_BROKEN_WORD = re.compile(r"(\w+(?:[-‐]\w+)*)[-‐\u00ad]$")
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
    table: int | None = None
    """The number of the ruled table that the line is a row of; then there is one cell for each of its columns."""

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


def group_into_lines(pieces: Iterable[Piece]) -> Iterator[Line]:
    row: list[Piece] = []
    for piece in pieces:
        if row and not _is_same_row(row, piece):
            yield make_line(row)
            row = []
        row.append(piece)
    if row:
        yield make_line(row)


def _is_same_row(row: Sequence[Piece], piece: Piece) -> bool:
    last = row[-1]
    em = max(last.size, piece.size)
    near = min(abs(last.baseline - piece.baseline), abs(row[0].baseline - piece.baseline)) < 0.5 * em
    return near and piece.left > last.right - 0.5 * em


def make_line(row: Sequence[Piece]) -> Line:
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
