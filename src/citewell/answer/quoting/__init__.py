"""Answers without an LLM: scores sentences, lets a model read them, selects the quotes, estimates the confidence."""

from citewell.answer.quoting.confidence import CONFIDENCE_BANDS, estimate_confidence
from citewell.answer.quoting.quote_builder import Quote
from citewell.answer.quoting.read import Reading, read_passages
from citewell.answer.quoting.score import score_candidates
from citewell.answer.quoting.select import QuoteSelection, quote, select_quotes

__all__ = [
    "CONFIDENCE_BANDS",
    "Quote",
    "QuoteSelection",
    "Reading",
    "estimate_confidence",
    "quote",
    "read_passages",
    "score_candidates",
    "select_quotes",
]
