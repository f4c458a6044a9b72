"""Plots and a table of how indexes grow, from the numbers of `benchmarks/speed/scaling.py`."""

from collections.abc import Mapping, Sequence
from pathlib import Path


def draw(rows: Sequence[Mapping[str, float]], folder: Path) -> None: ...
def table(rows: Sequence[Mapping[str, float]]) -> str:
    return ""
