"""Lines of pages turned into a manuscript: paragraphs, headings, lists, tables and code. Pure.

What a paragraph is, a PDF does not say. It shows: by a gap, an indent, a change of type, or a line that ends
although the next word had room on it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from citewell.ingest.readers.pdf.layout import Line, contents_entry, join, vocabulary, without_running_lines
from citewell.ingest.readers.pdf.tables import table_at
from citewell.models import Block, BlockKind, ParsedDocument

_BULLET = re.compile(
    r"[•◦▪▫‣●○■□◆◇❖➢➤►▶✓✔⁃∙·\uf0b7\uf0a7\uf0d8\uf0fc\uf06c\uf076]\s*(?=\S)|[-–—*]\s+(?=\S)|-(?=[A-Z][a-z])"
)
_NUMBER = re.compile(r"(?:\(?\d{1,2}|\(?[a-z]|\([ivx]{1,4})[.)]\s+(?=\S)")
_SENTENCE_END = re.compile(r"[.!?:;。!?:][\"'”’)\]]*$")
_LOOKS_LIKE_MARKUP = re.compile(r"#{1,6}\s|\||\$\$|`{3}|~{3}|(?:[-*_=]\s*){3,}$")
_NUMBERING = re.compile(
    r"^(?:(?:chapter|section|appendix|part)\s+)?[\dA-Z]{0,3}(?:\.\d+)*[.:)]?\s+(?=\S)", re.IGNORECASE
)
_LARGER = 1.12  # times the body size: the smallest step that headings are set in
_LONGEST_HEADING = 160


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A bookmark: the title of a heading, the page it points to (from 0), and its depth from 1."""

    title: str
    page: int
    level: int


@dataclass(slots=True)
class Paragraph:
    """Lines that belong together. `goes_on` says that its last sentence ends on the next page."""

    kind: BlockKind
    page: int
    lines: list[Line] = field(default_factory=list)
    text: str = ""
    level: int = 0
    goes_on: bool = False

    @property
    def style(self) -> tuple[float, bool]:
        return self.lines[0].style


@dataclass(frozen=True, slots=True)
class Type:
    """How the document is set: its body size, and the distance of lines for each size of type."""

    body_size: float
    leadings: dict[float, float]
    is_mono: bool

    def leading(self, line: Line) -> float:
        ratio = self.leadings.get(self.body_size, 1.25 * self.body_size) / self.body_size
        return self.leadings.get(line.size, max(ratio, 1.2) * line.size)


def compose(
    pages: Sequence[Sequence[Line]], *, outline: Sequence[OutlineEntry] = (), title: str = "", fallback_title: str
) -> ParsedDocument:
    """The manuscript that the pages' lines are; where no title is given, the first page's largest text is it."""
    kept = without_running_lines(pages, body_size=_measured(pages).body_size)
    if not any(kept):  # a page that is nothing but its header is read as text
        kept = [list(page) for page in pages]
    known = vocabulary(kept)
    setting = _measured(kept)
    paragraphs: list[Paragraph] = []
    for number, page in enumerate(kept):
        paragraphs += _paragraphs(page, number, setting, known)
    _mark_headings(paragraphs, setting, outline)
    if not title:
        title = _largest_text(paragraphs, setting)
    _set_levels([paragraph for paragraph in paragraphs if paragraph.kind == "heading"])
    _run_on(paragraphs, known)
    return _written(paragraphs, len(pages), title=title or fallback_title)


def _measured(pages: Sequence[Sequence[Line]]) -> Type:
    sizes: Counter[float] = Counter()
    gaps: defaultdict[float, Counter[float]] = defaultdict(Counter)
    mono = 0
    for page in pages:
        before: Line | None = None
        for line in page:
            sizes[line.size] += len(line.text)
            mono += len(line.text) if line.mono else 0
            gap = before.baseline - line.baseline if before and before.size == line.size else 0
            if 0.8 * line.size < gap < 2.5 * line.size:
                gaps[line.size][round(2 * gap) / 2] += 1
            before = line
    # Where one-line paragraphs abound, the commonest distance may be the one between paragraphs.
    leadings = {
        size: min(gap for gap, count in found.items() if 4 * count >= max(found.values()))
        for size, found in gaps.items()
        if found.total() >= 5
    }
    body = max(sizes, key=lambda size: (sizes[size], -size), default=1.0)
    return Type(body, leadings, is_mono=2 * mono > sizes.total())


