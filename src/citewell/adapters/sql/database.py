"""Connections and transactions: SQLite in a file, or PostgreSQL by its URL. Knows no tables.

database = await Database.open(home / "citewell.db")        # or "postgresql://…"
async with database.reading() as connection: ...            # a consistent snapshot, blocks nobody
async with database.writing() as connection: ...            # a transaction; committed at the end
"""

import asyncio
import logging
import os
import re
import shutil
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from anyio import CancelScope
from sqlalchemy import Table, event, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from citewell.adapters.sql import schema, sqlite_file
from citewell.adapters.sql.engine import BEGIN, TIMEOUT_SECONDS, make_engine
from citewell.errors import DatabaseUnusable, StoreUnavailable

_log = logging.getLogger("citewell.database")

T = TypeVar("T")

_CANCEL_SECONDS = 0.5
_WRITE_QUEUE_SECONDS = 15.0  # behind other writers of this process; long queues are no fault of the database

_NO_ROOM_BYTES = 1_000_000
_FAILURES = (DBAPIError, PoolTimeout, OSError)  # a TimeoutError is an OSError
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_MIGRATION_SECONDS = 600.0


def _never() -> bool:
    return False


class Database:
    """An engine that recovers by itself when its server does, or when its file is replaced.

    Every failure is a StoreUnavailable. `expects_documents` says whether an index of the documents exists: then a
    SQLite file that is missing or empty is an error, and not a new library.
    """

    def __init__(
        self,
        location: Path | str,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        statement_seconds: float | None = None,
        expects_documents: Callable[[], bool] = _never,
    ) -> None:
        self._location = location
        self._expects_documents = expects_documents
        self._timeout_seconds = timeout_seconds
        self._engine = make_engine(
            location, timeout_seconds=timeout_seconds, statement_seconds=statement_seconds or timeout_seconds
        )
        self.dialect = self._engine.dialect.name
        self.fence: Callable[[AsyncConnection], Awaitable[None]] | None = None
        """What every transaction that writes begins with, where only one process may write."""
        self._writer = self._engine.execution_options(**{BEGIN: "BEGIN IMMEDIATE"})
        self._autocommit = self._engine.execution_options(
            **{BEGIN: None} if self.dialect == "sqlite" else {"isolation_level": "AUTOCOMMIT"}
        )
        # SQLite has one writer at a time and its busy handler is not fair: with ten writers at once some would starve
        # for the whole timeout. The writers of this process queue here instead.
        self._write_queue = asyncio.Semaphore(1 if self.dialect == "sqlite" else 1000)
        self._in_use: set[asyncio.Future[Any]] = set()
        self._file = location if isinstance(location, Path) else None
        self._file_identity: object = None
        self._checked = False
        self._checking: asyncio.Task[None] | None = None
        self._damage: str | None = None

    @classmethod
    async def open(
        cls,
        location: Path | str,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        statement_seconds: float | None = None,
        expects_documents: Callable[[], bool] = _never,
        may_fail: bool = False,
    ) -> "Database":
        """Open the database and create its tables; errors name the database, so they are for operators only.

        Connecting may take `timeout_seconds`, and so may each statement, unless `statement_seconds` says otherwise.
        With `may_fail`, a database that cannot be used now is opened when it can: until then every use of it fails.
        """
        database = cls(
            location,
            timeout_seconds=timeout_seconds,
            statement_seconds=statement_seconds,
            expects_documents=expects_documents,
        )
        try:
            await database._check()
        except (*_FAILURES, sqlite3.Error, StoreUnavailable) as error:
            if may_fail:
                return database
            await database.close()
            raise _cannot_open(location, error) from error
        return database

    async def has_tables(self) -> bool:
        """Whether there is a library in it; creates nothing. Raises the driver's own exceptions."""
        async with self._connection(self._engine) as connection:
            return await connection.run_sync(schema.version) is not None

    async def has_documents(self) -> bool:
        """Whether an ingest was ever committed."""
        async with self.reading() as connection:
            return await connection.run_sync(schema.has_documents)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A snapshot of the database for reading (PostgreSQL: one for each statement)."""
        async with self._connected(self._engine) as connection:
            yield connection

    @asynccontextmanager
    async def writing(self, *, fenced: bool = True) -> AsyncIterator[AsyncConnection]:
        """A transaction that reads and writes, committed unless an error leaves the block.

        On SQLite nobody else writes meanwhile; on PostgreSQL lock what you read with `with_for_update()`. It begins
        with the `fence`, if there is one and unless it is not `fenced`.
        """
        with self._translated_errors():
            async with asyncio.timeout(_WRITE_QUEUE_SECONDS):
                await self._write_queue.acquire()
        try:
            async with self._connected(self._writer) as connection:
                await connection.begin()
                if fenced and self.fence:
                    await self.fence(connection)
                yield connection
                await connection.commit()
        finally:
            self._write_queue.release()

    @asynccontextmanager
    async def outside_transactions(self) -> AsyncIterator[AsyncConnection]:
        """For statements that cannot run in a transaction, such as VACUUM."""
        async with self._connected(self._autocommit) as connection:
            yield connection

    def insert(self, table: Table) -> "sqlite.Insert | postgresql.Insert":
        """An INSERT that has `on_conflict_do_nothing()` and `on_conflict_do_update(…)`."""
        return sqlite.insert(table) if self.dialect == "sqlite" else postgresql.insert(table)

    async def close(self) -> None:
        """Close every connection, including those that a cancelled request still holds."""
        now = asyncio.get_running_loop().time
        deadline = now() + self._timeout_seconds
        while self._in_use and (remaining := deadline - now()) > 0:
            await asyncio.wait(set(self._in_use), timeout=remaining)
        await self._engine.dispose()

    @contextmanager
    def _counted_as_used(self) -> Iterator[None]:
        """Make `close` wait while a connection is opened, used or returned."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._in_use.add(done)
        try:
            yield
        finally:
            self._in_use.discard(done)
            done.cancel()

    def _tracked_task(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """A task that `close` waits for: its caller may be cancelled before it is done."""
        task = asyncio.create_task(work)
        self._in_use.add(task)
        task.add_done_callback(self._in_use.discard)
        return task

    @asynccontextmanager
    async def _connected(self, engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
        # A web framework cancels a request by interrupting every await, and then drivers cannot clean up. What happens
        # here is short and has timeouts, so it runs to its end.
        with CancelScope(shield=True), self._translated_errors(), self._counted_as_used():
            await self._ensure_checked()
            async with self._connection(engine) as connection:
                yield connection

    @asynccontextmanager
    async def _connection(self, engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
        connection = await self._connect(engine)
        broken = False
        try:
            yield connection
        except (TimeoutError, asyncio.CancelledError):
            # The server may hang, and a rollback would wait for it again.
            broken = True
            raise
        finally:
            await asyncio.shield(self._tracked_task(_give_back(connection, broken=broken)))

    async def _ensure_checked(self) -> None:
        """Check the tables before the first use, and again when another file has taken the place of the old one."""
        if self._file and sqlite_file.identity(self._file) != self._file_identity:
            self._checked, self._damage = False, None
        if self._damage:
            raise DatabaseUnusable(self._damage)
        if self._checked:
            return
        if self._checking is None or self._checking.done():
            self._checking = self._tracked_task(self._check())
            self._checking.add_done_callback(lambda task: task.cancelled() or task.exception())  # all may have left
        async with asyncio.timeout(self._timeout_seconds):
            await asyncio.shield(self._checking)

    async def _check(self) -> None:
        """Create or migrate the tables where that is needed; raises DatabaseUnusable where it is not possible."""
        has_documents = True
        if self._file:
            await self._engine.dispose()  # connections to a file that is gone
            await asyncio.to_thread(sqlite_file.create_or_check, self._file, may_create=not self._expects_documents())
        async with self._connection(self._engine) as connection:
            is_current = await connection.run_sync(schema.is_current)
            if self._file and self._expects_documents():
                has_documents = await connection.run_sync(schema.has_documents)
        if not has_documents:
            raise DatabaseUnusable(sqlite_file.EMPTY)
        if not is_current:
            await _upgrade_to_head(self._location)
        self._file_identity = sqlite_file.identity(self._file) if self._file else None
        self._checked = True

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Raise driver errors as StoreUnavailable and log the details. Constraint errors pass through to the caller."""
        try:
            yield
        except (IntegrityError, DataError):
            raise
        except (*_FAILURES, sqlite3.Error) as error:
            if damage := sqlite_file.damage_of(error):
                unusable = sqlite_file.unusable(damage)
                self._damage = unusable.reason
                _log.error("%s", unusable)
                raise unusable from error
            if isinstance(error, ProgrammingError) or sqlite_file.misses_table(error):
                self._checked = False  # somebody has changed its tables: the next use says what is wrong, or mends it
            _log.warning("the database does not answer: %s", _reason(error))
            raise StoreUnavailable(f"the database does not answer{_disk_full(error, self._location)}") from error

    async def _connect(self, engine: AsyncEngine) -> AsyncConnection:
        """A free connection, or a new one, within the timeout. A cancelled caller leaks no connection."""
        connecting = self._tracked_task(_engine_connect(engine))
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await asyncio.shield(connecting)
        except TimeoutError:
            connecting.cancel()
            raise
        except PoolTimeout as error:
            raise StoreUnavailable("all connections to the database are in use; try again soon") from error
        except asyncio.CancelledError:
            await asyncio.wait({connecting}, timeout=_CANCEL_SECONDS)
            if not connecting.done():
                connecting.cancel()  # the server hangs
            elif not connecting.cancelled() and not connecting.exception():
                await asyncio.shield(self._tracked_task(_give_back(connecting.result(), broken=False)))
            raise


async def _engine_connect(engine: AsyncEngine) -> AsyncConnection:
    return await engine.connect()


async def _give_back(connection: AsyncConnection, *, broken: bool) -> None:
    """Return a connection to the pool; rolls back what was not committed."""
    if broken:
        await connection.invalidate()
    await connection.close()


async def _upgrade_to_head(location: Path | str) -> None:
    """Migrate with a long timeout: a large database is slow, and so is waiting for another process that migrates."""
    engine = make_engine(location, statement_seconds=_MIGRATION_SECONDS)
    if isinstance(location, Path):
        # Dropping a table that is replaced by a new one must not delete the rows that refer to it.
        event.listen(engine.sync_engine, "connect", lambda new, _: new.execute("PRAGMA foreign_keys=OFF"))
    try:
        async with engine.execution_options(**{BEGIN: "BEGIN IMMEDIATE"}).begin() as connection:
            await connection.run_sync(schema.upgrade_to_head)
    finally:
        await engine.dispose()


def storable(text: str) -> str:
    """The text with characters replaced that a database refuses: NUL in PostgreSQL, lone surrogates in both."""
    return _UNSTORABLE.sub("\ufffd", text)


async def database_exists(location: Path | str) -> bool:
    """Whether the database has tables; `Database.open` would create them."""
    if isinstance(location, Path):
        return location.exists()  # noqa: ASYNC240 (a local disk)
    database = Database(location)
    try:
        return await database.has_tables()
    except (*_FAILURES, StoreUnavailable) as error:
        raise _cannot_open(location, error) from error
    finally:
        await database.close()


def _reason(error: BaseException) -> str:
    """The cause in one line, without the statement and its values."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    if isinstance(cause, TimeoutError) and not str(cause):
        return "no answer in time"
    return " ".join((str(cause) or type(cause).__name__).split())


def _disk_full(error: BaseException, location: Path | str) -> str:
    """What to tell whoever waits for an answer, if the reason is a full disk."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if not isinstance(cause, sqlite3.Error) or not isinstance(location, Path):
        return ""
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF  # the rest of the number is a detail
    no_room = code == sqlite3.SQLITE_IOERR and shutil.disk_usage(location.parent).free < _NO_ROOM_BYTES
    return ": the disk is full; free some space" if code == sqlite3.SQLITE_FULL or no_room else ""


def _cannot_open(location: Path | str, error: Exception) -> StoreUnavailable:
    if isinstance(location, Path):
        name = str(location)
    else:
        url = make_url(location)
        name = f"{url.database!r} at {url.host or url.query.get('host', 'this machine')}"
    if isinstance(error, DatabaseUnusable):
        return DatabaseUnusable(error.reason, name=name)
    if damage := sqlite_file.damage_of(error):
        return DatabaseUnusable(sqlite_file.unusable(damage).reason, name=name)
    if isinstance(location, Path) and not os.access(location.parent, os.W_OK):
        return StoreUnavailable(
            f"the database {name} cannot be opened: its folder cannot be written to. Make it writable, or choose "
            "another folder with CITEWELL_HOME"
        )
    return StoreUnavailable(f"the database {name} cannot be opened: {_reason(error)}{_disk_full(error, location)}")
