"""Embeddings from OpenAI and whoever speaks its protocol: Gemini, Ollama, vLLM, llama.cpp. Through OpenAI's SDK.

What leaves this machine is each chunk's label and text, and each question.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Literal

import httpx2
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI, Omit, omit
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from citewell.adapters.vendor_embedding import (
    IN_INGEST,
    Calls,
    UnusableAnswer,
    dimensions_of,
    embed,
    to_unit_vectors,
    truncate_question,
)
from citewell.models import Matrix, Vector
from citewell.ports import Embeddable, Embedding
from citewell.retry import RetryPolicy, checked_key

Provider = Literal["openai", "gemini", "ollama", "custom"]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a provider is, which of its models is taken where none is named, and how many texts a call may bring."""

    name: str
    base_url: str
    model: str
    most: int
    slow: bool = False
    """Whether it may run on somebody's own processor: a window then takes a second or two."""


_PLACES: dict[Provider, _Place] = {
    # OpenAI takes 2,048 texts in a call; what counts is the tokens, and a call that fails is paid for again.
    "openai": _Place("OpenAI", "https://api.openai.com/v1", "text-embedding-3-small", 128),
    "gemini": _Place("Gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-embedding-001", 100),
    "ollama": _Place("Ollama", "http://127.0.0.1:11434/v1", "nomic-embed-text", 8, slow=True),
    "custom": _Place("the embedding server", "", "", 8, slow=True),
}


@dataclass(frozen=True, slots=True)
class _Known:
    """A model as its maker describes it: the length of its vectors, and what it wants to read before a text."""

    dimensions: int
    passage: str = ""
    question: str = ""
    asked_for: int | None = None


_MODELS = {
    "text-embedding-3-small": _Known(1536),
    "text-embedding-3-large": _Known(3072),
    "text-embedding-ada-002": _Known(1536),
    "gemini-embedding-001": _Known(3072, asked_for=768),
    "nomic-embed-text": _Known(768, "search_document: ", "search_query: "),
    "mxbai-embed-large": _Known(1024, question="Represent this sentence for searching relevant passages: "),
    "all-minilm": _Known(384),
    "bge-m3": _Known(1024),
}

# Nobody needs to know which system and which Python this is, nor, but OpenAI, whose account.
_UNTOLD = (
    *("X-Stainless-Lang", "X-Stainless-Package-Version", "X-Stainless-OS", "X-Stainless-Arch", "X-Stainless-Runtime"),
    *("X-Stainless-Runtime-Version", "X-Stainless-Async", "X-Stainless-Retry-Count", "X-Stainless-Read-Timeout"),
)
_ACCOUNT = ("OpenAI-Organization", "OpenAI-Project")


