"""How far a score would wander if other questions of the same kind had been asked. Pure, and the same every time."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

_DRAWS = 1000
_SEED = 2026


def interval(values: Values, owners: NDArray[np.intp], statistic: Callable[[Values], float]) -> tuple[float, float]:
    """The middle 95 % of what the statistic is when questions are drawn anew, with replacement.

    `owners` numbers the question that each value belongs to: an answer's citations come and go together.
    Where every question scored the same there is nothing to draw from, and the interval is that point.
    """
    generator = np.random.default_rng(_SEED)
    questions = int(owners.max()) + 1
    drawn = []
    for _ in range(_DRAWS):
        times = np.bincount(generator.integers(questions, size=questions), minlength=questions)
        drawn.append(statistic(np.repeat(values, times[owners], axis=0)))
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)
