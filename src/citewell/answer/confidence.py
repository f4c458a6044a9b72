"""How likely the found passages answer the question: a number that means what it says. Pure.

Fitted by `benchmarks/fit.py` on questions that were answered, questions whose pages were taken away
and questions about something else entirely.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from citewell.answer.extract import FEATURES as UNIT_FEATURES
from citewell.answer.extract import Candidate
from citewell.answer.retrieve import Retrieved
from citewell.answer.terms import specific, stems
from citewell.answer.weights import fitted

FEATURES = (
    "bias", "similarity", "above_background", "similarity_of_three", "passage_coverage", "unit_coverage",
    "context_coverage", "unknown", "unknown_specific", "specific_missing", "subject_words", "unit_log_odds", "pairs",
)  # fmt: skip

_WEIGHTS = fitted("confidence", FEATURES)
_COVERED, _NEARBY, _LABEL, _PASSAGE, _PAIRS = (
    UNIT_FEATURES.index(name)
    for name in ("covered", "covered_nearby", "covered_by_label", "covered_by_passage", "pairs")
)

# Below REFUSE nothing is answered; below WEAK an answer is marked as doubtful. Chosen by
# `benchmarks/fit.py` for the local embedding model; docs/log.md has the trade-off.
REFUSE = 0.5
WEAK = 0.7


def features(question: str, found: Retrieved, units: Sequence[Candidate]) -> NDArray[np.float64]:
    """What tells an answered question from one that only sounds like it."""
    scores = sorted((passage.score for passage in found.passages), reverse=True) or [0.0]
    described = np.array([one.features for one in units]) if units else np.zeros((1, len(UNIT_FEATURES)))
    context = described[:, _COVERED] + described[:, _NEARBY] + described[:, _LABEL]
    names = specific(question)
    said = frozenset().union(*(one.words for one in units), *(stems(one.chunk.label) for one in found.passages))
    values = {
        "bias": 1.0,
        "similarity": scores[0],
        "above_background": scores[0] - found.background,
        "similarity_of_three": float(np.mean(scores[:3])),
        "passage_coverage": float(described[:, _PASSAGE].max()),
        "unit_coverage": float(described[:, _COVERED].max()),
        "context_coverage": float(context.max()),
        "unknown": _share(found, found.unknown - names),
        "unknown_specific": _share(found, found.unknown & names),
        "specific_missing": _share(found, names - said - found.unknown),
        "subject_words": min(len(found.weights), 10) / 10,
        "unit_log_odds": max((one.log_odds for one in units), default=-10.0),
        "pairs": float(described[:, _PAIRS].max()),
    }
    return np.array([values[name] for name in FEATURES])


def _share(found: Retrieved, spoken: frozenset[str]) -> float:
    return sum(found.weights[stem] for stem in spoken if stem in found.weights)


def confidence(values: NDArray[np.float64]) -> float:
    return float(1 / (1 + np.exp(-(values @ _WEIGHTS))))
