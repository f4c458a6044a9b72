"""Turn the marks of a streamed answer into what a door shows. Pure.

An answer streams as text and `Cite`s; nobody writes a mark into text and parses it out again.
"""

from citewell.models import Passage, Piece


class Numbered:
    """Renders each `Cite` as `[1]`, `[2]`…, numbered by first use; `passages` is the list they count in."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.passages: list[Passage] = []

    def render(self, piece: Piece) -> str:
        if isinstance(piece, str):
            return piece
        chunk = piece.passage.chunk
        if chunk.id not in self._numbers:
            self.passages.append(piece.passage)
            self._numbers[chunk.id] = len(self.passages)
        return f" [{self._numbers[chunk.id]}]"
