"""Turn the marks of a streamed answer into what a door shows. Pure.

An answer streams as text and `Cite`s; nobody writes a mark into text and parses it out again.
"""

from abc import ABC, abstractmethod

from citewell.models import Passage, Piece, Reached


class _Marks(ABC):
    """Renders a stream; `passages` is what was cited, in order of first use, and no more than `most`."""

    def __init__(self, *, most: int | None = None) -> None:
        self._most = most
        self._places: dict[str, int] = {}
        self._last = ""
        self.passages: list[Passage] = []

    def render(self, piece: Piece) -> str:
        if isinstance(piece, Reached):
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


class Numbered(_Marks):
    """Renders each `Cite` as `[1]`, `[2]`…, numbered by first use; `passages` is the list they count in."""

    def _mark(self, place: int) -> str:
        return str(place + 1)


class Marked(_Marks):
    """Renders each `Cite` as `[<chunk id>]`."""

    def _mark(self, place: int) -> str:
        return self.passages[place].chunk.id
