"""Selects the quotes that answer a question: the few units that answer, with the context they need, in reading order.

`quote` is the one call that the answer flow needs: it scores the units, ranks them by what is asked for, and builds
quotes until the answer is probably complete. Pure: every word of a quote stands in its passage. Does not know how a
question was resolved, nor how quotes are shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from citewell.answer.engines import DECLINE_BELOW
from citewell.answer.quoting.confidence import (
    CONFIDENCE_BANDS,
    can_judge_answers_to,
    estimate_answer_confidence,
)
from citewell.answer.quoting.passage_units import PassageUnits
from citewell.answer.quoting.question import QuotableQuestion
from citewell.answer.quoting.question_kind import classify_question
from citewell.answer.quoting.quote_builder import Quote, QuoteBuilder
from citewell.answer.quoting.rank import rank_candidates
from citewell.answer.quoting.read import Reading
from citewell.answer.quoting.score import Candidate
from citewell.answer.retrieval import Retrieval
from citewell.models import Passage
from citewell.text import stems, unit_text

_MAX_QUOTES = 6


@dataclass(frozen=True, slots=True)
class QuoteSelection:
    """The quotes that answer a question, none where the passages do not answer it."""

    quotes: Sequence[Quote]
    confidence: float
    """The probability that the quotes answer the question; where there are none, that any passage does."""


def quote(question: QuotableQuestion, reading: Reading, *, decline_below: float = DECLINE_BELOW) -> QuoteSelection:
    """The quotes of the passages that answer the question, without what its reader has seen already.

    None where the probability that they are right is below `decline_below`.
    """
    retrieval, candidates = reading.retrieval, reading.candidates
    if not candidates or reading.topic_confidence < CONFIDENCE_BANDS["refuse"]:
        return QuoteSelection((), reading.topic_confidence)
    text = retrieval.question or question.search_text
    new = _drop_seen(question, retrieval, candidates)
    quotes = select_quotes(retrieval.question or question.question, new, retrieval.passages)
    if retrieval.from_selection or not quotes or not can_judge_answers_to(text):
        return QuoteSelection(quotes, reading.topic_confidence)
    confidence = estimate_answer_confidence(text, retrieval, candidates, quotes)
    return QuoteSelection(quotes if confidence >= decline_below else (), confidence)


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
    """The best candidates as quotes: the quote with the best one first, the others as they stand in the documents.

    Stops as soon as the answer is probably complete: more would be padding.
    """
    if not candidates:
        return []
    kind = classify_question(question)
    units_by_passage = [
        PassageUnits(passage, {candidate.unit for candidate in candidates if candidate.passage == index})
        for index, passage in enumerate(passages)
    ]
    log_odds = np.array([candidate.log_odds for candidate in candidates])
    odds = np.exp(log_odds - log_odds.max())
    probability = dict(zip(map(id, candidates), (odds / odds.sum()).tolist(), strict=True))
    builder = QuoteBuilder(units_by_passage, kind)
    complete = 0.0
    for candidate in rank_candidates(candidates, units_by_passage, kind):
        if builder.selected and (
            len(builder.selected) >= min(most, builder.max_quotes) or complete >= builder.enough_probability
        ):
            break
        if builder.add(candidate):
            complete += probability[id(candidate)]
    return _lead_with_best(list(builder.quotes()), builder.selected[0])


def _lead_with_best(quotes: Sequence[Quote], best: Candidate) -> list[Quote]:
    """The quote that holds the best candidate first, the others in reading order."""
    holds = [
        quote.passage == best.passage and quote.stretch[0] <= best.unit.start < quote.stretch[1] for quote in quotes
    ]
    return sorted(quotes, key=lambda quote: not holds[quotes.index(quote)])
