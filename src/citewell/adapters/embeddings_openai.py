"""Embeddings from OpenAI and servers that speak its protocol: Gemini, Ollama, vLLM, llama.cpp. Uses OpenAI's SDK.

What leaves this machine is each chunk's label and text, and each question.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic

import httpx2
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI, Omit, omit
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from citewell.adapters.vendor_embedding import EmbeddingCalls, EmbeddingPolicies, UnusableAnswer, to_unit_vectors
from citewell.adapters.vendors import (
    EMBEDDING_MODELS,
    VENDORS,
    EmbeddingModel,
    OpenAiCompatible,
    checked_key,
    choose_dimensions,
    vendor_message,
)
from citewell.models import Matrix, Vector
from citewell.ports import Embeddable, Embedding
from citewell.retry import RetryRules, is_transient_status

# The SDK would send the versions of system and Python to everybody, and the account to others than OpenAI.
_VERSION_HEADERS = (
    *("X-Stainless-Lang", "X-Stainless-Package-Version", "X-Stainless-OS", "X-Stainless-Arch", "X-Stainless-Runtime"),
    *("X-Stainless-Runtime-Version", "X-Stainless-Async", "X-Stainless-Retry-Count", "X-Stainless-Read-Timeout"),
)
_ACCOUNT_HEADERS = ("OpenAI-Organization", "OpenAI-Project")


class OpenAiCompatibleEmbedder:
    """As many dimensions as the model has, or as are configured if it can shorten its vectors."""

    fitted = False

    def __init__(
        self,
        vendor: OpenAiCompatible,
        *,
        key: str | None,
        key_name: str = "CITEWELL_EMBEDDING_API_KEY",
        model: str | None = None,
        base_url: str | None = None,
        dimensions: int | None = None,
        policies: EmbeddingPolicies | None = None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        defaults = VENDORS[vendor]
        self._model = model or defaults.embedding_model
        known = EMBEDDING_MODELS.get(self._model.partition(":")[0])  # Ollama's tag names no other model
        default = (known.default_dimensions or known.dimensions) if known else None
        self.dimensions = choose_dimensions(self._model, default=default, configured=dimensions)
        self.model = f"{vendor}/{self._model}/{self.dimensions}"
        self._requested_dimensions = self._dimensions_to_request(vendor, known)
        self._passage_prompt, self._question_prompt = (
            (known.passage_prompt, known.question_prompt) if known else ("", "")
        )
        self._max_texts = defaults.texts_per_call
        key = key and checked_key(key, key_name)
        usual = EmbeddingPolicies.for_slow_server() if defaults.is_slow else EmbeddingPolicies()
        self._calls = EmbeddingCalls(
            defaults.name or "the embedding server",
            rules=_RULES,
            describe=partial(_describe, key=key, key_name=key_name),
            policies=policies or usual,
            now=now,
        )
        self._http = httpx2.AsyncClient(timeout=None)
        self._client = AsyncOpenAI(
            api_key=key or "none",
            base_url=base_url or defaults.base_url,
            max_retries=0,  # `with_retries` does that: it honours Retry-After, and an ingest has more time
            http_client=self._http,
        )
        self._omitted_headers = _omitted_headers(vendor, with_key=key is not None)

    async def embed_passages(self, passages: Sequence[Embeddable]) -> list[Embedding]:
        return await self._calls.embed_passages(passages, self._embed_documents, max_texts=self._max_texts)

    async def embed_query(self, text: str) -> Vector:
        return await self._calls.embed_query(text, self._embed_questions)

    async def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return await self._calls.embed_queries(texts, self._embed_questions)

    async def _embed_documents(self, texts: list[str]) -> Matrix:
        return await self._vectors([self._passage_prompt + text for text in texts])

    async def _embed_questions(self, texts: list[str]) -> Matrix:
        return await self._vectors([self._question_prompt + text for text in texts])

    async def warm(self) -> None:
        pass

    async def close(self) -> None:
        await self._http.aclose()

    async def _vectors(self, texts: list[str]) -> Matrix:
        response = await self._client.embeddings.with_raw_response.create(
            model=self._model,
            input=texts,
            dimensions=self._requested_dimensions or omit,
            encoding_format="float",
            extra_headers=self._omitted_headers,
        )
        return to_unit_vectors(_parse_vectors(response.content), texts=len(texts), dimensions=self.dimensions)

    def _dimensions_to_request(self, vendor: OpenAiCompatible, known: EmbeddingModel | None) -> int | None:
        """What a request names: some servers refuse one that names the dimensions their model has anyway."""
        if known:
            return self.dimensions if self.dimensions != known.dimensions else None
        return self.dimensions if vendor in ("openai", "gemini") else None


def _omitted_headers(vendor: OpenAiCompatible, *, with_key: bool) -> dict[str, Omit]:
    """Headers that the SDK would send, and that we leave out."""
    account = () if vendor == "openai" else _ACCOUNT_HEADERS
    authorization = () if with_key else ("Authorization",)
    return dict.fromkeys((*_VERSION_HEADERS, *account, *authorization), omit)


class _Row(BaseModel):
    model_config = ConfigDict(strict=True)

    embedding: list[float]
    index: int | None = None


class _Response(BaseModel):
    data: list[_Row]


_RESPONSE = TypeAdapter(_Response)


def _parse_vectors(content: bytes) -> list[list[float]]:
    """The vectors in the order of the texts: the protocol promises `index`, not position."""
    try:
        rows = _RESPONSE.validate_json(content).data
    except ValidationError as error:
        raise UnusableAnswer("it is not what OpenAI's protocol says") from error
    by_index = {number if row.index is None else row.index: row.embedding for number, row in enumerate(rows)}
    if by_index.keys() != set(range(len(rows))):
        raise UnusableAnswer("the vectors are not one for each text")
    return [by_index[number] for number in range(len(rows))]


def _describe(error: Exception, *, key: str | None, key_name: str) -> str:
    """What an error of this protocol means."""
    match error:
        case APIStatusError(status_code=401 | 403):
            return f"it refuses the key in {key_name} (status {error.status_code})"
        case APIStatusError(status_code=status):
            return f"status {status}{vendor_message(_unwrapped(error.body), key=key)}"
        case APITimeoutError():
            return "it did not answer in time"
        case _:
            return f"it cannot be reached ({type(error.__cause__ or error).__name__})"


def _unwrapped(body: object) -> object:
    """The error itself: Gemini wraps it in a list."""
    if isinstance(body, list) and body:
        return body[0].get("error") if isinstance(body[0], dict) else None
    return body


def _is_transient(error: Exception) -> bool:
    if isinstance(error, APIStatusError):
        return is_transient_status(error.status_code) and not _is_quota_exhausted(error)
    return True


def _is_rate_limit(error: Exception) -> bool:
    return isinstance(error, APIStatusError) and error.status_code == 429 and not _is_quota_exhausted(error)


def _is_quota_exhausted(error: APIStatusError) -> bool:
    """Whether the account is used up: the same status as a rate limit, but no waiting helps."""
    return error.status_code == 429 and error.code == "insufficient_quota"


def _headers(error: Exception) -> Mapping[str, str]:
    return error.response.headers if isinstance(error, APIStatusError) else {}


_RULES = RetryRules((APIStatusError, APIConnectionError), _is_transient, _headers, _is_rate_limit)
