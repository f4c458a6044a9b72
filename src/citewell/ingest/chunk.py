"""Cut a manuscript into citable chunks. Pure: text in, chunks out; it knows no file and no model.

Sections come first: each is cut on its own, so that an edit in one leaves the ids of all others alone.
A section longer than a chunk is cut between paragraphs, then between sentences, never inside a code
block, and each of its chunks begins with the last words of the one before.
"""

import re
import string
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from urllib.parse import quote
from uuid import UUID

from citewell.errors import SettingsError
from citewell.models import Block, BlockKind, Chunk, ParsedDocument, chunk_id, content_hash
from citewell.text import sentence_spans

# A token here is what a reader could count by hand: a number, a sign, up to seven letters of a word, one
# character of a script without spaces. On four docs sites this stays within 6 % of WordPiece, costs a
# twentieth of it, and keeps chunk ids free of any model's vocabulary.
_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W\d_{_UNSPACED}]{{1,7}}|\d{{1,3}}|[^\w\s]|_")


_LETTERS_AND_SPACES_GONE = {ord(mark): None for mark in f"{string.ascii_letters}{string.whitespace}"}


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """How large chunks are, in tokens."""

    smallest: int = 500
    largest: int = 800
    overlap: int = 100

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
    """A stretch that stays together; `kind` tells whether it may be cut further."""

    start: int
    end: int
    tokens: int
    kind: BlockKind


def count_tokens(text: str) -> int:
    return len(_TOKEN.findall(text))


def chunk(
    manuscript: ParsedDocument, *, document_id: UUID, source: str, size: ChunkSize, url: str | None = None
) -> tuple[list[Chunk], list[str]]:
    """The manuscript's chunks in reading order, and a warning for each code block longer than one."""
    text = manuscript.text
    places = _Places(manuscript)
    chunks: list[Chunk] = []
    warnings: list[str] = []
    seen: Counter[tuple[str, str]] = Counter()
    for section in _sections(manuscript):
        title = section.headings[-1] if section.headings else manuscript.title
        for start, end in _spans(text, section, size):
            words = text[start:end]
            content = content_hash(manuscript.title, title, words, occurrence=seen[title, words])
            seen[title, words] += 1
            first_line, page = places.line(start), places.page(start)
            if _longer_than(size.largest, words):
                warnings.append(f"{source}:{first_line}: a block longer than {size.largest} tokens stays whole")
            chunks.append(
                Chunk(
                    id=chunk_id(document_id, content),
                    document_id=document_id,
                    content_hash=content,
                    index=len(chunks),
                    source=source,
                    chapter=manuscript.title,
                    section=title,
                    headings=section.headings,
                    text=words,
                    start=start,
                    end=end,
                    first_line=first_line,
                    last_line=places.line(end - 1),
                    page=page,
                    url=_chunk_url(url, anchor=section.anchor, page=page),
                )
            )
    return chunks, warnings


class _Places:
    """Lines and pages by offset."""

    def __init__(self, manuscript: ParsedDocument) -> None:
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", manuscript.text))]
        self._lines = manuscript.lines
        self._page_starts = manuscript.page_starts

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


def _longer_than(tokens: int, text: str) -> bool:
    """Whether a text has more tokens; most need no counting to know that they have not."""
    if len(text) <= tokens:
        return False
    if text.isascii():
        signs = len(text.translate(_LETTERS_AND_SPACES_GONE))
        at_most = signs + len(text.split()) + (len(text) - signs) // 7
        if at_most <= tokens:
            return False
    return count_tokens(text) > tokens


def _sections(manuscript: ParsedDocument) -> Iterator[_Section]:
    """The text under each heading. A heading with nothing under it goes with the next one's text."""
    path: list[Block] = []
    start = 0
    body: list[Block] = []
    for block in manuscript.blocks:
        if block.kind != "heading":
            body.append(block)
            continue
        if body:
            yield _section(path, manuscript.title, start, block.start, body)
            body, start = [], block.start
        path = [*(above for above in path if above.level < block.level), block]
    if body or manuscript.text[start:].strip():
        yield _section(path, manuscript.title, start, len(manuscript.text), body)


def _section(path: Sequence[Block], chapter: str, start: int, end: int, body: Sequence[Block]) -> _Section:
    """A section under its heading path, without the chapter's own title, which stands before it anyway."""
    headings = tuple(heading.title for heading in path if heading.title and heading.title != chapter)
    return _Section(headings, path[-1].anchor if path else "", start, end, tuple(body))


def _spans(text: str, section: _Section, size: ChunkSize) -> Iterator[tuple[int, int]]:
    """Where the section's chunks begin and end."""
    if (whole := _trimmed(text, section.start, section.end)) is None:
        return
    if not _longer_than(size.largest, text[slice(*whole)]) or not section.blocks:  # a heading alone is never cut
        yield whole
        return
    for start, stop in _packed(text, _units(text, section, size), size):
        if (span := _trimmed(text, start, stop)) is not None:
            yield span


