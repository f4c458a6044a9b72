"""Creates the configured engines: one `match` per port. With `home.py`, all that knows both settings and adapters."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import assert_never

from citewell import home
from citewell.adapters.sql import (
    Database,
    SqlEvaluations,
    SqlGaps,
    SqlIngests,
    SqlKeys,
    SqlLibrary,
    SqlProjects,
    SqlSessions,
    SqlUploads,
    check_database_url,
    database_exists,
)
from citewell.adapters.vendors import VENDORS, OpenAiCompatible, VendorId
from citewell.adapters.writer_lock import is_held, writer_lock
from citewell.answer.engines import AnswerEngines
from citewell.answer.retrieval import LocalReranker
from citewell.errors import SettingsError
from citewell.ingest.chunk import ChunkSize
from citewell.ingest.flow import IngestEngines
from citewell.ingest.read_ahead import Recipe
from citewell.ports import (
    Embedder,
    Evaluations,
    Gaps,
    Index,
    IndexBuilder,
    Ingests,
    Keys,
    Library,
    Projects,
    Reader,
    Reranker,
    Sessions,
    Uploads,
    Writer,
)
from citewell.settings import Settings, variable
from citewell.tracing import NoTracer, Tracer

_log = logging.getLogger("citewell.wiring")

_INGEST_STATEMENT_SECONDS = 600.0  # the commit of a large library is one statement, and no reader waits for it


@dataclass(frozen=True, slots=True)
class AnswerResources:
    """What an endpoint needs to answer, and to report its health."""

    engines: AnswerEngines
    library: Library


def check_settings(settings: Settings) -> None:
    """Raise SettingsError for a key, a URL or a package that is missing or invalid; makes no requests."""
    _reranker(settings)
    _embedder(settings)
    _writer(settings)
    check_database_url(home.database_location(settings))


@asynccontextmanager
async def open_for_answers(settings: Settings, *, database_may_fail: bool = False) -> AsyncIterator[AnswerResources]:
    """The engines that answer questions, open until the context ends."""
    reranker, reader, writer = _reranker(settings), _reader(settings), _writer(settings)
    async with (
        _open_embedder(settings) as embedder,
        home.open_database(settings, may_fail=database_may_fail) as database,
    ):
        library = SqlLibrary(database)
        index = _index(settings, embedder, library)
        try:
            engines = AnswerEngines(
                embedder=embedder,
                index=index,
                reranker=reranker,
                reader=reader,
                writer=writer,
                unsupported=settings.unsupported_policy,
                decline_below=settings.decline_below,
                title=settings.title or "",
            )
            yield AnswerResources(engines=engines, library=library)
        finally:
            if writer:
                await writer.close()
            if reader:
                await reader.close()
            await reranker.close()
            await index.close()


@asynccontextmanager
async def open_for_ingest(
    settings: Settings, *, wait: bool, on_wait: Callable[[], None], rebuild: bool = False
) -> AsyncIterator[IngestEngines]:
    """The engines for an ingest, under two locks: of the home folder, and of a database that others may share.

    `rebuild` begins with an empty database where the old one is missing or damaged.
    """
    async with (
        _open_embedder(settings) as embedder,
        writer_lock(settings.home, wait=wait, on_wait=on_wait),
        home.open_database(settings, statement_seconds=_INGEST_STATEMENT_SECONDS, rebuild=rebuild) as database,
        database.sole_writer(wait=wait, on_wait=on_wait),
    ):
        home.remove_leftovers(settings)
        yield _ingest_engines(settings, database, embedder)


def is_ingest_running(settings: Settings) -> bool:
    """Whether a process is ingesting into the home folder."""
    return is_held(settings.home)


@asynccontextmanager
async def open_for_preview(settings: Settings, *, rebuild: bool = False) -> AsyncIterator[IngestEngines]:
    """The engines for a dry run: no lock, and a temporary library if there is none yet, or with `rebuild`."""
    location = home.database_location(settings)
    exists = await database_exists(location) or (isinstance(location, Path) and home.has_index(settings))
    with TemporaryDirectory() as temporary:
        empty = settings.model_copy(update={"home": Path(temporary), "database_url": None})
        async with (
            _open_embedder(settings) as embedder,
            home.open_database(settings if exists and not rebuild else empty) as database,
        ):
            yield _ingest_engines(settings, database, embedder)


@asynccontextmanager
async def open_for_restore(
    settings: Settings, backup: Path, *, overwrite: bool, wait: bool, on_wait: Callable[[], None]
) -> AsyncIterator[tuple[home.StagedBackup, Callable[[], AbstractAsyncContextManager[IngestEngines]]]]:
    """A copy of a backup, and how to open the engines over it, under the writer's lock."""
    async with _open_embedder(settings) as embedder, writer_lock(settings.home, wait=wait, on_wait=on_wait):
        with home.stage_backup(settings, backup, overwrite=overwrite, model=embedder.model) as staged:

            @asynccontextmanager
            async def open_copy() -> AsyncIterator[IngestEngines]:
                async with staged.open(statement_seconds=_INGEST_STATEMENT_SECONDS) as database:
                    yield _ingest_engines(settings, database, embedder)

            yield staged, open_copy


