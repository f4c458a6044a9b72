"""Connections and transactions: SQLite in a file, or PostgreSQL by its URL. Knows no tables.

database = await Database.open(home / "citewell.db")        # or "postgresql://…"
async with database.reading() as connection: ...            # a consistent snapshot, blocks nobody
async with database.writing() as connection: ...            # a transaction; committed at the end
"""

import asyncio
import logging
import re
import sqlite3
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from anyio import CancelScope
from sqlalchemy import URL, Connection, Table, event, func, make_url, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from citewell.adapters.sql import schema
from citewell.errors import IngestRunning, SettingsError, StoreUnavailable

_log = logging.getLogger("citewell.database")

T = TypeVar("T")

TIMEOUT_SECONDS = 5.0
_CANCEL_SECONDS = 0.5
_WRITE_QUEUE_SECONDS = 15.0  # behind other writers of this process; long queues are no fault of the database

_URL_HINT = "it must look like postgresql://user:password@host:5432/name; leave it out for SQLite in CITEWELL_HOME"
_FAILURES = (DBAPIError, PoolTimeout, OSError)  # a TimeoutError is an OSError
_BEGIN = "citewell_begin"
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_INGEST_LOCK = 0x696E_6765_7374  # "ingest"
_MIGRATION_SECONDS = 600.0


class Database:
    """An engine that recovers by itself when its server does. Every failure is a StoreUnavailable."""

    def __init__(self, engine: AsyncEngine, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._engine = engine
        self._timeout_seconds = timeout_seconds
        self.dialect = engine.dialect.name
        self._writer = engine.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})
        self._autocommit = engine.execution_options(
            **{_BEGIN: None} if self.dialect == "sqlite" else {"isolation_level": "AUTOCOMMIT"}
        )
        # SQLite has one writer at a time and its busy handler is not fair: with ten writers at once some would starve
        # for the whole timeout. The writers of this process queue here instead.
        self._write_queue = asyncio.Semaphore(1 if self.dialect == "sqlite" else 1000)
        self._in_use: set[asyncio.Future[Any]] = set()

    @classmethod
    async def open(
        cls, location: Path | str, *, timeout_seconds: float = TIMEOUT_SECONDS, statement_seconds: float | None = None
    ) -> "Database":
        """Open the database and create its tables; errors name the database, so they are for operators only.

        Connecting may take `timeout_seconds`, and so may each statement, unless `statement_seconds` says otherwise.
        """
        engine = make_engine(
            location, timeout_seconds=timeout_seconds, statement_seconds=statement_seconds or timeout_seconds
        )
        database = cls(engine, timeout_seconds=timeout_seconds)
        try:
            if isinstance(location, Path):
                location.parent.mkdir(parents=True, exist_ok=True)
                # aiosqlite's thread outlives a failed connect and may use a closed event loop: try without it first.
                sqlite3.connect(location).close()
            if await database.version() != schema.HEAD:
                await _upgrade_to_head(location)
        except (*_FAILURES, sqlite3.Error, StoreUnavailable) as error:
            await database.close()
            raise _cannot_open(location, error) from error
        return database

    async def version(self) -> str | None:
        """The revision of the tables; None if there are none. Raises the driver's own exceptions."""
        async with asyncio.timeout(self._timeout_seconds), self._engine.connect() as connection:
            return await connection.run_sync(schema.version)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A snapshot of the database for reading (PostgreSQL: one for each statement)."""
        async with self._connected(self._engine) as connection:
            yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that reads and writes, committed unless an error leaves the block.

        On SQLite nobody else writes meanwhile; on PostgreSQL lock what you read with `with_for_update()`.
        """
        with _translated_errors():
            async with asyncio.timeout(_WRITE_QUEUE_SECONDS):
                await self._write_queue.acquire()
        try:
            async with self._connected(self._writer) as connection:
                await connection.begin()
                yield connection
                await connection.commit()
        finally:
            self._write_queue.release()

    @asynccontextmanager
    async def outside_transactions(self) -> AsyncIterator[AsyncConnection]:
        """For statements that cannot run in a transaction, such as VACUUM."""
        async with self._connected(self._autocommit) as connection:
            yield connection

    @asynccontextmanager
    async def sole_writer(self, *, wait: bool, on_wait: Callable[[], None]) -> AsyncIterator[None]:
        """Hold the ingest lock of a PostgreSQL, which several home folders may share; SQLite needs none.

        While another process holds it: call `on_wait` once and wait, or raise IngestRunning.
        """
        if self.dialect == "sqlite":
            yield
            return
        async with self.outside_transactions() as connection:
            notified = False
            while not await connection.scalar(select(func.pg_try_advisory_lock(_INGEST_LOCK))):
                if not wait:
                    raise IngestRunning("ingestion already in progress; try again when it is done")
                if not notified:
                    on_wait()
                    notified = True
                await asyncio.sleep(0.1)
            try:
                yield
            finally:
                await connection.invalidate()  # the lock ends with its connection

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
        with CancelScope(shield=True), _translated_errors(), self._counted_as_used():
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

    async def _connect(self, engine: AsyncEngine) -> AsyncConnection:
        """A free connection, or a new one, within the timeout. A cancelled caller leaks no connection."""
        connecting = self._tracked_task(_engine_connect(engine))
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await asyncio.shield(connecting)
        except TimeoutError:
            connecting.cancel()
            raise
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
    database = Database(make_engine(location, statement_seconds=_MIGRATION_SECONDS))
    try:
        async with database.writing() as connection:
            await connection.run_sync(schema.upgrade_to_head)
    finally:
        await database.close()


