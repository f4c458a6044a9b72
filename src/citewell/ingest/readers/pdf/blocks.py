"""Build a parsed document from the lines of PDF pages: paragraphs, headings, lists, tables and code. Pure.

A PDF has no paragraphs, only lines. A new paragraph shows by a gap, an indent, a change of font, or a line that
ends early although the next word had room on it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from citewell.ingest.readers.pdf.layout import without_running_lines
from citewell.ingest.readers.pdf.lines import Line, collect_words, contents_entry, join_lines
from citewell.ingest.readers.pdf.tables import ruled_table_at, table_at
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
_HEADING_SIZE_RATIO = 1.12  # a line this many times larger than the body text may be a heading
_MAX_HEADING_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A bookmark: the title of a heading, its page (from 0) and its level (from 1)."""

    title: str
    page: int
    level: int


@dataclass(slots=True)
class Paragraph:
    """Lines that belong together. `continues` means that its last sentence ends on the next page."""

    kind: BlockKind
    page: int
    lines: list[Line] = field(default_factory=list)
    text: str = ""
    level: int = 0
    continues: bool = False

    @property
    def style(self) -> tuple[float, bool]:
        return self.lines[0].style


@dataclass(frozen=True, slots=True)
class Typography:
    """The font size of the body text, and the line distance (leading) for each font size."""

    body_size: float
    leadings: dict[float, float]
    is_mono: bool

    def leading(self, line: Line) -> float:
        ratio = self.leadings.get(self.body_size, 1.25 * self.body_size) / self.body_size
        return self.leadings.get(line.size, max(ratio, 1.2) * line.size)


def build_document(
    pages: Sequence[Sequence[Line]], *, outline: Sequence[OutlineEntry] = (), title: str = "", fallback_title: str
) -> ParsedDocument:
    """The parsed document of the pages' lines. Without a title, the largest text of the first page is the title."""
    text_pages = without_running_lines(pages, body_size=_measure_typography(pages).body_size)
    if not any(text_pages):  # if nothing but headers is left, they are the text
        text_pages = [list(page) for page in pages]
    known_words = collect_words(text_pages)
    typography = _measure_typography(text_pages)
    paragraphs: list[Paragraph] = []
    for number, page in enumerate(text_pages):
        paragraphs += _find_paragraphs(page, number, typography, known_words)
    _mark_headings(paragraphs, typography, outline)
    if not title:
        title = _take_title(paragraphs, typography)
    _set_levels([paragraph for paragraph in paragraphs if paragraph.kind == "heading"])
    _mark_continued(paragraphs, known_words)
    return _write_document(paragraphs, len(pages), title=title or fallback_title)


def _measure_typography(pages: Sequence[Sequence[Line]]) -> Typography:
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
    # With many one-line paragraphs, the most common distance may be the one between paragraphs.
    leadings = {
        size: min(gap for gap, count in counts.items() if 4 * count >= max(counts.values()))
        for size, counts in gaps.items()
        if counts.total() >= 5
    }
    body = max(sizes, key=lambda size: (sizes[size], -size), default=1.0)
    return Typography(body, leadings, is_mono=2 * mono > sizes.total())


def _find_paragraphs(
    lines: Sequence[Line], page: int, typography: Typography, known_words: frozenset[str]
) -> list[Paragraph]:
    margins = _margins(lines)
    paragraphs: list[Paragraph] = []
    position = no_table_before = 0
    while position < len(lines):
        line = lines[position]
        if line.table is not None:
            table, after = ruled_table_at(lines, position)
            paragraphs.append(Paragraph("table", page, list(lines[position:after]), table))
            position = after
            continue
        kind = _line_kind(line, paragraphs, margins[position], typography)
        if kind == "text" and len(line.cells) > 1 and position >= no_table_before:
            table, no_table_before = table_at(lines, position, known_words)
            if table:
                paragraphs.append(Paragraph("table", page, list(lines[position:no_table_before]), table))
                position = no_table_before
                continue
        if not paragraphs or _begins_new(paragraphs[-1], line, kind, margins[position], typography):
            paragraphs.append(Paragraph(kind, page))
        paragraphs[-1].lines.append(line)
        position += 1
    for paragraph in paragraphs:
        if paragraph.kind == "code":
            paragraph.text = _code_text(paragraph.lines)
        elif paragraph.kind != "table":
            paragraph.text = _prose_text(paragraph, known_words)
    return [paragraph for paragraph in paragraphs if paragraph.text.strip()]