@dataclass(frozen=True, slots=True)
class Stores:
    """What is in the database: the library, and what is stored beside it."""

    library: Library
    sessions: Sessions
    keys: Keys
    uploads: Uploads
    projects: Projects
    gaps: Gaps
    ingests: Ingests
    evaluations: Evaluations


@asynccontextmanager
async def open_stores(settings: Settings, *, database_may_fail: bool = False) -> AsyncIterator[Stores]:
    """The stores only: no model, no index, no lock."""
    async with home.open_database(settings, may_fail=database_may_fail) as database:
        yield Stores(
            library=SqlLibrary(database),
            sessions=SqlSessions(database),
            keys=SqlKeys(database),
            uploads=SqlUploads(database),
            projects=SqlProjects(database),
            gaps=SqlGaps(database),
            ingests=SqlIngests(database),
            evaluations=SqlEvaluations(database),
        )


def _ingest_engines(settings: Settings, database: Database, embedder: Embedder) -> IngestEngines:
    library = SqlLibrary(database)
    return IngestEngines(
        library=library,
        library_writer=library,
        audit=library,
        cache=library,
        embedder=embedder,
        index_builder=_index_builder(settings, embedder),
        ingests=SqlIngests(database),
    )


@asynccontextmanager
async def _open_embedder(settings: Settings) -> AsyncIterator[Embedder]:
    embedder = _embedder(settings)
    try:
        yield embedder
    finally:
        await embedder.close()


def ingest_recipe(settings: Settings, *, base_url: str | None = None, whole_documents: bool = False) -> Recipe:
    """How an ingest reads and chunks files."""
    size = ChunkSize(smallest=settings.chunk_smallest, largest=settings.chunk_largest, overlap=settings.chunk_overlap)
    return Recipe(size=size, base_url=base_url or settings.base_url, whole_documents=whole_documents)


def _embedder(settings: Settings) -> Embedder:
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
                raise _missing_package("CITEWELL_EMBEDDER=cohere needs Cohere's SDK", "cohere") from error
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
                raise _missing_package(f"CITEWELL_EMBEDDER={vendor} needs OpenAI's SDK", "llm") from error
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
        raise _not_set(vendor_setting)
    return None, variable(own_setting)


def _require(settings: Settings, *names: str) -> None:
    """Raise SettingsError for the first of these settings that is not set."""
    for name in names:
        if not getattr(settings, name):
            raise _not_set(name)


def _not_set(name: str) -> SettingsError:
    return SettingsError(f"Required environment variable {variable(name)} not set.")


def _missing_package(problem: str, extra: str) -> SettingsError:
    return SettingsError(f"{problem}; run `pip install 'citewell[{extra}]'`")


def _url(url: object) -> str | None:
    return str(url).rstrip("/") if url else None


def _index(settings: Settings, embedder: Embedder, library: Library) -> Index:
    match settings.index:
        case "qdrant-edge":
            from citewell.adapters.qdrant_edge import QdrantEdgeIndex

            return QdrantEdgeIndex(
                settings.home / "index",
                model=embedder.model,
                dimensions=embedder.dimensions,
                expected_generation=library.generation,
            )
        case never:
            assert_never(never)


def _index_builder(settings: Settings, embedder: Embedder) -> IndexBuilder:
    match settings.index:
        case "qdrant-edge":
            from citewell.adapters.qdrant_edge import QdrantEdgeBuilder

            return QdrantEdgeBuilder(settings.home / "index", model=embedder.model, dimensions=embedder.dimensions)
        case never:
            assert_never(never)


def _reranker(settings: Settings) -> Reranker:
    match settings.reranker:
        case "local":
            return LocalReranker()
        case "cohere":
            if settings.cohere_api_key is None:
                raise _not_set("cohere_api_key")
            try:
                from citewell.adapters.cohere import CohereReranker
            except ModuleNotFoundError as error:
                raise _missing_package("CITEWELL_RERANKER=cohere needs Cohere's SDK", "cohere") from error
            return CohereReranker(
                settings.cohere_api_key.get_secret_value(),
                model=settings.cohere_rerank_model,
                base_url=_url(settings.cohere_base_url),
            )
        case never:
            assert_never(never)


def _reader(settings: Settings) -> Reader | None:
    """The model that reads passages; None if quotes are chosen by their words."""
    match settings.reader:
        case "minilm":
            from citewell.adapters.minilm_reader import MiniLmReader

            return MiniLmReader(threads=settings.threads)
        case "none":
            return None
        case never:
            assert_never(never)


def tracer(settings: Settings) -> Tracer:
    """What sends spans of requests somewhere, if anything does."""
    if settings.tracing == "none":
        return NoTracer()
    try:
        from citewell.adapters.otel import OtlpTracer
    except ModuleNotFoundError as error:
        raise _missing_package("CITEWELL_TRACING=otlp needs OpenTelemetry", "otel") from error
    return OtlpTracer()


def _writer(settings: Settings) -> Writer | None:
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
        missing = _missing_package("an LLM needs the OpenAI Agents SDK", "llm")
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
