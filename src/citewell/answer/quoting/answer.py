"""The one entry point of this package for the answer flow: from a question and its passages to quotes. Pure.

Knows neither how the question was resolved nor how the quotes are shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from citewell.answer.quoting.confidence import CONFIDENCE_BANDS, estimate_confidence
from citewell.answer.quoting.score import Candidate, score_candidates
from citewell.answer.quoting.select import Quote, select_quotes
from citewell.answer.retrieval import HINT_LOG_ODDS, Retrieval
from citewell.text import stems, unit_text


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
class QuoteSelection:
    """The quotes that answer a question, none where the passages do not answer it."""

    quotes: Sequence[Quote]
    confidence: float
    """The probability that the passages answer the question."""


def quote(question: QuotableQuestion, retrieval: Retrieval) -> QuoteSelection:
    """The quotes of the passages that answer the question, without what its reader has seen already."""
    if not question.wants_answer or not retrieval.passages:
        return QuoteSelection((), 0.0)
    candidates = score_candidates(
        question.search_text,
        retrieval.passages,
        retrieval.weights,
        favour=dict.fromkeys(retrieval.hinted, HINT_LOG_ODDS),
    )
    confidence = estimate_confidence(question.search_text, retrieval, candidates)
    if confidence < CONFIDENCE_BANDS["refuse"]:
        return QuoteSelection((), confidence)
    new = _drop_known(question, retrieval, candidates)
    return QuoteSelection(select_quotes(question.question, new, retrieval.passages), confidence)


def _drop_known(
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
