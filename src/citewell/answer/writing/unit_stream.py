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

_STOPS = (".", "!", "?", "…")
_MOST_STOPS = 40  # in a sentence; what has more is none
_CITED = r"(?:[ \t]?(?:[\[【［][^\[\]【】［］\n]{1,80}[\]】］](?:\([^()\s]*\))?|\((?:see )?\[\d+\]\)))*"
_NEAR = 400  # characters before the end in which the next word may begin
_NEXT_WORD = re.compile(rf"""[.!?…]["'”’)\]*_]*{_CITED}\s+(?P<word>\S+)\s*\Z""")
_BRACKETS = "”」』）)[【［("
_AFTER_FULL_STOP = frozenset("。！？”」』）)]】］ \n")
_FULL_STOP = re.compile(rf"[。！？][”」』）)]*{_CITED}\s*\Z")
_CITATIONS = re.compile(rf"(?<=[.!?…\w]){_CITED}")
_CODE = re.compile(f"{HIDDEN}+")  # reads like a name
_OPEN = re.compile(
    r"\[(?:(?!\n\s*\n)[^\[\])]){0,120}\Z|\]\((?:(?!\n\s*\n)[^()]){0,300}\Z|<[A-Za-z/](?:(?!\n\s*\n)[^<>]){0,300}\Z"
    r"|<!--(?:(?!-->)[\s\S]){0,300}\Z|\]:\s*\Z"
)
_ITEM = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)|\[\^[^\]]+\]:)")
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
        self._line = 0  # where the last line begins
        self._is_whole_line = self._is_blank_line = self._is_after_blank_line = True
        self._fence: re.Match[str] | None = None
        self._is_indented = self._has_lists = False
        self._item = 0  # where the text of the last list item begins

    def feed(self, text: str) -> Iterator[Unit]:
        """The units that have ended with this text, each before the text after it is read.

        feed("One. Two three.") -> Unit("One. "); end() -> Unit("Two three.")
        """
        for char in text:
            self._take(char)
            yield from self._ended
            self._ended = []

    def end(self) -> Iterator[Unit]:
        self._end_sentence()
        if self._text:
            self._cut(len(self._text), is_code=bool(self._fence), is_last=not self._fence or self._ends_fence())
        yield from self._ended

    def _take(self, char: str) -> None:
        if char.isspace():
            self._end_sentence()
        elif self._is_blank_line:
            self._begin_line(char)
        elif char not in _BRACKETS and not self._is_code and self._text[-1:] in _AFTER_FULL_STOP:
            self._cut_if_closed(len(self._text) if _FULL_STOP.search(self._text[-_NEAR:]) else 0)
        self._text += char
        self._is_blank_line = self._is_blank_line and char.isspace()
        if char == "\n":
            self._end_line()
        elif len(self._text) >= (LONGEST if char.isspace() else 2 * LONGEST):
            self._text += "" if self._fence or char.isspace() else " "
            self._cut(len(self._text), is_code=bool(self._fence), is_last=not self._fence)

    @property
    def _is_code(self) -> bool:
        return self._fence is not None or self._is_indented

    def _begin_line(self, char: str) -> None:
        """The first character of a line shows whether it goes on with what stands before."""
        if self._fence and ">" in self._fence["lead"] and char != ">":
            self._fence, self.is_sure = None, False  # the quote is over, and its code with it
        if self._fence or not self._is_whole_line:
            return
        column, before = len(self._text[self._line :].expandtabs(4)), self._text[: self._line].rstrip()
        if self._is_after_blank_line and column == 0 and not (char in "-*+" or char.isdigit()):
            self._item = 0
        was_indented, is_indented = self._is_indented, column >= self._item + 4
        goes_on = char.islower() and not self._is_after_blank_line and not before.endswith((*_STOPS, ":"))
        if before and not goes_on and not (was_indented and is_indented):
            self._cut_if_closed(self._line)
        begins = self._is_after_blank_line and not self._text[: self._line].strip()
        self._is_indented = is_indented and (was_indented or begins)

    def _end_line(self) -> None:
        line, size = self._text[self._line :], len(self._text)
        if self._fence:
            ends = self._is_whole_line and self._ends_fence()
            if ends or self._may_end(self._text):
                self._cut(size, is_last=ends, is_code=not ends or "[" not in line)
        elif self._is_whole_line and not self._is_indented:
            if item := _ITEM.match(line):
                self._item, self._has_lists = len(item[0].expandtabs(4)), True
            if fence := self._opens_fence(line):
                self._cut(size, is_last=False)
                self._fence = fence
            elif line.lstrip(" \t>").startswith(("|", "#")):
                self._cut_if_closed(size)
        self._is_after_blank_line = not line.strip(" \t\r\n>")
        self._line, self._is_whole_line, self._is_blank_line = len(self._text), True, True

    def _opens_fence(self, line: str) -> re.Match[str] | None:
        fence = _FENCE.match(line)
        if not fence or (fence["mark"][0] == "`" and ("`" in fence["info"] or is_sentence(fence["info"]))):
            return None
        in_formula = mask(self._text[: self._line])[1]
        is_plain = not fence["lead"].strip() and len(fence["lead"].expandtabs(4)) < 4 and "|" not in line
        self.is_sure = self.is_sure and is_plain and not in_formula
        return None if in_formula else fence

    def _ends_fence(self) -> bool:
        """Whether the last line ends the code, be it with a citation after the fence."""
        line, opening = self._text[self._line :].expandtabs(4), self._fence
        column, indent = len(line) - len(line.lstrip(" ")), len(opening["lead"].expandtabs(4)) if opening else 0
        self.is_sure = self.is_sure and (column >= indent or not line.strip())
        fence = _FENCE.match(line)
        if not fence or not opening or not fence["mark"].startswith(opening["mark"]) or column > indent + 3:
            return False
        is_cited = bool(re.match(r"[ \t]*\[[\^0-9]", fence["info"]))
        if fence["info"].strip() and not is_cited:
            return False
        self._fence, self.is_sure = None, self.is_sure and not is_cited and column < 4
        return True

    def _end_sentence(self) -> None:
        """Cut before the last word, if a sentence ended before it; not so after "e.g." and the like."""
        begin = max(0, len(self._text) - _NEAR)
        found = None if self._is_code else _NEXT_WORD.search(self._text[begin:])
        if not found or sum(map(self._text.count, _STOPS)) > _MOST_STOPS:
            return
        place = begin + found.start("word")
        text = _CODE.sub(lambda code: "X" + "x" * (len(code[0]) - 1), mask(self._text)[0])
        before = _CITATIONS.sub("", text[:place]).lstrip()
        before = before[item.end() :] if (item := _ITEM.match(before)) else before
        if any(unit.start == len(before) for unit in split_units(before + text[place:])[1:]):
            self._cut_if_closed(place)

    def _cut_if_closed(self, place: int) -> None:
        """End a unit, unless a link, a tag or a formula is open."""
        text, is_open = mask(self._text[:place])
        if place and not is_open and not _OPEN.search(text) and self._may_end(self._text[:place]):
            self._cut(place)

    def _cut(self, place: int, *, is_last: bool = True, is_code: bool = False) -> None:
        is_verbatim = self.is_sure and (is_code or (self._is_indented and not self._has_lists))
        self._ended.append(Unit(self._text[:place], is_code or self._is_indented, is_verbatim, is_last))
        self._is_whole_line = self._is_whole_line and place <= self._line
        self._text, self._line = self._text[place:], max(0, self._line - place)
