"""Cut a stream of Markdown into units that can be shown: sentences, and lines of lists, tables and code. Pure.

Where a unit ends does not depend on the pieces that the text comes in. No link, tag, code or formula is cut in two, as
long as it is not longer than any that is meant for a reader.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from citewell.answer.writing.markdown import HIDDEN, is_sentence, mask
from citewell.text import split_units

LONGEST = 2000
"""Characters of a unit, after which it is cut at a blank; where there is none, after twice as many."""

_STOPS = frozenset(".!?…")
_MOST_STOPS = 40  # in a sentence; what has more is none
_CITED = r"(?:[ \t]?(?:[\[【［][^\[\]【】［］\n]{1,80}[\]】］](?:\([^()\s]*\))?|\((?:see )?\[\d+\]\)))*"
_NEAR = 400  # characters before the end in which the next word may begin
_NEXT_WORD = re.compile(rf"""[.!?…]["'”’)\]*_]*{_CITED}\s+(?P<word>\S+)\Z""")
_FULL_STOP = re.compile(rf"[。！？][”」』）)]*{_CITED}\s*\Z")
_CITATIONS = re.compile(rf"(?<=[.!?…\w]){_CITED}")
_OPEN = re.compile(
    r"\[(?:(?!\n\s*\n)[^\[\])]){0,120}\Z|\]\((?:(?!\n\s*\n)[^()]){0,300}\Z|<[A-Za-z/](?:(?!\n\s*\n)[^<>]){0,300}\Z"
    r"|<!--(?:(?!-->)[\s\S]){0,300}\Z|\]:\s*\Z"
)
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_FOOTNOTE = re.compile(r"[ \t>]*\[\^[^\]]+\]:")
_FENCE = re.compile(r"(?P<lead>[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)(?P<mark>`{3,}|~{3,})(?P<info>[^\n]*)")


class Unit(NamedTuple):
    """A stretch of text that can be shown, with the blanks after it."""

    text: str
    is_code: bool = False
    """Whether it is a block of code, or a line of one."""
    is_verbatim: bool = False
    """Whether it is code to every renderer, so that nothing in it acts."""
    is_last: bool = True
    """False if the block of code that it belongs to goes on."""


