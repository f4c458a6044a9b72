"""Cut a stream of Markdown into units that can be shown: sentences, and lines of lists, tables and code. Pure.

Where a unit ends does not depend on how the text is cut into deltas. No link, tag, code or formula of a usual length
is cut in two. Knows nothing of citations but their shape, and nothing of what is allowed.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from citewell.answer.writing.markdown import HIDDEN, is_sentence, mask
from citewell.answer.writing.references import (
    ANY_BRACKET,
    CITING_PARENTHESIS,
    CITING_PARENTHESIS_START,
    looks_like_citation,
    starts_with_citation,
)
from citewell.text import split_units

MAX_UNIT_CHARACTERS = 2000
"""A longer unit is cut at the next blank; without a blank, after twice as many characters."""

_SENTENCE_ENDS = (".", "!", "?", "…")
_MAX_SENTENCE_ENDS = 40  # text with more of them is no sentence
_CITED = rf"(?:[ \t]?(?:{ANY_BRACKET}|{CITING_PARENTHESIS}))*"
# A bracket or a citing parenthesis, closed or not.
_OPENED = (
    r"(?P<bracket>\[?[\[【［][^\[\]【】［］\n]{0,200}(?P<end>[\]】］])?)(?(end)\S*)"
    rf"|(?P<parenthesis>{CITING_PARENTHESIS_START}[^()（）\n]{{0,200}})(?:[)）]\S*)?"
)
_LOOKBACK_CHARACTERS = 400  # at the end of the buffer, to find the last word and what is before it
_NEXT_WORD = re.compile(rf"""[.!?…]["'”’)\]*_]*{_CITED}\s+(?P<word>{_OPENED}|\S+)\s*\Z""")
_NO_CUT_BEFORE = "”」』）)[【［(（"
_AFTER_FULL_STOP = frozenset("。！？”」』）)]】］ \n")
_FULL_STOP = re.compile(rf"[。！？][”」』）)]*{_CITED}\s*\Z")
_CITATIONS = re.compile(rf"(?<=[.!?…\w]){_CITED}")
_MASKED = re.compile(f"{HIDDEN}+")  # inline code, which reads like a name
_UNCLOSED = re.compile(
    r"\[(?:(?!\n\s*\n)[^\[\])]){0,120}\Z|\]\((?:(?!\n\s*\n)[^()]){0,300}\Z|<[A-Za-z/](?:(?!\n\s*\n)[^<>]){0,300}\Z"
    r"|<!--(?:(?!-->)[\s\S]){0,300}\Z|\]:\s*\Z"
)
_ITEM = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)|\[\^[^\]]+\]:)")
_FENCE = re.compile(r"(?P<lead>[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)(?P<mark>`{3,}|~{3,})(?P<info>[^\n]*)")


class Unit(NamedTuple):
    """A part of the text that can be shown, with the blanks after it."""

    text: str
    is_code: bool = False
    """Whether it is a block of code, or a line of one."""
    is_verbatim: bool = False
    """Whether every renderer reads it as code, so that no markup in it takes effect."""
    is_last: bool = True
    """False if its block of code continues in the next unit."""


