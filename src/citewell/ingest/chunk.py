"""Split a parsed document into citable chunks. Pure: text in, chunks out; it knows no file and no model.

Each section is split on its own, so an edit in one section does not change the chunk ids of the others.
A section longer than a chunk is split between paragraphs, then between sentences, never inside a code block; nothing
else makes a chunk longer than the largest size, not even one line of a megabyte. Each chunk of a section begins with
the last sentences of the one before (the overlap).
"""

import re
import string
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from urllib.parse import quote
from uuid import UUID

from citewell.errors import SettingsError
from citewell.models import Block, BlockKind, Chunk, ParsedDocument, chunk_id, content_hash
from citewell.text import sentence_spans

# A token here is a number of up to three digits, a punctuation mark, up to seven letters of a word, or one
# character of a script without spaces. On four docs sites the count stays within 6 % of WordPiece and takes a
# twentieth of the time, and chunk ids do not depend on any model's vocabulary.
_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W\d_{_UNSPACED}]{{1,7}}|\d{{1,3}}|[^\w\s]|_")


_MOST_CHARACTERS_PER_TOKEN = 20  # real texts have about five, wide tables up to twelve
_DELETE_LETTERS_AND_SPACES = {ord(character): None for character in f"{string.ascii_letters}{string.whitespace}"}


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """The size of chunks, in tokens."""

    smallest: int = 500
    largest: int = 800
    overlap: int = 100

    @property
    def most_characters(self) -> int:
        """The longest chunk in characters, code aside: blanks are no tokens, and a text may have millions of them."""
        return _MOST_CHARACTERS_PER_TOKEN * self.largest

    def __post_init__(self) -> None:
        if not 0 < self.smallest <= self.largest:
            raise SettingsError(
                f"chunk sizes {self.smallest} to {self.largest}: the smallest must be 1 or more and at most the largest"
            )
        if not 0 <= self.overlap < self.smallest:
            raise SettingsError(
                f"chunk overlap {self.overlap} must be smaller than the smallest chunk, {self.smallest}"
            )


@dataclass(frozen=True, slots=True)
class _Section:
    headings: tuple[str, ...]
    anchor: str
    start: int
    end: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class _Unit:
    """A span of text that stays together; `kind` decides whether it may be split further."""

    start: int
    end: int
    tokens: int
    kind: BlockKind

    def fits(self, size: ChunkSize) -> bool:
        return self.tokens <= size.largest and self.end - self.start <= size.most_characters


def count_tokens(text: str) -> int:
    """The number of tokens, without any model's tokenizer."""
    return len(_TOKEN.findall(text))


def chunk(
    document: ParsedDocument, *, document_id: UUID, source: str, size: ChunkSize, url: str | None = None
) -> tuple[list[Chunk], list[str]]:
    """The document's chunks in reading order, and a warning for each code block that is longer than a chunk."""
    text = document.text
    cutter = _Cutter(document, document_id, source, url)
    chunks: list[Chunk] = []
    warnings: list[str] = []
    for section in _split_sections(document):
        for span in _chunk_spans(text, section, size):
            cut = cutter.cut(span, index=len(chunks), headings=section.headings, anchor=section.anchor)
            if _has_more_tokens(cut.text, size.largest):
                warnings.append(f"{source}:{cut.first_line}: a block longer than {size.largest} tokens stays whole")
            chunks.append(cut)
    return chunks, warnings


def keep_whole(
    document: ParsedDocument, *, document_id: UUID, source: str, size: ChunkSize, url: str | None = None
) -> Chunk | None:
    """The document as one piece without a chunk index; None unless it is smaller than the smallest chunk."""
    span = _trim(document.text, 0, len(document.text))
    if span is None or _has_more_tokens(document.text, size.smallest - 1):
        return None
    return _Cutter(document, document_id, source, url).cut(span, index=None)


