"""What runs today: one `match` per port turns settings into engines. The only room that knows both."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import assert_never

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
    Reranker,
    Sessions,
    Uploads,
    Writer,
)
from citewell.settings import Settings, variable

_log = logging.getLogger("citewell.wiring")

_INGEST_STATEMENT_SECONDS = 600.0  # entering a large library is one statement, and nobody waits for an answer


@dataclass(frozen=True, slots=True)
class AnswerResources:
    """What a door needs to answer, and to say how it feels."""

    engines: AnswerEngines
    library: Library


def check_settings(settings: Settings) -> None:
    """Raise SettingsError for a key, a URL or a package that `reading` will miss; nothing is asked of anybody."""
    _reranker(settings)
    _embedder(settings)
    _writer(settings)
    check_database_url(_database(settings))


@asynccontextmanager
async def open_for_answers(settings: Settings) -> AsyncIterator[AnswerResources]:
    """The engines that answer questions, open while the context lasts."""
    reranker, writer = _reranker(settings), _writer(settings)
    async with _embedding(settings) as embedder, _opened(_database(settings)) as database:
        index = _index(settings, embedder)
        try:
            engines = AnswerEngines(embedder, index, reranker, writer, strict=settings.strict)
            yield AnswerResources(engines, SqlLibrary(database))
        finally:
            if writer:
                await writer.close()
            await reranker.close()
            await index.close()


@asynccontextmanager
async def open_for_ingest(
    settings: Settings, *, wait: bool, on_wait: Callable[[], None]
) -> AsyncIterator[IngestEngines]:
    """The engines that ingest, under the writer's lock: of the home folder, and of a database that others may share."""
    async with (
        _embedding(settings) as embedder,
        writer_lock(settings.home, wait=wait, on_wait=on_wait),
        _opened(_database(settings), statement_seconds=_INGEST_STATEMENT_SECONDS) as database,
        database.sole_writer(wait=wait, on_wait=on_wait),
    ):
        yield _ingest_engines(settings, database, embedder)


def is_ingest_running(settings: Settings) -> bool:
    """Whether anybody ingests into the home folder at this moment."""
    return is_held(settings.home)


@asynccontextmanager
async def open_for_preview(settings: Settings) -> AsyncIterator[IngestEngines]:
    """The same engines for a look ahead: no lock, and where there is no library yet, one that leaves no trace."""
    place = _database(settings)
    with TemporaryDirectory() as nowhere:
        made = await database_exists(place)
        async with (
            _embedding(settings) as embedder,
            _opened(place if made else Path(nowhere, "citewell.db")) as database,
        ):
            yield _ingest_engines(settings, database, embedder)


@dataclass(frozen=True, slots=True)
class Stores:
    """What outlasts a connection beside the library."""

    sessions: Sessions
    keys: Keys
    uploads: Uploads
    projects: Projects
    gaps: Gaps
    ingests: Ingests
    evaluations: Evaluations


@asynccontextmanager
async def open_stores(settings: Settings) -> AsyncIterator[Stores]:
    """Just the database: no model, no index, no lock."""
    async with _opened(_database(settings)) as database:
        yield Stores(
            SqlSessions(database),
            SqlKeys(database),
            SqlUploads(database),
            SqlProjects(database),
            SqlGaps(database),
            SqlIngests(database),
            SqlEvaluations(database),
        )


def _ingest_engines(settings: Settings, database: Database, embedder: Embedder) -> IngestEngines:
    library = SqlLibrary(database)
    shelf, ingests = _shelf(settings, embedder), SqlIngests(database)
    return IngestEngines(library, library, library, library, embedder, shelf, ingests)


@asynccontextmanager
async def _embedding(settings: Settings) -> AsyncIterator[Embedder]:
    embedder = _embedder(settings)
    try:
        yield embedder
    finally:
        await embedder.close()


@asynccontextmanager
async def _opened(place: Path | str, *, statement_seconds: float | None = None) -> AsyncIterator[Database]:
    database = await Database.open(place, statement_seconds=statement_seconds)
    try:
        yield database
    finally:
        await database.close()


def _database(settings: Settings) -> Path | str:
    """Where the database is: a URL, or else a file."""
    return settings.database_url.get_secret_value() if settings.database_url else settings.home / "citewell.db"


def ingest_recipe(settings: Settings, *, base_url: str | None = None) -> Recipe:
    size = ChunkSize(settings.chunk_smallest, settings.chunk_largest, settings.chunk_overlap)
    return Recipe(size=size, base_url=base_url or settings.base_url)


