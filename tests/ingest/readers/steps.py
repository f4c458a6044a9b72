"""Counts how much work a parser does, which is the same on a fast, a slow and a busy machine."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_DEADLINE_SECONDS = 300


def count_calls(work: Callable[[], object]) -> int:
    """How many functions are called, built-in ones included. What happens inside a built-in is not seen."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    previous = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(previous)
    return calls


@contextmanager
def deadline() -> Iterator[None]:
    """Fail after five minutes: for what would otherwise take hours, such as a regular expression that backtracks."""

    def fail(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"not finished within {_DEADLINE_SECONDS} seconds")

    previous = signal.signal(signal.SIGALRM, fail)
    signal.alarm(_DEADLINE_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
