"""The library: documents word for word, chunks and embeddings. Databases made before Alembic are this."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "projects",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("name", sa.String, nullable=False, unique=True),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "texts",
        sa.Column("hash", sa.String(64), primary_key=True),
        sa.Column("text", sa.String, nullable=False),
    )
    for documents, chunks in (("documents", "chunks"), ("staged_documents", "staged_chunks")):
        op.create_table(
            documents,
            sa.Column("id", sa.Uuid, primary_key=True),
            sa.Column("project_id", sa.Uuid, nullable=False),
            sa.Column("path", sa.String, nullable=False),
            sa.Column("root", sa.String, nullable=False),
            sa.Column("title", sa.String, nullable=False),
            sa.Column("part", sa.String, nullable=False),
            sa.Column("url", sa.String),
            sa.Column("text_hash", sa.String(64), sa.ForeignKey("texts.hash"), nullable=False, index=True),
            sa.Column("fingerprint", sa.String(64), nullable=False),
            sa.Column("ingested_at", sa.DateTime, nullable=False),
            sa.UniqueConstraint("project_id", "path"),
        )
        op.create_table(
            chunks,
            sa.Column("id", sa.String(64), primary_key=True),
            sa.Column("document_id", sa.Uuid, nullable=False),
            sa.Column("chunk_index", sa.Integer, nullable=False),
            sa.Column("content_hash", sa.String(64), nullable=False),
            sa.Column("embedding_key", sa.String(64), nullable=False, index=True),
            sa.Column("section", sa.String, nullable=False),
            sa.Column("headings", sa.String, nullable=False),
            sa.Column("start", sa.Integer, nullable=False),
            sa.Column("end", sa.Integer, nullable=False),
            sa.Column("first_line", sa.Integer, nullable=False),
            sa.Column("last_line", sa.Integer, nullable=False),
            sa.Column("page", sa.Integer),
            sa.Column("url", sa.String),
            sa.UniqueConstraint("document_id", "chunk_index"),
        )
    op.create_table(
        "embeddings",
        sa.Column("text_hash", sa.String(64), primary_key=True),
        sa.Column("model", sa.String, primary_key=True),
        sa.Column("spans", sa.String, nullable=False),
        sa.Column("vectors", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "facts",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("value", sa.String, nullable=False),
    )
