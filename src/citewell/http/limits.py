"""How much may come in: requests at once, requests a minute of a key, and the size and pace of a request body."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from citewell.errors import TooBusy
from citewell.models import Key

_SHUTDOWN_SECONDS = 5.0
_DRAIN_SECONDS = 1.0


class ConcurrencyLimit:
    """Counts the requests being answered and refuses more than `limit` at once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._idle = asyncio.Event()
        self._idle.set()
        self.running = 0

    def acquire(self) -> None:
        """Count one request more; raises TooBusy."""
        if self.running >= self._limit:
            message = f"{self._limit} requests are being answered already; try again in a second"
            raise TooBusy(message, retry_after_seconds=1)
        self.running += 1
        self._idle.clear()

    def release(self) -> None:
        self.running -= 1
        if not self.running:
            self._idle.set()

    async def wait_until_idle(self) -> None:
        """Wait for the last requests to end, but not longer than a few seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SHUTDOWN_SECONDS):
                await self._idle.wait()


@dataclass(slots=True)
class _TokenBucket:
    """Requests a key may still send, refilled continuously."""

    tokens: float
    refilled_at: float = field(default_factory=monotonic)

    def take(self, per_minute: int) -> float:
        """Take one token and return 0, or return the seconds until there is one."""
        now = monotonic()
        self.tokens = min(float(per_minute), self.tokens + (now - self.refilled_at) * per_minute / 60)
        self.refilled_at = now
        if self.tokens < 1:
            return (1 - self.tokens) * 60 / per_minute
        self.tokens -= 1
        return 0.0


class RateLimit:
    """Requests a minute: of each key by its own limit, or else by the default."""

    def __init__(self, default_per_minute: int) -> None:
        self._default = default_per_minute
        self._buckets: dict[str, _TokenBucket] = {}

    def take(self, key: Key) -> None:
        """Count one request of a key; raises TooBusy."""
        per_minute = key.per_minute or self._default
        bucket = self._buckets.setdefault(key.id, _TokenBucket(float(per_minute)))
        if wait_seconds := bucket.take(per_minute):
            message = f"this key may ask {per_minute} times a minute"
            raise TooBusy(message, retry_after_seconds=max(1, round(wait_seconds + 0.5)))


def declared_length(headers: Headers) -> int:
    """The Content-Length of a request in bytes; 0 where there is none."""
    length = headers.get("content-length", "")
    return int(length[:20]) if length.isdecimal() else 0  # Python refuses numbers of more than 4,300 digits


class LimitedBody:
    """A request body as it arrives: refused with 413 when it is too large, and with 408 when it stalls."""

    def __init__(self, receive: Receive, *, max_bytes: int, declared_bytes: int, timeout_seconds: float) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._timeout_seconds = timeout_seconds
        self._complete = asyncio.Event()
        self._check(declared_bytes)
        self._received_bytes = 0

    def _check(self, size: int) -> None:
        if size > self._max_bytes:
            raise HTTPException(413, f"the body is larger than {self._max_bytes} bytes, the limit of this endpoint")

    async def receive(self) -> Message:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                message = await self._receive()
        except TimeoutError as error:
            seconds = f"{self._timeout_seconds:.0f}"
            raise HTTPException(408, f"nothing more of the body came for {seconds} seconds") from error
        if message["type"] == "http.request":
            self._received_bytes += len(message.get("body", b""))
            self._check(self._received_bytes)
            if not message.get("more_body"):
                self._complete.set()
        return message

    async def drain(self) -> None:
        """Read on for a moment: a connection closed on unread bytes may lose the error response with it."""
        if self._received_bytes > self._max_bytes:
            return
        with suppress(TimeoutError, HTTPException):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while not self._complete.is_set() and (await self.receive())["type"] == "http.request":
                    pass

    async def wait_for_disconnect(self) -> None:
        """Return once the client has closed the connection; the body is read whole before."""
        await self._complete.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