def _line_kind(line: Line, paragraphs: Sequence[Paragraph], margin: float, typography: Typography) -> BlockKind:
    if _item_marker(line) or contents_entry(line.text):
        return "list"
    if not line.mono or typography.is_mono:
        return "text"
    # A line of a paragraph may consist of monospaced names only.
    last = paragraphs[-1] if paragraphs else None
    inside = last and last.kind in ("text", "list") and not _begins_new(last, line, "text", margin, typography)
    return "text" if inside else "code"


def _margins(lines: Sequence[Line]) -> list[float]:
    """For each line, the right margin of its column; code may extend beyond it."""
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


def _begins_new(paragraph: Paragraph, line: Line, kind: BlockKind, margin: float, typography: Typography) -> bool:
    """Whether the line begins a new paragraph."""
    if paragraph.kind == "table" or (paragraph.kind == "code") != (kind == "code"):
        return True
    last = paragraph.lines[-1]
    gap = last.baseline - line.baseline
    leading = typography.leading(line)
    if kind == "code":
        return not 0 < gap < 2.5 * leading
    if contents_entry(last.text) or contents_entry(line.text) or _item_marker(line, after=paragraph):
        return True
    if gap < -0.5 * line.size:  # the top of the next column
        return line.style != last.style or not _continues_sentence(last.text, line.text)
    changes_size = abs(last.size - line.size) > 0.08 * line.size and not (line.mono or last.mono)
    if changes_size or gap > 1.2 * leading + 0.5:
        return True
    # The lines of a heading may end anywhere.
    is_large = line.size > _HEADING_SIZE_RATIO * typography.body_size
    return not is_large and (_ends_early(last, line, margin) or _indent_changes(paragraph, line))


def _ends_early(last: Line, line: Line, margin: float) -> bool:
    """Whether the first word of the line had room on the last one, so that the last one ended a paragraph."""
    word = line.text.split(" ", 1)[0]
    width = (line.right - line.left) * len(word) / max(len(line.text), 1)
    if last.right + width + 1.2 * last.size > margin or last.text[-1] in "-‐\u00ad":
        return False
    return line.bold != last.bold or bool(_SENTENCE_END.search(last.text)) or not line.text[0].islower()


def _indent_changes(paragraph: Paragraph, line: Line) -> bool:
    """Whether the line is indented or outdented like the first line of a paragraph."""
    em = line.size
    last = paragraph.lines[-1]
    if paragraph.kind == "list":
        first = paragraph.lines[0]
        hangs = len(paragraph.lines) > 1 and last.left > first.left + 0.5 * em
        return line.left < first.left - 0.5 * em or (hangs and line.left < last.left - 0.5 * em)
    if line.left > last.left + 0.8 * em:
        return bool(_SENTENCE_END.search(last.text))
    return len(paragraph.lines) > 1 and line.left < last.left - 0.8 * em


def _item_marker(line: Line, after: Paragraph | None = None) -> str:
    """The bullet or number of a list item, unchanged; "" if the line is none.

    Inside a paragraph a dash or number may begin a line by chance, so the line before must end a sentence.
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


def _prose_text(paragraph: Paragraph, known_words: frozenset[str]) -> str:
    parts: list[str] = []
    tail = ""
    for line in paragraph.lines:
        tail = join_lines(tail, contents_entry(line.text) or line.text, known_words)
        if len(tail) > 5000:  # only its end can change, and a paragraph may have 100,000 lines
            parts.append(tail[:-1000])
            tail = tail[-1000:]
    text = "".join([*parts, tail]).replace("\u00ad", "-")
    if paragraph.kind == "list":
        marker = _item_marker(paragraph.lines[0]) if not contents_entry(paragraph.lines[0].text) else ""
        is_number = marker[:1].isdigit()
        return text if is_number else f"- {text if _NUMBER.match(marker) else text[len(marker) :]}"
    return f"\\{text}" if _LOOKS_LIKE_MARKUP.match(text) else text


def _code_text(lines: Sequence[Line]) -> str:
    """The lines as fenced code, indented and spaced as on the page."""
    left = min(line.left for line in lines)
    longest = max((cell for line in lines for cell in line.cells), key=lambda cell: len(cell.text))
    width = max((longest.right - longest.left) / len(longest.text), 0.2 * longest.size)
    code_lines: list[str] = []
    for number, line in enumerate(lines):
        if number and lines[number - 1].baseline - line.baseline > 1.8 * line.size:
            code_lines.append("")
        text = ""
        for cell in line.cells:
            column = min(round((cell.left - left) / width), 200)
            text = text.ljust(max(column, len(text) + 1 if text else 0)) + cell.text
        code_lines.append(text.replace("\u00ad", "-"))
    fence = "`" * max(3, 1 + max((len(ticks) for text in code_lines for ticks in re.findall("`+", text)), default=0))
    return "\n".join([fence, *code_lines, fence])


def _mark_headings(paragraphs: Sequence[Paragraph], typography: Typography, outline: Sequence[OutlineEntry]) -> None:
    """Mark headings: those in the outline get its level, those that only look like headings no level yet."""
    outline_levels = {(entry.page, _title_key(entry.title)): min(entry.level, 6) for entry in outline}
    for paragraph in paragraphs:
        if paragraph.kind not in ("text", "list") or len(paragraph.text) > _MAX_HEADING_CHARACTERS:
            continue
        level = outline_levels.get((paragraph.page, _title_key(_without_marker(paragraph))), 0)
        if level or _looks_like_heading(paragraph, typography):
            paragraph.kind, paragraph.text, paragraph.level = "heading", _without_marker(paragraph), level


def _set_levels(headings: Sequence[Paragraph]) -> None:
    """Set the missing levels: a larger font is a higher level, unless the outline has headings in the same font."""
    outline_levels: defaultdict[tuple[float, bool], list[int]] = defaultdict(list)
    for heading in headings:
        outline_levels[heading.style] += [heading.level] if heading.level else []
    levels: dict[tuple[float, bool], int] = {}
    above = 0
    for style in sorted(outline_levels, reverse=True):
        above = min(outline_levels[style], default=min(above + 1, 6))
        levels[style] = above
    for heading in headings:
        heading.level = heading.level or levels[heading.style]


def _without_marker(paragraph: Paragraph) -> str:
    return paragraph.text.removeprefix("- ").removeprefix("\\")


def _title_key(title: str) -> str:
    """A heading's letters and digits without its number, to compare titles."""
    words = title.strip()
    return re.sub(r"[\W_]+", "", _NUMBERING.sub("", words) or words).casefold()