def storable(text: str) -> str:
    """The text with characters replaced that a database refuses: NUL in PostgreSQL, lone surrogates in both."""
    return _UNSTORABLE.sub("\ufffd", text)


def check_database_url(location: Path | str) -> None:
    """Raise SettingsError for an invalid database URL; opens nothing."""
    if not isinstance(location, Path):
        _postgresql(location)


async def database_exists(location: Path | str) -> bool:
    """Whether the database has tables; `Database.open` would create them."""
    if isinstance(location, Path):
        return location.exists()  # noqa: ASYNC240 (a local disk)
    database = Database(make_engine(location))
    try:
        return await database.version() is not None
    except _FAILURES as error:
        raise _cannot_open(location, error) from error
    finally:
        await database.close()


def make_engine(
    location: Path | str, *, timeout_seconds: float = TIMEOUT_SECONDS, statement_seconds: float = TIMEOUT_SECONDS
) -> AsyncEngine:
    """The SQLAlchemy engine for a SQLite file or a PostgreSQL URL; does not connect yet."""
    if isinstance(location, Path):
        engine = create_async_engine(
            URL.create("sqlite+aiosqlite", database=str(location)), connect_args={"timeout": statement_seconds}
        )
        event.listen(engine.sync_engine, "connect", _prepare_sqlite)
        event.listen(engine.sync_engine, "begin", _begin_sqlite)
        return engine
    url, options = _postgresql(location)
    import asyncpg

    class AbruptlyClosed(asyncpg.Connection):  # type: ignore[misc]
        """SQLAlchemy waits two seconds to close a broken connection to a server that may hang; this does not."""

        async def close(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 (asyncpg's)
            if timeout is None:
                await super().close()
            else:
                self.terminate()

    # A restarted server leaves dead connections in the pool: each is tested before use.
    return create_async_engine(
        url,
        pool_pre_ping=True,
        pool_timeout=timeout_seconds,
        connect_args={
            **options,
            "connection_class": AbruptlyClosed,
            "timeout": timeout_seconds,
            "command_timeout": statement_seconds,
        },
    )


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin in `_begin_sqlite`, not at the first write
    cursor = connection.cursor()
    for pragma in ("foreign_keys=ON", "journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later would fail if others wrote in between.
    if begin := connection.get_execution_options().get(_BEGIN, "BEGIN"):
        connection.exec_driver_sql(begin)


def _postgresql(database_url: str) -> tuple[URL, dict[str, object]]:
    """The URL for SQLAlchemy and the options for asyncpg. Errors never show the URL: it has a password."""
    try:
        url = make_url(database_url)
    except (ArgumentError, ValueError):
        raise SettingsError(f"DATABASE_URL cannot be understood; {_URL_HINT}") from None
    if url.drivername not in ("postgres", "postgresql", "postgresql+asyncpg"):
        raise SettingsError(f"DATABASE_URL names a database of the kind {url.drivername!r}; {_URL_HINT}")
    if not url.database:
        raise SettingsError(f"DATABASE_URL names no database; {_URL_HINT}")
    if find_spec("asyncpg") is None:
        raise SettingsError("DATABASE_URL needs asyncpg; run `pip install 'citewell[postgres]'`")
    query = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
    options: dict[str, object] = {}
    for ignored in ("channel_binding", "gssencmode", "connect_timeout"):  # asyncpg decides these by itself
        query.pop(ignored, None)
    if mode := query.pop("sslmode", None):
        options["ssl"] = _ssl(mode, query.pop("sslrootcert", None))
    # Sent when a connection starts: Neon, for example, finds its endpoint in `options`.
    options["server_settings"] = {
        "application_name": "citewell",
        **{name: query.pop(name) for name in ("application_name", "options") if name in query},
    }
    if unknown := sorted(query.keys() - {"host", "port"}):
        raise SettingsError(f"DATABASE_URL has options that are not known: {', '.join(unknown)}; take them out")
    return url.set(drivername="postgresql+asyncpg", query=query), options


def _ssl(mode: str, root_cert: str | None) -> str | ssl.SSLContext:
    match mode:
        case "disable" | "allow" | "prefer" | "require":
            return mode
        case "verify-ca" | "verify-full":
            try:
                context = ssl.create_default_context(cafile=None if root_cert in (None, "system") else root_cert)
            except OSError as error:
                raise SettingsError(f"DATABASE_URL: sslrootcert cannot be read ({error.strerror or error})") from None
            context.check_hostname = mode == "verify-full"
            return context
        case _:
            raise SettingsError(
                f"DATABASE_URL: sslmode={mode!r} is none of disable, allow, prefer, require, verify-ca, verify-full"
            )


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Raise driver errors as StoreUnavailable and log the details. Constraint errors pass through to the caller."""
    try:
        yield
    except (IntegrityError, DataError):
        raise
    except _FAILURES as error:
        _log.warning("the database does not answer: %s", _reason(error))
        raise StoreUnavailable("the database does not answer") from error


def _reason(error: BaseException) -> str:
    """The cause in one line, without the statement and its values."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    if isinstance(cause, TimeoutError) and not str(cause):
        return "no answer in time"
    return " ".join((str(cause) or type(cause).__name__).split())


def _cannot_open(location: Path | str, error: Exception) -> StoreUnavailable:
    if isinstance(location, Path):
        name = str(location)
    else:
        url = make_url(location)
        name = f"{url.database!r} at {url.host or url.query.get('host', 'this machine')}"
    return StoreUnavailable(f"the database {name} cannot be opened: {_reason(error.__cause__ or error)}")
