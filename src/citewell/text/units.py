"""Splits Markdown into quotable units: sentences, list items, table rows, code blocks, formulas. Pure.

Reads line by line, since this runs for every question. Offsets are into the text, so that a quote is a slice of it.
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
_HORIZONTAL_RULE = re.compile(r"[ \t>]*(?:[-*_=][ \t]*){3,}$")
_TABLE_RULE = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_BOLD_LINE = re.compile(r"[ \t>]*\*\*[^*]+\*\*:?[ \t]*$")  # used as a heading
_ENDS_WITH_INITIAL = re.compile(r"(?:^|[\s(*_.])(?<!\d\s)[A-Z]\.$")  # but not the newtons of "140 N."
_ENDS_WITH_NUMBERED_ABBREVIATION = re.compile(
    r"\b(?:eqs?|figs?|tabs?|secs?|chs?|vols?|nos?|pp?|ca)\.$", re.IGNORECASE
)  # "Eq. 4"
_ENDS_WITH_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|cf|vs|approx|resp|incl)\.$", re.IGNORECASE)
_RUN_IN_HEADING = re.compile(r"[ \t>]*(\*\*|__)[^*_\n]{1,60}\1$")  # "**Stepping.** A foot moves…"
_CLOSING_EMPHASIS = re.compile(r"[*_]+(?=\s|$)")  # "**" after the full stop of "**Stepping.**"
_END_AFTER_PHYSICAL_UNIT = (
    re.compile(  # "3.1 h. Peaks": the full stop ends a sentence, though "h." looks like an abbreviation
        r"""(?:\d[ \u00a0]?(?:[kmMG]?(?:Hz|[ABCFJKNVWgms]|Nm|Pa|rad|px|bit|bytes?)|[cm]m|min|h|L|l|%|°[CF]?|N·m|Ω)
           (?:[·/](?:kg|rad|mm|cm|km|m|s|h|min|√?Hz))*[²³]? | ,\ [a-z])\.[ \t]*\s(?=[A-Z][A-Za-z]*\ )""",
        re.VERBOSE,
    )
)
_WORD = re.compile(r"\w")
_FOOTNOTE = re.compile(r"(?:[ \t]*\[\^[^\]\s]+\](?::[ \t]*)?)+[ \t]*")
_DEFINITION_LINE = re.compile(r"[ \t>]*:[ \t]+")  # of a definition list: the line after its term
_LINK_DEFINITION = re.compile(r"[ \t]*\[[^\]]+\]:[ \t]*\S+[ \t]*$")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)\1(?!`)", re.DOTALL)
_ATTRIBUTES = r"\{:?[ \t]*[#.][\w-][^{}\n]*\}"  # "{#anchor}", "{: .class}"
_LEADING_MARKUP = re.compile(rf"(?:\s|{_ATTRIBUTES})*")
_TRAILING_MARKUP = re.compile(rf"(?:\s*{_ATTRIBUTES})+\s*$")
_MARKUP_LINE = re.compile(  # a tag, a comment, an import or the mark of a block, alone on its line
    r"""[ \t>]*(?:</?[A-Za-z][\w.-]*(?:\s[^<>]*)?/?> | <!--.*--> | \{/\*.*\*/\} | :{3,}[ \t]*[\w-]* | \.\.[ ][\w-]+::.*
                 | import\ [\w*{}$,\ ]+\ from\ ['"][^'"]+['"];? | [^\w\s|$`<>]*[ \t]*)$""",
    re.VERBOSE,
)
_DIRECTIVE = re.compile(r"[ \t>]*(?:`{3,}|~{3,})[ \t]*(?:\{(?P<name>[\w:+-]+)\}|(?P<mdx>mdx-code-block)\b)")
PROSE_DIRECTIVES = frozenset({  # MyST: a fence around prose
    "note", "warning", "tip", "hint", "important", "caution", "danger", "attention", "error", "admonition", "seealso",
    "todo", "dropdown", "details", "card", "tab-set", "tab-item", "tabs", "tab", "grid", "grid-item", "grid-item-card",
    "margin", "sidebar", "topic", "versionadded", "versionchanged", "deprecated", "annotations",
})  # fmt: skip
HIDDEN_DIRECTIVES = frozenset({  # MyST: a fence around something that the text does not contain
    "literalinclude", "include", "image", "figure", "button-ref", "button-link", "toctree", "contents", "raw",
    "eval-rst", "index", "video", "youtube", "autoclass", "autofunction", "automodule", "autosummary", "currentmodule",
})  # fmt: skip
_DIRECTIVE_OPTION = re.compile(r"[ \t>]*:[\w-]+:")
_QUOTE_MARK = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)
_MAX_WHOLE_ITEM_CHARACTERS = 400  # a longer list item is split into sentences


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of a text that can be quoted by itself."""

    start: int
    end: int
    kind: UnitKind
    header: tuple[int, int] | None = None
    """Start and end of the header of a table row, without which the row means nothing."""


def unit_text(text: str, unit: Unit) -> str:
    """The text of a unit: prose on one line, code and table rows as written, a row with its header."""
    match unit.kind:
        case "sentence" | "item":
            return " ".join(_QUOTE_MARK.sub("", text[unit.start : unit.end]).split())
        case "row" if unit.header:
            return f"{text[unit.header[0] : unit.header[1]]}\n{text[unit.start : unit.end]}"
        case _:
            return text[unit.start : unit.end]


@lru_cache(maxsize=512)
def split_units(text: str) -> tuple[Unit, ...]:
    """All quotable units of a text, in order; headings and markup that a page does not show are not quotable."""
    return tuple(_iterate_units(text, _line_spans(text)))


def announced_units(text: str, unit: Unit, following: Sequence[Unit]) -> list[Unit]:
    """The code, formula, list or table that a unit introduces with a colon or an unfinished sentence."""
    words = text[unit.start : unit.end].rstrip("*_ \n")
    if unit.kind not in ("sentence", "item") or words.endswith((".", "!", "?")) or not following:
        return []
    kind = following[0].kind
    if kind in ("code", "math"):
        return [following[0]]
    introduces_list = kind in ("item", "row") and words.endswith(":")
    return list(takewhile(lambda other: other.kind == kind, following)) if introduces_list else []


def _iterate_units(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[Unit]:
    """The units of each block: code, formula, table, paragraph or list item; blank lines and headings are skipped."""
    position = 0
    while position < len(lines):
        start, end = lines[position]
        line = text[start:end]
        if fence := FENCE.match(line):
            last = _closing_line(text, lines, position, fence[1])
            yield from _fenced_units(text, lines[position : last + 1])
            position = last + 1
        elif line.strip().startswith("$$"):
            last = (
                _closing_line(text, lines, position, "$$")
                if line.strip() == "$$" or not line.strip().endswith("$$")
                else position
            )
            yield Unit(start, lines[last][1], "math")
            position = last + 1
        elif line.lstrip(" \t>").startswith("|"):
            last = position
            while last + 1 < len(lines) and text[slice(*lines[last + 1])].lstrip(" \t>").startswith("|"):
                last += 1
            yield from _table_rows(text, lines[position : last + 1])
            position = last + 1
        elif not line.strip(" \t>") or (
            any(
                pattern.match(line)
                for pattern in (_HEADING, _HORIZONTAL_RULE, _LINK_DEFINITION, _BOLD_LINE, _MARKUP_LINE)
            )
            and not _is_defined_term(text, lines[position + 1 : position + 2])
        ):
            position += 1
        else:
            last = position
            while last + 1 < len(lines) and not _ends_paragraph(text[slice(*lines[last + 1])]):
                last += 1
            yield from _prose_units(text, start, lines[last][1])
            position = last + 1


def _fenced_units(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[Unit]:
    """The code of a fence; the units of the prose in it where it only marks a note or a tab; nothing for markup."""
    opening = _DIRECTIVE.match(text, *lines[0])
    if not opening or (opening["name"] and opening["name"] not in PROSE_DIRECTIVES | HIDDEN_DIRECTIVES):
        yield Unit(lines[0][0], lines[-1][1], "code")
    elif opening["name"] in PROSE_DIRECTIVES:
        inner = lines[1:-1] if FENCE.match(text, *lines[-1]) else lines[1:]
        options = sum(1 for _ in takewhile(lambda line: _DIRECTIVE_OPTION.match(text, *line), inner))
        yield from _iterate_units(text, inner[options:])


def _line_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each line."""
    spans = []
    start = 0
    for line in text.split("\n"):
        spans.append((start, start + len(line)))
        start += len(line) + 1
    return spans


