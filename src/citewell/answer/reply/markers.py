"""Turn the marks of a streamed answer into what a door shows. Pure.

An answer streams as text and `Cite`s; nobody writes a mark into text and parses it out again.
"""

import re
from abc import ABC, abstractmethod
from collections import deque

from citewell.answer.writing import HIDDEN, mask_code
from citewell.models import Answer, Cite, Passage, Piece, StageReached

# What reads like a mark: a link or an escaped bracket does not.
_LIKE_A_MARK = re.compile(r"(?<!\\)\[([1-9][0-9]{0,3})\](?!\()")


class _Marks(ABC):
    """Renders a stream; `passages` is what was cited, in order of first use, and no more than `most`."""

    def __init__(self, *, most: int | None = None) -> None:
        self._most = most
        self._places: dict[str, int] = {}
        self._last = ""
        self.passages: list[Passage] = []

    def render(self, piece: Piece) -> str:
        if isinstance(piece, StageReached):
            return ""
        if isinstance(piece, str):
            self._last = piece or self._last
            return piece
        identity = piece.passage.chunk.id
        if identity not in self._places:
            if self._most is not None and len(self.passages) >= self._most:
                return ""
            self._places[identity] = len(self.passages)
            self.passages.append(piece.passage)
        gap = "" if not self._last or self._last[-1] in "\n(" else " "
        self._last = f"{gap}[{self._mark(self._places[identity])}]"
        return self._last

    @abstractmethod
    def _mark(self, place: int) -> str: ...


class NumberedMarkers(_Marks):
    """Renders each `Cite` as `[1]`, `[2]`…, numbered by first use; `passages` is the list they count in."""

    def __init__(self, *, most: int | None = None) -> None:
        super().__init__(most=most)
        self._said: list[str] = []
        self._length = 0
        self._marks: set[int] = set()  # where they begin

    def render(self, piece: Piece) -> str:
        words = super().render(piece)
        if words and isinstance(piece, Cite):
            self._marks.add(self._length + words.index("["))
        self._said.append(words)
        self._length += len(words)
        return words

    def quotes(self, answer: Answer) -> list[list[str | None]]:
        """For each of `passages` what every `[n]` in the text rests on, in order, so that a reader of it can count.

        None where nobody knows; also for what only looks like a mark in a quotation. What is code has no marks.
        """
        text = "".join(self._said)
        prose = mask_code(text)
        known = [deque(answer.quotes(passage)) for passage in self.passages]
        told: list[list[str | None]] = [[] for _ in self.passages]
        for found in _LIKE_A_MARK.finditer(text):
            at, place = found.start(), int(found[1]) - 1
            if at in self._marks:
                told[place].append((known[place].popleft() if known[place] else None) or None)
            elif place < len(told) and prose[at] != HIDDEN:
                told[place].append(None)
        return told

    def _mark(self, place: int) -> str:
        return str(place + 1)


class ChunkIdMarkers(_Marks):
    """Renders each `Cite` as `[<chunk id>]`."""

    def _mark(self, place: int) -> str:
        return self.passages[place].chunk.id
