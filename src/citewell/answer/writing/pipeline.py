"""What an LLM writes becomes an answer, unit by unit.

    deltas → preamble: what the LLM thinks, and its word for "not covered", go
           → units: a finished sentence, or a finished line of a list, a table or code
           → filters: numbers become citations; words of the prompt, unsafe links, addresses and HTML go
           → check: a citation moves to the passage that supports it, and the unit is shown with its verdict

The same however the text is cut into deltas. Pure.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from citewell.answer.sanitize import CITATION_PLACEHOLDER, AllowedTargets, PromptLeakFilter, Sanitizer
from citewell.answer.writing.citation_check import Citation, check, is_borne_out, place_citations
from citewell.answer.writing.citation_markers import mark_citations
from citewell.answer.writing.markdown import HIDDEN, adds_block
from citewell.answer.writing.preamble import Preamble, has_words
from citewell.answer.writing.unit_stream import Unit, UnitStream
from citewell.models import Cite, Passage, Piece, Segment

# To some renderers, a lone "\r" ends a line.
_CONTROL = str.maketrans({CITATION_PLACEHOLDER: "\ufffd", HIDDEN: "\ufffd", "\r": None})
_TAIL = 16


class Pipeline:
    """`feed` it what an LLM writes, get what a reader sees; `segments` are the answer so far.

    It may cite the `passages` by number, from 1 on; more may be added while it writes. Every citation is of the
    `selection`, if there is one. When `strict`, what no passage supports is not shown.
    """

    def __init__(
        self, passages: Sequence[Passage], rules: str, *, selection: Passage | None = None, strict: bool = False
    ) -> None:
        self.segments: list[Segment] = []
        self.has_words = False
        """Whether there was a word for the reader, be it shown or not."""
        self._passages, self._selection, self._strict = passages, selection, strict
        self._preamble = Preamble()
        self._leak_filter = PromptLeakFilter(rules)
        self._units = UnitStream(lambda text: not self._leak_filter.may_continue(text))
        self._sanitizer = Sanitizer(AllowedTargets(self._sources))
        self._open: list[str | Passage] = []  # a block of code that goes on, or what stands before the first word
        self._shown = 0  # how much of that was shown
        self._tail = ""  # the end of the text that was shown

    def feed(self, delta: str) -> list[Piece]:
        return self._release(self._units.feed(self._preamble.feed(delta).translate(_CONTROL)))

    def end(self) -> list[Piece]:
        pieces = self._release(self._units.feed(self._preamble.end().translate(_CONTROL)))
        return pieces + self._release(self._units.end()) + (self._finish() if self.has_words else [])

    @property
    def declined(self) -> bool:
        """Whether the LLM says that its passages do not answer, and rests nothing on them."""
        return self._preamble.declined and not any(segment.passages for segment in self.segments)

    def _sources(self) -> Iterator[str]:
        return (text for passage in self._passages for text in (passage.chunk.text, passage.chunk.url or ""))

    def _release(self, units: Iterable[Unit]) -> list[Piece]:
        """What is shown of the units; in a block of code, the last line has the verdict."""
        pieces: list[Piece] = []
        for unit in units:
            parts, fresh = self._filter(unit), list[Piece]()
            self._open += parts
            self.has_words = self.has_words or any(isinstance(part, str) and has_words(part) for part in parts)
            if unit.is_last and self.has_words:  # citations alone are no answer
                fresh = self._finish()
            elif self.has_words and not self._strict:
                fresh = self._show(place_citations(self._open, self._passages))
            self._tail = (self._tail + "".join(piece for piece in fresh if isinstance(piece, str)))[-_TAIL:]
            pieces += fresh
        return pieces

    def _filter(self, unit: Unit) -> list[str | Passage]:
        """The unit without what may not leave, with passages in place of their numbers."""
        before, text, numbers = self._sanitizer.tail, unit.text, list[int]()
        if not unit.is_code:
            text, numbers = mark_citations(text, lambda number: 0 < number <= len(self._passages), before=before)
        text = self._leak_filter.remove(text, before)
        text = self._sanitizer.clean(text, is_code=unit.is_verbatim)
        if adds_block(unit.text, text):
            self._units.is_sure = False
        cited = iter(numbers)
        parts = (part for part in re.split(f"({CITATION_PLACEHOLDER})", text) if part)
        return [self._passages[next(cited) - 1] if part == CITATION_PLACEHOLDER else part for part in parts]

    def _finish(self) -> list[Piece]:
        """The unit with its verdict, unless the answer is strict and no passage supports it."""
        parts = place_citations(self._open, self._passages)
        segment, pieces = check(parts), self._show(parts)
        self._open, self._shown = [], 0
        if self._strict and not is_borne_out(segment, self._passages):
            return self._line_end(parts)
        if self._selection and segment.quotes:
            quotes = ((self._selection, segment.quotes[0][1]),)
            segment = replace(segment, passages=(self._selection,), quotes=quotes)
        self.segments += [segment] if segment.text else []
        return pieces

    def _show(self, parts: Sequence[str | Citation]) -> list[Piece]:
        """The pieces of what is open that were not shown yet."""
        fresh, self._shown = parts[self._shown :], len(parts)
        pieces: list[Piece] = []
        for is_text, group in groupby(fresh, key=lambda part: isinstance(part, str)):
            one = [part if isinstance(part, str) else Cite(self._selection or part.passage) for part in group]
            pieces += one if is_text or not self._selection else one[:1]
        return pieces

    def _line_end(self, dropped: Sequence[str | Citation]) -> list[Piece]:
        """The end of a dropped line, if the next unit would otherwise go on with the line before: code is none then."""
        text = "".join(part for part in dropped if isinstance(part, str))
        blanks = text.removeprefix(text.rstrip())
        return [blanks] if "\n" in blanks and self._tail and not self._tail.endswith(blanks) else []
