"""A reader for tests: what holds the marked words answers, and nothing else does."""

from collections.abc import Sequence

from citewell.errors import ModelError
from citewell.ports import ReadableWindow, WindowScores


class MarkedWords:
    """A `Reader` that likes every unit with certain words, and remembers what it read."""

    model = "marked-words"

    def __init__(self, *words: str) -> None:
        self._words = words
        self.windows: list[ReadableWindow] = []

    async def read(self, question: str, windows: Sequence[ReadableWindow]) -> list[WindowScores]:  # noqa: ARG002
        self.windows += windows
        return [self._scores(window) for window in windows]

    def _scores(self, window: ReadableWindow) -> WindowScores:
        units = tuple(9.0 if any(word in unit for word in self._words) else -9.0 for unit in window.units)
        return WindowScores(max(units, default=-9.0), 0.0, units)

    async def warm(self) -> None:
        pass

    async def close(self) -> None:
        pass


class BrokenReader(MarkedWords):
    """A `Reader` whose model cannot be loaded."""

    async def read(self, question: str, windows: Sequence[ReadableWindow]) -> list[WindowScores]:
        raise ModelError(f"cannot read {len(windows)} windows for {question!r}")
