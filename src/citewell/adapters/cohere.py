"""Cohere's rerank and embed endpoints, through its own SDK. Knows nothing of what an answer does when Cohere fails.

A question waits for Cohere ten seconds at most, in up to three tries; after a failure nobody waits for a while.
What leaves this machine is the question, and the label and text of each passage.
"""

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, Literal

import httpx
from cohere import AsyncClientV2
from cohere.core import ApiError, RequestOptions
from cohere.core.parse_error import ParsingError
from pydantic import BaseModel, ConfigDict, FiniteFloat, TypeAdapter

from citewell.adapters.vendor_embedding import Calls, UnusableAnswer, dimensions_of, embed, to_unit_vectors
from citewell.adapters.vendor_embedding import truncate_question as sendable_question
from citewell.errors import CitewellError, RerankerUnavailable, SettingsError
from citewell.models import Matrix, Passage, Vector
from citewell.ports import Embeddable, Embedding
from citewell.retry import CircuitBreaker, RetryPolicy, checked_key, sendable, with_retries

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
        patience: RetryPolicy | None = None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self.model = model
        self._key = checked_key(key, "COHERE_API_KEY")
        self._patience = patience or RetryPolicy()
        self._pause = CircuitBreaker(self._patience, now)
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
            answer = await with_retries(
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
                return RerankerUnavailable(f"Cohere answered with status {status}{_message(error.body, self._key)}")
            case TimeoutError() | httpx.TimeoutException():
                return RerankerUnavailable("Cohere did not answer in time")
            case httpx.TransportError():
                return RerankerUnavailable(f"Cohere cannot be reached ({type(error).__name__})")
            case _:
                return RerankerUnavailable("Cohere's answer makes no sense")


_DIMENSIONS = {
    "embed-english-v3.0": 1024,
    "embed-multilingual-v3.0": 1024,
    "embed-english-light-v3.0": 384,
    "embed-multilingual-light-v3.0": 384,
    "embed-v4.0": 1536,
}


class CohereEmbedder:
    """1024 dimensions by default; passages and questions are read differently, as Cohere's models want it."""

    fitted = False

    def __init__(
        self,
        key: str,
        *,
        key_name: str = "COHERE_API_KEY",
        model: str | None = None,
        dimensions: int | None = None,
        base_url: str | None = None,
        in_ingest: RetryPolicy | None = None,
        for_question: RetryPolicy | None = None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._model = model or "embed-english-v3.0"
        own = _DIMENSIONS.get(self._model)
        self.dimensions = dimensions_of(self._model, own=own, wanted=dimensions)
        self.model = f"cohere/{self._model}/{self.dimensions}"
        self._asked = self.dimensions if self.dimensions != own else None  # models before v4 refuse to be asked
        vendor = _Embedding(checked_key(key, key_name), key_name)
        self._calls = Calls(vendor, in_ingest=in_ingest, for_question=for_question, now=now)
        self._http = httpx.AsyncClient(timeout=None)  # noqa: S113 (each try has its time)
        self._client = AsyncClientV2(vendor.key, base_url=base_url, httpx_client=self._http)

    async def embed_passages(self, passages: Sequence[Embeddable]) -> list[Embedding]:
        async def ask(texts: list[str]) -> Matrix:
            return await self._calls.patiently(lambda: self._vectors(texts, "search_document"))

        return await embed(passages, most=96, ask=ask)

    async def embed_query(self, text: str) -> Vector:
        asked = sendable_question(text)
        vector: Vector = (await self._calls.briefly(lambda: self._vectors([asked], "search_query")))[0]
        return vector

    async def embed_queries(self, texts: Sequence[str]) -> Matrix:
        asked = [sendable_question(text) for text in texts]
        return await self._calls.patiently(lambda: self._vectors(asked, "search_query"))

    async def warm(self) -> None:
        pass

    async def close(self) -> None:
        await self._http.aclose()

    async def _vectors(self, texts: list[str], kind: Literal["search_document", "search_query"]) -> Matrix:
        asked = {} if self._asked is None else {"output_dimension": self._asked}
        try:
            answer = await self._client.embed(
                model=self._model,
                texts=texts,
                input_type=kind,
                embedding_types=["float"],
                request_options={**_ONCE, "additional_body_parameters": asked},
            )
            rows = _FLOATS.validate_python(answer.embeddings.float_)
        except (ApiError, *_SENSELESS) as error:
            if isinstance(error, ApiError) and (error.status_code or 0) >= 300:
                raise
            raise UnusableAnswer("it is not what Cohere documents") from error
        return to_unit_vectors(rows, texts=len(texts), dimensions=self.dimensions)


_FLOATS = TypeAdapter(list[list[float]], config=ConfigDict(strict=True))


class _Embedding:
    """What Cohere's errors mean for an embedding."""

    name = "Cohere"
    faults = (ApiError, httpx.TransportError)

    def __init__(self, key: str, key_name: str) -> None:
        self.key = key
        self._key_name = key_name

    def passing(self, error: Exception) -> bool:
        return _passing(error)

    def limited(self, error: Exception) -> bool:
        return isinstance(error, ApiError) and error.status_code == 429

    def headers(self, error: Exception) -> Mapping[str, str]:
        return _headers(error)

    def says(self, error: Exception) -> str:
        match error:
            case ApiError(status_code=401 | 403 | 498):
                return f"it refuses the key in {self._key_name} (status {error.status_code})"
            case ApiError(status_code=status):
                return f"status {status}{_message(error.body, self.key)}"
            case _:
                return f"it cannot be reached ({type(error).__name__})"


def _message(body: object, key: str) -> str:
    """What Cohere says itself, where it says it as documented; a proxy's page is nobody's message."""
    message = body.get("message") if isinstance(body, dict) else None
    if not isinstance(message, str):
        return ""
    return f": {' '.join(message.replace(key, '…').split())[:200]}"


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
