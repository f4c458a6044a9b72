"""Cross-validation: which questions the shipped weights were fitted on, and weights fitted without them."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from citewell.answer.quoting import confidence, score
from citewell.answer.retrieval import rerank
from citewell.text.wordlists import data_file

FOLDS = 7
FOLDS_FILE = Path(__file__).with_name("folds.json")
_MODELS: Mapping[str, tuple[Any, Sequence[str]]] = {
    "rerank": (rerank, rerank.PASSAGE_FEATURES),
    "extract": (score, score.QUOTE_FEATURES),
    "confidence": (confidence, confidence.CONFIDENCE_FEATURES),
}


def fold_of(group: str) -> int:
    """The fold of a group, the same on every machine."""
    return hashlib.sha256(group.encode()).digest()[0] % FOLDS


def group_digest(group: str) -> str:
    """A short hash of a group's name."""
    return hashlib.sha256(group.encode()).hexdigest()[:12]


def install_weights(weights: Mapping[str, Any]) -> None:
    """Make Citewell answer with these weights from now on; given by name, or in the order of the features."""
    for name, values in weights.items():
        if name == "bands":
            confidence.CONFIDENCE_BANDS.update(values)
            continue
        if name not in _MODELS:
            continue  # fitted by other scripts, on other questions
        model, features = _MODELS[name]
        named = isinstance(values, Mapping)
        model._WEIGHTS[:] = [values[feature] for feature in features] if named else np.asarray(values)


class HeldOutWeights:
    """Installs, for each question's group, the weights that were fitted without that group."""

    def __init__(self, shipped: Mapping[str, Any], groups: Sequence[str], folds: Sequence[Mapping[str, Any]]) -> None:
        self._shipped = shipped
        self._groups = frozenset(groups)
        self._folds = folds
        self._installed: int | None = None

    @classmethod
    def read(cls) -> "HeldOutWeights":
        shipped = json.loads(data_file("ranking.json").read_text(encoding="utf-8"))
        fitted = (
            json.loads(FOLDS_FILE.read_text(encoding="utf-8")) if FOLDS_FILE.exists() else {"groups": [], "folds": []}
        )
        return cls(shipped, fitted["groups"], fitted["folds"])

    def knows(self, group: str) -> bool:
        return group_digest(group) in self._groups

    def use_for(self, group: str) -> None:
        fold = fold_of(group) if self.knows(group) else -1
        if fold != self._installed:
            install_weights(self._folds[fold] if fold >= 0 else self._shipped)
            self._installed = fold
