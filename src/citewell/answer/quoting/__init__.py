"""Answers without an LLM: scores sentences, selects the quotes, estimates the confidence. Pure."""

from citewell.answer.quoting.confidence import CONFIDENCE_BANDS, estimate_confidence
from citewell.answer.quoting.score import score_candidates
from citewell.answer.quoting.select import Quote, QuoteSelection, quote, select_quotes

__all__ = [
    "CONFIDENCE_BANDS",
    "Quote",
    "QuoteSelection",
    "estimate_confidence",
    "quote",
    "score_candidates",
    "select_quotes",
]
