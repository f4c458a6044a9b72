"""Turn the deltas that an LLM writes into an answer, unit by unit. Pure.

    deltas → preamble: remove the LLM's thinking, and the word NOT_COVERED
           → units: wait for the end of a sentence, or of a line of a list, a table or code
           → sanitize: replace citation markers by passages; remove recited prompt, unsafe links, URLs and HTML
           → citation check: move citations to the passages that support them, and add a support verdict

The answer does not depend on how the text is cut into deltas. Knows nothing of the LLM or of how an answer is shown.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from citewell.answer.sanitize import CITATION_PLACEHOLDER, AllowedTargets, PromptLeakFilter, Sanitizer
from citewell.answer.writing.citation_check import Citation, build_segment, is_supported, place_citations
from citewell.answer.writing.citation_markers import mark_citations
from citewell.answer.writing.markdown import HIDDEN, adds_block
from citewell.answer.writing.preamble import PreambleFilter, has_words
from citewell.answer.writing.unit_stream import Unit, UnitStream
from citewell.models import Cite, Passage, Piece, Segment

# To some renderers, a lone "\r" ends a line.
_CONTROL_CHARACTERS = str.maketrans({CITATION_PLACEHOLDER: "\ufffd", HIDDEN: "\ufffd", "\r": None})
_TAIL_CHARACTERS = 16


class Pipeline:
    """Turns deltas into checked pieces with `feed` and `end`; `segments` is the answer so far.

    The LLM cites `passages` by number, from 1 on; more may be added while it writes. If there is a `selection`, every
    citation is of it. If `strict`, sentences that no passage supports are left out.
    """

    def __init__(
        self, passages: Sequence[Passage], instructions: str, *, selection: Passage | None = None, strict: bool = False
    ) -> None:
        self.segments: list[Segment] = []
        self.has_words = False
        """Whether the LLM wrote a word for the reader, shown or not."""
        self._passages, self._selection, self._strict = passages, selection, strict
        self._preamble = PreambleFilter()
        self._leak_filter = PromptLeakFilter(instructions)
        self._units = UnitStream(lambda text: not self._leak_filter.may_continue(text))
        self._sanitizer = Sanitizer(AllowedTargets(self._source_texts))
        self._pending: list[str | Passage] = []  # an unfinished block of code, or what is before the first word
        self._shown_count = 0  # how many of its parts were shown
        self._tail = ""  # the end of the text shown so far

    def feed(self, delta: str) -> list[Piece]:
        return self._process(self._units.feed(self._preamble.feed(delta).translate(_CONTROL_CHARACTERS)))

    def end(self) -> list[Piece]:
        pieces = self._process(self._units.feed(self._preamble.end().translate(_CONTROL_CHARACTERS)))
        return pieces + self._process(self._units.end()) + (self._finish_segment() if self.has_words else [])

    @property
    def declined(self) -> bool:
        """Whether the LLM replied that its passages do not answer, and cited none of them."""
        return self._preamble.declined and not any(segment.passages for segment in self.segments)

    def _source_texts(self) -> Iterator[str]:
        return (text for passage in self._passages for text in (passage.chunk.text, passage.chunk.url or ""))

    def _process(self, units: Iterable[Unit]) -> list[Piece]:
        """The pieces to show of these units; a block of code gets its support verdict with its last line."""
        pieces: list[Piece] = []
        for unit in units:
            parts, new_pieces = self._sanitize(unit), list[Piece]()
            self._pending += parts
            self.has_words = self.has_words or any(isinstance(part, str) and has_words(part) for part in parts)
            if unit.is_last and self.has_words:  # citations without words are no answer
                new_pieces = self._finish_segment()
            elif self.has_words and not self._strict:
                new_pieces = self._take_new_pieces(place_citations(self._pending, self._passages))
            new_text = "".join(piece for piece in new_pieces if isinstance(piece, str))
            self._tail = (self._tail + new_text)[-_TAIL_CHARACTERS:]
            pieces += new_pieces
        return pieces

    def _sanitize(self, unit: Unit) -> list[str | Passage]:
        """The sanitized parts of the unit, with passages in place of citation markers."""
        before, text, numbers = self._sanitizer.tail, unit.text, list[int]()
        if not unit.is_code:
            text, numbers = mark_citations(text, lambda number: 0 < number <= len(self._passages), before=before)
        text = self._leak_filter.remove(text, before)
        text = self._sanitizer.clean(text, is_code=unit.is_verbatim)
        if adds_block(unit.text, text):
            self._units.renderers_agree = False
        numbers_left = iter(numbers)
        parts = (part for part in re.split(f"({CITATION_PLACEHOLDER})", text) if part)
        return [self._passages[next(numbers_left) - 1] if part == CITATION_PLACEHOLDER else part for part in parts]

    def _finish_segment(self) -> list[Piece]:
        """Add the pending parts to `segments` and return their new pieces, unless strict mode drops them."""
        parts = place_citations(self._pending, self._passages)
        segment, pieces = build_segment(parts), self._take_new_pieces(parts)
        self._pending, self._shown_count = [], 0
        if self._strict and not is_supported(segment, self._passages):
            return self._closing_newline(parts)
        if self._selection and segment.quotes:
            quotes = ((self._selection, segment.quotes[0][1]),)
            segment = replace(segment, passages=(self._selection,), quotes=quotes)
        self.segments += [segment] if segment.text else []
        return pieces

    def _take_new_pieces(self, parts: Sequence[str | Citation]) -> list[Piece]:
        """The pieces of these parts that were not shown yet."""
        new_parts, self._shown_count = parts[self._shown_count :], len(parts)
        pieces: list[Piece] = []
        for is_text, group in groupby(new_parts, key=lambda part: isinstance(part, str)):
            new_pieces = [part if isinstance(part, str) else Cite(self._selection or part.passage) for part in group]
            pieces += new_pieces if is_text or not self._selection else new_pieces[:1]
        return pieces

    def _closing_newline(self, dropped: Sequence[str | Citation]) -> list[Piece]:
        """The newline after dropped parts, if the next unit (such as code) would otherwise continue the line before."""
        text = "".join(part for part in dropped if isinstance(part, str))
        blanks = text.removeprefix(text.rstrip())
        return [blanks] if "\n" in blanks and self._tail and not self._tail.endswith(blanks) else []
