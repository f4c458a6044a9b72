"""The numbers that `benchmarks/fit.py` writes: weights fitted on real questions, and the bands it says why it chose."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_FITTED: dict[str, dict[str, float]] = json.loads(Path(__file__).with_name("weights.json").read_text(encoding="utf-8"))


def fitted(model: str, features: Sequence[str]) -> NDArray[np.float64]:
    """A model's weights in the order of its features."""
    return np.array([_FITTED[model].get(name, 0.0) for name in features])
