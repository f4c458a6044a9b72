"""Reads the weights of the ranking models from `data/ranking.json`; `benchmarks/fit/ranking.py` fits them."""

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from citewell.text import data_file

_WEIGHTS_BY_MODEL: dict[str, dict[str, float]] = json.loads(data_file("ranking.json").read_text(encoding="utf-8"))


def fitted_weights(model: str, features: Sequence[str]) -> NDArray[np.float64]:
    """The weights of a model in the order of its features; 0 for a feature that was not fitted."""
    return np.array([_WEIGHTS_BY_MODEL[model].get(feature, 0.0) for feature in features])