def _paragraphs(lines: Sequence[Line], page: int, setting: Type, known: frozenset[str]) -> list[Paragraph]:
    margins = _margins(lines)
    found: list[Paragraph] = []
    position = no_table_before = 0
    while position < len(lines):
        line = lines[position]
        kind = _kind(line, found, margins[position], setting)
        if kind == "text" and len(line.cells) > 1 and position >= no_table_before:
            table, no_table_before = table_at(lines, position, known)
            if table:
                found.append(Paragraph("table", page, list(lines[position:no_table_before]), table))
                position = no_table_before
                continue
        if not found or _breaks(found[-1], line, kind, margins[position], setting):
            found.append(Paragraph(kind, page))
        found[-1].lines.append(line)
        position += 1
    for paragraph in found:
        if paragraph.kind == "code":
            paragraph.text = _code(paragraph.lines)
        elif paragraph.kind != "table":
            paragraph.text = _prose(paragraph, known)
    return [paragraph for paragraph in found if paragraph.text.strip()]


def _kind(line: Line, found: Sequence[Paragraph], margin: float, setting: Type) -> BlockKind:
    if _item_mark(line) or contents_entry(line.text):
        return "list"
    if not line.mono or setting.is_mono:
        return "text"
    # A line of a paragraph may happen to consist of names in typewriter type.
    inside = found and found[-1].kind in ("text", "list") and not _breaks(found[-1], line, "text", margin, setting)
    return "text" if inside else "code"


def _margins(lines: Sequence[Line]) -> list[float]:
    """For each line, how far to the right its column reaches; code may stick out of it."""
    margins: list[float] = []
    column: list[Line] = []
    for line in lines:
        if column and line.baseline > column[-1].baseline + 0.5 * line.size:
            margins += [_margin(column)] * len(column)
            column = []
        column.append(line)
    return margins + [_margin(column)] * len(column)


def _margin(column: Sequence[Line]) -> float:
    return max((line.right for line in column if not line.mono), default=0.0)


def _breaks(paragraph: Paragraph, line: Line, kind: BlockKind, margin: float, setting: Type) -> bool:
    """Whether the line begins something new."""
    if paragraph.kind == "table" or (paragraph.kind == "code") != (kind == "code"):
        return True
    last = paragraph.lines[-1]
    gap = last.baseline - line.baseline
    leading = setting.leading(line)
    if kind == "code":
        return not 0 < gap < 2.5 * leading
    if contents_entry(last.text) or contents_entry(line.text) or _item_mark(line, after=paragraph):
        return True
    if gap < -0.5 * line.size:  # the top of the next column
        return line.style != last.style or not _runs_on(last.text, line.text)
    changes_size = abs(last.size - line.size) > 0.08 * line.size and not (line.mono or last.mono)
    if changes_size or gap > 1.2 * leading + 0.5:
        return True
    # A heading of several lines ends them where it likes.
    is_large = line.size > _LARGER * setting.body_size
    return not is_large and (_ends_early(last, line, margin) or _is_moved(paragraph, line))


def _ends_early(last: Line, line: Line, margin: float) -> bool:
    """Whether the first word of a line had room on the one before, so that it must have ended on purpose."""
    word = line.text.split(" ", 1)[0]
    width = (line.right - line.left) * len(word) / max(len(line.text), 1)
    if last.right + width + 1.2 * last.size > margin or last.text[-1] in "-‐\u00ad":
        return False
    return line.bold != last.bold or bool(_SENTENCE_END.search(last.text)) or not line.text[0].islower()


