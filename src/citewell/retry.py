"""Retries with exponential back-off, and a circuit breaker: for LLM, embeddings, reranker and client.

Knows HTTP's `Retry-After` and status codes, and no vendor.
"""

import asyncio
import logging
import math
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

T = TypeVar("T")

_log = logging.getLogger("citewell.adapters")
_LOGGED_DELAY_SECONDS = 5.0

UNLIMITED = math.inf


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a call is attempted, how long it may take, and how long the circuit stays open after it failed."""

    max_attempts: int = 3
    attempt_seconds: float = 3.0
    total_seconds: float = 10.0
    backoff_seconds: float = 0.3
    """The delay before the second attempt; it doubles with each further one."""
    max_backoff_seconds: float = 60.0
    max_retry_after_seconds: float = UNLIMITED
    """A server that asks for a longer delay is not retried."""
    open_seconds: float = 30.0

    def backoff(self, failures: int) -> float:
        return min(self.backoff_seconds * 2.0 ** (failures - 1), self.max_backoff_seconds)


@dataclass(frozen=True, slots=True)
class RetryRules:
    """What a caller knows about the errors of its call. A TimeoutError always counts as one of `errors`."""

    errors: tuple[type[Exception], ...]
    is_transient: Callable[[Exception], bool]
    """Whether another attempt may succeed."""
    headers: Callable[[Exception], Mapping[str, str]]
    """The response headers of an error, their names in lower case; empty if there was no response."""
    is_rate_limit: Callable[[Exception], bool] = lambda _: False

    @property
    def caught(self) -> tuple[type[Exception], ...]:
        return (*self.errors, TimeoutError)


class CircuitBreaker:
    """Stops calls to a server that failed. After `open_seconds`, one call goes through to see whether it is back."""

    def __init__(self, policy: RetryPolicy, now: Callable[[], float]) -> None:
        self._policy = policy
        self._now = now
        self._open_until: float | None = None
        self.reason = ""
        """Why it was opened last."""

    def allowed_attempts(self) -> int:
        """How many attempts the next call has: none while the circuit is open."""
        if self._open_until is None:
            return self._policy.max_attempts
        if self._now() < self._open_until:
            return 0
        self._open_until = self._now() + self._policy.open_seconds  # other calls don't wait for this one
        return 1

    @property
    def is_open(self) -> bool:
        """Whether the last call failed, and none has succeeded since."""
        return self._open_until is not None

    def open(self, reason: str) -> None:
        self._open_until = self._now() + self._policy.open_seconds
        self.reason = reason

    def close(self) -> None:
        self._open_until = None


async def with_retries(
    call: Callable[[], Awaitable[T]],
    *,
    policy: RetryPolicy,
    rules: RetryRules,
    max_attempts: int | None = None,
    wait_out_rate_limits: bool = False,
) -> T:
    """The result of the call, retried after transient errors; raises the error of the last attempt.

    If the server asks for a delay beyond the policy's time, the call is not retried. With `wait_out_rate_limits`, a
    rate limit counts as no attempt: the server works, and is waited for until the time is up.
    """
    attempts = _Attempts(policy, rules, max_attempts=max_attempts, wait_out_rate_limits=wait_out_rate_limits)
    async with _timeout(policy.total_seconds):
        while True:
            try:
                async with _timeout(policy.attempt_seconds):
                    return await call()
            except rules.caught as error:
                if not await attempts.wait_for_next(error):
                    raise


async def stream_with_retries(
    start: Callable[[], AsyncGenerator[T, None]],
    *,
    policy: RetryPolicy,
    rules: RetryRules,
    max_attempts: int | None = None,
    deadline: float | None = None,
    recover: Callable[[Exception], bool] = lambda _: False,
) -> AsyncGenerator[T, None]:
    """The items of a stream, started again after transient errors as long as it has produced nothing.

    `recover` may remove the cause of an error; if it returns true, the stream starts again at once, and the error
    counts as no attempt. No attempt starts after `deadline` (in the event loop's time; default: after the policy's
    time). The stream itself has to enforce it, and `attempt_seconds`.
    """
    attempts = _Attempts(policy, rules, max_attempts=max_attempts, deadline=deadline)
    started = False
    while True:
        try:
            async with aclosing(start()) as items:
                async for item in items:
                    started = True
                    yield item
            return
        except rules.caught as error:
            if started or not (recover(error) or await attempts.wait_for_next(error)):
                raise


class _Attempts:
    """Counts the attempts of one call and waits before the next one."""

    def __init__(
        self,
        policy: RetryPolicy,
        rules: RetryRules,
        *,
        max_attempts: int | None,
        wait_out_rate_limits: bool = False,
        deadline: float | None = None,
    ) -> None:
        self._policy = policy
        self._rules = rules
        self._remaining = max_attempts or policy.max_attempts
        self._wait_out_rate_limits = wait_out_rate_limits
        self._failures = 0
        self._deadline = deadline or asyncio.get_running_loop().time() + policy.total_seconds

    async def wait_for_next(self, error: Exception) -> bool:
        """Wait until the next attempt after this error; False, at once, if there is none."""
        self._failures += 1
        uncounted = self._wait_out_rate_limits and self._rules.is_rate_limit(error)
        self._remaining -= not uncounted
        backoff = self._policy.backoff(self._failures)
        requested = retry_after(self._rules.headers(error))
        delay = backoff if requested is None else max(requested, backoff) if uncounted else requested
        delay += min(delay, backoff) * random.random()  # noqa: S311 (jitter: clients must not come back all at once)
        in_time = asyncio.get_running_loop().time() + delay < self._deadline
        acceptable = (requested or 0.0) <= self._policy.max_retry_after_seconds
        if not (self._remaining > 0 and in_time and acceptable and self._rules.is_transient(error)):
            return False
        if delay > _LOGGED_DELAY_SECONDS:
            _log.warning("the call failed; retrying in %.0f s", delay)
        await asyncio.sleep(delay)
        return True


def _timeout(seconds: float) -> asyncio.Timeout:
    return asyncio.timeout(None if seconds == UNLIMITED else seconds)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds in a `Retry-After` header, which has a number or a date; None if there is none."""
    value = headers.get("retry-after", "")
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, (parsedate_to_datetime(value).astimezone(UTC) - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None


def is_transient_status(status: int) -> bool:
    """Whether an HTTP request with this status may succeed later: 408, 429 and every 5xx."""
    return status in (408, 429) or status >= 500
