"""The database tables, in `citewell.db` or in PostgreSQL."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    Uuid,
    func,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeEngine, UserDefinedType

from citewell.models import DEFAULT_PROJECT, Project

tables = MetaData()

INDEX_GENERATION = "index_generation"
"""The fact that names the index generation of the library; missing before the first ingest.

Where each project has its own: see `generation_of`.
"""


def generation_of(project: UUID | None, engine: str | None = None) -> str:
    """The fact that names the index generation of a project, or with None of all together.

    With `engine`, of a project in an engine beside others: while an index is moved, several have one.
    """
    if project is None:
        return INDEX_GENERATION
    return f"{INDEX_GENERATION} of {project}" + (f" in {engine}" if engine else "")


class Utc(TypeDecorator[datetime]):
    """A point in time. SQLite drops time zones, so all are stored in UTC and read back as UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class _UncastUuid(UserDefinedType[str]):
    """A UUID that is sent without its type: PostgreSQL takes that of the column."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "UUID"


class SessionId(TypeDecorator[UUID]):
    """A UUID. In PostgreSQL the column may be a text: then another program made the table."""

    impl = Uuid
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(_UncastUuid() if dialect.name == "postgresql" else Uuid())

    def process_bind_param(self, value: UUID | None, dialect: Dialect) -> Any:
        return str(value) if value is not None and dialect.name == "postgresql" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> UUID | None:  # noqa: ARG002
        return None if value is None else value if isinstance(value, UUID) else UUID(str(value))


_Json = JSON().with_variant(JSONB(), "postgresql")

projects = Table(
    "projects",
    tables,
    Column("id", Uuid, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("created_at", Utc, nullable=False),
)
texts = Table("texts", tables, Column("hash", String(64), primary_key=True), Column("text", String, nullable=False))


def _document_columns() -> list[Any]:
    return [
        Column("id", Uuid, primary_key=True),
        Column("project_id", Uuid, nullable=False),
        Column("path", String, nullable=False),
        Column("root", String, nullable=False),
        Column("title", String, nullable=False),
        Column("part", String, nullable=False),
        Column("url", String),
        Column("text_hash", ForeignKey("texts.hash"), nullable=False, index=True),
        Column("fingerprint", String(64), nullable=False),
        Column("ingested_at", Utc, nullable=False),
        UniqueConstraint("project_id", "path"),
    ]


def _chunk_columns() -> list[Any]:
    return [
        Column("id", String(64), primary_key=True),
        Column("document_id", Uuid, nullable=False),
        Column("chunk_index", Integer, nullable=False),
        Column("content_hash", String(64), nullable=False),
        Column("text_hash", String(64), nullable=False, index=True),
        Column("embedding_key", String(64), nullable=False, index=True),
        Column("section", String, nullable=False),
        Column("headings", String, nullable=False),
        Column("start", Integer, nullable=False),
        Column("end", Integer, nullable=False),
        Column("first_line", Integer, nullable=False),
        Column("last_line", Integer, nullable=False),
        Column("page", Integer),
        Column("url", String),
        UniqueConstraint("document_id", "chunk_index"),
    ]


documents = Table("documents", tables, *_document_columns())
chunks = Table("chunks", tables, *_chunk_columns())
# What an ingest has read but not committed yet. Texts are shared: a commit moves small rows only.
staged_documents = Table("staged_documents", tables, *_document_columns())
staged_chunks = Table("staged_chunks", tables, *_chunk_columns())
embeddings = Table(
    "embeddings",
    tables,
    Column("text_hash", String(64), primary_key=True),
    Column("model", String, primary_key=True),
    Column("spans", String, nullable=False),
    Column("vectors", LargeBinary, nullable=False),
)
facts = Table("facts", tables, Column("name", String, primary_key=True), Column("value", String, nullable=False))

# Chunks that are gone: ids and hashes, no text. They tell a citation that is outdated from one that never existed.
past_chunks = Table(
    "past_chunks",
    tables,
    Column("id", String(64), primary_key=True),
    Column("project_id", Uuid, nullable=False, index=True),
    Column("document_id", Uuid, nullable=False),
    Column("chunk_index", Integer, nullable=False),
    Column("text_hash", String(64), nullable=False),
    Column("gone_at", Utc, nullable=False),
)
# The next two have the columns of the contract first, then ours, which have defaults: other programs may write to them.
sessions = Table(
    "sessions",
    tables,
    Column("session_id", SessionId, primary_key=True),
    Column("created_at", Utc, nullable=False, server_default=func.now()),
    Column("last_active", Utc, nullable=False, server_default=func.now()),
    Column("project_id", Uuid, nullable=False, server_default=text(f"'{Project.named(DEFAULT_PROJECT).id.hex}'")),
    Column("owner", String, nullable=False, server_default=text("''")),
)
conversations = Table(
    "conversations",
    tables,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("session_id", ForeignKey("sessions.session_id", ondelete="CASCADE"), nullable=False),
    Column("timestamp", Utc, nullable=False, server_default=func.now()),
    Column("query", Text, nullable=False),
    Column("response", Text, nullable=False),
    Column("sources", _Json, nullable=False, server_default="[]"),
    Column("metadata", _Json, nullable=False, server_default="{}"),
    Column("created_at", Utc, nullable=False, server_default=func.now()),
    Column("complete", Boolean, nullable=False, server_default=true()),
    Column("once", String(64), unique=True),  # a hash of the owner and their Idempotency-Key
    Column("feedback", String, index=True),  # "up" or "down"
)
Index("idx_conversations_session", conversations.c.session_id)
Index("idx_conversations_timestamp", conversations.c.timestamp.desc())
keys = Table(
    "keys",
    tables,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("scope", String, nullable=False),
    Column("project_id", Uuid),
    Column("per_minute", Integer),
    Column("created_at", Utc, nullable=False),
    Column("revoked_at", Utc),
)
uploads = Table(
    "uploads",
    tables,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("path", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("status", String, nullable=False),
    Column("size", Integer, nullable=False),
    Column("content", LargeBinary),
    Column("error", String),
    Column("attempts", Integer, nullable=False),
    Column("created_at", Utc, nullable=False),
    UniqueConstraint("project_id", "path"),
)
gaps = Table(
    "gaps",
    tables,
    Column("project_id", Uuid, primary_key=True),
    Column("hash", String(64), primary_key=True),  # of the normalized question
    Column("question", Text, nullable=False),
    Column("times", Integer, nullable=False),
    Column("first_at", Utc, nullable=False),
    Column("last_at", Utc, nullable=False),
)
Index("idx_gaps_last", gaps.c.project_id, gaps.c.last_at)
ingests = Table(
    "ingests",
    tables,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False, index=True),
    Column("started_at", Utc, nullable=False),
    Column("updated_at", Utc, nullable=False),
    Column("finished_at", Utc),
    Column("stage", String, nullable=False),
    Column("done", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    Column("errors", _Json, nullable=False),
    Column("files_processed", Integer, nullable=False),
    Column("chunks_created", Integer, nullable=False),
    Column("outcome", String, nullable=False),
)
evaluations = Table(
    "evaluations",
    tables,
    Column("project_id", Uuid, primary_key=True),
    Column("at", Utc, nullable=False),
    Column("questions", Integer, nullable=False),
    Column("scores", _Json, nullable=False),
)
# Who may write to a project, or to everything: see `queue/leases.py`. Empty in SQLite.
leases = Table(
    "leases",
    tables,
    Column("name", String, primary_key=True),
    Column("holder", Uuid, nullable=False),
    Column("place", String, nullable=False),
    Column("expires_at", Utc, nullable=False),
)
