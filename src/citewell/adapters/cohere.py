"""Cohere's rerank and embed endpoints, through its own SDK. Knows nothing of what an answer does when Cohere fails.

A question waits for Cohere ten seconds at most, in up to three attempts; after a failure a circuit breaker stops calls
for a while. What leaves this machine is the question, and the label and text of each passage.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Any, Literal

import httpx
from cohere import AsyncClientV2
from cohere.core import ApiError, RequestOptions
from cohere.core.parse_error import ParsingError
from pydantic import BaseModel, ConfigDict, FiniteFloat, TypeAdapter

from citewell.adapters.vendor_embedding import EmbeddingCalls, EmbeddingPolicies, UnusableAnswer, to_unit_vectors
from citewell.adapters.vendors import EMBEDDING_MODELS, VENDORS, checked_key, choose_dimensions, vendor_message
from citewell.adapters.windows import replace_surrogates
from citewell.errors import CitewellError, RerankerUnavailable, SettingsError
from citewell.models import Matrix, Passage, Vector
from citewell.ports import Embeddable, Embedding
from citewell.retry import CircuitBreaker, RetryPolicy, RetryRules, is_transient_status, with_retries

# The SDK would retry a failed call by itself, but neither after a timeout nor after a broken connection, and it would
# wait a minute if Cohere asks for it: it makes one attempt, and `with_retries` makes the others. The SDK would also
# send Cohere the versions of kernel and Python.
_ONE_ATTEMPT: RequestOptions = {
    "max_retries": 0,
    "additional_headers": {"X-Fern-Platform": None, "X-Fern-Runtime": None},
}

# What the SDK raises for a response that is not as documented: it does not validate what it parses.
_MALFORMED = (ParsingError, ValueError, TypeError, AttributeError, LookupError, RecursionError)


class CohereReranker:
    """Scores between 0 and 1. Cohere accepts at most 1,000 passages in a call and reads 4,096 tokens of each."""

    def __init__(
        self,
        key: str,
        *,
        model: str = VENDORS["cohere"].rerank_model,
        base_url: str | None = None,
        retry_policy: RetryPolicy | None = None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self.model = model
        self._key = checked_key(key, "COHERE_API_KEY")
        self._policy = retry_policy or RetryPolicy()
        self._breaker = CircuitBreaker(self._policy, now)
        self._http = httpx.AsyncClient(timeout=self._policy.attempt_seconds)
        self._client = AsyncClientV2(self._key, base_url=base_url, httpx_client=self._http)

    async def rerank(
        self,
        question: str,
        passages: Sequence[Passage],
        *,
        weights: Mapping[str, float],  # noqa: ARG002 (the port's signature; Cohere's model reads the text instead)
    ) -> list[float]:
        if not passages:
            return []
        max_attempts = self._breaker.allowed_attempts()
        if not max_attempts:
            raise RerankerUnavailable(f"Cohere failed a moment ago ({self._breaker.reason}) and is not retried yet")
        query = replace_surrogates(question)
        documents = [replace_surrogates(f"{passage.chunk.label}\n{passage.chunk.text}") for passage in passages]
        try:
            response = await with_retries(
                lambda: self._client.rerank(
                    model=self.model, query=query, documents=documents, request_options=_ONE_ATTEMPT
                ),
                policy=self._policy,
                rules=_RULES,
                max_attempts=max_attempts,
            )
            scores = _scores(response, len(passages))
        except (ApiError, httpx.HTTPError, TimeoutError, *_MALFORMED) as error:
            translated = self._translate(error)
            self._breaker.open(str(translated))
            raise translated from error
        self._breaker.close()
        return scores

    async def close(self) -> None:
        await self._http.aclose()

    def _translate(self, error: Exception) -> CitewellError:
        """Our error for one of Cohere's; its message never shows the key."""
        match error:
            case ApiError(status_code=401 | 403 | 498):
                return SettingsError(f"Cohere refuses the key in COHERE_API_KEY (status {error.status_code})")
            case ApiError(status_code=int(status)) if status >= 300:
                message = vendor_message(error.body, key=self._key)
                return RerankerUnavailable(f"Cohere answered with status {status}{message}")
            case TimeoutError() | httpx.TimeoutException():
                return RerankerUnavailable("Cohere did not answer in time")
            case httpx.TransportError():
                return RerankerUnavailable(f"Cohere cannot be reached ({type(error).__name__})")
            case _:
                return RerankerUnavailable("Cohere's answer makes no sense")


