"""Ranks the scored units by what the question asks for: which is quoted first, which is not worth quoting. Pure.

The scores say how well the words of a unit fit; this module knows what kind of unit answers. It builds no quotes.
"""

from collections.abc import Sequence

import numpy as np

from citewell.answer.quoting.alternatives import holds_for_another, holds_for_asked
from citewell.answer.quoting.passage_units import MAX_CHARACTERS, PassageUnits
from citewell.answer.quoting.question_kind import QuestionKind
from citewell.answer.quoting.score import Candidate

_MIN_LOG_ODDS = -3.0  # below the best candidate
_LOG_ODDS_OF_ASKED = 1.0  # for a unit under "Windows" where the question says "on Windows"
_LOG_ODDS_OF_ANOTHER = -3.0  # for one under "Linux"
_LOG_ODDS_OF_UNASKED_CODE = (
    -2.0
)  # of a code block that nobody asked for: below, the reader is sure that it does not answer
_MIN_LIST_ITEMS = 2


def rank_candidates(
    candidates: Sequence[Candidate], units_by_passage: Sequence[PassageUnits], kind: QuestionKind
) -> list[Candidate]:
    """The candidates worth quoting, best first; the code, definition or list that was asked for comes before all."""
    return _Ranking(candidates, units_by_passage, kind).ranked()


class _Ranking:
    """The candidates in the order of their scores, and what stands around each of them."""

    def __init__(
        self, candidates: Sequence[Candidate], units_by_passage: Sequence[PassageUnits], kind: QuestionKind
    ) -> None:
        self._units_by_passage = units_by_passage
        self._kind = kind
        scored = [
            (candidate.log_odds + self._log_odds_of_alternative(candidate), candidate) for candidate in candidates
        ]
        scored.sort(key=lambda pair: -pair[0])
        self._candidates = [candidate for _, candidate in scored]
        self._log_odds = {(candidate.passage, candidate.unit): log_odds for log_odds, candidate in scored}

    def ranked(self) -> list[Candidate]:
        lowest = self._total(self._candidates[:1]) + _MIN_LOG_ODDS
        worth = [candidate for candidate in self._candidates if self._total([candidate]) >= lowest]
        # An uninformative unit is quoted only where there is nothing else.
        worth = [candidate for candidate in worth if self._is_quotable(candidate)] or worth[:1]
        first = self._asked_for(worth)
        by_unit = {(candidate.passage, candidate.unit): candidate for candidate in (*first, *worth)}
        return list(by_unit.values())

    def _log_odds_of_alternative(self, candidate: Candidate) -> float:
        """What to add to the score of a unit that holds for the platform asked about, or for another one."""
        asked = self._kind.alternatives
        if not asked:
            return 0.0
        units = self._units_by_passage[candidate.passage]
        texts = (units.unit_text(candidate.unit), *units.labels(candidate.unit))
        if holds_for_another(asked, *texts):
            return _LOG_ODDS_OF_ANOTHER
        return _LOG_ODDS_OF_ASKED if holds_for_asked(asked, *texts) else 0.0

    def _total(self, candidates: Sequence[Candidate]) -> float:
        """The log-odds that one of these candidates answers."""
        return float(
            np.logaddexp.reduce([self._log_odds[candidate.passage, candidate.unit] for candidate in candidates])
        )

    def _text_of(self, candidate: Candidate) -> str:
        return self._units_by_passage[candidate.passage].unit_text(candidate.unit)

    def _is_quotable(self, candidate: Candidate) -> bool:
        if self._units_by_passage[candidate.passage].is_uninformative(candidate.unit):
            return False
        if candidate.unit.kind != "code" or self._kind.code or candidate is self._candidates[0]:
            return True
        wanted = self._kind.may_want_code or bool(candidate.read and candidate.read[0] > _LOG_ODDS_OF_UNASKED_CODE)
        return wanted and len(self._text_of(candidate)) <= MAX_CHARACTERS

    def _asked_for(self, worth: Sequence[Candidate]) -> list[Candidate]:
        """The code, the definition or the item of a list that the question asks for; empty where there is none."""
        kind = self._kind
        if kind.code:
            return [candidate for candidate in self._candidates if candidate.unit.kind == "code"][:1]
        if kind.definition:
            certain = [candidate for candidate in self._candidates if kind.is_definition(self._text_of(candidate))]
            likely = [candidate for candidate in worth if kind.definition.match(self._text_of(candidate))]
            return (certain or likely)[:1]
        return self._best_list() if kind.whole_list and not kind.yes_or_no else []

    def _best_list(self) -> list[Candidate]:
        """The best item of a list that, with its introduction, is more likely the answer than any single unit."""
        by_list: dict[tuple[int, int], list[Candidate]] = {}
        for candidate in self._candidates:
            units = self._units_by_passage[candidate.passage]
            unit = candidate.unit
            if unit.kind == "sentence":
                unit = next(iter(units.introduced_units(unit)), unit)
            if unit.kind == "item":
                by_list.setdefault((candidate.passage, units.list_items(unit)[0].start), []).append(candidate)
        best = max(by_list.values(), key=self._total, default=[])
        items = [candidate for candidate in best if candidate.unit.kind == "item"]
        if len(items) < _MIN_LIST_ITEMS or self._total(best) < self._total(self._candidates[:1]):
            return []
        return items[:1]