class _Cutter:
    """Makes chunks from spans of one document's text."""

    def __init__(self, document: ParsedDocument, document_id: UUID, source: str, url: str | None) -> None:
        self._document = document
        self._document_id = document_id
        self._source = source
        self._url = url
        self._positions = _Positions(document)
        self._occurrences: Counter[tuple[str, str]] = Counter()

    def cut(
        self, span: tuple[int, int], *, index: int | None, headings: tuple[str, ...] = (), anchor: str = ""
    ) -> Chunk:
        start, end = span
        chapter, text = self._document.title, self._document.text[start:end]
        section = headings[-1] if headings else chapter
        content = content_hash(chapter, section, text, occurrence=self._occurrences[section, text])
        self._occurrences[section, text] += 1
        page = self._positions.page(start)
        return Chunk(
            id=chunk_id(self._document_id, content),
            document_id=self._document_id,
            content_hash=content,
            index=index,
            source=self._source,
            chapter=chapter,
            section=section,
            headings=headings,
            text=text,
            start=start,
            end=end,
            first_line=self._positions.line(start),
            last_line=self._positions.line(end - 1),
            page=page,
            url=_chunk_url(self._url, anchor=anchor, page=page),
        )


class _Positions:
    """The line and the page of a text offset."""

    def __init__(self, document: ParsedDocument) -> None:
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", document.text))]
        self._lines = document.lines
        self._page_starts = document.page_starts

    def line(self, offset: int) -> int:
        line = bisect_right(self._line_starts, offset)
        return self._lines[line - 1] if self._lines else line

    def page(self, offset: int) -> int | None:
        return bisect_right(self._page_starts, offset) if self._page_starts else None


def _chunk_url(url: str | None, *, anchor: str, page: int | None) -> str | None:
    if url is None:
        return None
    fragment = quote(anchor) or (f"page={page}" if page else "")
    return f"{url}#{fragment}" if fragment else url


def _has_more_tokens(text: str, tokens: int) -> bool:
    """Whether a text has more tokens than this. For most texts an upper bound answers without counting."""
    if len(text) <= tokens:
        return False
    if text.isascii():
        others = len(text.translate(_DELETE_LETTERS_AND_SPACES))
        runs = others + len(text.split())  # of letters; each may end in a token of fewer than seven
        upper_bound = others + runs + (len(text) - others) // 7
        if upper_bound <= tokens:
            return False
    return count_tokens(text) > tokens


def _split_sections(document: ParsedDocument) -> Iterator[_Section]:
    """The text under each heading. A heading without text of its own belongs to the next section."""
    path: list[Block] = []
    start = 0
    body: list[Block] = []
    for block in document.blocks:
        if block.kind != "heading":
            body.append(block)
            continue
        if body:
            yield _make_section(path, document.title, start, block.start, body)
            body, start = [], block.start
        path = [*(above for above in path if above.level < block.level), block]
    if body or document.text[start:].strip():
        yield _make_section(path, document.title, start, len(document.text), body)


def _make_section(path: Sequence[Block], chapter: str, start: int, end: int, body: Sequence[Block]) -> _Section:
    """A section with the headings above it, without the chapter's title, which is stored separately."""
    headings = tuple(heading.title for heading in path if heading.title and heading.title != chapter)
    return _Section(headings, path[-1].anchor if path else "", start, end, tuple(body))


def _chunk_spans(text: str, section: _Section, size: ChunkSize) -> Iterator[tuple[int, int]]:
    """The start and end of each of the section's chunks."""
    if (whole := _trim(text, section.start, section.end)) is None:
        return
    if whole[1] - whole[0] <= size.most_characters and not _has_more_tokens(text[slice(*whole)], size.largest):
        yield whole
        return
    for start, stop in _fill_chunks(text, _section_units(text, section, size), size):
        if (span := _trim(text, start, stop)) is not None:
            yield span


def _fill_chunks(text: str, units: list[_Unit], size: ChunkSize) -> Iterator[tuple[int, int]]:
    """Fill chunks up to the largest size; each begins with the last sentences of the one before."""
    pending = list(reversed(units))
    current: list[_Unit] = []
    filled = 0
    while pending:
        unit = pending.pop()
        characters = unit.end - (current[0].start if current else unit.start)
        if not current or (filled + unit.tokens <= size.largest and characters <= size.most_characters):
            current.append(unit)
            filled += unit.tokens
            continue
        if (
            filled < size.smallest
            and unit.kind in ("text", "list")
            and len(parts := _split_sentences(text, unit, size)) > 1
        ):
            pending.extend(reversed(parts))
            continue
        yield current[0].start, unit.start
        overlap = _overlap(text, current, size)
        filled = sum(part.tokens for part in overlap) + unit.tokens
        start = overlap[0].start if overlap else unit.start
        if not _Unit(start, unit.end, filled, "text").fits(size):
            overlap, filled = [], unit.tokens
        current = [*overlap, unit]
    if current:
        yield current[0].start, current[-1].end


