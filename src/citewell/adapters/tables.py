"""The tables of the library: what lies in `citewell.db`."""

from typing import Any

from sqlalchemy import (
    Column,
    DateTime,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    Uuid,
)

tables = MetaData()

projects = Table(
    "projects",
    tables,
    Column("id", Uuid, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("created_at", DateTime, nullable=False),
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
        Column("ingested_at", DateTime, nullable=False),
        UniqueConstraint("project_id", "path"),
    ]


def _chunk_columns() -> list[Any]:
    return [
        Column("id", String(64), primary_key=True),
        Column("document_id", Uuid, nullable=False),
        Column("chunk_index", Integer, nullable=False),
        Column("content_hash", String(64), nullable=False),
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
# What an ingest has read but not entered yet. Texts are shared: entering moves small rows only.
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