def _packed(text: str, units: list[_Unit], size: ChunkSize) -> Iterator[tuple[int, int]]:
    """Fill chunks up to the largest size; begin each with the end of the one before."""
    pending = list(reversed(units))
    current: list[_Unit] = []
    filled = 0
    while pending:
        unit = pending.pop()
        if not current or filled + unit.tokens <= size.largest:
            current.append(unit)
            filled += unit.tokens
            continue
        if filled < size.smallest and unit.kind in ("text", "list") and len(parts := _sentences(text, unit, size)) > 1:
            pending.extend(reversed(parts))
            continue
        yield current[0].start, unit.start
        carried = _tail(text, current, size)
        current = [*carried, unit] if sum(part.tokens for part in carried) + unit.tokens <= size.largest else [unit]
        filled = sum(part.tokens for part in current)
    if current:
        yield current[0].start, current[-1].end


def _units(text: str, section: _Section, size: ChunkSize) -> list[_Unit]:
    """Paragraphs, and lists and tables as wholes where they fit; what is too long is cut to fit.

    A unit reaches to where the next begins, and the first starts with the heading, so no line is lost.
    """
    starts = [section.start, *(block.start for block in section.blocks[1:]), section.end]
    leaves = [
        _Unit(start, stop, count_tokens(text[start:stop]), block.kind)
        for block, start, stop in zip(section.blocks, starts, starts[1:], strict=False)
    ]
    units: list[_Unit] = []
    numbered = zip(section.blocks, leaves, strict=True)
    for _, members in groupby(
        numbered, key=lambda pair: pair[0].group if pair[0].group is not None else -pair[0].start - 1
    ):
        parts = [leaf for _, leaf in members]
        tokens = sum(part.tokens for part in parts)
        if len(parts) > 1 and tokens <= size.largest:
            kind: BlockKind = "list" if all(part.kind in ("text", "list") for part in parts) else "code"
            units.append(_Unit(parts[0].start, parts[-1].end, tokens, kind))
        else:
            units.extend(piece for part in parts for piece in _fitting(text, part, size))
    return units


def _fitting(text: str, unit: _Unit, size: ChunkSize) -> list[_Unit]:
    if unit.tokens <= size.largest or unit.kind in ("code", "math"):
        return [unit]
    return _lines(text, unit, size) if unit.kind == "table" else _sentences(text, unit, size)


def _sentences(text: str, unit: _Unit, size: ChunkSize) -> list[_Unit]:
    """The unit's sentences; one that is longer than a chunk is cut between words."""
    bounds = [unit.start + start for start, _ in sentence_spans(text[unit.start : unit.end])]
    return _cut(text, unit, sorted({unit.start, *bounds}), size)


def _lines(text: str, unit: _Unit, size: ChunkSize) -> list[_Unit]:
    bounds = [
        unit.start,
        *(unit.start + match.end() for match in re.finditer("\n", text[unit.start : unit.end - 1])),
    ]
    return _cut(text, unit, bounds, size)


def _cut(text: str, unit: _Unit, bounds: list[int], size: ChunkSize) -> list[_Unit]:
    parts: list[_Unit] = []
    for start, end in pairwise([*bounds, unit.end]):
        tokens = [match.start() for match in _TOKEN.finditer(text, start, end)]
        begin, first = start, 0
        while len(tokens) - first > size.largest:
            limit = tokens[first + size.largest]
            stop = text.rfind(" ", max(begin, limit - 40), limit) + 1 or limit
            last = bisect_left(tokens, stop)
            parts.append(_Unit(begin, stop, last - first, unit.kind))
            begin, first = stop, last
        parts.append(_Unit(begin, end, len(tokens) - first, unit.kind))
    return parts


def _tail(text: str, units: Sequence[_Unit], size: ChunkSize) -> list[_Unit]:
    """The last sentences of a chunk, up to the overlap; code, tables and formulas are not repeated."""
    tail: list[_Unit] = []
    room = size.overlap
    for unit in reversed(units):
        if unit.kind not in ("text", "list"):
            break
        for part in reversed(_sentences(text, unit, size)):
            if part.tokens > room:
                return tail
            tail.insert(0, part)
            room -= part.tokens
    return tail


def _trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The span without blank lines around it; None where nothing is left. Indentation stays: it is code's."""
    words = text[start:end]
    if not words.strip():
        return None
    lead = len(words) - len(words.lstrip())
    newline = words.rfind("\n", 0, lead)
    start += newline + 1 if newline != -1 else 0
    return start, end - (len(words) - len(words.rstrip()))
