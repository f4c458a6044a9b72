"""Selects the quotes that answer a question: the few units that answer, with the context they need, in reading order.

A sentence that refers to the one before brings it along, "like this:" brings what follows, list items come with the
sentence that introduces them, and units that are adjacent in the text become one quote. `quote` is the one call that
the answer flow needs. Pure: every word of a quote stands in its passage. Does not know how a question was resolved, nor
how quotes are shown.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from citewell.answer.quoting.confidence import (
    CONFIDENCE_BANDS,
    can_judge_answers_to,
    estimate_answer_confidence,
    estimate_confidence,
)
from citewell.answer.quoting.passage_units import MAX_CHARACTERS, PassageUnits
from citewell.answer.quoting.score import Candidate, score_candidates
from citewell.answer.retrieval import HINT_LOG_ODDS, Retrieval, defined_thing, definition_sentence
from citewell.models import Passage
from citewell.text import Unit, stems, unit_text

_MAX_QUOTES = 6
_MAX_QUOTES_WITH_DEFINITION = 3  # where the first quote is the definition that was asked for
_MAX_CHARACTERS_OF_LIST = 1200  # a list that was asked for is shown whole
_MIN_LOG_ODDS = -3.0  # below the best candidate
# The probability that the answer is complete at which selecting stops. It is higher for steps, lists, comparisons and
# reasons, of which one sentence is only a part.
_ENOUGH_PROBABILITY = 0.85
_ENOUGH_PROBABILITY_OF_SEVERAL = 0.9
_MIN_SHARED_STEMS = 8  # for a duplicate: with fewer, "lasts 3 h" would repeat "lasts 5 h"
_DUPLICATE_OVERLAP = 0.8  # the share of its stems that a sentence has in common with one already quoted

_ASKS_FOR_CODE = re.compile(
    r"\b(?:code|commands?|script|snippet|syntax|listing|implement\w*|(?:launch|config\w*|yaml|xml) (?:file|example)"
    r"|in (?:python|bash|yaml|c\+\+|javascript|rust))\b",
    re.IGNORECASE,
)
_ASKS_FOR_SEVERAL = re.compile(
    r"""\bhow\ (?:do|can|should|would|could|to)\b | \bwhy\b
      | \b(?:steps?|stages?|ways?|types?|kinds?|reasons?|list|options?)\b
      | \bwhat\ (?:\w+\ ){0,3}are\b
      | ^\W*(?:is|are|was|does|do|did|can|could|should|may|must|will)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_ASKS_FOR_LIST = re.compile(
    r"""\b(?:list|name|all|every|types?|kinds?|options)\b
      | \b(?:what|which)\ (?:[\w-]+\ ){0,2}(?!is\b|was\b|does\b|this\b)[\w-]+[^s\W]s\ (?!is\b)\w+""",
    re.IGNORECASE | re.VERBOSE,
)
_ASKS_FOR_STEPS = re.compile(
    r"\bhow (?:do|can|should|would|could|to)\b|\b(?:steps?|procedure|instructions)\b"
    r"|\bwie\b(?! (?:viele?|oft|lange?|hoch|groß|heiß|schnell|weit|alt)\b)|\b(?:schritte?|cómo|pasos|comment|étapes)\b",
    re.IGNORECASE,
)
_ASKS_TO_COMPARE = re.compile(
    r"\b(?:differences?|differs?|compared?|comparison|versus|vs|pros|cons|better|advantages?)\b", re.IGNORECASE
)
_DEFINING_VERB = r"(?:is|are|means?|refers?\ to|stands\ for|describes?|makes?|represents?|draws)\b"


class QuotableQuestion(Protocol):
    """What quoting needs to know of a question; `citewell.answer.question.ResolvedQuestion` has all of it."""

    @property
    def question(self) -> str: ...
    @property
    def search_text(self) -> str:
        """The text that was searched for; empty where only the meaning of a selection is asked for."""

    @property
    def wants_answer(self) -> bool: ...
    @property
    def refers_to_marked_text(self) -> bool: ...
    def was_shown(self, quote: str) -> bool:
        """Whether the reader has seen these words already."""


