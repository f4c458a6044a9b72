"""Which questions the fitted weights have seen, and weights that have not seen them."""

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
    """The part a group belongs to, the same on every machine."""
    return hashlib.sha256(group.encode()).digest()[0] % FOLDS


def digest(group: str) -> str:
    """A group's name, shortened."""
    return hashlib.sha256(group.encode()).hexdigest()[:12]


def install(weights: Mapping[str, Any]) -> None:
    """Let the package answer with these weights from now on; by name, or in the order of its features."""
    for name, values in weights.items():
        if name == "bands":
            confidence.CONFIDENCE_BANDS.update(values)
            continue
        if name == "selection":
            continue  # no set here is asked with one
        model, features = _MODELS[name]
        named = isinstance(values, Mapping)
        model._WEIGHTS[:] = [values[feature] for feature in features] if named else np.asarray(values)


class Unseen:
    """Puts in, for a question's group, the weights that were fitted without it."""

    def __init__(self, shipped: Mapping[str, Any], groups: Sequence[str], folds: Sequence[Mapping[str, Any]]) -> None:
        self._shipped = shipped
        self._groups = frozenset(groups)
        self._folds = folds
        self._installed: int | None = None

    @classmethod
    def read(cls) -> "Unseen":
        shipped = json.loads(data_file("ranking.json").read_text(encoding="utf-8"))
        saw = json.loads(FOLDS_FILE.read_text(encoding="utf-8")) if FOLDS_FILE.exists() else {"groups": [], "folds": []}
        return cls(shipped, saw["groups"], saw["folds"])

    def knows(self, group: str) -> bool:
        return digest(group) in self._groups

    def use_for(self, group: str) -> None:
        fold = fold_of(group) if self.knows(group) else -1
        if fold != self._installed:
            install(self._folds[fold] if fold >= 0 else self._shipped)
            self._installed = fold
