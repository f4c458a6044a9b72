"""Thresholds for scores, so that a build can fail when answers get worse. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from citewell.errors import SettingsError
from citewell.evaluate.scores import MEASURES, Score, format_value

Side = Literal["min", "max"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """The minimum or maximum of a score."""

    name: str
    side: Side
    bound: float

    @classmethod
    def parse(cls, side: Side, text: str) -> "Threshold":
        """Threshold.parse("min", "hit@5=0.9"). Raises SettingsError for an unknown score or a bad number."""
        name, _, number = text.partition("=")
        measures = {measure.name: measure for measure in MEASURES}
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
        """Whether the score is within the threshold. A score without cases fails: it was not measured."""
        value = scores[self.name].value
        if value is None:
            return False
        slack = 1e-9  # 0.9 is not quite nine tenths
        return value >= self.bound - slack if self.side == "min" else value <= self.bound + slack

    def failure(self, scores: Mapping[str, Score]) -> str:
        """The error message for a score outside the threshold."""
        score = scores[self.name]
        bound = f"{'at least' if self.side == 'min' else 'at most'} {format_value(self.bound, score.measure.unit)}"
        if score.value is None:
            return f"{self.name} should be {bound}, but no question says anything about it"
        return f"{self.name} is {score.formatted()} (n {score.count}), should be {bound}"