def _ends_paragraph(line: str) -> bool:
    """Whether a paragraph ends before this line."""
    bare = line.strip(" \t>")
    return (
        not bare
        or bare.startswith(("|", "$$"))
        or any(pattern.match(line) for pattern in (_HEADING, _ITEM, FENCE, _HORIZONTAL_RULE, _BOLD_LINE, _MARKUP_LINE))
    )


def _is_defined_term(text: str, following: Sequence[tuple[int, int]]) -> bool:
    """Whether a line is a term that the next line defines, so that it is no heading."""
    return any(_DEFINITION_LINE.match(text[slice(*line)]) for line in following)


def _closing_line(text: str, lines: Sequence[tuple[int, int]], opening: int, mark: str) -> int:
    """The number of the line that closes a fence or formula; the last line where none does."""
    for position in range(opening + 1, len(lines)):
        bare = text[slice(*lines[position])].strip(" \t>")
        if bare.startswith(mark) and not bare.strip(mark[0]):
            return position
        if mark == "$$" and bare.endswith("$$"):
            return position
    return len(lines) - 1


def _table_rows(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[Unit]:
    """The rows of a table, each with its header where the table has one."""
    has_header = len(lines) > 2 and bool(_TABLE_RULE.match(text[slice(*lines[1])]))
    header = (lines[0][0], lines[1][1]) if has_header else None
    for start, end in lines[2:] if has_header else lines:
        yield Unit(start, end, "row", header)


def _prose_units(text: str, start: int, end: int) -> Iterator[Unit]:
    """The sentences of a paragraph; a short list item as a whole."""
    item = _ITEM.match(text, start, end)
    begin = item.end() if item else start
    if item and end - begin <= _MAX_WHOLE_ITEM_CHARACTERS:
        begin, end = _without_attributes(text, begin, end)
        if _WORD.search(text, begin, end):
            yield Unit(begin, end, "item")
        return
    for first, last in _sentence_spans(text, begin, end):
        footnote = _FOOTNOTE.match(text, first, last)  # its number is not quoted
        begin, stop = _without_attributes(text, footnote.end() if footnote else first, last)
        if _WORD.search(text, begin, stop):
            yield Unit(begin, stop, "sentence")


def _without_attributes(text: str, begin: int, end: int) -> tuple[int, int]:
    """Start and end of the words, without space and without the "{#anchor}" before and after them."""
    if leading := _LEADING_MARKUP.match(text, begin, end):
        begin = leading.end()
    if trailing := _TRAILING_MARKUP.search(text[begin:end]):
        end = begin + trailing.start()
    return begin, begin + len(text[begin:end].rstrip())


def _sentence_spans(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence; "*R.U.R.*" and "Eq. 4" are not split, but "3.1 h. Peaks" is."""
    first = begin
    for stop in _possible_sentence_ends(text, begin, end):
        sentence, rest = text[first:stop].rstrip(), text[stop:end]
        is_unfinished = (
            _ENDS_WITH_INITIAL.search(sentence)
            or _ENDS_WITH_ABBREVIATION.search(sentence)
            or _RUN_IN_HEADING.match(sentence)
            or (_ENDS_WITH_NUMBERED_ABBREVIATION.search(sentence) and rest[:1].isdigit())
        )
        if stop > first and (not is_unfinished or stop >= end):
            yield first, stop
            first = stop
    if first < end:
        yield first, end


def _possible_sentence_ends(text: str, begin: int, end: int) -> list[int]:
    """Where sentences may end: behind the asterisks that close a bold one."""
    stops = {begin + stop for _, stop in sentence_spans(text[begin:end])}
    stops |= {match.end() for match in _END_AFTER_PHYSICAL_UNIT.finditer(text, begin, end)}
    spans = [match.span() for match in _CODE_SPAN.finditer(text, begin, end)] if "`" in text[begin:end] else []
    stops = {stop for stop in stops if not any(start < stop < after for start, after in spans)}
    closing = (_CLOSING_EMPHASIS.match(text, stop, end) for stop in sorted(stops))
    return [match.end() if match else stop for stop, match in zip(sorted(stops), closing, strict=True)]
