"""Estimates how likely the quotes that are shown answer the question, as a calibrated probability. Pure.

A passage may be about the very topic and still not say what was asked for. So this reads the quotes: whether they
contain the question's words and names, whether there is a number where one is asked for, and how far the best passage
stands before the next. Fitted by `benchmarks/fit/answer_confidence.py` on answers that were right or wrong, in English.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from citewell.answer.quoting.confidence import confidence_features, topic_log_odds
from citewell.answer.quoting.score import Candidate
from citewell.answer.quoting.select import Quote
from citewell.answer.retrieval import Retrieval, fitted_weights, score_passages
from citewell.text import ENGLISH, detect_language, mostly_non_latin, specific_terms, stems

ANSWER_FEATURES = (
    "bias", "topic", "above_background", "lead", "best_candidate", "quote_coverage", "word_pairs",
    "specific_missing", "unknown_specific", "asks_how_to", "asks_for_number", "number_missing", "length",
)  # fmt: skip

_WEIGHTS = fitted_weights("answer", ANSWER_FEATURES)

DECLINE_BELOW = dict(zip(("confidence",), fitted_weights("decline", ("confidence",)).tolist(), strict=True))
"""An answer that is less likely right than this is declined: then a wrong answer does more harm than a refusal."""

_HOW_TO = re.compile(r"\bhow (?:do|can|should|would|could|to)\b", re.IGNORECASE)
_ASKS_FOR_NUMBER = re.compile(
    r"\bhow (?:many|much|often|long|large|big|fast|far|old)\b"
    r"|\b(?:cost|price|charge|percentage|maximum|minimum|limit)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NUMBER_WORD = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|hundred|once|twice|daily|weekly|monthly|annual(?:ly)?"
    r"|yearly|week|month|year|unlimited)\b",
    re.IGNORECASE,
)


def reads_language_of(question: str) -> bool:
    """Whether the estimate was fitted on questions in this language."""
    return not mostly_non_latin(question) and detect_language(question) == ENGLISH


def estimate_answer_confidence(
    question: str, retrieval: Retrieval, candidates: Sequence[Candidate], quotes: Sequence[Quote]
) -> float:
    """The probability that the quotes answer the question."""
    log_odds = answer_features(question, retrieval, candidates, quotes) @ _WEIGHTS
    return float(1 / (1 + np.exp(-log_odds)))


def answer_features(
    question: str, retrieval: Retrieval, candidates: Sequence[Candidate], quotes: Sequence[Quote]
) -> NDArray[np.float64]:
    """What separates quotes that answer from quotes that are only about the topic."""
    weights = retrieval.weights
    specific = specific_terms(question)
    text = "\n".join(quote.text for quote in quotes)
    quote_stems = [
        frozenset(stems(quote.text)) | frozenset(stems(retrieval.passages[quote.passage].chunk.label))
        for quote in quotes
    ]
    all_stems = frozenset().union(*quote_stems)
    ranking = sorted(score_passages(question, retrieval.passages, weights), reverse=True)
    asks_for_number = bool(_ASKS_FOR_NUMBER.search(question))
    values = {
        "bias": 1.0,
        "topic": topic_log_odds(confidence_features(question, retrieval, candidates)),
        "above_background": max((passage.score for passage in retrieval.passages), default=0.0) - retrieval.background,
        "lead": ranking[0] - ranking[1] if len(ranking) > 1 else 0.0,
        "best_candidate": max((candidate.log_odds for candidate in candidates), default=0.0),
        "quote_coverage": max((_share(weights, mentioned) for mentioned in quote_stems), default=0.0),
        "word_pairs": _shared_pairs(question, quotes),
        "specific_missing": _share(weights, specific - all_stems),
        "unknown_specific": _share(weights, retrieval.unknown & specific),
        "asks_how_to": float(bool(_HOW_TO.search(question))),
        "asks_for_number": float(asks_for_number),
        "number_missing": float(asks_for_number and not _has_new_number(question, text)),
        "length": len(text) / 1000,
    }
    return np.array([values[name] for name in ANSWER_FEATURES])


def _share(weights: Mapping[str, float], mentioned: frozenset[str]) -> float:
    """How much of the question these stems are."""
    return sum(weight for stem, weight in weights.items() if stem in mentioned)


def _shared_pairs(question: str, quotes: Sequence[Quote]) -> float:
    """The share of the question's pairs of neighbouring words that a quote has, too."""
    pairs = frozenset(pairwise(stems(question)))
    shared = {pair for quote in quotes for pair in pairwise(stems(quote.text)) if pair in pairs}
    return len(shared) / max(1, len(pairs))


def _has_new_number(question: str, text: str) -> bool:
    """Whether a text has a number that the question does not have."""
    return bool(set(_NUMBER.findall(text)) - set(_NUMBER.findall(question)) or _NUMBER_WORD.search(text))
