"""Creates the embedder, reranker, reader and writer that the settings name: one `match` per port."""

import logging
from typing import assert_never

from citewell.adapters.vendors import VENDORS, OpenAiCompatible, VendorId
from citewell.answer.retrieval import LocalReranker
from citewell.errors import SettingsError
from citewell.ports import Embedder, Reader, Reranker, Writer
from citewell.settings import Settings, variable
from citewell.tracing import NoTracer, Tracer

_log = logging.getLogger("citewell.wiring")


def make_embedder(settings: Settings) -> Embedder:
    match settings.embedder:
        case "minilm":
            from citewell.adapters.minilm import MiniLmEmbedder

            return MiniLmEmbedder(threads=settings.threads)
        case "hashing":
            from citewell.adapters.hashing import HashingEmbedder

            return HashingEmbedder()
        case "cohere":
            key, key_name = _vendor_key(settings, "embedding_api_key", "cohere")
            try:
                from citewell.adapters.cohere import CohereEmbedder
            except ModuleNotFoundError as error:
                raise missing_package("CITEWELL_EMBEDDER=cohere needs Cohere's SDK", "cohere") from error
            return CohereEmbedder(
                key or "",
                key_name=key_name,
                model=settings.embedding_model,
                dimensions=settings.embedding_dimensions,
                base_url=_url(settings.embedding_base_url or settings.cohere_base_url),
            )
        case "openai" | "gemini" | "ollama" | "custom" as vendor:
            key, key_name = _vendor_key(settings, "embedding_api_key", vendor)
            if vendor == "custom":
                _require(settings, "embedding_base_url", "embedding_model")
            try:
                from citewell.adapters.embeddings_openai import OpenAiCompatibleEmbedder
            except ModuleNotFoundError as error:
                raise missing_package(f"CITEWELL_EMBEDDER={vendor} needs OpenAI's SDK", "llm") from error
            return OpenAiCompatibleEmbedder(
                vendor,
                key=key,
                key_name=key_name,
                model=settings.embedding_model,
                dimensions=settings.embedding_dimensions,
                base_url=_url(settings.embedding_base_url),
            )
        case never:
            assert_never(never)


def _vendor_key(settings: Settings, own_setting: str, vendor: VendorId) -> tuple[str | None, str]:
    """The API key for a vendor and the variable that holds it: a setting of ours, else the vendor's own.

    Ollama has no key, and a custom server may need none.
    """
    vendor_setting = VENDORS[vendor].key_setting
    for name in filter(None, (own_setting, vendor_setting)):
        if key := getattr(settings, name):
            return key.get_secret_value(), variable(name)
    if vendor_setting:
        raise not_set(vendor_setting)
    return None, variable(own_setting)


def _require(settings: Settings, *names: str) -> None:
    """Raise SettingsError for the first of these settings that is not set."""
    for name in names:
        if not getattr(settings, name):
            raise not_set(name)


def not_set(name: str) -> SettingsError:
    return SettingsError(f"Required environment variable {variable(name)} not set.")


def missing_package(problem: str, extra: str) -> SettingsError:
    return SettingsError(f"{problem}; run `pip install 'citewell[{extra}]'`")


def _url(url: object) -> str | None:
    return str(url).rstrip("/") if url else None


def make_reranker(settings: Settings) -> Reranker:
    match settings.reranker:
        case "local":
            return LocalReranker()
        case "cohere":
            if settings.cohere_api_key is None:
                raise not_set("cohere_api_key")
            try:
                from citewell.adapters.cohere import CohereReranker
            except ModuleNotFoundError as error:
                raise missing_package("CITEWELL_RERANKER=cohere needs Cohere's SDK", "cohere") from error
            return CohereReranker(
                settings.cohere_api_key.get_secret_value(),
                model=settings.cohere_rerank_model,
                base_url=_url(settings.cohere_base_url),
            )
        case never:
            assert_never(never)


def make_reader(settings: Settings) -> Reader | None:
    """The model that reads passages; None if quotes are chosen by their words."""
    match settings.reader:
        case "minilm":
            from citewell.adapters.minilm_reader import MiniLmReader

            return MiniLmReader(threads=settings.threads)
        case "none":
            return None
        case never:
            assert_never(never)


def make_tracer(settings: Settings) -> Tracer:
    """What sends spans of requests somewhere, if anything does."""
    if settings.tracing == "none":
        return NoTracer()
    try:
        from citewell.adapters.otel import OtlpTracer
    except ModuleNotFoundError as error:
        raise missing_package("CITEWELL_TRACING=otlp needs OpenTelemetry", "otel") from error
    return OtlpTracer()


def make_writer(settings: Settings) -> Writer | None:
    """The LLM that writes the answers; None if answers are quotes."""
    match settings.writes:
        case "none":
            return None
        case "openai" | "gemini" | "ollama":
            return _llm(settings, settings.writes)
        case "custom":
            _require(settings, "llm_base_url", "llm_model")
            return _llm(settings, "custom")
        case never:
            assert_never(never)


def _llm(settings: Settings, vendor: OpenAiCompatible) -> Writer | None:
    """The LLM of a vendor. Without its SDK, a key that merely happens to be set is ignored, with a warning."""
    key, key_name = _vendor_key(settings, "llm_api_key", vendor)
    try:
        from citewell.adapters.llm_openai_agents import AgentsWriter, LlmEndpoint
    except ModuleNotFoundError as error:
        missing = missing_package("an LLM needs the OpenAI Agents SDK", "llm")
        if settings.llm == "auto" and vendor != "custom":
            _log.warning("%s is set, but %s; answers are quotations", key_name, missing)
            return None
        raise missing from error
    defaults = VENDORS[vendor]
    return AgentsWriter(
        LlmEndpoint(
            name=defaults.name or "the LLM server",
            base_url=_url(settings.llm_base_url) or defaults.base_url,
            model=settings.llm_model or defaults.llm_model,
            key=key or "",
            key_name=key_name,
            context_tokens=settings.llm_context_tokens or defaults.context_tokens,
            temperature=settings.llm_temperature,
            counts_reasoning=defaults.counts_reasoning,
            timeout_seconds=settings.llm_timeout_seconds,
        )
    )
