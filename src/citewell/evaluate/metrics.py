"""Metrics of rankings, confidence and text spans, with bootstrap intervals. Pure; the same numbers every time.

`citewell eval` and the scripts in `benchmarks/` both compute their figures here.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Span = tuple[int, int]
"""The start and the end of a stretch of text, in characters."""

BINS = 10
_RESAMPLES = 1000
# Two seeds, so that intervals stay comparable with those printed before both had one module.
_EVALUATION_SEED = 2026
_BENCHMARK_SEED = 7


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % bootstrap interval over questions."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """The answers in one tenth of the confidence scale: their number, mean confidence and share of right ones."""

    count: int
    confidence: float
    right: float


# Intervals


def bootstrap_interval(
    values: Array,
    owners: NDArray[np.intp],
    statistic: Callable[[Array], float],
    *,
    seed: int = _EVALUATION_SEED,
) -> tuple[float, float]:
    """The 95 % interval of the statistic when questions are drawn with replacement.

    `owners` numbers the question that each value belongs to: an answer's citations are drawn together.
    If every question scored the same, the interval is that point.
    """
    generator = np.random.default_rng(seed)
    questions = int(owners.max()) + 1
    samples = []
    for _ in range(_RESAMPLES):
        times = np.bincount(generator.integers(questions, size=questions), minlength=questions)
        samples.append(statistic(np.repeat(values, times[owners], axis=0)))
    low, high = np.quantile(samples, [0.025, 0.975])
    return float(low), float(high)


def mean_with_interval(values: Sequence[float] | Array) -> Estimate:
    """The mean of one number per question. For a paired difference, pass the differences."""
    return statistic_with_interval(np.asarray(values, dtype=np.float64), lambda numbers: float(numbers.mean()))


def statistic_with_interval(rows: Array, statistic: Callable[[Array], float]) -> Estimate:
    """Any statistic of one row per question."""
    interval = bootstrap_interval(rows, np.arange(len(rows)), statistic, seed=_BENCHMARK_SEED)
    return Estimate(statistic(rows), *interval)


# Rankings


def first_rank(ranking: Sequence[str], relevant: Collection[str], *, depth: int) -> int | None:
    """The rank of the first relevant item, counted from 1; None if it is not among the first `depth`."""
    return next((rank for rank, item in enumerate(ranking[:depth], start=1) if item in relevant), None)


def hit_at(depth: int, ranking: Sequence[str], relevant: Collection[str]) -> float:
    """1.0 if a relevant item is among the first `depth` (hit@depth), else 0.0."""
    return float(first_rank(ranking, relevant, depth=depth) is not None)


def reciprocal_rank(rank: int | None) -> float:
    """1/rank, and 0 for an item that was not found. Its mean over questions is the MRR."""
    return 1 / rank if rank else 0.0


def graded_ndcg(ranking: Sequence[str], grades: Mapping[str, float], *, depth: int = 10) -> float:
    """nDCG of a ranking whose items have grades; the gain of an item is its grade."""
    ideal = _discounted_gain(sorted(grades.values(), reverse=True)[:depth])
    return _discounted_gain([grades.get(item, 0.0) for item in ranking[:depth]]) / ideal if ideal else 0.0


def first_rank_ndcg(ranks: Sequence[int | None], *, depth: int) -> float:
    """nDCG where every relevant thing counts once, at the rank where it first appears."""
    gain = sum(1 / log2(rank + 1) for rank in ranks if rank)
    return min(gain / _discounted_gain([1.0] * min(len(ranks), depth)), 1.0)


def _discounted_gain(gains: Sequence[float]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1))


# Text spans


def span_scores(
    retrieved: Sequence[tuple[str, Span]], relevant: Sequence[tuple[str, Span]]
) -> tuple[float, float, float]:
    """Recall, precision and intersection over union (IoU), in characters; a span is a file and its offsets.

    Text that is retrieved twice (chunks overlap) counts once as a gain and twice as a cost, as a reader gets it twice.
    """
    gold = {(file, at) for file, (start, end) in relevant for at in range(start, end)}
    hits = {(file, at) for file, (start, end) in retrieved for at in range(start, end)} & gold
    length = sum(end - start for _, (start, end) in retrieved)
    return (
        len(hits) / len(gold) if gold else 0.0,
        len(hits) / length if length else 0.0,
        len(hits) / (length + len(gold) - len(hits)) if gold else 0.0,
    )


# Confidence


def reliability_bins(forecasts: Array) -> list[ReliabilityBin]:
    """Answers by confidence, from 0-10 % to 90-100 %; empty bins are left out.

    A row is the confidence of an answer, and 1 if the answer was right, else 0.
    """
    tenths = _tenths(forecasts[:, 0])
    groups = [forecasts[tenths == tenth] for tenth in range(BINS)]
    return [ReliabilityBin(len(group), *map(float, group.mean(axis=0))) for group in groups if len(group)]


def calibration_error(forecasts: Array) -> float:
    """Expected calibration error (ECE): by how much confidence is off on average, in ten equal bins.

    A row is confidence, 1 if right else 0, and optionally a weight.
    """
    confidence, right = forecasts[:, 0], forecasts[:, 1]
    weights = forecasts[:, 2] if forecasts.shape[1] == 3 else np.ones(len(forecasts))
    if not weights.sum():
        return 0.0
    gaps = np.bincount(_tenths(confidence), weights=weights * (confidence - right), minlength=BINS)
    return float(np.abs(gaps).sum() / weights.sum())


def _tenths(confidence: Array) -> NDArray[np.intp]:
    return np.clip((confidence * BINS).astype(np.intp), 0, BINS - 1)
