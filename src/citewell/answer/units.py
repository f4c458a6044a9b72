"""Read a passage as quotable units: sentences, list items, table rows, code blocks, formulas. Pure.

Line by line, since this runs for every question. Offsets are into the passage's text, so that a quote is a slice.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from sentencex import get_sentence_boundaries

UnitKind = Literal["sentence", "item", "row", "code", "math"]

_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})")
_HEADING = re.compile(r"[ \t>]*#{1,6}[ \t]")
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_RULE = re.compile(r"[ \t>]*(?:[-*_=][ \t]*){3,}$")
_TABLE_RULE = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_BOLD_LINE = re.compile(r"[ \t>]*\*\*[^*]+\*\*:?[ \t]*$")  # a title in all but name
_INITIAL = re.compile(r"(?:^|[\s(*_.])[A-Z]\.$")
_REFERENCE = re.compile(r"[ \t]*\[[^\]]+\]:[ \t]*\S+[ \t]*$")
_QUOTE_MARK = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)
_WHOLE_ITEM = 400  # characters up to which a list item is quoted whole


@dataclass(frozen=True, slots=True)
class Unit:
    """A quotable stretch of a text."""

    start: int
    end: int
    kind: UnitKind
    header: tuple[int, int] | None = None
    """Where a table row's header stands: a row says nothing without it."""


def quote(text: str, unit: Unit) -> str:
    """The unit's own words: prose on one line, code and tables as they stand."""
    match unit.kind:
        case "sentence" | "item":
            return " ".join(_QUOTE_MARK.sub("", text[unit.start : unit.end]).split())
        case "row" if unit.header:
            return f"{text[unit.header[0] : unit.header[1]]}\n{text[unit.start : unit.end]}"
        case _:
            return text[unit.start : unit.end]


def units(text: str) -> list[Unit]:
    """Everything quotable in the text, in order; headings are places, not statements."""
    return list(_units(text))


def announced(text: str, unit: Unit) -> list[Unit]:
    """What a unit announces: the code, formula, list or table after its colon, or after a sentence left open."""
    words = text[unit.start : unit.end].rstrip("*_ \n")
    following = [other for other in units(text) if other.start >= unit.end]
    if unit.kind not in ("sentence", "item") or words.endswith((".", "!", "?")) or not following:
        return []
    kind = following[0].kind
    if kind in ("code", "math"):
        return following[:1]
    listed = kind in ("item", "row") and words.endswith(":")
    return list(takewhile(lambda other: other.kind == kind, following)) if listed else []


def _units(text: str) -> Iterator[Unit]:
    lines = _line_spans(text)
    position = 0
    while position < len(lines):
        start, end = lines[position]
        line = text[start:end]
        if fence := _FENCE.match(line):
            last = _closing(text, lines, position, fence[1])
            yield Unit(start, lines[last][1], "code")
            position = last + 1
        elif line.strip().startswith("$$"):
            last = (
                _closing(text, lines, position, "$$")
                if line.strip() == "$$" or not line.strip().endswith("$$")
                else position
            )
            yield Unit(start, lines[last][1], "math")
            position = last + 1
        elif line.lstrip(" \t>").startswith("|"):
            last = position
            while last + 1 < len(lines) and text[slice(*lines[last + 1])].lstrip(" \t>").startswith("|"):
                last += 1
            yield from _rows(text, lines[position : last + 1])
            position = last + 1
        elif not line.strip(" \t>") or any(place.match(line) for place in (_HEADING, _RULE, _REFERENCE, _BOLD_LINE)):
            position += 1
        else:
            last = position
            while last + 1 < len(lines) and not _breaks(text[slice(*lines[last + 1])]):
                last += 1
            yield from _prose(text, start, lines[last][1])
            position = last + 1


def _line_spans(text: str) -> list[tuple[int, int]]:
    spans = []
    start = 0
    for line in text.split("\n"):
        spans.append((start, start + len(line)))
        start += len(line) + 1
    return spans


def _breaks(line: str) -> bool:
    """Whether a paragraph ends before this line."""
    bare = line.strip(" \t>")
    return (
        not bare
        or bare.startswith(("|", "$$"))
        or any(start.match(line) for start in (_HEADING, _ITEM, _FENCE, _RULE, _BOLD_LINE))
    )


def _closing(text: str, lines: list[tuple[int, int]], opening: int, mark: str) -> int:
    """The line that closes a fence or formula, or the last one."""
    for position in range(opening + 1, len(lines)):
        bare = text[slice(*lines[position])].strip(" \t>")
        if bare.startswith(mark) and not bare.strip(mark[0]):
            return position
        if mark == "$$" and bare.endswith("$$"):
            return position
    return len(lines) - 1


def _rows(text: str, lines: list[tuple[int, int]]) -> Iterator[Unit]:
    headed = len(lines) > 2 and bool(_TABLE_RULE.match(text[slice(*lines[1])]))
    header = (lines[0][0], lines[1][1]) if headed else None
    for start, end in lines[2:] if headed else lines:
        yield Unit(start, end, "row", header)


def _prose(text: str, start: int, end: int) -> Iterator[Unit]:
    item = _ITEM.match(text, start, end)
    begin = item.end() if item else start
    if item and end - begin <= _WHOLE_ITEM:
        if text[begin:end].strip():
            yield Unit(begin, end, "item")
        return
    for first, last in _sentences(text, begin, end):
        if bare := text[first:last].strip():
            start = text.index(bare, first)
            yield Unit(start, start + len(bare), "sentence")


def _sentences(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Where sentences begin and end; an initial ("*R." of "*R.U.R.*") ends none."""
    first = begin
    for boundary in get_sentence_boundaries("en", text[begin:end]):
        last = begin + boundary["end_index"]
        if not _INITIAL.search(text[first:last].rstrip()) or last >= end:
            yield first, last
            first = last
    if first < end:
        yield first, end