def _is_moved(paragraph: Paragraph, line: Line) -> bool:
    """Whether a line is indented, or moved back, as the first of a paragraph is."""
    em = line.size
    last = paragraph.lines[-1]
    if paragraph.kind == "list":
        first = paragraph.lines[0]
        hangs = len(paragraph.lines) > 1 and last.left > first.left + 0.5 * em
        return line.left < first.left - 0.5 * em or (hangs and line.left < last.left - 0.5 * em)
    if line.left > last.left + 0.8 * em:
        return bool(_SENTENCE_END.search(last.text))
    return len(paragraph.lines) > 1 and line.left < last.left - 0.8 * em


def _item_mark(line: Line, after: Paragraph | None = None) -> str:
    """The bullet or number that makes a line a list item, as it stands; "" where it is none.

    Inside a paragraph a dash or number may be there by chance, so the line before must have ended.
    """
    text = line.text
    if len(line.cells) > 1 and line.cells[0].text == "o":  # Word's second bullet
        return "o "
    if (match := _BULLET.match(text)) and match[0][0] not in "-–—*·":
        return match[0]
    if not (match := match or _NUMBER.match(text)):
        return ""
    ended = after is None or after.kind == "list" or _SENTENCE_END.search(after.lines[-1].text)
    return match[0] if ended else ""


def _prose(paragraph: Paragraph, known: frozenset[str]) -> str:
    parts: list[str] = []
    tail = ""
    for line in paragraph.lines:
        tail = join(tail, contents_entry(line.text) or line.text, known)
        if len(tail) > 5000:  # only its end can change; a paragraph may have a hundred thousand lines
            parts.append(tail[:-1000])
            tail = tail[-1000:]
    text = "".join([*parts, tail]).replace("\u00ad", "-")
    if paragraph.kind == "list":
        mark = _item_mark(paragraph.lines[0]) if not contents_entry(paragraph.lines[0].text) else ""
        is_number = mark[:1].isdigit()
        return text if is_number else f"- {text if _NUMBER.match(mark) else text[len(mark) :]}"
    return f"\\{text}" if _LOOKS_LIKE_MARKUP.match(text) else text


def _code(lines: Sequence[Line]) -> str:
    """The lines in a fence, every part as far from the left as it stands on the page."""
    left = min(line.left for line in lines)
    longest = max((cell for line in lines for cell in line.cells), key=lambda cell: len(cell.text))
    width = max((longest.right - longest.left) / len(longest.text), 0.2 * longest.size)
    written: list[str] = []
    for number, line in enumerate(lines):
        if number and lines[number - 1].baseline - line.baseline > 1.8 * line.size:
            written.append("")
        text = ""
        for cell in line.cells:
            column = min(round((cell.left - left) / width), 200)
            text = text.ljust(max(column, len(text) + 1 if text else 0)) + cell.text
        written.append(text.replace("\u00ad", "-"))
    fence = "`" * max(3, 1 + max((len(ticks) for text in written for ticks in re.findall("`+", text)), default=0))
    return "\n".join([fence, *written, fence])


def _mark_headings(paragraphs: Sequence[Paragraph], setting: Type, outline: Sequence[OutlineEntry]) -> None:
    """Turn into headings what the outline names, with its level, and what is set like one, still without."""
    named = {(entry.page, _key(entry.title)): min(entry.level, 6) for entry in outline}
    for paragraph in paragraphs:
        if paragraph.kind not in ("text", "list") or len(paragraph.text) > _LONGEST_HEADING:
            continue
        level = named.get((paragraph.page, _key(_plain(paragraph))), 0)
        if level or _is_set_as_heading(paragraph, setting):
            paragraph.kind, paragraph.text, paragraph.level = "heading", _plain(paragraph), level


def _set_levels(headings: Sequence[Paragraph]) -> None:
    """Larger type is a higher level; where the outline names headings in the same type, theirs holds."""
    named: defaultdict[tuple[float, bool], list[int]] = defaultdict(list)
    for heading in headings:
        named[heading.style] += [heading.level] if heading.level else []
    levels: dict[tuple[float, bool], int] = {}
    above = 0
    for style in sorted(named, reverse=True):
        above = min(named[style], default=min(above + 1, 6))
        levels[style] = above
    for heading in headings:
        heading.level = heading.level or levels[heading.style]


