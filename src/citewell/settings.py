"""The settings, read once at start from the environment and `.env`. Flows receive values, not settings."""

import logging
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, Field, HttpUrl, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from citewell.errors import SettingsError
from citewell.models import UnsupportedPolicy

_log = logging.getLogger("citewell.settings")

IndexEngine = Literal["embedded", "qdrant", "postgres"]
"""Where the index is."""

_EMBEDDING_SETTINGS = frozenset({"embedding_model", "embedding_base_url", "embedding_api_key", "embedding_dimensions"})
_ORIGIN = re.compile(r"https?://[^/?#@\s]+")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_SEPARATORS = {"cors_origins": ",", "starter_questions": "\n"}
_MAX_TITLE, _MAX_WELCOME, _MAX_QUESTION, _MAX_STARTER_QUESTIONS = 100, 1000, 200, 8


def _unprefixed(name: str) -> AliasChoices:
    """An environment variable without our prefix, as vendors name theirs."""
    return AliasChoices(name)


def _shown_text(text: str, *, most: int) -> str:
    """Text that a page shows; a terminal prints it, too, so it has no control characters but line breaks."""
    if len(text) > most:
        raise ValueError(f"should have at most {most} characters, has {len(text)}")
    if control := _CONTROL.search(text):
        raise ValueError(f"should have no control character such as {control[0]!r}")
    return text


