"""Keep a model from reciting its instructions, word by word as it streams. Pure.

Knows words and their order, nothing of marks: a prompt in a code block is a prompt.
"""

import re
from bisect import bisect_left
from collections import deque

from citewell.answer.marks import Item

LEAST = 8
"""Words in a row that are recited, not a coincidence."""

_WORD_OR_GAP = re.compile(r"(\w+)|\W+")
_WORD = re.compile(r"\w+")
_LONG_GAP = 64  # characters between two words that part them


class Recital:
    """`feed` the items of a stream, get them without any run of `LEAST` or more words of the instructions.

    Case, blanks, marks and citations between the words do not matter; citations are kept. Words are held back only
    while they match, and never more than `LEAST` of them.
    """

    def __init__(self, instructions: str) -> None:
        self._words = [word.casefold() for word in _WORD.findall(instructions)]
        self._places: dict[str, list[int]] = {}
        for place, word in enumerate(self._words):
            self._places.setdefault(word, []).append(place)
        self._vocabulary = sorted(self._places)
        self._live: dict[int, int] = {}  # where in the instructions the last words may stand -> how many do
        self._run: deque[list[Item]] = deque()  # the words that match, each with what stands before it
        self._gap: list[Item] = []  # what stands before the next word
        self._gap_length = 0
        self._word = ""  # the beginning of a word
        self._passes = False  # the word that goes on is none of the instructions

    def feed(self, items: list[Item]) -> list[Item]:
        told: list[Item] = []
        for item in items:
            if isinstance(item, int):
                self._end_word(told)
                self._gap.append(item)
                continue
            for found in _WORD_OR_GAP.finditer(item):
                if found[1]:
                    self._go_on(found[1], told)
                else:
                    self._end_word(told)
                    self._widen(found[0], told)
        return told

    def end(self) -> list[Item]:
        told: list[Item] = []
        self._end_word(told)
        self._release(told)
        told += self._gap
        return told

    def _go_on(self, part: str, told: list[Item]) -> None:
        """Read on in a word; what cannot become one of the instructions' is let through at once."""
        if self._passes:
            told.append(part)
            return
        self._word += part
        folded = self._word.casefold()
        place = bisect_left(self._vocabulary, folded)
        if place == len(self._vocabulary) or not self._vocabulary[place].startswith(folded):
            self._release(told)
            told += [*self._gap, self._word]
            self._gap, self._gap_length, self._word, self._passes = [], 0, "", True

    def _end_word(self, told: list[Item]) -> None:
        self._passes = False
        if not self._word:
            return
        word = self._word.casefold()
        self._live = {place: self._live.get(place - 1, 0) + 1 for place in self._places.get(word, ())}
        self._run.append([*self._gap, self._word])
        self._gap, self._gap_length, self._word = [], 0, ""
        longest = max(self._live.values(), default=0)
        while len(self._run) > longest:
            told += self._run.popleft()
        if longest >= LEAST:
            self._forget(told)

    def _forget(self, told: list[Item]) -> None:
        """Take the words that match away; what stands before the first stays, but for the blank between."""
        *before, _ = self._run[0] or [""]
        if before and isinstance(before[-1], str):
            before[-1] = before[-1].removesuffix(" ")
        told += before
        for one in list(self._run)[1:]:
            told += [item for item in one if isinstance(item, int)]
        self._run = deque([] for _ in self._run)

    def _widen(self, gap: str, told: list[Item]) -> None:
        self._gap.append(gap)
        self._gap_length += len(gap)
        if self._gap_length > _LONG_GAP:
            self._release(told)
            told += self._gap
            self._gap = []

    def _release(self, told: list[Item]) -> None:
        for one in self._run:
            told += one
        self._run.clear()
        self._live = {}
