"""What a ranking is worth, and how sure that is. Pure: lists in, numbers with intervals out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Span = tuple[int, int]
_RESAMPLES = 1000
_SEED = 7


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over questions with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def estimate(values: Sequence[float] | Array) -> Estimate:
    """The mean of one number per question. For a paired difference, give the differences."""
    numbers = np.asarray(values, dtype=float)
    return _interval(float(numbers.mean()), numbers[_draws(len(numbers))].mean(axis=1))


def bootstrapped(rows: Array, statistic: Callable[[Array], float]) -> Estimate:
    """Any number made of a row per question."""
    return _interval(statistic(rows), np.array([statistic(rows[drawn]) for drawn in _draws(len(rows))]))


def _draws(number: int) -> NDArray[np.int64]:
    """As many questions again, drawn with replacement; the same ones every time."""
    return np.random.default_rng(_SEED).integers(0, number, (_RESAMPLES, number))


def _interval(value: float, drawn: Array) -> Estimate:
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(value, float(low), float(high))


def hit(ranking: Sequence[str], relevant: frozenset[str], *, within: int) -> float:
    return float(any(one in relevant for one in ranking[:within]))


def ndcg(ranking: Sequence[str], grades: Mapping[str, float], *, within: int = 10) -> float:
    """Discounted gain over the best possible one; a gain is the grade itself."""
    best = sum(gain / log2(rank + 1) for rank, gain in enumerate(sorted(grades.values())[::-1][:within], start=1))
    won = sum(grades.get(one, 0.0) / log2(rank + 1) for rank, one in enumerate(ranking[:within], start=1))
    return won / best if best else 0.0


def spans_covered(found: Sequence[tuple[str, Span]], wanted: Sequence[tuple[str, Span]]) -> tuple[float, float, float]:
    """Recall, precision and intersection over union, in characters.

    What is found twice (chunks overlap) helps once and costs twice, since a reader is given it twice.
    """
    gold = {(file, at) for file, (start, end) in wanted for at in range(start, end)}
    held = {(file, at) for file, (start, end) in found for at in range(start, end)} & gold
    given = sum(end - start for _, (start, end) in found)
    return (
        len(held) / len(gold) if gold else 0.0,
        len(held) / given if given else 0.0,
        len(held) / (given + len(gold) - len(held)) if gold else 0.0,
    )


def calibration_error(rows: Array) -> float:
    """Expected calibration error over tenths; rows are confidence, whether it was right, and how much it weighs."""
    confidence, right, weight = rows.T
    if not weight.sum():
        return 0.0
    tenth = np.clip((confidence * 10).astype(int), 0, 9)
    gaps = np.bincount(tenth, weights=weight * (confidence - right), minlength=10)
    return float(np.abs(gaps).sum() / weight.sum())
