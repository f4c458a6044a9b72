"""Cohere's rerank endpoint, through its own SDK. Knows nothing of what an answer does when Cohere fails.

A question waits for Cohere ten seconds at most, in up to three tries; after a failure nobody waits for a while.
What leaves this machine is the question, and the label and text of each passage.
"""

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any

import httpx
from cohere.core import ApiError, RequestOptions
from cohere.core.parse_error import ParsingError
from pydantic import BaseModel, ConfigDict, FiniteFloat, TypeAdapter

from citewell.adapters.patience import Patience, Pause, insist, sendable
from citewell.errors import CitewellError, RerankerUnavailable, SettingsError
from citewell.models import Passage
from cohere import AsyncClientV2

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
        self._pause = Pause(self._patience, now)
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
        documents = [sendable(f"{one.chunk.label}\n{one.chunk.text}") for one in passages]
        try:
            answer = await insist(
                lambda: self._client.rerank(
                    model=self.model, query=sendable(question), documents=documents, request_options=_ONCE
                ),
                patience=self._patience,
                faults=(ApiError, httpx.TransportError),
                passing=_passing,
                headers=_headers,
                tries=tries,
            )
            scores = _scores(answer, len(passages))
        except (ApiError, httpx.HTTPError, TimeoutError, *_SENSELESS) as error:
            told = self._told(error)
            self._pause.begin(str(told))
            raise told from error
        self._pause.end()
        return scores

    async def close(self) -> None:
        await self._http.aclose()

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


def _headers(error: Exception) -> Mapping[str, str]:
    return (error.headers or {}) if isinstance(error, ApiError) else {}
