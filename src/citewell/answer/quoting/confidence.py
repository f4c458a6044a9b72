"""Estimates how likely the passages answer the question, as a calibrated probability. Pure.

Fitted by `benchmarks/fit/ranking.py` on questions that documents answer, questions about other documents, and
questions about something else entirely. Does not know which units are quoted.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from citewell.answer.quoting.score import Candidate
from citewell.answer.retrieval import Retrieval, fitted_weights
from citewell.text import ENGLISH, detect_language, mostly_non_latin, specific_terms, stems

CONFIDENCE_FEATURES = (
    "bias", "similarity", "similarity_of_three", "above_background", "passage_coverage",
    "unknown", "unknown_specific", "specific_missing",
)  # fmt: skip

_WEIGHTS = fitted_weights("confidence", CONFIDENCE_FEATURES)

CONFIDENCE_BANDS = dict(zip(("refuse", "weak"), fitted_weights("bands", ("refuse", "weak")).tolist(), strict=True))
"""Below "refuse" there is no answer, below "weak" an answer is doubtful; for the local embedding model."""

SELECTION_FEATURES = (
    "bias", "similarity", "similarity_foreign", "foreign", "other_letters", "says_other_letters", "sentence_says",
    "selection_says", "names_missing", "length",
)  # fmt: skip

_SELECTION_WEIGHTS = fitted_weights("selection", SELECTION_FEATURES)
_CONFIDENCE_WITHOUT_QUESTION = 0.5


def estimate_confidence(question: str, retrieval: Retrieval, candidates: Sequence[Candidate]) -> float:
    """The probability that the passages answer the question; a half where there is no question."""
    if not retrieval.from_selection:
        return confidence_of(confidence_features(question, retrieval, candidates))
    if not question:
        return _CONFIDENCE_WITHOUT_QUESTION
    return _logistic(selection_features(question, retrieval, candidates), _SELECTION_WEIGHTS)


def confidence_features(question: str, retrieval: Retrieval, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """What separates a question that the passages answer from one that only sounds like it."""
    scores = sorted((passage.score for passage in retrieval.passages), reverse=True) or [0.0]
    specific = specific_terms(question)
    passage_stems = [frozenset(stems(passage.chunk.label)) for passage in retrieval.passages]
    for candidate in candidates:
        passage_stems[candidate.passage] |= candidate.words
    all_stems = frozenset().union(*passage_stems)
    values = {
        "bias": 1.0,
        "similarity": scores[0],
        "similarity_of_three": float(np.mean(scores[:3])),
        "above_background": scores[0] - retrieval.background,
        "passage_coverage": max((_weight_of(retrieval, mentioned) for mentioned in passage_stems), default=0.0),
        "unknown": _weight_of(retrieval, retrieval.unknown - specific),
        "unknown_specific": _weight_of(retrieval, retrieval.unknown & specific),
        "specific_missing": _weight_of(retrieval, specific - all_stems - retrieval.unknown),
    }
    return np.array([values[name] for name in CONFIDENCE_FEATURES])


def selection_features(question: str, retrieval: Retrieval, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """What shows that a selection answers a question. All words weigh the same: a few sentences cannot show rarity."""
    question_stems = frozenset(retrieval.weights)
    latin = not mostly_non_latin(question)
    english = latin and detect_language(question) == ENGLISH
    best = max((passage.score for passage in retrieval.passages), default=0.0)
    weight = 1 / max(1, len(question_stems))
    coverage = weight * max((len(question_stems & candidate.words) for candidate in candidates), default=0)
    values = {
        "bias": 1.0,
        "similarity": best * english,
        "similarity_foreign": best * (latin and not english),  # in other alphabets the similarity says nothing
        "foreign": float(latin and not english),
        "other_letters": float(not latin),
        "says_other_letters": coverage * (not latin),
        "sentence_says": coverage,
        "selection_says": weight * len(question_stems - retrieval.unknown),
        "names_missing": weight * len(specific_terms(question) & retrieval.unknown),
        "length": float(np.log1p(sum(len(passage.chunk.text) for passage in retrieval.passages))) / 10,
    }
    return np.array([values[name] for name in SELECTION_FEATURES])


def confidence_of(features: NDArray[np.float64]) -> float:
    """The probability that a row of `CONFIDENCE_FEATURES` stands for."""
    return _logistic(features, _WEIGHTS)


def _logistic(features: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """The probability that a logistic model gives to a row of features."""
    return float(1 / (1 + np.exp(-(features @ weights))))


def _weight_of(retrieval: Retrieval, mentioned: frozenset[str]) -> float:
    """The share of the question that these stems are."""
    return sum(weight for stem, weight in retrieval.weights.items() if stem in mentioned)
