"""Bounds that scores have to keep, so that a build can fail when answers get worse. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from citewell.errors import SettingsError
from citewell.evaluate.scores import MEASURES, Score, show

Side = Literal["min", "max"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A score and the least (or most) it may be."""

    name: str
    side: Side
    bound: float

    @classmethod
    def parse(cls, side: Side, text: str) -> "Threshold":
        """Gate.parse("min", "hit@5=0.9"); what is no score or no number is refused with what there is."""
        name, _, number = text.partition("=")
        measures = {one.name: one for one in MEASURES}
        if (name := name.strip()) not in measures:
            raise SettingsError(f"--{side} {text}: {name!r} is not a score; these are: {', '.join(measures)}")
        try:
            bound = float(number)
        except ValueError:
            bound = math.nan
        if not math.isfinite(bound):
            raise SettingsError(f"--{side} {text}: give a number after the score, as in {name}=0.9")
        if measures[name].unit in ("share", "mean") and not 0 <= bound <= 1:
            raise SettingsError(f"--{side} {text}: {name} lies between 0 and 1")
        return cls(name, side, bound)

    def passes(self, scores: Mapping[str, Score]) -> bool:
        """A score that no question speaks about keeps no bound: a gate that was not measured must not look passed."""
        value = scores[self.name].value
        if value is None:
            return False
        slack = 1e-9  # 0.9 is not quite nine tenths
        return value >= self.bound - slack if self.side == "min" else value <= self.bound + slack

    def failure(self, scores: Mapping[str, Score]) -> str:
        found = scores[self.name]
        unit = found.measure.unit
        wanted = f"{'at least' if self.side == 'min' else 'at most'} {show(self.bound, unit)}"
        if found.value is None:
            return f"{self.name} should be {wanted}, but no question says anything about it"
        return f"{self.name} is {found.shown()} (n {found.count}), should be {wanted}"
