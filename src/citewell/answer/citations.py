"""Turn the marks of a streamed answer into what a door shows. Pure.

An answer streams as text and `Cite`s; nobody writes a mark into text and parses it out again.
"""

from citewell.models import Passage, Piece, Reached


class Numbered:
    """Renders each `Cite` as `[1]`, `[2]`…, numbered by first use; `passages` is the list they count in."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._last = ""
        self.passages: list[Passage] = []

    def render(self, piece: Piece) -> str:
        if isinstance(piece, Reached):
            return ""
        if isinstance(piece, str):
            self._last = piece or self._last
            return piece
        chunk = piece.passage.chunk
        if chunk.id not in self._numbers:
            self.passages.append(piece.passage)
            self._numbers[chunk.id] = len(self.passages)
        gap = "" if self._last.endswith("\n") else " "
        self._last = f"{gap}[{self._numbers[chunk.id]}]"
        return self._last