def _embedder(settings: Settings) -> Embedder:
    match settings.embedder:
        case "minilm":
            from citewell.adapters.minilm import MiniLmEmbedder

            return MiniLmEmbedder(threads=settings.threads)
        case "hashing":
            from citewell.adapters.hashing import HashingEmbedder

            return HashingEmbedder()
        case "cohere":
            key, name = _key(settings, "embedding_api_key", settings.embedder)
            try:
                from citewell.adapters.cohere import CohereEmbedder
            except ModuleNotFoundError as error:
                raise _missing("CITEWELL_EMBEDDER=cohere needs Cohere's SDK", "cohere") from error
            return CohereEmbedder(
                key or "",
                key_name=name,
                model=settings.embedding_model,
                dimensions=settings.embedding_dimensions,
                base_url=_text(settings.embedding_base_url or settings.cohere_base_url),
            )
        case "openai" | "gemini" | "ollama" | "custom" as provider:
            key, name = _key(settings, "embedding_api_key", settings.embedder)
            for needed in ("embedding_base_url", "embedding_model") if provider == "custom" else ():
                if not getattr(settings, needed):
                    raise SettingsError(f"Required environment variable {variable(needed)} not set.")
            try:
                from citewell.adapters.embeddings_openai import OpenAiCompatibleEmbedder
            except ModuleNotFoundError as error:
                raise _missing(f"CITEWELL_EMBEDDER={provider} needs OpenAI's SDK", "llm") from error
            return OpenAiCompatibleEmbedder(
                provider,
                key=key,
                key_name=name,
                model=settings.embedding_model,
                dimensions=settings.embedding_dimensions,
                base_url=_text(settings.embedding_base_url),
            )
        case never:
            assert_never(never)


def _key(settings: Settings, name: str, vendor: str) -> tuple[str | None, str]:
    """The key for a vendor and the variable that it stands in; Ollama has none, another server may have none."""
    theirs = f"{vendor}_api_key" if vendor in ("openai", "gemini", "cohere") else None
    for one in (name, *([theirs] if theirs else [])):
        if key := getattr(settings, one):
            return key.get_secret_value(), variable(one)
    if theirs:
        raise SettingsError(f"Required environment variable {variable(theirs)} not set.")
    return None, variable(name)


def _missing(what: str, extra: str) -> SettingsError:
    return SettingsError(f"{what}; run `pip install 'citewell[{extra}]'`")


def _text(url: object) -> str | None:
    return str(url).rstrip("/") if url else None


def _index(settings: Settings, embedder: Embedder) -> Index:
    match settings.index:
        case "qdrant-edge":
            from citewell.adapters.qdrant_edge import QdrantEdgeIndex

            return QdrantEdgeIndex(settings.home / "index", model=embedder.model, dimensions=embedder.dimensions)
        case never:
            assert_never(never)


def _shelf(settings: Settings, embedder: Embedder) -> IndexBuilder:
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
                raise SettingsError("Required environment variable COHERE_API_KEY not set.")
            try:
                from citewell.adapters.cohere import CohereReranker
            except ModuleNotFoundError as error:
                raise _missing("CITEWELL_RERANKER=cohere needs Cohere's SDK", "cohere") from error
            return CohereReranker(
                settings.cohere_api_key.get_secret_value(),
                model=settings.cohere_rerank_model,
                base_url=_text(settings.cohere_base_url),
            )
        case never:
            assert_never(never)


def _writer(settings: Settings) -> Writer | None:
    """Who writes the answers. A key that just happens to be set needs no package: answers are quotations then."""
    vendor = settings.writes
    if vendor == "none":
        return None
    key, name = _key(settings, "llm_api_key", vendor)
    for needed in ("llm_base_url", "llm_model") if vendor == "custom" else ():
        if not getattr(settings, needed):
            raise SettingsError(f"Required environment variable {variable(needed)} not set.")
    try:
        from citewell.adapters.llm_openai_agents import PROVIDERS, AgentsWriter
    except ModuleNotFoundError as error:
        missing = _missing("an LLM needs the OpenAI Agents SDK", "llm")
        if settings.llm == "auto" and vendor != "custom":
            _log.warning("%s is set, but %s; answers are quotations", name, missing)
            return None
        raise missing from error
    usual = PROVIDERS[vendor]
    return AgentsWriter(
        replace(
            usual,
            base_url=_text(settings.llm_base_url) or usual.base_url,
            model=settings.llm_model or usual.model,
            key=key or "",
            key_name=name,
            context_tokens=settings.llm_context_tokens or usual.context_tokens,
            temperature=settings.llm_temperature,
            silent_seconds=settings.llm_timeout_seconds,
        )
    )
