"""What every vendor's adapter needs: how long it waits, how often it tries, when it gives up. Knows no vendor."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from citewell.errors import SettingsError

T = TypeVar("T")

_log = logging.getLogger("citewell.adapters")
_WORTH_SAYING_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a vendor is waited for, and how long it is left alone after it failed."""

    tries: int = 3
    try_seconds: float = 3.0
    whole_seconds: float = 10.0
    backoff_seconds: float = 0.3
    rest_seconds: float = 30.0
    longest_backoff_seconds: float = 60.0

    def wait(self, attempt: int, headers: Mapping[str, str]) -> float:
        """Seconds until the next try: what the vendor asks for, else longer each time; never all clients at once."""
        backoff = min(self.backoff_seconds * 2.0 ** (attempt - 1), self.longest_backoff_seconds)
        asked = retry_after(headers) or backoff
        return asked + min(asked, backoff) * random.random()  # noqa: S311 (spreads load, guards nothing)


class CircuitBreaker:
    """After a failure nobody calls for a while; then one call goes ahead, once, to see whether it is over."""

    def __init__(self, patience: RetryPolicy, now: Callable[[], float]) -> None:
        self._patience = patience
        self._now = now
        self._until: float | None = None
        self.reason = ""

    def tries(self) -> int:
        """How often the next call may try: not at all during the pause."""
        if self._until is None:
            return self._patience.tries
        if self._now() < self._until:
            return 0
        self._until = self._now() + self._patience.rest_seconds  # the others don't wait for this one
        return 1

    @property
    def resting(self) -> bool:
        """Whether it failed, and nothing has succeeded since."""
        return self._until is not None

    def begin(self, reason: str) -> None:
        self._until = self._now() + self._patience.rest_seconds
        self.reason = reason

    def end(self) -> None:
        self._until = None


async def with_retries(
    call: Callable[[], Awaitable[T]],
    *,
    patience: RetryPolicy,
    faults: tuple[type[Exception], ...],
    passing: Callable[[Exception], bool],
    headers: Callable[[Exception], Mapping[str, str]],
    limited: Callable[[Exception], bool] = lambda _: False,
    tries: int | None = None,
) -> T:
    """What the call gives, tried again after `faults` that are `passing`; the last try's error where none succeeds.

    A TimeoutError is a fault too. Where the vendor asks for more time than there is, it is not waited for. What is
    `limited` counts as no try: a vendor that says "not so fast" works, and is waited for as long as there is time.
    """
    attempt = waits = 0
    caught: tuple[type[Exception], ...] = (*faults, TimeoutError)
    async with asyncio.timeout(patience.whole_seconds) as whole:
        while True:
            try:
                async with asyncio.timeout(patience.try_seconds):
                    return await call()
            except caught as error:
                attempt += not limited(error)
                waits += 1
                wait = patience.wait(waits, headers(error))
                ends = whole.when() or 0.0
                last = attempt == (tries or patience.tries)
                if last or not passing(error) or asyncio.get_running_loop().time() + wait >= ends:
                    raise
            if wait > _WORTH_SAYING_SECONDS:
                _log.warning("a vendor wants %.0f s until the next try; waiting", wait)
            await asyncio.sleep(wait)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a vendor asks to wait, given as a number or as a date; names of headers are in lower case."""
    given = headers.get("retry-after", "")
    if given.isdecimal():
        return float(given)
    try:
        return max(0.0, (parsedate_to_datetime(given).astimezone(UTC) - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None


def sendable(text: str) -> str:
    """The text without what UTF-8 cannot say; every other character stays where it was."""
    return text.encode("utf-8", "replace").decode()


def checked_key(key: str, name: str) -> str:
    """The key as it is sent; raises SettingsError for what cannot be one, without showing it."""
    key = key.strip()
    if not key or not all("!" <= mark <= "~" for mark in key):
        raise SettingsError(f"{name} is no key: it is blank or has characters that no key has")
    return key