@dataclass(frozen=True, slots=True)
class Quote:
    """The text of a quote, and which of the passages it stands in."""

    passage: int
    start: int
    text: str
    stretch: tuple[int, int]
    """Start and end in the passage, from the first word to the last; the header of a table row may stand far above."""


@dataclass(frozen=True, slots=True)
class QuoteSelection:
    """The quotes that answer a question, none where the passages do not answer it."""

    quotes: Sequence[Quote]
    confidence: float
    """The probability that the quotes answer the question; where there are none, that any passage does."""


def quote(question: QuotableQuestion, retrieval: Retrieval) -> QuoteSelection:
    """The quotes of the passages that answer the question, without what its reader has seen already."""
    if not question.wants_answer or not retrieval.passages:
        return QuoteSelection((), 0.0)
    text = retrieval.question or question.search_text
    candidates = score_candidates(
        text,
        retrieval.passages,
        retrieval.weights,
        favour=dict.fromkeys(retrieval.hinted, HINT_LOG_ODDS),
    )
    confidence = estimate_confidence(text, retrieval, candidates)
    if confidence < CONFIDENCE_BANDS["refuse"]:
        return QuoteSelection((), confidence)
    new = _drop_seen(question, retrieval, candidates)
    quotes = select_quotes(retrieval.question or question.question, new, retrieval.passages)
    if retrieval.from_selection or not quotes or not can_judge_answers_to(text):
        return QuoteSelection(quotes, confidence)
    confidence = estimate_answer_confidence(text, retrieval, candidates, quotes)
    return QuoteSelection(quotes if confidence >= CONFIDENCE_BANDS["decline"] else (), confidence)


def _drop_seen(
    question: QuotableQuestion, retrieval: Retrieval, candidates: Sequence[Candidate]
) -> Sequence[Candidate]:
    """The candidates that the reader has not seen, and that do not just repeat the question."""
    texts = [passage.chunk.text for passage in retrieval.passages]
    new = [
        candidate
        for candidate in candidates
        if not question.was_shown(unit_text(texts[candidate.passage], candidate.unit))
    ]
    if retrieval.from_selection and question.search_text:
        question_stems = frozenset(stems(question.search_text))
        return [candidate for candidate in new if not candidate.words <= question_stems]
    if question.refers_to_marked_text:
        return new or candidates  # there may be nothing but the marked text
    return new


def select_quotes(
    question: str, candidates: Sequence[Candidate], passages: Sequence[Passage], *, most: int = _MAX_QUOTES
) -> list[Quote]:
    """The best candidates as quotes in reading order: documents as ranked, units as they stand in them.

    Stops as soon as the answer is probably complete: more would be padding.
    """
    if not candidates:
        return []
    kind = _classify_question(question)
    units_by_passage = [
        PassageUnits(passage, {candidate.unit for candidate in candidates if candidate.passage == index})
        for index, passage in enumerate(passages)
    ]
    log_odds = np.array([candidate.log_odds for candidate in candidates])
    odds = np.exp(log_odds - log_odds.max())
    probability = dict(zip(map(id, candidates), (odds / odds.sum()).tolist(), strict=True))
    builder = _QuoteBuilder(units_by_passage, kind)
    complete = 0.0
    for candidate in _rank_candidates(candidates, units_by_passage, kind):
        if builder.selected and (
            len(builder.selected) >= min(most, builder.max_quotes) or complete >= builder.enough_probability
        ):
            break
        if builder.add(candidate):
            complete += probability[id(candidate)]
    return list(builder.quotes())


