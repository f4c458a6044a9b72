"""Weights that `benchmarks/fit/ranking.py` fitted on real questions."""

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from citewell.text import data_file

_FITTED: dict[str, dict[str, float]] = json.loads(data_file("ranking.json").read_text(encoding="utf-8"))


def fitted_weights(model: str, features: Sequence[str]) -> NDArray[np.float64]:
    """A model's weights in the order of its features."""
    return np.array([_FITTED[model].get(name, 0.0) for name in features])
