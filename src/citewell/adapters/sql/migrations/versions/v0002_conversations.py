"""Conversations, keys and uploads; chunks are known by their text, also when they are gone; moments have a zone."""

import hashlib

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"

_MOMENT = sa.DateTime(timezone=True)
_JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    _give_moments_a_zone()
    for documents, chunks in (("documents", "chunks"), ("staged_documents", "staged_chunks")):
        op.add_column(chunks, sa.Column("text_hash", sa.String(64)))
        _hash_texts(documents, chunks)
        with op.batch_alter_table(chunks) as table:
            table.alter_column("text_hash", existing_type=sa.String(64), nullable=False)
        op.create_index(f"ix_{chunks}_text_hash", chunks, ["text_hash"])
    op.create_table(
        "past_chunks",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("project_id", sa.Uuid, nullable=False, index=True),
        sa.Column("document_id", sa.Uuid, nullable=False),
        sa.Column("chunk_index", sa.Integer, nullable=False),
        sa.Column("text_hash", sa.String(64), nullable=False),
        sa.Column("gone_at", _MOMENT, nullable=False),
    )
    _create_conversations()
    op.create_table(
        "keys",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("scope", sa.String, nullable=False),
        sa.Column("project_id", sa.Uuid),
        sa.Column("per_minute", sa.Integer),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("revoked_at", _MOMENT),
    )
    op.create_table(
        "uploads",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("project_id", sa.Uuid, nullable=False),
        sa.Column("path", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("content", sa.LargeBinary),
        sa.Column("error", sa.String),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.UniqueConstraint("project_id", "path"),
    )


def _give_moments_a_zone() -> None:
    if op.get_bind().dialect.name == "sqlite":
        return  # it keeps them as text, and they always were in UTC
    for table, column in (
        ("projects", "created_at"),
        ("documents", "ingested_at"),
        ("staged_documents", "ingested_at"),
    ):
        op.alter_column(table, column, type_=_MOMENT, postgresql_using=f"{column} AT TIME ZONE 'UTC'")


def _hash_texts(documents: str, chunks: str) -> None:
    """A chunk's text is a stretch of its document's. One without a document is a fault, left to `citewell doctor`."""
    bind = op.get_bind()
    document = sa.table(documents, sa.column("id", sa.Uuid), sa.column("text_hash"))
    chunk = sa.table(
        chunks,
        sa.column("id"),
        sa.column("document_id", sa.Uuid),
        sa.column("start"),
        sa.column("end"),
        sa.column("text_hash"),
    )
    text = sa.table("texts", sa.column("hash"), sa.column("text"))
    bind.execute(chunk.update().values(text_hash=""))
    store = chunk.update().where(chunk.c.id == sa.bindparam("chunk")).values(text_hash=sa.bindparam("made"))
    for one in bind.execute(sa.select(document)).all():
        words = bind.scalar(sa.select(text.c.text).where(text.c.hash == one.text_hash)) or ""
        made = [
            {"chunk": row.id, "made": hashlib.sha256(words[row.start : row.end].encode()).hexdigest()}
            for row in bind.execute(sa.select(chunk).where(chunk.c.document_id == one.id))
        ]
        if made:
            bind.execute(store, made)


def _create_conversations() -> None:
    """Another program may have made these tables, by the same contract; `v0004_adopted_tables` adds what they lack."""
    op.create_table(
        "sessions",
        sa.Column("session_id", sa.Uuid, primary_key=True),
        sa.Column("created_at", _MOMENT, nullable=False, server_default=sa.func.now()),
        sa.Column("last_active", _MOMENT, nullable=False, server_default=sa.func.now()),
        sa.Column("project_id", sa.Uuid, nullable=False),
        sa.Column("owner", sa.String, nullable=False, server_default=sa.text("''")),
        if_not_exists=True,
    )
    op.create_table(
        "conversations",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("session_id", sa.Uuid, sa.ForeignKey("sessions.session_id", ondelete="CASCADE"), nullable=False),
        sa.Column("timestamp", _MOMENT, nullable=False, server_default=sa.func.now()),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("response", sa.Text, nullable=False),
        sa.Column("sources", _JSON, nullable=False, server_default="[]"),
        sa.Column("metadata", _JSON, nullable=False, server_default="{}"),
        sa.Column("created_at", _MOMENT, nullable=False, server_default=sa.func.now()),
        sa.Column("complete", sa.Boolean, nullable=False),
        sa.Column("once", sa.String(64), unique=True),
        if_not_exists=True,
    )
    newest_first = [sa.text("timestamp DESC")]
    op.create_index("idx_conversations_session", "conversations", ["session_id"], if_not_exists=True)
    op.create_index("idx_conversations_timestamp", "conversations", newest_first, if_not_exists=True)