@dataclass(frozen=True, slots=True)
class _QuestionType:
    """The kinds of answer that a question asks for; several may apply."""

    code: bool
    steps: bool
    comparison: bool
    several: bool
    """Whether one sentence is only a part of the answer: steps, lists, comparisons and reasons."""
    whole_list: bool
    """Whether a list answers, with all of its items: "Which strategies exist?"."""
    definition: re.Pattern[str] | None
    """Matches the beginning of a sentence that defines the thing asked about; None where no definition is asked for."""
    thing: str
    """The thing asked about; empty where no definition is asked for."""

    def is_definition(self, text: str) -> bool:
        """Whether a text begins with "A pump is a", and so defines the thing without doubt."""
        return bool(self.thing and definition_sentence(self.thing).match(text))


def _classify_question(question: str) -> _QuestionType:
    """The kinds of answer that a question asks for."""
    comparison = bool(_ASKS_TO_COMPARE.search(question))
    whole_list = bool(_ASKS_FOR_LIST.search(question))
    return _QuestionType(
        code=bool(_ASKS_FOR_CODE.search(question)),
        steps=bool(_ASKS_FOR_STEPS.search(question)),
        comparison=comparison,
        several=comparison or whole_list or bool(_ASKS_FOR_SEVERAL.search(question)),
        whole_list=whole_list,
        definition=_definition_pattern(question),
        thing=defined_thing(question),
    )


def _definition_pattern(question: str) -> re.Pattern[str] | None:
    """For "What is a pump?", matches "A pump is" and "The pump describes"."""
    thing = defined_thing(question)
    if not thing:
        return None
    name = r"\W+".join(map(re.escape, thing.split()))
    return re.compile(
        rf"\W*(?:(?:an?|the)\W+)?(?:[\w-]+\W+){{0,4}}?\W*{name}\w{{0,2}}\W*(?:\([^)]*\)\W*)?{_DEFINING_VERB}",
        re.IGNORECASE,
    )


def _rank_candidates(
    candidates: Sequence[Candidate], units_by_passage: Sequence[PassageUnits], kind: _QuestionType
) -> list[Candidate]:
    """The candidates worth quoting, best first; the code or the definition that was asked for comes before all."""
    ranked = sorted(candidates, key=lambda candidate: -candidate.log_odds)
    worth = [candidate for candidate in ranked if candidate.log_odds >= ranked[0].log_odds + _MIN_LOG_ODDS]

    def text_of(candidate: Candidate) -> str:
        return units_by_passage[candidate.passage].unit_text(candidate.unit)

    def is_quotable(candidate: Candidate) -> bool:
        if units_by_passage[candidate.passage].is_uninformative(candidate.unit):
            return False
        any_length = kind.code or candidate is ranked[0] or candidate.unit.kind != "code"
        return any_length or len(text_of(candidate)) <= MAX_CHARACTERS

    # An uninformative unit is quoted only where there is nothing else.
    worth = [candidate for candidate in worth if is_quotable(candidate)] or worth[:1]
    first: Candidate | None = None
    if kind.code:
        first = next((candidate for candidate in ranked if candidate.unit.kind == "code"), None)
    elif kind.definition:
        first = next((candidate for candidate in ranked if kind.is_definition(text_of(candidate))), None) or next(
            (candidate for candidate in worth if kind.definition.match(text_of(candidate))), None
        )
    return [first, *(candidate for candidate in worth if candidate is not first)] if first else worth


class _QuoteBuilder:
    """Collects candidates, each with the context it needs, up to the maximum length of an answer."""

    def __init__(self, units_by_passage: Sequence[PassageUnits], kind: _QuestionType) -> None:
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
        if unit.header and self._kind.comparison:
            yield [row for row in passage_units.units if row.header == unit.header]
        yield [*context, unit, *passage_units.introduced_units(unit)]
        if not self.selected:
            yield [*context, unit]
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
    return words == others or shared >= max(_MIN_SHARED_STEMS, _DUPLICATE_OVERLAP * min(len(words), len(others)))