def _plain(paragraph: Paragraph) -> str:
    return paragraph.text.removeprefix("- ").removeprefix("\\")


def _key(title: str) -> str:
    """A heading's words however they are set, and without its number."""
    words = title.strip()
    return re.sub(r"[\W_]+", "", _NUMBERING.sub("", words) or words).casefold()


def _is_set_as_heading(paragraph: Paragraph, setting: Type) -> bool:
    line, text = paragraph.lines[0], paragraph.text
    if not re.search(r"[^\W\d_]{2}", text) or contents_entry(line.text) or text.startswith("- "):
        return False
    if line.size >= _LARGER * setting.body_size:
        return len(paragraph.lines) <= 4 and not (len(text) > 80 and text.endswith("."))
    is_bold = all(one.bold for one in paragraph.lines) and line.size >= 0.95 * setting.body_size
    return is_bold and len(paragraph.lines) <= 2 and len(text) <= 120 and text[-1] not in ".,;"


def _largest_text(paragraphs: list[Paragraph], setting: Type) -> str:
    """The largest type on the first page with text; "" where none stands out. Its paragraphs become one heading.

    On a cover with nothing but headings, a single large word is half of the title: the rest belongs to it.
    """
    first = [one for one in paragraphs if one.page == paragraphs[0].page]
    headings = [one for one in first if one.kind == "heading"]
    size = max((one.lines[0].size for one in headings), default=0.0)
    if size < _LARGER * setting.body_size:
        return ""
    largest = [one for one in headings if one.lines[0].size > 0.95 * size]
    at = first.index(largest[0])
    is_cover = len(first) == len(headings) <= 3 and " " not in largest[0].text
    parts = first[at:] if is_cover else [one for one in first[at : at + 3] if one in largest]
    if parts == first[at : at + len(parts)]:
        largest[0].text = " ".join(one.text for one in parts)
        del paragraphs[at + 1 : at + len(parts)]
    return largest[0].text


def _runs_on(first: str, second: str) -> bool:
    """Whether the second text goes on with the first's sentence."""
    return bool(second) and not _SENTENCE_END.search(first) and second[0].islower()


def _run_on(paragraphs: list[Paragraph], known: frozenset[str]) -> None:
    """Mark paragraphs whose sentence goes on after a page break; a word broken there ends on its first page."""
    for position in range(1, len(paragraphs)):
        before, after = paragraphs[position - 1], paragraphs[position]
        prose = before.kind in ("text", "list") and after.kind == "text" and before.page != after.page
        if not prose or not _runs_on(before.text, after.text):
            continue
        before.goes_on = True
        after.kind = before.kind
        word, _, rest = after.text.partition(" ")
        if before.text[-1] in "-‐" and rest:
            before.text = join(before.text, word, known)
            after.text = rest


def _written(paragraphs: Sequence[Paragraph], page_count: int, *, title: str) -> ParsedDocument:
    """The canonical text with its blocks; a list's items stand together, everything else has a blank line between."""
    parts: list[str] = []
    blocks: list[Block] = []
    page_starts: list[int] = []
    offset = group = 0
    before: Paragraph | None = None
    for paragraph in paragraphs:
        same_list = before is not None and before.kind == "list" == paragraph.kind
        if before and not same_list and not before.goes_on:
            parts.append("\n")
            offset += 1
        if paragraph.kind in ("list", "table") and not same_list:
            group += 1
        page_starts += [offset] * (paragraph.page + 1 - len(page_starts))
        text = f"{'#' * paragraph.level} {paragraph.text}\n" if paragraph.kind == "heading" else f"{paragraph.text}\n"
        end = offset + len(text)
        block = Block(paragraph.kind, offset, end, group=group if paragraph.kind in ("list", "table") else None)
        if paragraph.kind == "heading":
            block = replace(block, level=paragraph.level, title=paragraph.text)
        blocks.append(block)
        parts.append(text)
        offset, before = end, paragraph
    page_starts += [offset] * (page_count - len(page_starts))
    return ParsedDocument(title=title, text="".join(parts), blocks=tuple(blocks), page_starts=tuple(page_starts))
