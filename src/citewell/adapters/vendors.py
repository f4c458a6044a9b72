"""The vendors of LLMs and embeddings: URLs, default models, limits, and what every request to one needs.

A new vendor is a row in `VENDORS`; if it does not speak OpenAI's protocol, also an adapter. Makes no requests.
"""

from dataclasses import dataclass
from typing import Literal

from citewell.errors import SettingsError

OpenAiCompatible = Literal["openai", "gemini", "ollama", "custom"]
"""Vendors that speak OpenAI's protocol. `custom` is any server, reached by its configured URL."""

VendorId = Literal["openai", "gemini", "ollama", "custom", "cohere"]


@dataclass(frozen=True, slots=True)
class Vendor:
    """What is known of a vendor. A field is empty if the vendor has no such thing, or it must be configured."""

    name: str
    base_url: str = ""
    key_setting: str | None = None
    """The setting with the vendor's API key."""
    llm_model: str = ""
    context_tokens: int = 8192
    counts_reasoning: bool = False
    """Whether reasoning counts as output, so that a limit on the answer's tokens could leave no answer."""
    embedding_model: str = ""
    texts_per_call: int = 8
    is_slow: bool = False
    """Whether it may run on the operator's own CPU: embedding a window then takes a second or two."""
    rerank_model: str = ""


VENDORS: dict[VendorId, Vendor] = {
    "openai": Vendor(
        "OpenAI",
        base_url="https://api.openai.com/v1",
        key_setting="openai_api_key",
        llm_model="gpt-5-mini",
        counts_reasoning=True,
        embedding_model="text-embedding-3-small",
        # OpenAI accepts 2,048 texts; what counts is the tokens, and a call that fails is paid for again.
        texts_per_call=128,
    ),
    "gemini": Vendor(
        "Gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_setting="gemini_api_key",
        llm_model="gemini-flash-latest",
        counts_reasoning=True,
        embedding_model="gemini-embedding-001",
        texts_per_call=100,
    ),
    "ollama": Vendor(
        "Ollama",
        base_url="http://127.0.0.1:11434/v1",
        llm_model="llama3.2",
        context_tokens=4096,
        embedding_model="nomic-embed-text",
        is_slow=True,
    ),
    "custom": Vendor("", is_slow=True),
    "cohere": Vendor(
        "Cohere",
        key_setting="cohere_api_key",
        embedding_model="embed-english-v3.0",
        texts_per_call=96,
        rerank_model="rerank-v3.5",
    ),
}


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A model as its maker documents it: the length of its vectors, and the prompts it expects before a text."""

    dimensions: int
    passage_prompt: str = ""
    question_prompt: str = ""
    default_dimensions: int | None = None
    """How many dimensions we request where the model can shorten its vectors; None means all."""


EMBEDDING_MODELS = {
    "text-embedding-3-small": EmbeddingModel(1536),
    "text-embedding-3-large": EmbeddingModel(3072),
    "text-embedding-ada-002": EmbeddingModel(1536),
    "gemini-embedding-001": EmbeddingModel(3072, default_dimensions=768),
    "nomic-embed-text": EmbeddingModel(768, "search_document: ", "search_query: "),
    "mxbai-embed-large": EmbeddingModel(
        1024, question_prompt="Represent this sentence for searching relevant passages: "
    ),
    "all-minilm": EmbeddingModel(384),
    "bge-m3": EmbeddingModel(1024),
    "embed-english-v3.0": EmbeddingModel(1024),
    "embed-multilingual-v3.0": EmbeddingModel(1024),
    "embed-english-light-v3.0": EmbeddingModel(384),
    "embed-multilingual-light-v3.0": EmbeddingModel(384),
    "embed-v4.0": EmbeddingModel(1536),
}


def choose_dimensions(model: str, *, default: int | None, configured: int | None) -> int:
    """The length of the model's vectors; raises SettingsError if it is neither configured nor known."""
    dimensions = configured or default
    if dimensions is None:
        raise SettingsError(
            f"how many dimensions the embedding model {model} has is not known here; set CITEWELL_EMBEDDING_DIMENSIONS"
        )
    return dimensions


def checked_key(key: str, variable: str) -> str:
    """The API key without surrounding spaces; raises SettingsError, which does not show it, if it cannot be one."""
    key = key.strip()
    if not key or not all("!" <= character <= "~" for character in key):
        raise SettingsError(f"{variable} is no key: it is blank or has characters that no key has")
    return key


def vendor_message(body: object, *, key: str | None) -> str:
    """The `message` in a vendor's error response, shortened and without the key, as `: …`; "" if there is none.

    A proxy's HTML page has no message.
    """
    message = body.get("message") if isinstance(body, dict) else None
    if not isinstance(message, str):
        return ""
    without_key = message.replace(key, "…") if key else message
    return f": {' '.join(without_key.split())[:200]}"