class Settings(BaseSettings):
    """Each setting is an environment variable: `CITEWELL_` and its name in capitals, or the name that a vendor uses."""

    model_config = SettingsConfigDict(
        env_prefix="CITEWELL_",
        env_file=".env",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
    )

    home: Path = Field(Path(".citewell"), description="Folder of the database and the index.")
    host: str = Field("127.0.0.1", description="Address that `citewell serve` listens on.")
    port: int = Field(8000, ge=0, le=65535, description="Port that `citewell serve` listens on; 0 picks a free one.")
    embedder: Literal["minilm", "hashing", "openai", "gemini", "ollama", "cohere", "custom"] = Field(
        "minilm",
        description="Embedding model. `minilm` runs on this machine; `openai`, `gemini`, `cohere`, `ollama`, `custom` "
        "(any server with OpenAI's API) receive chunks and questions. `hashing` is for tests.",
    )
    embedding_model: str | None = Field(
        None,
        description="Name of the vendor's embedding model. Defaults: `text-embedding-3-small` (OpenAI), "
        "`gemini-embedding-001`, `embed-english-v3.0` (Cohere), `nomic-embed-text` (Ollama).",
    )
    embedding_base_url: HttpUrl | None = Field(
        None,
        description="Base URL of the embedding API; required for `custom`, for example `http://127.0.0.1:8080/v1`.",
    )
    embedding_api_key: SecretStr | None = Field(
        None, description="API key for embeddings. Default: the vendor's key below. `custom` may need none."
    )
    embedding_dimensions: int | None = Field(
        None,
        ge=1,
        le=65_536,
        description="Length of the vectors. Required for models that Citewell does not know; OpenAI and Gemini "
        "(default 768) shorten their vectors to it.",
    )
    index: Literal["auto", "embedded", "qdrant", "postgres"] = Field(
        "auto",
        description="Where the index is: `embedded` in the home folder, on a `qdrant` server, or in PostgreSQL with "
        "pgvector (`postgres`, needs `DATABASE_URL`). `auto` is `qdrant` if `QDRANT_URL` is set, else `embedded`.",
    )
    qdrant_collection: str = Field(
        "citewell",
        pattern=r"^[A-Za-z0-9_.-]{1,200}$",
        description="Name of the index on the Qdrant server, an alias of the collection in use. Installations that "
        "share a server need different names.",
    )
    qdrant_shards: int | None = Field(
        None, ge=1, description="Shards of a new collection on the Qdrant server. Default: the server's."
    )
    qdrant_replicas: int | None = Field(
        None,
        ge=1,
        description="Copies of each shard of a new collection. Default: the server's. An ingest waits for all of them.",
    )
    qdrant_quantization: Literal["auto", "none", "int8", "binary"] = Field(
        "auto",
        description="Compresses the vectors that the Qdrant server searches; the best passages are scored by the whole "
        "vectors. `auto` is `int8` above 100,000 chunks.",
    )
    qdrant_on_disk: bool = Field(
        False, description="Keeps the whole vectors of a new collection on the disk of the Qdrant server only."
    )
    reranker: Literal["local", "cohere"] = Field(
        "local", description="Reranker; `cohere` sends the question and the passages to Cohere."
    )
    reader: Literal["minilm", "none"] = Field(
        "minilm",
        description="Model that reads the passages before they are quoted, on this machine. `none` is faster and "
        "chooses quotes by their words.",
    )
    decline_below: float = Field(
        0.3,
        ge=0,
        le=1,
        description="Declines to answer where the probability that the answer is right is below this.",
    )
    cohere_rerank_model: str = Field("rerank-v3.5", description="Cohere's rerank model.")
    cohere_base_url: HttpUrl | None = Field(None, description="Base URL of Cohere's API, for a proxy.")
    llm: Literal["auto", "none", "openai", "gemini", "ollama", "custom"] = Field(
        "auto",
        description="LLM that writes the answers; with `none`, answers are quotes. `auto` is `custom` if "
        "`CITEWELL_LLM_BASE_URL` is set, else the vendor whose key is set, else `none`.",
    )
    llm_base_url: HttpUrl | None = Field(
        None, description="Base URL of the LLM: any server with OpenAI's chat completions API."
    )
    llm_model: str | None = Field(
        None,
        description="Name of the LLM. Defaults: `gpt-5-mini` (OpenAI), `gemini-flash-latest`, `llama3.2` (Ollama).",
    )
    llm_api_key: SecretStr | None = Field(None, description="API key for the LLM. Default: the vendor's key below.")
    llm_context_tokens: int | None = Field(
        None, ge=1024, description="Size of the LLM's context window, in tokens. Default: 8192, for Ollama 4096."
    )
    llm_temperature: float | None = Field(
        None, ge=0, le=2, description="Temperature of the LLM. Default: the vendor's."
    )
    llm_timeout_seconds: float = Field(
        30.0,
        gt=0,
        description="How long the first words of an answer may take in seconds, retries included; then, how long the "
        "LLM may send nothing. Raise it for a model that thinks for long.",
    )
    unsupported: UnsupportedPolicy = Field(
        "fold",
        description="What becomes of an LLM's sentences that no passage supports. `drop` leaves them out. `fold` "
        "leaves them out if the rest answers, otherwise gives them folded below quotations. `show` shows those that "
        "cite a passage, marked.",
    )
    strict: bool = Field(False, description="Old name of `CITEWELL_UNSUPPORTED=drop`, which wins if both are set.")
    threads: int = Field(0, ge=0, description="Threads of the local embedding model; 0 uses every core.")
    chunk_smallest: int = Field(500, description="Minimum size of a chunk in tokens, if its section is as long.")
    chunk_largest: int = Field(800, description="Maximum size of a chunk in tokens; only a code block may be longer.")
    chunk_overlap: int = Field(100, description="Overlap of neighbouring chunks in tokens.")
    base_url: str | None = Field(None, description="URL where the documents are published, for links in citations.")
    title: str | None = Field(
        None,
        description="What your documents are called, on one line. The chat shows it, and a refusal says it: "
        '"This is not covered by Robotics Handbook." It is public.',
    )
    welcome: str | None = Field(
        None, description="Plain text that the chat shows above the first question, instead of its own introduction."
    )
    logo: Path | None = Field(
        None,
        description="Image file for the header of the chat: `.svg`, `.png`, `.jpg`, `.webp` or `.gif`, at most 1 MB. "
        "It is public.",
    )
    starter_questions: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Questions that the chat offers to begin with in the default project, separated by vertical bars "
        "or line breaks, at most 8. Default: questions made from the documents' headings.",
    )
    max_concurrent_requests: int = Field(
        10, ge=1, description="Maximum number of requests at the same time; more get status 429."
    )
    requests_per_minute: int = Field(
        600, ge=1, description="Maximum number of requests per minute with one API key; more get status 429."
    )
    max_upload_bytes: int = Field(50_000_000, ge=1, description="Maximum size of an uploaded file, in bytes.")
    worker: bool = Field(
        True,
        description="Whether `citewell serve` indexes uploads. If not, run `citewell worker --forever` somewhere.",
    )
    cors_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Origins that browsers may send requests from (CORS), separated by commas: `https://docs.example.org`.",
    )
    heartbeat_seconds: float = Field(10.0, gt=0, description="Keep-alive interval of streams, in seconds.")
    client_timeout_seconds: float = Field(30.0, gt=0, description="Closes idle connections after this many seconds.")
    server: str | None = Field(
        None,
        description="URL of a running server that commands use instead of the home folder: `http://127.0.0.1:8000`.",
    )
    api_key: SecretStr | None = Field(None, description="API key that commands send to that server.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Lowest level that is logged.")
    log_format: Literal["json", "text"] = Field("json", description="Log format of `citewell serve`.")
    tracing: Literal["none", "otlp"] = Field(
        "none",
        description="`otlp` sends OpenTelemetry spans of each request to a collector, which the standard variables "
        "`OTEL_…` name. They have no text of questions, answers or documents.",
    )

    gemini_api_key: SecretStr | None = Field(
        None,
        validation_alias=_unprefixed("GEMINI_API_KEY"),
        description="API key for Gemini. If set, Gemini writes the answers.",
    )
    openai_api_key: SecretStr | None = Field(
        None,
        validation_alias=_unprefixed("OPENAI_API_KEY"),
        description="API key for OpenAI. If set, OpenAI writes the answers.",
    )
    cohere_api_key: SecretStr | None = Field(
        None,
        validation_alias=_unprefixed("COHERE_API_KEY"),
        description="API key for Cohere, for `CITEWELL_RERANKER=cohere` and `CITEWELL_EMBEDDER=cohere`.",
    )
    qdrant_url: str | None = Field(
        None,
        validation_alias=_unprefixed("QDRANT_URL"),
        description="URL of a Qdrant server 1.19 or newer, "
        "which then holds the index: `https://qdrant.example.org:6333`. Without a port, 6333.",
    )
    qdrant_api_key: SecretStr | None = Field(
        None, validation_alias=_unprefixed("QDRANT_API_KEY"), description="API key for the Qdrant server."
    )
    database_url: SecretStr | None = Field(
        None,
        validation_alias=_unprefixed("DATABASE_URL"),
        description="URL of a PostgreSQL database: `postgresql://user:password@host/name`. "
        "Default: SQLite in the home folder.",
    )

    @property
    def writes(self) -> Literal["none", "openai", "gemini", "ollama", "custom"]:
        """The vendor of the LLM that writes the answers; "none" if they are quotes."""
        if self.llm != "auto":
            return self.llm
        if self.llm_base_url:
            return "custom"
        return "gemini" if self.gemini_api_key else "openai" if self.openai_api_key else "none"

    @property
    def index_engine(self) -> IndexEngine:
        """The engine of the index, by `index` or by the URL that is set."""
        if self.index != "auto":
            return self.index
        return "qdrant" if self.qdrant_url else "embedded"

    @property
    def unsupported_policy(self) -> UnsupportedPolicy:
        """What becomes of unsupported sentences, by `unsupported` or its old name `strict`."""
        return "drop" if self.strict and "unsupported" not in self.model_fields_set else self.unsupported

    @field_validator("index", mode="before")
    @classmethod
    def _old_name(cls, value: object) -> object:
        return "embedded" if value == "qdrant-edge" else value

    @field_validator("cors_origins", mode="before")
    @classmethod
    def _origins(cls, value: object) -> object:
        origins = tuple(part.strip().rstrip("/") for part in value.split(",")) if isinstance(value, str) else value
        if isinstance(origins, tuple) and (
            invalid := [origin for origin in origins if not _ORIGIN.fullmatch(str(origin))]
        ):
            raise ValueError(f"{invalid[0]!r} is no origin such as https://docs.example.org")
        return origins

    @field_validator("title")
    @classmethod
    def _one_line(cls, value: str | None) -> str | None:
        return _shown_text(" ".join((value or "").split()), most=_MAX_TITLE) or None

    @field_validator("welcome")
    @classmethod
    def _paragraphs(cls, value: str | None) -> str | None:
        return _shown_text("\n".join((value or "").strip().splitlines()), most=_MAX_WELCOME) or None

    @field_validator("starter_questions", mode="before")
    @classmethod
    def _questions(cls, value: object) -> object:
        parts = re.split(r"[|\r\n]+", value) if isinstance(value, str) else value
        if not isinstance(parts, list | tuple):
            return value
        lines = (" ".join(str(part).split()) for part in parts)
        questions = tuple(_shown_text(line, most=_MAX_QUESTION) for line in lines if line)
        if len(questions) > _MAX_STARTER_QUESTIONS:
            raise ValueError(f"should be at most {_MAX_STARTER_QUESTIONS} questions, has {len(questions)}")
        return questions

    def as_environment(self) -> dict[str, str]:
        """The settings as environment variables, to start another process with."""
        environment: dict[str, str] = {}
        for name in self.model_fields_set:
            value = getattr(self, name)
            if isinstance(value, SecretStr):
                value = value.get_secret_value()
            separator = _SEPARATORS.get(name, "")
            environment[variable(name)] = (
                separator.join(value) if isinstance(value, tuple) else "" if value is None else str(value)
            )
        return environment

    def unused(self) -> list[str]:
        """Variables that are set but have no effect: keys and settings of vendors that are not configured."""
        used = {"database_url", f"{self.writes}_api_key"}
        if self.reranker == "cohere":
            used.add("cohere_api_key")
        if self.embedder not in ("minilm", "hashing"):
            used |= {name for name in _EMBEDDING_SETTINGS if name != "embedding_api_key" or self.embedder != "ollama"}
        if self.index_engine == "qdrant":
            used |= {"qdrant_url", "qdrant_api_key"}
        if self.embedding_api_key is None:
            used.add(f"{self.embedder}_api_key")
        optional = [name for name, field in type(self).model_fields.items()
                    if isinstance(field.validation_alias, AliasChoices) or name in _EMBEDDING_SETTINGS]  # fmt: skip
        return [variable(name) for name in optional if getattr(self, name) is not None and name not in used]