def _section_units(text: str, section: _Section, size: ChunkSize) -> list[_Unit]:
    """The section's paragraphs, lists and tables. A list or table that fits a chunk is one unit; others are split.

    Each unit ends where the next begins, and the first begins with the heading, so no line is lost.
    """
    start = section.start
    units: list[_Unit] = []
    headings_end = section.blocks[0].start if section.blocks else section.end
    headings = _Unit(start, headings_end, count_tokens(text[start:headings_end]), "table")
    if not headings.fits(size) or not section.blocks:
        units, start = _split_lines(text, headings, size), headings_end
    starts = [start, *(block.start for block in section.blocks[1:]), section.end]
    leaves = [
        _Unit(start, stop, count_tokens(text[start:stop]), block.kind)
        for block, start, stop in zip(section.blocks, starts, starts[1:], strict=False)
    ]
    numbered = zip(section.blocks, leaves, strict=True)
    for _, members in groupby(
        numbered, key=lambda pair: pair[0].group if pair[0].group is not None else -pair[0].start - 1
    ):
        parts = [leaf for _, leaf in members]
        kind: BlockKind = "list" if all(part.kind in ("text", "list") for part in parts) else "code"
        whole = _Unit(parts[0].start, parts[-1].end, sum(part.tokens for part in parts), kind)
        if len(parts) > 1 and whole.fits(size):
            units.append(whole)
        else:
            units.extend(piece for part in parts for piece in _split_to_fit(text, part, size))
    return units


def _split_to_fit(text: str, unit: _Unit, size: ChunkSize) -> list[_Unit]:
    if unit.fits(size):
        return [unit]
    characters = len(text[unit.start : unit.end].rstrip())
    if unit.kind == "code" or (unit.kind == "math" and characters <= size.most_characters):
        code_end = unit.start + characters  # the blanks after it are not code
        blanks = _Unit(code_end, unit.end, 0, "text")
        return [replace(unit, end=code_end), *_split_at(text, blanks, [code_end], size)]
    return _split_sentences(text, unit, size) if unit.kind in ("text", "list") else _split_lines(text, unit, size)


def _split_sentences(text: str, unit: _Unit, size: ChunkSize) -> list[_Unit]:
    """The unit's sentences; a sentence longer than a chunk is split between words."""
    bounds = [unit.start + start for start, _ in sentence_spans(text[unit.start : unit.end])]
    return _split_at(text, unit, sorted({unit.start, *bounds}), size)


def _split_lines(text: str, unit: _Unit, size: ChunkSize) -> list[_Unit]:
    bounds = [
        unit.start,
        *(unit.start + match.end() for match in re.finditer("\n", text[unit.start : unit.end - 1])),
    ]
    return _split_at(text, unit, bounds, size)


def _split_at(text: str, unit: _Unit, bounds: list[int], size: ChunkSize) -> list[_Unit]:
    parts: list[_Unit] = []
    for start, end in pairwise([*bounds, unit.end]):
        tokens = [match.start() for match in _TOKEN.finditer(text, start, end)]
        begin, first = start, 0
        while len(tokens) - first > size.largest or end - begin > size.most_characters:
            limit = tokens[first + size.largest] if len(tokens) - first > size.largest else end
            limit = min(limit, begin + size.most_characters)
            stop = text.rfind(" ", max(begin, limit - 40), limit) + 1 or limit
            last = bisect_left(tokens, stop)
            parts.append(_Unit(begin, stop, last - first, unit.kind))
            begin, first = stop, last
        parts.append(_Unit(begin, end, len(tokens) - first, unit.kind))
    return parts


def _overlap(text: str, units: Sequence[_Unit], size: ChunkSize) -> list[_Unit]:
    """The last sentences of a chunk, up to the size of the overlap; code, tables and formulas are not repeated."""
    tail: list[_Unit] = []
    room = size.overlap
    for unit in reversed(units):
        if unit.kind not in ("text", "list"):
            break
        for part in reversed(_split_sentences(text, unit, size)):
            if part.tokens > room:
                return tail
            tail.insert(0, part)
            room -= part.tokens
    return tail


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The span without blank lines around it; None if it is blank. Indentation stays: code needs it."""
    span = text[start:end]
    if not span.strip():
        return None
    leading = len(span) - len(span.lstrip())
    newline = span.rfind("\n", 0, leading)
    start += newline + 1 if newline != -1 else 0
    return start, end - (len(span) - len(span.rstrip()))
