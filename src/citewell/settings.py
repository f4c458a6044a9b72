"""What can be configured, read once at start from the environment and `.env`. Flows receive values, not this."""

import logging
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, Field, HttpUrl, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from citewell.errors import SettingsError

_log = logging.getLogger("citewell.settings")

_EMBEDDING = frozenset({"embedding_model", "embedding_base_url", "embedding_api_key", "embedding_dimensions"})
_ORIGIN = re.compile(r"https?://[^/?#@\s]+")


def _seed_name(name: str) -> AliasChoices:
    """A name that others gave: read as it is, without our prefix."""
    return AliasChoices(name)


class Settings(BaseSettings):
    """Every setting is `CITEWELL_` and its name in capitals; the last few keep the names their vendors gave them."""

    model_config = SettingsConfigDict(
        env_prefix="CITEWELL_",
        env_file=".env",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
    )

    home: Path = Field(Path(".citewell"), description="Where the database and the index lie.")
    host: str = Field("127.0.0.1", description="The address that `citewell serve` listens on.")
    port: int = Field(
        8000, ge=0, le=65535, description="The port that `citewell serve` listens on; 0 takes a free one."
    )
    embedder: Literal["minilm", "hashing", "openai", "gemini", "ollama", "cohere", "custom"] = Field(
        "minilm",
        description="What turns text into vectors. `minilm` runs here; `openai`, `gemini`, `cohere`, `ollama` and "
        "`custom`, any server that speaks OpenAI's protocol, are sent chunks and questions; `hashing` is for tests.",
    )
    embedding_model: str | None = Field(
        None,
        description="The vendor's embedding model: by default `text-embedding-3-small` (OpenAI), "
        "`gemini-embedding-001`, `embed-english-v3.0` (Cohere) or `nomic-embed-text` (Ollama).",
    )
    embedding_base_url: HttpUrl | None = Field(
        None,
        description="Where that vendor is reached, if elsewhere; needed for `custom`, like `http://127.0.0.1:8080/v1`.",
    )
    embedding_api_key: SecretStr | None = Field(
        None, description="The key for embeddings, if another than the vendor's own below; `custom` may need none."
    )
    embedding_dimensions: int | None = Field(
        None,
        ge=1,
        le=65_536,
        description="How long the vectors are: needed for a model that is not known here, and asked of OpenAI and "
        "Gemini (by default 768) where the model could give more.",
    )
    index: Literal["qdrant-edge"] = Field("qdrant-edge", description="What finds passages.")
    reranker: Literal["local", "cohere"] = Field(
        "local", description="What puts passages in order; `cohere` sends question and passages to Cohere."
    )
    cohere_rerank_model: str = Field("rerank-v3.5", description="Cohere's model that ranks passages.")
    cohere_base_url: HttpUrl | None = Field(None, description="Where Cohere is reached, if through a proxy.")
    llm: Literal["auto", "none", "openai", "gemini", "ollama", "custom"] = Field(
        "auto",
        description="Who writes the answers; with `none` they are quotations. `auto` is `custom` with "
        "`CITEWELL_LLM_BASE_URL`, else the vendor whose key is set, else `none`.",
    )
    llm_base_url: HttpUrl | None = Field(
        None, description="Where the LLM is reached: any server that speaks OpenAI's chat completions."
    )
    llm_model: str | None = Field(
        None,
        description="The LLM's model: by default `gpt-5-mini` (OpenAI), `gemini-flash-latest` or `llama3.2` (Ollama).",
    )
    llm_api_key: SecretStr | None = Field(None, description="Key for that server, where it asks for one.")
    llm_context_tokens: int | None = Field(
        None, ge=1024, description="How much the LLM reads and writes at once; by default 8192, and 4096 for Ollama."
    )
    llm_temperature: float | None = Field(None, ge=0, le=2, description="As the LLM takes it; unset is its own.")
    llm_timeout_seconds: float = Field(30.0, gt=0, description="How long the LLM may be silent.")
    strict: bool = Field(False, description="Drop sentences of the LLM that no passage supports, not only mark them.")
    threads: int = Field(0, ge=0, description="Threads for the local embedding model; 0 takes every core.")
    chunk_smallest: int = Field(500, description="Tokens a chunk should have at least, where its section has them.")
    chunk_largest: int = Field(800, description="Tokens a chunk has at most; only a code block may be longer.")
    chunk_overlap: int = Field(100, description="Tokens that neighbouring chunks of a section share.")
    base_url: str | None = Field(None, description="Where the documents are published, for links in citations.")
    max_concurrent_requests: int = Field(10, ge=1, description="Requests answered at once; more get 429.")
    requests_per_minute: int = Field(600, ge=1, description="Requests a minute with one key; more get 429.")
    max_upload_bytes: int = Field(50_000_000, ge=1, description="The largest file that can be uploaded.")
    cors_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Sites whose pages may ask, as origins (`https://docs.example.org`), separated by commas."
    )
    heartbeat_seconds: float = Field(10.0, gt=0, description="A stream in which nothing is said beats this often.")
    client_timeout_seconds: float = Field(
        30.0, gt=0, description="A client that sends or takes nothing for so long is let go."
    )
    server: str | None = Field(
        None, description="A running server that commands ask instead of the home folder, like `http://127.0.0.1:8000`."
    )
    api_key: SecretStr | None = Field(None, description="The key that commands show to that server.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="The least that is logged.")
    log_format: Literal["json", "text"] = Field("json", description="How `citewell serve` logs.")

    gemini_api_key: SecretStr | None = Field(
        None,
        validation_alias=_seed_name("GEMINI_API_KEY"),
        description="Key for Gemini; with it, Gemini writes the answers.",
    )
    openai_api_key: SecretStr | None = Field(
        None,
        validation_alias=_seed_name("OPENAI_API_KEY"),
        description="Key for OpenAI; with it, OpenAI writes the answers.",
    )
    cohere_api_key: SecretStr | None = Field(
        None,
        validation_alias=_seed_name("COHERE_API_KEY"),
        description="Key for Cohere, for `CITEWELL_RERANKER=cohere` and `CITEWELL_EMBEDDER=cohere`.",
    )
    qdrant_url: str | None = Field(
        None, validation_alias=_seed_name("QDRANT_URL"), description="A Qdrant server. Not used yet."
    )
    qdrant_api_key: SecretStr | None = Field(
        None, validation_alias=_seed_name("QDRANT_API_KEY"), description="Key for that server. Not used yet."
    )
    database_url: SecretStr | None = Field(
        None,
        validation_alias=_seed_name("DATABASE_URL"),
        description="A PostgreSQL database, `postgresql://user:password@host/name`, instead of SQLite.",
    )

    @property
    def writes(self) -> Literal["none", "openai", "gemini", "ollama", "custom"]:
        """Who writes the answers."""
        if self.llm != "auto":
            return self.llm
        if self.llm_base_url:
            return "custom"
        return "gemini" if self.gemini_api_key else "openai" if self.openai_api_key else "none"

    @field_validator("cors_origins", mode="before")
    @classmethod
    def _origins(cls, value: object) -> object:
        origins = tuple(part.strip().rstrip("/") for part in value.split(",")) if isinstance(value, str) else value
        if isinstance(origins, tuple) and (wrong := [one for one in origins if not _ORIGIN.fullmatch(str(one))]):
            raise ValueError(f"{wrong[0]!r} is no origin such as https://docs.example.org")
        return origins

    def as_environment(self) -> dict[str, str]:
        """The same settings as variables, for a process that is started with them."""
        said: dict[str, str] = {}
        for name in self.model_fields_set:
            value = getattr(self, name)
            if isinstance(value, SecretStr):
                value = value.get_secret_value()
            said[variable(name)] = ",".join(value) if isinstance(value, tuple) else "" if value is None else str(value)
        return said

    def unused(self) -> list[str]:
        """What is set, and nothing that is configured uses: names that others gave, and what is a vendor's alone."""
        used = {"database_url", f"{self.writes}_api_key"}
        if self.reranker == "cohere":
            used.add("cohere_api_key")
        if self.embedder not in ("minilm", "hashing"):
            used |= {one for one in _EMBEDDING if one != "embedding_api_key" or self.embedder != "ollama"}
        if self.embedding_api_key is None:
            used.add(f"{self.embedder}_api_key")
        optional = [name for name, field in type(self).model_fields.items()
                    if isinstance(field.validation_alias, AliasChoices) or name in _EMBEDDING]  # fmt: skip
        return [variable(name) for name in optional if getattr(self, name) is not None and name not in used]


def variable(name: str) -> str:
    """The environment variable of a setting."""
    alias = Settings.model_fields[name].validation_alias
    return str(alias.choices[0]) if isinstance(alias, AliasChoices) else f"CITEWELL_{name.upper()}"


def read_settings() -> Settings:
    """The settings in force; a wrong one is named with its value and what would be right."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        field = Settings.model_fields.get(name.lower().removeprefix("citewell_"))
        shown = (
            name if field is None or field.validation_alias else f"CITEWELL_{name.upper().removeprefix('CITEWELL_')}"
        )
        raise SettingsError(f"{shown}={first['input']!r}: {first['msg'][0].lower()}{first['msg'][1:]}") from error


def as_markdown() -> str:
    """The page docs/settings.md; `make docs` writes it and a test compares."""
    rows = []
    for name, field in Settings.model_fields.items():
        default = "" if field.default in (None, ()) else f"`{field.default}`"
        rows.append(f"| `{variable(name)}` | {default} | {field.description} |")
    return "\n".join(
        [
            "# Settings",
            "",
            "Read once at start from the environment, else from a file `.env` in the folder you run in.",
            "",
            "| variable | default | what it is |",
            "| --- | --- | --- |",
            *rows,
            "",
        ]
    )
