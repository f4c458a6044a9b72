"""How likely the found passages answer the question: a number that means what it says. Pure.

Fitted by `benchmarks/fit/ranking.py` on questions that documents answer, questions about other documents, and
questions about something else entirely.
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
"""Below the first nothing is answered, below the second an answer is doubtful; for the local embedding model."""


SELECTION_FEATURES = (
    "bias", "similarity", "similarity_foreign", "foreign", "other_letters", "says_other_letters", "sentence_says",
    "selection_says", "names_missing", "length",
)  # fmt: skip

_SELECTION_WEIGHTS = fitted_weights("selection", SELECTION_FEATURES)
_EVEN = 0.5


def estimate_confidence(question: str, found: Retrieval, units: Sequence[Candidate]) -> float:
    """How likely what was found answers; of no question at all, who knows what answers it."""
    if not found.from_selection:
        return confidence_of(confidence_features(question, found, units))
    if not question:
        return _EVEN
    return float(1 / (1 + np.exp(-(selection_features(question, found, units) @ _SELECTION_WEIGHTS))))


def confidence_features(question: str, found: Retrieval, units: Sequence[Candidate]) -> NDArray[np.float64]:
    """What tells an answered question from one that only sounds like it."""
    scores = sorted((passage.score for passage in found.passages), reverse=True) or [0.0]
    names = specific_terms(question)
    spoken = [frozenset(stems(passage.chunk.label)) for passage in found.passages]
    for one in units:
        spoken[one.passage] |= one.words
    said = frozenset().union(*spoken)
    values = {
        "bias": 1.0,
        "similarity": scores[0],
        "similarity_of_three": float(np.mean(scores[:3])),
        "above_background": scores[0] - found.background,
        "passage_coverage": max((_share(found, words) for words in spoken), default=0.0),
        "unknown": _share(found, found.unknown - names),
        "unknown_specific": _share(found, found.unknown & names),
        "specific_missing": _share(found, names - said - found.unknown),
    }
    return np.array([values[name] for name in CONFIDENCE_FEATURES])


def selection_features(question: str, found: Retrieval, units: Sequence[Candidate]) -> NDArray[np.float64]:
    """What tells a question that a selection answers. Its words count alike: a few sentences say little of rarity."""
    asked = frozenset(found.weights)
    latin = not mostly_non_latin(question)
    english = latin and detect_language(question) == ENGLISH
    best = max((passage.score for passage in found.passages), default=0.0)
    share = 1 / max(1, len(asked))
    says = share * max((len(asked & one.words) for one in units), default=0)
    values = {
        "bias": 1.0,
        "similarity": best * english,
        "similarity_foreign": best * (latin and not english),  # what it thinks of other alphabets says nothing
        "foreign": float(latin and not english),
        "other_letters": float(not latin),
        "says_other_letters": says * (not latin),
        "sentence_says": says,
        "selection_says": share * len(asked - found.unknown),
        "names_missing": share * len(specific_terms(question) & found.unknown),
        "length": float(np.log1p(sum(len(passage.chunk.text) for passage in found.passages))) / 10,
    }
    return np.array([values[name] for name in SELECTION_FEATURES])


def confidence_of(values: NDArray[np.float64]) -> float:
    return float(1 / (1 + np.exp(-(values @ _WEIGHTS))))


def _share(found: Retrieval, spoken: frozenset[str]) -> float:
    """How much of the question these stems are."""
    return sum(weight for stem, weight in found.weights.items() if stem in spoken)