def _looks_like_heading(paragraph: Paragraph, typography: Typography) -> bool:
    line, text = paragraph.lines[0], paragraph.text
    if not re.search(r"[^\W\d_]{2}", text) or contents_entry(line.text) or text.startswith("- "):
        return False
    if line.size >= _HEADING_SIZE_RATIO * typography.body_size:
        return len(paragraph.lines) <= 4 and not (len(text) > 80 and text.endswith("."))
    is_bold = all(line.bold for line in paragraph.lines) and line.size >= 0.95 * typography.body_size
    return is_bold and len(paragraph.lines) <= 2 and len(text) <= 120 and text[-1] not in ".,;"


def _take_title(paragraphs: list[Paragraph], typography: Typography) -> str:
    """The largest text of the first page with text; "" if none stands out. Its paragraphs become one heading.

    On a cover with only headings, a single large word is half of the title: the headings after it belong to it.
    """
    first = [paragraph for paragraph in paragraphs if paragraph.page == paragraphs[0].page]
    headings = [paragraph for paragraph in first if paragraph.kind == "heading"]
    size = max((heading.lines[0].size for heading in headings), default=0.0)
    if size < _HEADING_SIZE_RATIO * typography.body_size:
        return ""
    largest = [heading for heading in headings if heading.lines[0].size > 0.95 * size]
    start = first.index(largest[0])
    is_cover = len(first) == len(headings) <= 3 and " " not in largest[0].text
    parts = first[start:] if is_cover else [part for part in first[start : start + 3] if part in largest]
    if parts == first[start : start + len(parts)]:
        largest[0].text = " ".join(part.text for part in parts)
        del paragraphs[start + 1 : start + len(parts)]
    return largest[0].text


def _continues_sentence(first: str, second: str) -> bool:
    """Whether the second text continues the last sentence of the first."""
    return bool(second) and not _SENTENCE_END.search(first) and second[0].islower()


def _mark_continued(paragraphs: list[Paragraph], known_words: frozenset[str]) -> None:
    """Mark paragraphs whose sentence continues after a page break; a word broken there is moved to the first page."""
    for position in range(1, len(paragraphs)):
        before, after = paragraphs[position - 1], paragraphs[position]
        prose = before.kind in ("text", "list") and after.kind == "text" and before.page != after.page
        if not prose or not _continues_sentence(before.text, after.text):
            continue
        before.continues = True
        after.kind = before.kind
        word, _, rest = after.text.partition(" ")
        if before.text[-1] in "-‐" and rest:
            before.text = join_lines(before.text, word, known_words)
            after.text = rest


def _write_document(paragraphs: Sequence[Paragraph], page_count: int, *, title: str) -> ParsedDocument:
    """The canonical text with its blocks: list items follow each other, all other blocks have a blank line between."""
    parts: list[str] = []
    blocks: list[Block] = []
    page_starts: list[int] = []
    offset = group = 0
    before: Paragraph | None = None
    for paragraph in paragraphs:
        same_list = before is not None and before.kind == "list" == paragraph.kind
        if before and not same_list and not before.continues:
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
