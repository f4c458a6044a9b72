"""Read a passage as quotable units: sentences, list items, table rows, code blocks, formulas. Pure.

Line by line, since this runs for every question. Offsets are into the passage's text, so that a quote is a slice.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Literal

from citewell.text.fences import FENCE
from citewell.text.sentences import sentence_spans

UnitKind = Literal["sentence", "item", "row", "code", "math"]

_HEADING = re.compile(r"[ \t>]*#{1,6}[ \t]")
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_RULE = re.compile(r"[ \t>]*(?:[-*_=][ \t]*){3,}$")
_TABLE_RULE = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_BOLD_LINE = re.compile(r"[ \t>]*\*\*[^*]+\*\*:?[ \t]*$")  # a title in all but name
_INITIAL = re.compile(r"(?:^|[\s(*_.])(?<!\d\s)[A-Z]\.$")  # but not the newtons of "140 N."
_NUMBERED_PART = re.compile(r"\b(?:eqs?|figs?|tabs?|secs?|chs?|vols?|nos?|pp?|ca)\.$", re.IGNORECASE)  # "Eq. 4"
_MIDWAY = re.compile(r"\b(?:e\.g|i\.e|cf|vs|approx|resp|incl)\.$", re.IGNORECASE)
_RUN_IN = re.compile(r"[ \t>]*(\*\*|__)[^*_\n]{1,60}\1$")  # "**Stepping.** A foot moves…"
_LEFTOVER_MARKS = re.compile(r"[*_]+(?=\s|$)")  # what closes "**Stepping.**" stands after its full stop
_AFTER_UNIT = re.compile(  # the stop of "3.1 h. Peaks" ends a sentence, though "h." looks short for something
    r"""(?:\d[ \u00a0]?(?:[kmMG]?(?:Hz|[ABCFJKNVWgms]|Nm|Pa|rad|px|bit|bytes?)|[cm]m|min|h|L|l|%|°[CF]?|N·m|Ω)
           (?:[·/](?:kg|rad|mm|cm|km|m|s|h|min|√?Hz))*[²³]? | ,\ [a-z])\.[ \t]*\s(?=[A-Z][A-Za-z]*\ )""",
    re.VERBOSE,
)
_FOOTNOTE = re.compile(r"(?:[ \t]*\[\^[^\]\s]+\](?::[ \t]*)?)+[ \t]*")
_DESCRIBES = re.compile(r"[ \t>]*:[ \t]+")  # the second line of "Term", ": what it means"
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


def unit_text(text: str, unit: Unit) -> str:
    """The unit's own words: prose on one line, code and tables as they stand."""
    match unit.kind:
        case "sentence" | "item":
            return " ".join(_QUOTE_MARK.sub("", text[unit.start : unit.end]).split())
        case "row" if unit.header:
            return f"{text[unit.header[0] : unit.header[1]]}\n{text[unit.start : unit.end]}"
        case _:
            return text[unit.start : unit.end]


@lru_cache(maxsize=512)
def split_units(text: str) -> tuple[Unit, ...]:
    """Everything quotable in the text, in order; headings are places, not statements."""
    return tuple(_units(text))


def announced_units(text: str, unit: Unit, following: Sequence[Unit]) -> list[Unit]:
    """What a unit announces: the code, formula, list or table after its colon, or after a sentence left open."""
    words = text[unit.start : unit.end].rstrip("*_ \n")
    if unit.kind not in ("sentence", "item") or words.endswith((".", "!", "?")) or not following:
        return []
    kind = following[0].kind
    if kind in ("code", "math"):
        return [following[0]]
    listed = kind in ("item", "row") and words.endswith(":")
    return list(takewhile(lambda other: other.kind == kind, following)) if listed else []


def _units(text: str) -> Iterator[Unit]:
    lines = _line_spans(text)
    position = 0
    while position < len(lines):
        start, end = lines[position]
        line = text[start:end]
        if fence := FENCE.match(line):
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
        elif not line.strip(" \t>") or (
            any(place.match(line) for place in (_HEADING, _RULE, _REFERENCE, _BOLD_LINE))
            and not _is_described(text, lines[position + 1 : position + 2])
        ):
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
        or any(start.match(line) for start in (_HEADING, _ITEM, FENCE, _RULE, _BOLD_LINE))
    )


def _is_described(text: str, following: Sequence[tuple[int, int]]) -> bool:
    """Whether a line is a term whose meaning is the next line, so that it is no title."""
    return any(_DESCRIBES.match(text[slice(*line)]) for line in following)


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
        mark = _FOOTNOTE.match(text, first, last)  # the number of a note is no word of it
        begin = mark.end() if mark else first
        if bare := text[begin:last].strip():
            start = text.index(bare, begin)
            yield Unit(start, start + len(bare), "sentence")


def _sentences(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Where sentences begin and end: not after "*R." of "*R.U.R.*", nor after "Eq." of "Eq. 4", but after "3.1 h."."""
    first = begin
    for stop in _stops(text, begin, end):
        said, rest = text[first:stop].rstrip(), text[stop:end]
        goes_on = (
            _INITIAL.search(said)
            or _MIDWAY.search(said)
            or _RUN_IN.match(said)
            or (_NUMBERED_PART.search(said) and rest[:1].isdigit())
        )
        if stop > first and (not goes_on or stop >= end):
            yield first, stop
            first = stop
    if first < end:
        yield first, end


def _stops(text: str, begin: int, end: int) -> list[int]:
    """Where sentences may end, moved behind the asterisks that close a bold one."""
    stops = {begin + stop for _, stop in sentence_spans(text[begin:end])}
    stops |= {found.end() for found in _AFTER_UNIT.finditer(text, begin, end)}
    closed = (_LEFTOVER_MARKS.match(text, stop, end) for stop in sorted(stops))
    return [found.end() if found else stop for stop, found in zip(sorted(stops), closed, strict=True)]
