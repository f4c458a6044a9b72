"""Cut a stream of text into sentences, list items, table rows and code blocks, each as soon as it has ended. Pure.

Where a sentence ends is decided when the first word of the next one is complete, whatever pieces the text comes in.
"""

import re

from citewell.text import split_units

_LONGEST = 4000  # characters; what goes on for longer is cut at a blank
_STOPS = frozenset(".!?…")
_FULL_STOPS = ("。", "！", "？", "。”", "。」")  # need no blank after them
_NEXT = re.compile(r"""[.!?…]["'”’)\]*_]*\s+(?P<word>\S+)\s*$""")
_NEAR = 160  # characters before the end in which the next word may begin
_MOST_STOPS = 40  # in a sentence; what has more is none
_ITEM = re.compile(r"\s*>?[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+")
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")


class Sentences:
    """`open` is the one that has not ended yet. Blanks belong to the sentence they follow."""

    def __init__(self) -> None:
        self.open = ""
        self._line_starts = 0
        self._fence = ""
        self._stops = 0

    def feed(self, text: str) -> list[str]:
        """The sentences that have ended with this text.

        feed("One. Two three.") -> ["One. "], and `open` is "Two three."
        """
        ended = []
        for mark in text:
            if (place := self._next_starts(mark)) is not None:
                ended.append(self.open[:place])
                self._begin(self.open[place:])
            self.open += mark
            if mark == "\n":
                self._end_line()
            elif mark in _STOPS:
                self._stops += 1
        return ended

    def cut(self) -> list[str]:
        """What is open ends here, whatever follows."""
        ended = self.open
        self._begin("")
        return [ended] if ended else []

    def end(self) -> list[str]:
        """What is left, which ends here."""
        place = self._after_a_stop()
        rest = [self.open] if place is None else [self.open[:place], self.open[place:]]
        self._begin("")
        return [sentence for sentence in rest if sentence.strip()]

    @property
    def at_its_beginning(self) -> bool:
        """Whether the line that is being written has no word yet."""
        return not any(mark.isalnum() for mark in self.open[self._line_starts :])

    def last(self, since: int) -> str:
        """The last sentence of what is open, from a place on: it may have ended, for all that is known so far."""
        text = self.open[since:]
        found = split_units(_bare(text))
        return text if not found or self._fence else _bare(text)[found[-1].start :]

    def _begin(self, text: str) -> None:
        self.open = text
        self._line_starts = 0
        self._fence = ""
        self._stops = sum(mark in _STOPS for mark in text)

    def _next_starts(self, mark: str) -> int | None:
        """Where the next sentence began, if this mark shows that there is one."""
        if len(self.open) >= (_LONGEST if mark.isspace() else 2 * _LONGEST):
            return len(self.open)
        if mark.isspace():
            return self._after_a_stop() if 0 < self._stops <= _MOST_STOPS and not self._fence else None
        if self._fence or not self.open.strip():
            return None
        before = self.open.rstrip()
        at_line_start = not self.open[self._line_starts :].strip() and self._line_starts > 0
        goes_on = mark.islower() and before[-1] not in _STOPS and before[-1] != ":"
        if (at_line_start and not goes_on) or (before.endswith(_FULL_STOPS) and mark not in "”」』）)"):
            return len(self.open)
        return None

    def _after_a_stop(self) -> int | None:
        """Where the last word stands, if a sentence ended before it; not so after "e.g." and the like."""
        begin = max(0, len(self.open) - _NEAR)
        found = _NEXT.search(self.open[begin:])
        if not found:
            return None
        place, text = begin + found.start("word"), _bare(self.open)
        shift = len(self.open) - len(text)
        return place if any(unit.start == place - shift for unit in split_units(text)[1:]) else None

    def _end_line(self) -> None:
        fence = _FENCE.match(self.open, self._line_starts)
        if fence and not self._fence:
            self._fence = fence[1]
        elif fence and fence[1].startswith(self._fence):
            self._fence = ""
        self._line_starts = len(self.open)


def _bare(text: str) -> str:
    """Without the mark of a list item, which would make one of all its sentences."""
    item = _ITEM.match(text)
    return text[item.end() :] if item else text
