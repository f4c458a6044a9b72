"""Cohere's rerank endpoint, through its own SDK. Knows nothing of what an answer does when Cohere fails.

A question waits for Cohere ten seconds at most, in up to three tries; after a failure nobody waits for a while.
What leaves this machine is the question, and the label and text of each passage.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from time import monotonic
from typing import Any

import httpx
from cohere.core import ApiError, RequestOptions
from cohere.core.parse_error import ParsingError
from pydantic import BaseModel, ConfigDict, FiniteFloat, TypeAdapter

from citewell.errors import CitewellError, RerankerUnavailable, SettingsError
from citewell.models import Passage
from cohere import AsyncClientV2


@dataclass(frozen=True, slots=True)
class Patience:
    """How long Cohere is waited for, and how long it is left alone after it failed."""

    tries: int = 3
    try_seconds: float = 3.0  # it ranks twenty passages in well under one
    whole_seconds: float = 10.0
    backoff_seconds: float = 0.3
    rest_seconds: float = 30.0


# The SDK would repeat a failed call by itself, but neither after a timeout nor after a cut connection, and it would
# wait a minute where it is told to: it tries once, and the repeating is done here. It would also tell Cohere which
# kernel and which Python this is.
_ONCE: RequestOptions = {
    "max_retries": 0,
    "additional_headers": {"X-Fern-Platform": None, "X-Fern-Runtime": None},
}

# What comes of an answer that is not as documented: the SDK takes it apart without looking first.
_SENSELESS = (ParsingError, ValueError, TypeError, AttributeError, LookupError, RecursionError)


class CohereReranker:
    """Scores between 0 and 1. Cohere takes at most 1,000 passages in a call and reads 4,096 tokens of each."""

    def __init__(
        self,
        key: str,
        *,
        model: str = "rerank-v3.5",
        base_url: str | None = None,
        patience: Patience | None = None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self.model = model
        self._key = key.strip()
        if not self._key or not all("!" <= mark <= "~" for mark in self._key):
            raise SettingsError("COHERE_API_KEY is no key: it is blank or has characters that no key has")
        self._patience = patience or Patience()
        self._pause = _Pause(self._patience, now)
        self._http = httpx.AsyncClient(timeout=self._patience.try_seconds)
        self._client = AsyncClientV2(self._key, base_url=base_url, httpx_client=self._http)

    async def rerank(
        self,
        question: str,
        passages: Sequence[Passage],
        *,
        weights: Mapping[str, float],  # noqa: ARG002 (the port's signature; it reads, and needs no counting)
    ) -> list[float]:
        if not passages:
            return []
        tries = self._pause.tries()
        if not tries:
            raise RerankerUnavailable(f"Cohere failed a moment ago ({self._pause.reason}) and is left alone for now")
        documents = [_sendable(f"{one.chunk.label}\n{one.chunk.text}") for one in passages]
        try:
            async with asyncio.timeout(self._patience.whole_seconds) as whole:
                answer = await self._ask(_sendable(question), documents, tries=tries, whole=whole)
            scores = _scores(answer, len(passages))
        except (ApiError, httpx.HTTPError, TimeoutError, *_SENSELESS) as error:
            told = self._told(error)
            self._pause.begin(str(told))
            raise told from error
        self._pause.end()
        return scores

    async def close(self) -> None:
        await self._http.aclose()

    async def _ask(self, question: str, documents: Sequence[str], *, tries: int, whole: asyncio.Timeout) -> Any:
        """Cohere's answer, as it came; the last try's error where none succeeds."""
        attempt = 0
        while True:
            try:
                async with asyncio.timeout(self._patience.try_seconds):
                    return await self._client.rerank(
                        model=self.model, query=question, documents=documents, request_options=_ONCE
                    )
            except (ApiError, httpx.TransportError, TimeoutError) as error:
                attempt += 1
                wait = self._wait(error, attempt)
                ends = whole.when() or 0.0
                if attempt == tries or not _passing(error) or asyncio.get_running_loop().time() + wait >= ends:
                    raise
            await asyncio.sleep(wait)

    def _wait(self, error: Exception, attempt: int) -> float:
        """Seconds until the next try: what Cohere asks for, else longer each time; never all clients at once."""
        backoff = self._patience.backoff_seconds * 2.0 ** (attempt - 1)
        jitter = backoff * random.random()  # noqa: S311 (spreads load, guards nothing)
        return (_retry_after(error) or backoff) + jitter

    def _told(self, error: Exception) -> CitewellError:
        """What went wrong, without a word of the key."""
        match error:
            case ApiError(status_code=401 | 403 | 498):
                return SettingsError(f"Cohere refuses the key in COHERE_API_KEY (status {error.status_code})")
            case ApiError(status_code=int(status)) if status >= 300:
                return RerankerUnavailable(f"Cohere answered with status {status}{self._message(error.body)}")
            case TimeoutError() | httpx.TimeoutException():
                return RerankerUnavailable("Cohere did not answer in time")
            case httpx.TransportError():
                return RerankerUnavailable(f"Cohere cannot be reached ({type(error).__name__})")
            case _:
                return RerankerUnavailable("Cohere's answer makes no sense")

    def _message(self, body: object) -> str:
        """What Cohere says itself, where it says it as documented; a proxy's page is nobody's message."""
        message = body.get("message") if isinstance(body, dict) else None
        if not isinstance(message, str):
            return ""
        return f": {' '.join(message.replace(self._key, '…').split())[:200]}"


class _Pause:
    """After a failure nobody calls for a while; then one call goes ahead, once, to see whether it is over."""

    def __init__(self, patience: Patience, now: Callable[[], float]) -> None:
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

    def begin(self, reason: str) -> None:
        self._until = self._now() + self._patience.rest_seconds
        self.reason = reason

    def end(self) -> None:
        self._until = None


class _Row(BaseModel):
    model_config = ConfigDict(from_attributes=True, strict=True)

    index: int
    relevance_score: FiniteFloat


class _Results(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    results: list[_Row]


_RESULTS = TypeAdapter(_Results)


def _scores(answer: Any, passages: int) -> list[float]:
    """The score of each passage. The SDK does not check what it is sent; a ValueError says that it makes no sense."""
    rows = _RESULTS.validate_python(answer).results
    # Cohere answers best first: it promises `index`, not position.
    scores = {row.index: row.relevance_score for row in rows}
    if len(rows) != passages or scores.keys() != set(range(passages)):
        raise ValueError(f"{len(rows)} results for {passages} passages, or not one for each")
    return [scores[place] for place in range(passages)]


def _passing(error: Exception) -> bool:
    """Whether another try may succeed."""
    if isinstance(error, ApiError):
        status = error.status_code or 0
        return status in (408, 429) or status >= 500
    return not isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError)


def _retry_after(error: Exception) -> float | None:
    """The seconds that Cohere asks to wait, given as a number or as a date."""
    given = (error.headers or {}).get("retry-after", "") if isinstance(error, ApiError) else ""
    if given.isdecimal():
        return float(given)
    try:
        return max(0.0, (parsedate_to_datetime(given).astimezone(UTC) - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None


def _sendable(text: str) -> str:
    """The text without what UTF-8 cannot say."""
    return text.encode("utf-8", "replace").decode()