class UnitStream:
    """`feed` it text, get the units that have ended. `may_end` is asked whether a unit may end after some text."""

    def __init__(self, may_end: Callable[[str], bool] = lambda _: True) -> None:
        self.is_sure = True
        """Whether all renderers agree on what is a block of code, up to here."""
        self._may_end = may_end
        self._ended: list[Unit] = []
        self._text = ""
        self._stops = 0
        self._line = 0  # where the last line begins
        self._is_whole_line = True  # nothing of the last line was cut off
        self._is_blank_line = True
        self._after_gap = True
        self._fence: re.Match[str] | None = None
        self._is_indented = False
        self._item = 0  # where the text of the last list item begins
        self._has_lists = False

    def feed(self, text: str) -> Iterator[Unit]:
        """The units that have ended with this text, each before the text after it is read.

        feed("One. Two three.") -> Unit("One. "); end() -> Unit("Two three.")
        """
        for char in text:
            self._take(char)
            yield from self._ended
            self._ended = []

    def end(self) -> Iterator[Unit]:
        if not self._fence and (place := self._next_sentence()):
            self._cut(place)
        if self._text:
            is_code = self._fence is not None
            self._cut(
                len(self._text), is_last=not is_code or self._fence_ends(self._text[self._line :]), is_code=is_code
            )
        yield from self._ended

    def _take(self, char: str) -> None:
        if char.isspace():
            if 0 < self._stops <= _MOST_STOPS and not self._is_code and (place := self._next_sentence()):
                self._cut(place)
        elif self._is_blank_line:
            self._begin_line(char)
        elif not self._is_code and char not in "”」』）)[【［(" and _FULL_STOP.search(self._text[-_NEAR:]):
            self._cut_if_closed(len(self._text))
        self._text += char
        self._stops += char in _STOPS
        self._is_blank_line = self._is_blank_line and char.isspace()
        if char == "\n":
            self._end_line()
        elif len(self._text) >= (LONGEST if char.isspace() else 2 * LONGEST):
            self._text += "" if self._is_code or char.isspace() else " "
            self._cut(len(self._text), is_last=self._fence is None, is_code=self._fence is not None)

    @property
    def _is_code(self) -> bool:
        return self._fence is not None or self._is_indented

    def _begin_line(self, char: str) -> None:
        """The first character of a line shows whether it goes on with what stands before."""
        if self._fence:
            if ">" not in self._fence["lead"] or char == ">":
                return
            self._fence, self.is_sure = None, False  # the quote is over, and its code with it
        if self._is_whole_line:
            column = len(self._text[self._line :].expandtabs(4))
            if self._after_gap and column == 0 and not (char in "-*+" or char.isdigit()):
                self._item = 0
            was_indented = self._is_indented
            is_indented = (was_indented or self._after_gap) and column >= self._item + 4
            before = self._text[: self._line].rstrip()
            goes_on = char.islower() and not self._after_gap and before[-1:] not in (*_STOPS, ":")
            if before and not goes_on and not (was_indented and is_indented):
                self._cut_if_closed(self._line)
            self._is_indented = is_indented and (was_indented or not self._text[: self._line].strip())

    def _end_line(self) -> None:
        line = self._text[self._line :]
        is_blank = not line.strip(" \t\r\n>")
        if self._fence:
            ends = self._is_whole_line and self._fence_ends(line)
            if ends or self._may_end(self._text):
                self._cut(len(self._text), is_last=ends, is_code=not ends or "[" not in line)
        elif self._is_whole_line and not self._is_indented:
            if item := _ITEM.match(line):
                self._item = len(item[0].expandtabs(4))
            self._has_lists = self._has_lists or bool(item or _FOOTNOTE.match(line))
            if fence := self._opens_fence(line):
                self._cut(len(self._text), is_last=False)
                self._fence = fence
            elif line.lstrip(" \t>").startswith(("|", "#")):
                self._cut_if_closed(len(self._text))
        self._after_gap = is_blank
        self._line, self._is_whole_line, self._is_blank_line = len(self._text), True, True

    def _opens_fence(self, line: str) -> re.Match[str] | None:
        fence = _FENCE.match(line)
        if not fence or ("`" in fence["mark"] and ("`" in fence["info"] or is_sentence(fence["info"]))):
            return None
        in_formula = mask(self._text[: self._line]).is_open
        is_plain = not fence["lead"].strip() and len(fence["lead"].expandtabs(4)) < 4 and "|" not in line
        self.is_sure = self.is_sure and is_plain and not in_formula
        return None if in_formula else fence

    def _fence_ends(self, line: str) -> bool:
        """Whether a line ends the code, be it with a citation after the fence."""
        opening = self._fence or _FENCE.match("```")
        indent = len(opening["lead"].expandtabs(4)) if opening else 0
        column = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip(" "))
        self.is_sure = self.is_sure and (column >= indent or not line.strip())
        fence = _FENCE.match(line)
        if not fence or not opening or not fence["mark"].startswith(opening["mark"]):
            return False
        cited = re.match(r"[ \t]*\[[\^0-9]", fence["info"])
        if column > indent + 3 or (fence["info"].strip() and not cited):
            return False
        self.is_sure = self.is_sure and not cited and column < 4
        self._fence = None
        return True

    def _next_sentence(self) -> int | None:
        """Where the last word stands, if a sentence ended before it; not so after "e.g." and the like."""
        begin = max(0, len(self._text) - _NEAR)
        found = _NEXT_WORD.search(self._text[begin:].rstrip())
        if not found:
            return None
        place = begin + found.start("word")
        masked = mask(self._text).text.replace(HIDDEN, "X")
        before = _CITATIONS.sub("", masked[:place])
        item = _ITEM.match(before)
        before = before[item.end() :] if item else before
        ends = any(unit.start == len(before) for unit in split_units(before + masked[place:])[1:])
        return place if ends and not _OPEN.search(masked[:place]) and self._may_end(self._text[:place]) else None

    def _cut_if_closed(self, place: int) -> None:
        """End a unit, unless a link, a tag or a formula is open."""
        masked = mask(self._text[:place])
        if not masked.is_open and not _OPEN.search(masked.text) and self._may_end(self._text[:place]):
            self._cut(place)

    def _cut(self, place: int, *, is_last: bool = True, is_code: bool = False) -> None:
        is_verbatim = self.is_sure and (is_code or (self._is_indented and not self._has_lists))
        self._ended.append(Unit(self._text[:place], is_code or self._is_indented, is_verbatim, is_last))
        self._is_whole_line = self._is_whole_line and place <= self._line
        self._text, self._line = self._text[place:], max(0, self._line - place)
        self._stops = sum(char in _STOPS for char in self._text)