class UnitStream:
    """Cuts text into units with `feed` and `end`. `may_end` decides whether a unit may end after the buffered text."""

    def __init__(self, may_end: Callable[[str], bool] = lambda _: True) -> None:
        self.renderers_agree = True
        """Whether all renderers agree so far on what is a block of code."""
        self._may_end = may_end
        self._finished: list[Unit] = []
        self._buffer = ""
        self._line_start = 0  # of the last line in the buffer
        self._has_whole_line = self._is_blank_line = self._is_after_blank_line = True
        self._fence: re.Match[str] | None = None
        self._is_indented = self._has_lists = False
        self._item_column = 0  # where the text of the last list item begins in its line

    def feed(self, text: str) -> Iterator[Unit]:
        """The units that end in this text, each one before the text after it is read.

        feed("One. Two three.") -> Unit("One. "); end() -> Unit("Two three.")
        """
        for char in text:
            self._read(char)
            yield from self._finished
            self._finished = []

    def end(self) -> Iterator[Unit]:
        self._end_sentence()
        if self._buffer:
            self._cut(len(self._buffer), is_code=bool(self._fence), is_last=not self._fence or self._close_fence())
        yield from self._finished

    def _read(self, char: str) -> None:
        if char.isspace():
            self._end_sentence()
        elif self._is_blank_line:
            self._start_line(char)
        elif char not in _NO_CUT_BEFORE and not self._is_code and self._buffer[-1:] in _AFTER_FULL_STOP:
            self._cut_if_complete(len(self._buffer) if _FULL_STOP.search(self._buffer[-_LOOKBACK_CHARACTERS:]) else 0)
        self._buffer += char
        self._is_blank_line = self._is_blank_line and char.isspace()
        if char == "\n":
            self._end_line()
        elif len(self._buffer) >= (MAX_UNIT_CHARACTERS if char.isspace() else 2 * MAX_UNIT_CHARACTERS):
            self._buffer += "" if self._fence or char.isspace() else " "
            self._cut(len(self._buffer), is_code=bool(self._fence), is_last=not self._fence)

    @property
    def _is_code(self) -> bool:
        return self._fence is not None or self._is_indented

    def _start_line(self, char: str) -> None:
        """Decide, by the first character of a line, whether a unit ended with the line before."""
        if self._fence and ">" in self._fence["lead"] and char != ">":
            self._fence, self.renderers_agree = None, False  # the quotation ends, and its code with it
        if self._fence or not self._has_whole_line:
            return
        column, before = len(self._buffer[self._line_start :].expandtabs(4)), self._buffer[: self._line_start].rstrip()
        if self._is_after_blank_line and column == 0 and not (char in "-*+" or char.isdigit()):
            self._item_column = 0
        was_indented, is_indented = self._is_indented, column >= self._item_column + 4
        continues = char.islower() and not self._is_after_blank_line and not before.endswith((*_SENTENCE_ENDS, ":"))
        if before and not continues and not (was_indented and is_indented):
            self._cut_if_complete(self._line_start)
        is_first_line = self._is_after_blank_line and not self._buffer[: self._line_start].strip()
        self._is_indented = is_indented and (was_indented or is_first_line)

    def _end_line(self) -> None:
        line, end = self._buffer[self._line_start :], len(self._buffer)
        if self._fence:
            is_closed = self._has_whole_line and self._close_fence()
            if is_closed or self._may_end(self._buffer):
                self._cut(end, is_last=is_closed, is_code=not is_closed or "[" not in line)
        elif self._has_whole_line and not self._is_indented:
            if item := _ITEM.match(line):
                self._item_column, self._has_lists = len(item[0].expandtabs(4)), True
            if fence := self._match_opening_fence(line):
                if self._buffer[: self._line_start].strip():  # an open bracket or tag kept it; a fence ends it
                    self._cut(self._line_start)
                self._cut(len(self._buffer), is_last=False)
                self._fence = fence
            elif line.lstrip(" \t>").startswith(("|", "#")):
                self._cut_if_complete(end)
        self._is_after_blank_line = not line.strip(" \t\r\n>")
        self._line_start, self._has_whole_line, self._is_blank_line = len(self._buffer), True, True

    def _match_opening_fence(self, line: str) -> re.Match[str] | None:
        fence = _FENCE.match(line)
        if not fence or (fence["mark"][0] == "`" and ("`" in fence["info"] or is_sentence(fence["info"]))):
            return None
        in_formula = mask(self._buffer[: self._line_start])[1]
        is_plain = not fence["lead"].strip() and len(fence["lead"].expandtabs(4)) < 4 and "|" not in line
        self.renderers_agree = self.renderers_agree and is_plain and not in_formula
        return None if in_formula else fence

    def _close_fence(self) -> bool:
        """Close the block of code if the last line is its closing fence, and return whether it is."""
        line, opening = self._buffer[self._line_start :].expandtabs(4), self._fence
        column, indent = len(line) - len(line.lstrip(" ")), len(opening["lead"].expandtabs(4)) if opening else 0
        self.renderers_agree = self.renderers_agree and (column >= indent or not line.strip())
        fence = _FENCE.match(line)
        if not fence or not opening or not fence["mark"].startswith(opening["mark"]) or column > indent + 3:
            return False
        has_citation = bool(re.match(r"[ \t]*\[[\^0-9]", fence["info"])) or starts_with_citation(fence["info"])
        if fence["info"].strip() and not has_citation:
            return False
        self._fence, self.renderers_agree = None, self.renderers_agree and not has_citation and column < 4
        return True

    def _end_sentence(self) -> None:
        """Cut before the last word if a sentence ended there, which "e.g." and the like do not."""
        start = max(0, len(self._buffer) - _LOOKBACK_CHARACTERS)
        next_word = None if self._is_code else _NEXT_WORD.search(self._buffer[start:])
        if not next_word or sum(map(self._buffer.count, _SENTENCE_ENDS)) > _MAX_SENTENCE_ENDS:
            return
        if next_word["parenthesis"] or (next_word["bracket"] and _may_cite(next_word)):
            return  # a citation belongs to the sentence before it
        position = start + next_word.start("word")
        masked = _MASKED.sub(lambda code: "X" + "x" * (len(code[0]) - 1), mask(self._buffer)[0])
        before = _CITATIONS.sub("", masked[:position]).lstrip()
        before = before[item.end() :] if (item := _ITEM.match(before)) else before
        if any(unit.start == len(before) for unit in split_units(before + masked[position:])[1:]):
            self._cut_if_complete(position)

    def _cut_if_complete(self, position: int) -> None:
        """End a unit at this position, unless a link, a tag or a formula is open."""
        text, is_open = mask(self._buffer[:position])
        if position and not is_open and not _UNCLOSED.search(text) and self._may_end(self._buffer[:position]):
            self._cut(position)

    def _cut(self, position: int, *, is_last: bool = True, is_code: bool = False) -> None:
        is_verbatim = self.renderers_agree and (is_code or (self._is_indented and not self._has_lists))
        self._finished.append(Unit(self._buffer[:position], is_code or self._is_indented, is_verbatim, is_last))
        self._has_whole_line = self._has_whole_line and position <= self._line_start
        self._buffer, self._line_start = self._buffer[position:], max(0, self._line_start - position)


def _may_cite(bracket: re.Match[str]) -> bool:
    """Whether a bracket is a citation, or not closed yet."""
    return not bracket["end"] or looks_like_citation(bracket["bracket"].replace("[[", "["))
