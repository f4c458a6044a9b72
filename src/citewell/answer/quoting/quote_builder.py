"""Builds quotes from selected units: each with the context it needs, adjacent ones as one quote, in reading order.

A sentence that refers to the one before brings it along, "like this:" brings what follows, list items come with the
sentence that introduces them. Pure: every word of a quote stands in its passage. Does not know why a unit was selected.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from citewell.answer.quoting.passage_units import MAX_CHARACTERS, PassageUnits
from citewell.answer.quoting.question_kind import QuestionKind
from citewell.answer.quoting.score import Candidate
from citewell.text import Unit

_MAX_QUOTES = 6
_MAX_QUOTES_WITH_DEFINITION = 3  # where the first quote is the definition that was asked for
_MAX_CHARACTERS_OF_LIST = 1200  # a list that was asked for is shown whole
_MAX_CHARACTERS_OF_TABLE = 400  # a row of a small table is shown with all others: a sum says little without its parts
# The probability that the answer is complete at which selecting stops. It is higher for steps, lists, comparisons and
# reasons, of which one sentence is only a part.
_ENOUGH_PROBABILITY = 0.75
_ENOUGH_PROBABILITY_OF_SEVERAL = 0.85
_MIN_SHARED_STEMS = 8  # for a duplicate: with fewer, "lasts 3 h" would repeat "lasts 5 h"
_DUPLICATE_OVERLAP = 0.7  # the share of the stems of two sentences that both have


@dataclass(frozen=True, slots=True)
class Quote:
    """The text of a quote, and which of the passages it stands in."""

    passage: int
    start: int
    text: str
    stretch: tuple[int, int]
    """Start and end in the passage, from the first word to the last; the header of a table row may stand far above."""


class QuoteBuilder:
    """Collects candidates, each with the context it needs, up to the maximum length of an answer."""

    def __init__(self, units_by_passage: Sequence[PassageUnits], kind: QuestionKind) -> None:
        self._units_by_passage = units_by_passage
        self._kind = kind
        self._document_order: dict[object, int] = {}
        self._text_by_unit: dict[tuple[int, Unit], str] = {}
        self._length = 0
        self.selected: list[Candidate] = []

    @property
    def enough_probability(self) -> float:
        """The probability that the answer is complete at which selecting stops."""
        return _ENOUGH_PROBABILITY_OF_SEVERAL if self._kind.several else _ENOUGH_PROBABILITY

    @property
    def max_quotes(self) -> int:
        """How many candidates may be selected."""
        first = self.selected[0] if self.selected else None
        if first and self._kind.definition:
            text = self._units_by_passage[first.passage].unit_text(first.unit)
            if self._kind.definition.match(text):
                return _MAX_QUOTES_WITH_DEFINITION
        return _MAX_QUOTES

    def add(self, candidate: Candidate) -> bool:
        """Selects a candidate with its context; False where it is a duplicate, cannot stand alone or is too long."""
        if (candidate.passage, candidate.unit) in self._text_by_unit:
            self.selected.append(candidate)
            return True
        if any(_is_duplicate(candidate.words, other.words) for other in self.selected):
            return False
        passage_units = self._units_by_passage[candidate.passage]
        context = passage_units.preceding_context(candidate.unit)
        if context is None and self.selected:
            return False
        shown = set(self._text_by_unit.values())
        for group in self._unit_groups(candidate, context or []):
            # A text that stands twice in the group counts once, where it comes first.
            unit_by_text = {passage_units.unit_text(unit): (candidate.passage, unit) for unit in reversed(group)}
            unit_by_text = {text: unit for text, unit in unit_by_text.items() if text not in shown}
            length = sum(map(len, unit_by_text))
            # A unit that is too long by itself may come first, since units are never cut.
            too_long = len(passage_units.unit_text(candidate.unit)) > MAX_CHARACTERS
            most = _MAX_CHARACTERS_OF_LIST if self._is_whole_list(candidate, group) else MAX_CHARACTERS
            if self._length + length <= most or (too_long and not self.selected):
                self._text_by_unit |= {unit: text for text, unit in unit_by_text.items()}
                self._length += length
                self.selected.append(candidate)
                self._document_order.setdefault(passage_units.passage.chunk.document_id, len(self._document_order))
                return True
        return False

    def _unit_groups(self, candidate: Candidate, context: Sequence[Unit]) -> Iterator[list[Unit]]:
        """The candidate with its context, the longest version first; without context only as the first quote."""
        passage_units = self._units_by_passage[candidate.passage]
        unit = candidate.unit
        lead = passage_units.introduction(unit)
        introduction = [*(passage_units.preceding_context(lead) or []), lead] if lead else []
        if self._kind.steps and unit.kind in ("sentence", "item") and (steps := passage_units.numbered_steps(unit)):
            yield [*context, *introduction, *(() if unit in steps else (unit,)), *steps]
        if unit.kind == "item":
            items = passage_units.list_items(unit)
            if lead and self._kind.several and not self._kind.comparison:
                yield [*introduction, *items]
            whole_sentence = passage_units.unit_text(unit).rstrip("*_ )").endswith((".", "!", "?"))
            if whole_sentence and not any((candidate.passage, item) in self._text_by_unit for item in items):
                introduction = []
        if introduction:
            yield [*introduction, unit, *passage_units.introduced_units(unit)]
        if unit.header:
            table = [row for row in passage_units.units if row.header == unit.header]
            if (
                self._kind.comparison
                or len(passage_units.text[table[0].start : table[-1].end]) <= _MAX_CHARACTERS_OF_TABLE
            ):
                yield table
        if not self.selected and (continuation := passage_units.continuation(unit)):
            yield [*context, unit, *continuation]
        yield [*context, unit, *passage_units.introduced_units(unit)]
        yield [*context, unit]  # without what it introduces, where that is too long
        if not self.selected:
            yield [unit]

    def _is_whole_list(self, candidate: Candidate, group: Sequence[Unit]) -> bool:
        """Whether a group has all items of the list that was asked for."""
        items = self._units_by_passage[candidate.passage].list_items(candidate.unit)
        return self._kind.whole_list and candidate.unit.kind == "item" and set(items) <= set(group)

    def quotes(self) -> Iterator[Quote]:
        """The quotes in reading order: adjacent units become one quote, table rows come under their header."""
        last: tuple[int, Unit] | None = None
        text, start, stretch = "", 0, (0, 0)
        for index, unit in sorted(self._text_by_unit, key=self._reading_order):
            passage_units = self._units_by_passage[index]
            separator = passage_units.separator(last[1], unit) if last and last[0] == index else None
            if last and separator is None:
                yield Quote(last[0], start, text, stretch)
            if separator is None:
                stretch = unit.start, unit.end
                start = unit.header[0] if unit.header else unit.start
                in_list = self._is_quoted_with_siblings(index, unit)
                text = passage_units.item_line(unit) if in_list else passage_units.unit_text(unit)
            else:
                stretch = stretch[0], unit.end
                header_is_shown = unit.kind == "row" and last is not None and last[1].header == unit.header
                if header_is_shown:
                    text += separator + passage_units.text[unit.start : unit.end]
                elif unit.kind == "item":
                    text += separator + passage_units.item_line(unit)
                else:
                    text += separator + passage_units.unit_text(unit)
            last = index, unit
        if last:
            yield Quote(last[0], start, text, stretch)

    def _is_quoted_with_siblings(self, index: int, unit: Unit) -> bool:
        """Whether other items of the same list are quoted, too."""
        if unit.kind != "item":
            return False
        items = self._units_by_passage[index].list_items(unit)
        return any(item != unit and (index, item) in self._text_by_unit for item in items)

    def _reading_order(self, key: tuple[int, Unit]) -> tuple[int, int, int]:
        """Sorts units by the rank of their document, then by their offset in it."""
        index, unit = key
        chunk = self._units_by_passage[index].passage.chunk
        return self._document_order[chunk.document_id], chunk.start + unit.start, index


def _is_duplicate(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two sentences say the same, as in overlapping chunks and summaries."""
    shared = len(words & others)
    return words == others or shared >= max(_MIN_SHARED_STEMS, _DUPLICATE_OVERLAP * len(words | others))
