"""Boosted trees that a script in `benchmarks/` fitted, read from JSON and walked all at once. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Trees:
    """Gives the probability of a row of features. A leaf points at itself, so that every walk may be as long."""

    def __init__(self, fitted: Mapping[str, Any], features: Sequence[str]) -> None:
        if fitted["features"] != list(features):
            raise ValueError("the trees were fitted on other features; run benchmarks/fit/support.py DATA --write")
        self._roots = np.array(fitted["roots"])
        self._feature = np.array(fitted["feature"])
        self._threshold = np.array(fitted["threshold"])
        self._left = np.array(fitted["left"])
        self._right = np.array(fitted["right"])
        self._value = np.array(fitted["value"])
        self._depth = int(fitted["depth"])

    def probability(self, row: NDArray[np.float64]) -> float:
        node = self._roots
        for _ in range(self._depth):
            below = row[self._feature[node]] <= self._threshold[node]
            node = np.where(below, self._left[node], self._right[node])
        return float(1 / (1 + np.exp(-self._value[node].sum())))
