"""Whether confidence means what it says. Pure.

A forecast is a pair: the confidence of an answer, and 1 if it was answered rightly, else 0 (`Outcome.answered_rightly`
says when). A refusal forecasts 0 and is never a right answer, so it is always in order here, covered or not; whether
it should have been one is what the scores `answered` and `declined` say.
"""

from dataclasses import dataclass

import numpy as np

from citewell.evaluate.metrics import Values

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """The forecasts of one tenth of the scale: how many, what they said on average, and what came true."""

    count: int
    confidence: float
    right: float


def bins(forecasts: Values) -> list[Bin]:
    """The forecasts by tenth, from 0-10 % to 90-100 %; a tenth without any is left out."""
    tenths = np.minimum((forecasts[:, 0] * BINS).astype(int), BINS - 1)
    members = [forecasts[tenths == tenth] for tenth in range(BINS)]
    return [Bin(len(one), *map(float, one.mean(axis=0))) for one in members if len(one)]


def calibration_error(forecasts: Values) -> float:
    """By how much confidence misses the truth, on average over the forecasts (ECE, ten equal bins)."""
    return sum(one.count * abs(one.confidence - one.right) for one in bins(forecasts)) / len(forecasts)
