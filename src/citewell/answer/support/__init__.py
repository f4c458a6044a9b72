"""Judges how well passages support a sentence: features, a fitted model, a verdict. Pure."""

from citewell.answer.support.score import needs_support, support_score, verdict_for

__all__ = [
    "needs_support",
    "support_score",
    "verdict_for",
]