def variable(name: str) -> str:
    """The environment variable of a setting."""
    alias = Settings.model_fields[name].validation_alias
    return str(alias.choices[0]) if isinstance(alias, AliasChoices) else f"CITEWELL_{name.upper()}"


def read_settings() -> Settings:
    """The current settings; raises SettingsError with the name and value of an invalid one."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        field = Settings.model_fields.get(name.lower().removeprefix("citewell_"))
        variable_name = (
            name if field is None or field.validation_alias else f"CITEWELL_{name.upper().removeprefix('CITEWELL_')}"
        )
        reason = first["msg"].removeprefix("Value error, ")
        raise SettingsError(f"{variable_name}={first['input']!r}: {reason[0].lower()}{reason[1:]}") from error


def as_markdown() -> str:
    """The page docs/settings.md; `make docs` writes it, and a test compares."""
    rows = []
    for name, field in Settings.model_fields.items():
        default = "" if field.default in (None, ()) else f"`{field.default}`"
        rows.append(f"| `{variable(name)}` | {default} | {field.description} |")
    return "\n".join(
        [
            "# Settings",
            "",
            "Read once at start from environment variables, or from a file `.env` in the current folder.",
            "",
            "| Variable | Default | Description |",
            "| --- | --- | --- |",
            *rows,
            "",
        ]
    )
