"""Copies the content of one database into another, SQLite or PostgreSQL, and compares what arrived row by row."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Column, Table, delete, func, insert, select, text
from sqlalchemy.exc import DataError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from citewell.adapters.sql import tables
from citewell.adapters.sql.database import Database
from citewell.errors import MigrationError

_CONTENT = (
    *(tables.documents, tables.sessions, tables.conversations, tables.keys),
    *(tables.uploads, tables.gaps, tables.evaluations),
)
# A lease is the right of a running process to write, the one that copies included.
_TABLES = [table for table in tables.tables.sorted_tables if table is not tables.leases]
_ROWS = 500  # read and written together
_FEW_ROWS = {"uploads": 1, "texts": 20, "embeddings": 100}  # a row may be a file, a book, or the vectors of a chunk
# What another program's tables may leave out, and ours may not.
_EMPTY: dict[str, object] = {"query": "", "response": "", "sources": [], "metadata": {}}

Progress = Callable[[int, int], None]


async def copy_database(
    source: Database, target: Database, *, overwrite: bool, copying: Progress, checking: Progress
) -> dict[str, int]:
    """Make a snapshot of the source the content of the target, in one transaction; returns the rows of each table.

    Raises MigrationError, and changes nothing, where the target has content and may not be overwritten, or where a
    row does not arrive as it was. Servers may write to the source meanwhile; what they write is not in the snapshot.
    """
    async with source.reading() as reader, target.writing() as writer:
        if source.dialect == "postgresql":
            await reader.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
        if not overwrite and await _has_content(writer):
            raise MigrationError(
                "the target has documents or conversations already; replace them with --force (in PostgreSQL they are "
                "deleted, a SQLite file is kept under another name)"
            )
        await _empty(writer)
        counts = {table: await _count(reader, table) for table in _TABLES}
        copied, checked = _Counter(copying, sum(counts.values())), _Counter(checking, sum(counts.values()))
        digests = {table: await _copy(table, reader, writer, copied) for table in counts}
        for table, digest in digests.items():
            if await _digest_of(table, writer, checked) != digest:
                raise MigrationError(f"the table {table.name} did not arrive as it was; nothing was changed")
    return {table.name: digest.rows for table, digest in digests.items()}


class _Counter:
    """Counts rows for a progress bar."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def add(self, rows: int) -> None:
        self._done += rows
        self._progress(self._done, self._total)


@dataclass(slots=True)
class _Digest:
    """How many rows, and the sum of their hashes: the same in whatever order they come."""

    rows: int = 0
    sum: int = 0

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for row in rows:
            line = json.dumps([_canonical(value) for value in row.values()], sort_keys=True)
            self.sum += int.from_bytes(hashlib.sha256(line.encode("utf-8", "surrogatepass")).digest(), "big")
        self.rows += len(rows)


def _canonical(value: Any) -> Any:
    """A value as JSON, the same from either engine: PostgreSQL writes numbers in JSON its own way."""
    match value:
        case bytes():
            return hashlib.sha256(value).hexdigest()
        case datetime():
            return value.astimezone(UTC).isoformat()
        case UUID():
            return str(value)
        case dict():
            return {key: _canonical(inner) for key, inner in value.items()}
        case list():
            return [_canonical(inner) for inner in value]
        case _:
            return int(value) if isinstance(value, float) and value.is_integer() else value


async def _has_content(connection: AsyncConnection) -> bool:
    return any([await connection.scalar(select(1).select_from(table).limit(1)) for table in _CONTENT])


async def _empty(connection: AsyncConnection) -> None:
    for table in reversed(_TABLES):
        await connection.execute(delete(table))


async def _count(connection: AsyncConnection, table: Table) -> int:
    return await connection.scalar(select(func.count()).select_from(table)) or 0


async def _copy(table: Table, reader: AsyncConnection, writer: AsyncConnection, counter: _Counter) -> _Digest:
    digest = _Digest()
    rows = await reader.stream(select(*_columns(table)).order_by(*_order(table)), execution_options=_batches(table))
    async for batch in rows.partitions():
        values = [_completed(table, dict(row._mapping)) for row in batch]
        try:
            await writer.execute(insert(table), values)
        except (IntegrityError, DataError) as error:
            reason = " ".join(str(error.orig).split())
            raise MigrationError(f"a row of the table {table.name} cannot be stored there: {reason}") from error
        digest.add(values)
        counter.add(len(values))
    return digest


async def _digest_of(table: Table, connection: AsyncConnection, counter: _Counter) -> _Digest:
    digest = _Digest()
    rows = await connection.stream(select(*_columns(table)), execution_options=_batches(table))
    async for batch in rows.partitions():
        digest.add([dict(row._mapping) for row in batch])
        counter.add(len(batch))
    return digest


def _columns(table: Table) -> list[Column[Any]]:
    """All but the number of an exchange: the target counts on from its own, and nothing refers to it."""
    return [column for column in table.c if column is not tables.conversations.c.id]


def _order(table: Table) -> list[Column[Any]]:
    return [tables.conversations.c.timestamp, tables.conversations.c.id] if table is tables.conversations else []


def _batches(table: Table) -> dict[str, int]:
    return {"yield_per": _FEW_ROWS.get(table.name, _ROWS)}


def _completed(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    """The row with a value wherever our tables need one; another program's have null in places."""
    for name, value in row.items():
        if value is None and not table.c[name].nullable:
            if isinstance(table.c[name].type, tables.Utc):
                row[name] = next((time for time in row.values() if isinstance(time, datetime)), datetime.now(UTC))
            elif name in _EMPTY:
                row[name] = _EMPTY[name]
    return row