class CohereEmbedder:
    """1024 dimensions by default. Cohere's models read passages and questions differently."""

    fitted = False

    def __init__(
        self,
        key: str,
        *,
        key_name: str = "COHERE_API_KEY",
        model: str | None = None,
        dimensions: int | None = None,
        base_url: str | None = None,
        policies: EmbeddingPolicies | None = None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._model = model or VENDORS["cohere"].embedding_model
        known = EMBEDDING_MODELS.get(self._model)
        default = known.dimensions if known else None
        self.dimensions = choose_dimensions(self._model, default=default, configured=dimensions)
        self.model = f"cohere/{self._model}/{self.dimensions}"
        # Models before v4 refuse requests that name the dimensions.
        self._requested_dimensions = self.dimensions if self.dimensions != default else None
        key = checked_key(key, key_name)
        self._calls = EmbeddingCalls(
            VENDORS["cohere"].name,
            rules=_RULES,
            describe=partial(_describe, key=key, key_name=key_name),
            policies=policies or EmbeddingPolicies(),
            now=now,
        )
        self._http = httpx.AsyncClient(timeout=None)  # noqa: S113 (each attempt has a timeout)
        self._client = AsyncClientV2(key, base_url=base_url, httpx_client=self._http)

    async def embed_passages(self, passages: Sequence[Embeddable]) -> list[Embedding]:
        max_texts = VENDORS["cohere"].texts_per_call
        return await self._calls.embed_passages(passages, self._embed_documents, max_texts=max_texts)

    async def embed_query(self, text: str) -> Vector:
        return await self._calls.embed_query(text, self._embed_questions)

    async def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return await self._calls.embed_queries(texts, self._embed_questions)

    async def _embed_documents(self, texts: list[str]) -> Matrix:
        return await self._vectors(texts, "search_document")

    async def _embed_questions(self, texts: list[str]) -> Matrix:
        return await self._vectors(texts, "search_query")

    async def warm(self) -> None:
        pass

    async def close(self) -> None:
        await self._http.aclose()

    async def _vectors(self, texts: list[str], kind: Literal["search_document", "search_query"]) -> Matrix:
        requested = self._requested_dimensions
        extra_body = {} if requested is None else {"output_dimension": requested}
        try:
            response = await self._client.embed(
                model=self._model,
                texts=texts,
                input_type=kind,
                embedding_types=["float"],
                request_options={**_ONE_ATTEMPT, "additional_body_parameters": extra_body},
            )
            rows = _VECTORS.validate_python(response.embeddings.float_)
        except (ApiError, *_MALFORMED) as error:
            if isinstance(error, ApiError) and (error.status_code or 0) >= 300:
                raise
            raise UnusableAnswer("it is not what Cohere documents") from error
        return to_unit_vectors(rows, texts=len(texts), dimensions=self.dimensions)


_VECTORS = TypeAdapter(list[list[float]], config=ConfigDict(strict=True))


def _describe(error: Exception, *, key: str, key_name: str) -> str:
    """What an error means for an embedding."""
    match error:
        case ApiError(status_code=401 | 403 | 498):
            return f"it refuses the key in {key_name} (status {error.status_code})"
        case ApiError(status_code=status):
            return f"status {status}{vendor_message(error.body, key=key)}"
        case _:
            return f"it cannot be reached ({type(error).__name__})"


class _Row(BaseModel):
    model_config = ConfigDict(from_attributes=True, strict=True)

    index: int
    relevance_score: FiniteFloat


class _Results(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    results: list[_Row]


_RESULTS = TypeAdapter(_Results)


def _scores(response: Any, passages: int) -> list[float]:
    """The score of each passage. The SDK does not validate the response; raises ValueError if it is malformed."""
    rows = _RESULTS.validate_python(response).results
    # Cohere answers best first: it promises `index`, not position.
    scores = {row.index: row.relevance_score for row in rows}
    if len(rows) != passages or scores.keys() != set(range(passages)):
        raise ValueError(f"{len(rows)} results for {passages} passages, or not one for each")
    return [scores[number] for number in range(passages)]


def _is_transient(error: Exception) -> bool:
    if isinstance(error, ApiError):
        return is_transient_status(error.status_code or 0)
    return not isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError)


def _is_rate_limit(error: Exception) -> bool:
    return isinstance(error, ApiError) and error.status_code == 429


def _headers(error: Exception) -> Mapping[str, str]:
    return (error.headers or {}) if isinstance(error, ApiError) else {}


_RULES = RetryRules((ApiError, httpx.TransportError), _is_transient, _headers, _is_rate_limit)