class OpenAiCompatibleEmbedder:
    """As many dimensions as the model has, or as it is asked for where it can give fewer."""

    fitted = False

    def __init__(
        self,
        provider: Provider,
        *,
        key: str | None,
        key_name: str = "CITEWELL_EMBEDDING_API_KEY",
        model: str | None = None,
        base_url: str | None = None,
        dimensions: int | None = None,
        in_ingest: RetryPolicy | None = None,
        for_question: RetryPolicy | None = None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        place = _PLACES[provider]
        self._model = model or place.model
        known = _MODELS.get(self._model.partition(":")[0])  # Ollama's tag is no other model
        own = (known.asked_for or known.dimensions) if known else None
        self.dimensions = dimensions_of(self._model, own=own, wanted=dimensions)
        self.model = f"{provider}/{self._model}/{self.dimensions}"
        self._asked = self._asked_dimensions(provider, known)
        self._passage, self._question = (known.passage, known.question) if known else ("", "")
        self._most = place.most
        self._vendor = _Vendor(place.name, key and checked_key(key, key_name), key_name)
        patience = replace(IN_INGEST, try_seconds=300.0) if place.slow else IN_INGEST
        self._calls = Calls(self._vendor, in_ingest=in_ingest or patience, for_question=for_question, now=now)
        self._http = httpx2.AsyncClient(timeout=None)
        self._client = AsyncOpenAI(
            api_key=self._vendor.key or "none",
            base_url=base_url or place.base_url,
            max_retries=0,  # tried again here, where Retry-After is honoured and an ingest has more time
            http_client=self._http,
        )
        self._left_out = _left_out(provider, with_key=self._vendor.key is not None)

    async def embed_passages(self, passages: Sequence[Embeddable]) -> list[Embedding]:
        async def ask(texts: list[str]) -> Matrix:
            return await self._calls.patiently(lambda: self._vectors([self._passage + one for one in texts]))

        return await embed(passages, most=self._most, ask=ask)

    async def embed_query(self, text: str) -> Vector:
        asked = self._question + truncate_question(text)
        vector: Vector = (await self._calls.briefly(lambda: self._vectors([asked])))[0]
        return vector

    async def embed_queries(self, texts: Sequence[str]) -> Matrix:
        asked = [self._question + truncate_question(text) for text in texts]
        return await self._calls.patiently(lambda: self._vectors(asked))

    async def warm(self) -> None:
        pass

    async def close(self) -> None:
        await self._http.aclose()

    async def _vectors(self, texts: list[str]) -> Matrix:
        answer = await self._client.embeddings.with_raw_response.create(
            model=self._model,
            input=texts,
            dimensions=self._asked or omit,
            encoding_format="float",
            extra_headers=self._left_out,
        )
        return to_unit_vectors(_rows(answer.content), texts=len(texts), dimensions=self.dimensions)

    def _asked_dimensions(self, provider: Provider, known: _Known | None) -> int | None:
        """What the vendor is asked for: some servers refuse a request that names what their model has anyway."""
        if known:
            return self.dimensions if self.dimensions != known.dimensions else None
        return self.dimensions if provider in ("openai", "gemini") else None


def _left_out(provider: Provider, *, with_key: bool) -> dict[str, Omit]:
    """Headers that the SDK would send."""
    names = [*_UNTOLD, *(() if provider == "openai" else _ACCOUNT), *(() if with_key else ("Authorization",))]
    return dict.fromkeys(names, omit)


class _Row(BaseModel):
    model_config = ConfigDict(strict=True)

    embedding: list[float]
    index: int | None = None


class _Answer(BaseModel):
    data: list[_Row]


_ANSWER = TypeAdapter(_Answer)


def _rows(content: bytes) -> list[list[float]]:
    """The vectors in the order of the texts: promised is `index`, not position."""
    try:
        rows = _ANSWER.validate_json(content).data
    except ValidationError as error:
        raise UnusableAnswer("it is not what OpenAI's protocol says") from error
    by_index = {place if row.index is None else row.index: row.embedding for place, row in enumerate(rows)}
    if by_index.keys() != set(range(len(rows))):
        raise UnusableAnswer("the vectors are not one for each text")
    return [by_index[place] for place in range(len(rows))]


class _Vendor:
    """What errors of this protocol mean."""

    faults = (APIStatusError, APIConnectionError)

    def __init__(self, name: str, key: str | None, key_name: str) -> None:
        self.name = name
        self.key = key
        self._key_name = key_name

    def passing(self, error: Exception) -> bool:
        if isinstance(error, APIStatusError):
            return self.limited(error) or error.status_code == 408 or error.status_code >= 500
        return True

    def limited(self, error: Exception) -> bool:
        # An account that is used up gets the same status; no waiting helps it.
        return isinstance(error, APIStatusError) and error.status_code == 429 and error.code != "insufficient_quota"

    def headers(self, error: Exception) -> Mapping[str, str]:
        return error.response.headers if isinstance(error, APIStatusError) else {}

    def says(self, error: Exception) -> str:
        match error:
            case APIStatusError(status_code=401 | 403):
                return f"it refuses the key in {self._key_name} (status {error.status_code})"
            case APIStatusError(status_code=status):
                return f"status {status}{self._message(error.body)}"
            case APITimeoutError():
                return "it did not answer in time"
            case _:
                return f"it cannot be reached ({type(error.__cause__ or error).__name__})"

    def _message(self, body: object) -> str:
        """What the vendor says itself, where it says it as documented; a proxy's page is nobody's message."""
        if isinstance(body, list) and body:  # Gemini's way to wrap an error
            body = body[0].get("error") if isinstance(body[0], dict) else None
        message = body.get("message") if isinstance(body, dict) else None
        if not isinstance(message, str):
            return ""
        return f": {' '.join(message.replace(self.key or '…', '…').split())[:200]}"
