"""Renders a streamed answer as text with citation markers: `[1]` or `[<chunk id>]`. Pure.

An answer streams as text and `Cite`s; no marker is ever parsed out of the text again.
"""

import re
from abc import ABC, abstractmethod
from collections import deque

from citewell.answer.writing import HIDDEN, mask_code
from citewell.models import Answer, Cite, Passage, Piece, StageReached

# A number in brackets, but not a link or an escaped bracket.
_LOOKS_LIKE_MARKER = re.compile(r"(?<!\\)\[([1-9][0-9]{0,3})\](?!\()")

# A blank after the opening "**" would make it plain text.
_OPENS = re.compile(r"(?:[\n(]|(?:\A|(?<=[\s(]))[*_]{1,3})\Z")


class _Markers(ABC):
    """Renders a stream; `passages` are the cited ones in order of first use, at most `most` of them."""

    def __init__(self, *, most: int | None = None) -> None:
        self._most = most
        self._index_by_chunk_id: dict[str, int] = {}
        self._last_text = ""
        self.passages: list[Passage] = []

    def render(self, piece: Piece) -> str:
        """The text of a piece: a marker for a citation; empty for a stage, and for a passage beyond `most`."""
        if isinstance(piece, StageReached):
            return ""
        if isinstance(piece, str):
            self._last_text = piece or self._last_text
            return piece
        chunk_id = piece.passage.chunk.id
        if chunk_id not in self._index_by_chunk_id:
            if self._most is not None and len(self.passages) >= self._most:
                return ""
            self._index_by_chunk_id[chunk_id] = len(self.passages)
            self.passages.append(piece.passage)
        space = "" if not self._last_text or _OPENS.search(self._last_text) else " "
        self._last_text = f"{space}[{self._label(self._index_by_chunk_id[chunk_id])}]"
        return self._last_text

    @abstractmethod
    def _label(self, index: int) -> str:
        """What stands in the brackets for the passage at this index."""


class NumberedMarkers(_Markers):
    """Renders each `Cite` as `[1]`, `[2]`…, numbered by first use: `[n]` is the n-th of `passages`."""

    def __init__(self, *, most: int | None = None) -> None:
        super().__init__(most=most)
        self._texts: list[str] = []
        self._length = 0
        self._marker_starts: set[int] = set()

    def render(self, piece: Piece) -> str:
        text = super().render(piece)
        if text and isinstance(piece, Cite):
            self._marker_starts.add(self._length + text.index("["))
        self._texts.append(text)
        self._length += len(text)
        return text

    def quotes(self, answer: Answer) -> list[list[str | None]]:
        """For each of `passages`, the quote behind every `[n]` in the text, in order, so that a client can count.

        None where the quote is not known, and for what only looks like a marker in a quotation. Code has no markers.
        """
        text = "".join(self._texts)
        prose = mask_code(text)
        quotes_left = [deque(answer.quotes(passage)) for passage in self.passages]
        quotes_by_passage: list[list[str | None]] = [[] for _ in self.passages]
        for match in _LOOKS_LIKE_MARKER.finditer(text):
            start, index = match.start(), int(match[1]) - 1
            if start in self._marker_starts:
                quote = quotes_left[index].popleft() if quotes_left[index] else None
                quotes_by_passage[index].append(quote or None)
            elif index < len(quotes_by_passage) and prose[start] != HIDDEN:
                quotes_by_passage[index].append(None)
        return quotes_by_passage

    def _label(self, index: int) -> str:
        return str(index + 1)


class ChunkIdMarkers(_Markers):
    """Renders each `Cite` as `[<chunk id>]`, or as `[<document id>]` where the document is stored whole."""

    def _label(self, index: int) -> str:
        return self.passages[index].chunk.citation_id
