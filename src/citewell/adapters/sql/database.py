"""The one way into the database: SQLite in a file, or PostgreSQL by its URL. Knows no table's meaning.

database = await Database.open(home / "citewell.db")        # or "postgresql://…"
async with database.reading() as connection: ...            # a consistent look, blocks nobody
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
_MOMENT_SECONDS = 0.5
_LINE_SECONDS = 15.0  # behind other writers of this process: many readers at once are no fault of the database

_ACCEPTED = "it must look like postgresql://user:password@host:5432/name; leave it out for SQLite in CITEWELL_HOME"
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
        self._plain = engine.execution_options(
            **{_BEGIN: None} if self.dialect == "sqlite" else {"isolation_level": "AUTOCOMMIT"}
        )
        # SQLite has one writer at a time and its busy handler is not fair: with ten writers at once some would starve
        # for the whole timeout. Those of this process stand in line instead.
        self._line = asyncio.Semaphore(1 if self.dialect == "sqlite" else 1000)
        self._held: set[asyncio.Future[Any]] = set()

    @classmethod
    async def open(
        cls, where: Path | str, *, timeout_seconds: float = TIMEOUT_SECONDS, statement_seconds: float | None = None
    ) -> "Database":
        """Open the database and make its tables; an error names the database, so it is for whoever starts.

        Connecting may take `timeout_seconds`, and so may each statement, unless `statement_seconds` says otherwise.
        """
        engine = make_engine(
            where, timeout_seconds=timeout_seconds, statement_seconds=statement_seconds or timeout_seconds
        )
        database = cls(engine, timeout_seconds=timeout_seconds)
        try:
            if isinstance(where, Path):
                where.parent.mkdir(parents=True, exist_ok=True)
                # aiosqlite's thread outlives a failed connect and may speak to a loop that is closed: try without it.
                sqlite3.connect(where).close()
            if await database.version() != schema.HEAD:
                await _bring_to_head(where)
        except (*_FAILURES, sqlite3.Error, StoreUnavailable) as error:
            await database.close()
            raise _cannot_open(where, error) from error
        return database

    async def version(self) -> str | None:
        """The version of the tables that are there; raises what the driver raises."""
        async with asyncio.timeout(self._timeout_seconds), self._engine.connect() as connection:
            return await connection.run_sync(schema.version)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A look at the database as it is at one moment (PostgreSQL: at each statement)."""
        async with self._connected(self._engine) as connection:
            yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that reads and writes, committed unless an error leaves the block.

        On SQLite nobody else writes meanwhile; on PostgreSQL lock what you read with `with_for_update()`.
        """
        with _translated():
            async with asyncio.timeout(_LINE_SECONDS):
                await self._line.acquire()
        try:
            async with self._connected(self._writer) as connection:
                await connection.begin()
                yield connection
                await connection.commit()
        finally:
            self._line.release()

    @asynccontextmanager
    async def outside_transactions(self) -> AsyncIterator[AsyncConnection]:
        """For what refuses to run in a transaction, such as VACUUM."""
        async with self._connected(self._plain) as connection:
            yield connection

    @asynccontextmanager
    async def sole_writer(self, *, wait: bool, on_wait: Callable[[], None]) -> AsyncIterator[None]:
        """Hold what only one ingest on a PostgreSQL may hold, from whichever home folder; SQLite lies in one anyway.

        Where another has it: wait, after `on_wait` said so, or raise IngestRunning.
        """
        if self.dialect == "sqlite":
            yield
            return
        async with self.outside_transactions() as connection:
            told = False
            while not await connection.scalar(select(func.pg_try_advisory_lock(_INGEST_LOCK))):
                if not wait:
                    raise IngestRunning("ingestion already in progress; try again when it is done")
                if not told:
                    on_wait()
                    told = True
                await asyncio.sleep(0.1)
            try:
                yield
            finally:
                await connection.invalidate()  # the lock goes with its connection

    def insert(self, table: Table) -> "sqlite.Insert | postgresql.Insert":
        """An INSERT that can say `on_conflict_do_nothing()` or `on_conflict_do_update(…)`."""
        return sqlite.insert(table) if self.dialect == "sqlite" else postgresql.insert(table)

    async def close(self) -> None:
        """Close every connection, those that a cancelled request still holds included."""
        give_up = asyncio.get_running_loop().time() + self._timeout_seconds
        while self._held and (left := give_up - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait(set(self._held), timeout=left)
        await self._engine.dispose()

    @contextmanager
    def _holding(self) -> Iterator[None]:
        """While a connection is asked for, used or given back, `close` waits."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._held.add(done)
        try:
            yield
        finally:
            self._held.discard(done)
            done.cancel()

    def _minded(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """A task that `close` waits for: whoever started it may be gone before it is done."""
        task = asyncio.create_task(work)
        self._held.add(task)
        task.add_done_callback(self._held.discard)
        return task

    @asynccontextmanager
    async def _connected(self, engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
        # A web framework cancels a request by breaking its every await, and drivers cannot clean up after themselves
        # then. What happens here is short and has its timeouts: it is done to the end.
        with CancelScope(shield=True), _translated(), self._holding():
            connection = await self._reached(engine)
            broken = False
            try:
                yield connection
            except (TimeoutError, asyncio.CancelledError):
                # The server may hang, and asking it to roll back would wait for it once more.
                broken = True
                raise
            finally:
                await asyncio.shield(self._minded(_leave(connection, broken=broken)))

    async def _reached(self, engine: AsyncEngine) -> AsyncConnection:
        """A free connection, or a new one, within the timeout. Nobody forgets one that is just being made."""
        making = self._minded(_connect(engine))
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await asyncio.shield(making)
        except TimeoutError:
            making.cancel()
            raise
        except asyncio.CancelledError:
            await asyncio.wait({making}, timeout=_MOMENT_SECONDS)
            if not making.done():
                making.cancel()  # the server hangs
            elif not making.cancelled() and not making.exception():
                await asyncio.shield(self._minded(_leave(making.result(), broken=False)))
            raise


async def _connect(engine: AsyncEngine) -> AsyncConnection:
    return await engine.connect()


async def _leave(connection: AsyncConnection, *, broken: bool) -> None:
    """Give the connection back; what was not committed is rolled back."""
    if broken:
        await connection.invalidate()
    await connection.close()


async def _bring_to_head(where: Path | str) -> None:
    """With patience: a large database takes its time, and so does waiting for another process that does the same."""
    patient = Database(make_engine(where, statement_seconds=_MIGRATION_SECONDS))
    try:
        async with patient.writing() as connection:
            await connection.run_sync(schema.bring_to_head)
    finally:
        await patient.close()


def storable(text: str) -> str:
    """The text without what an engine refuses: PostgreSQL keeps no NUL, and neither half a surrogate pair."""
    return _UNSTORABLE.sub("\ufffd", text)


def check_database_url(where: Path | str) -> None:
    """Raise SettingsError for a URL that no database can be opened by; nothing is opened."""
    if not isinstance(where, Path):
        _postgresql(where)


async def database_exists(where: Path | str) -> bool:
    """Whether there is anything in this database; opening it would make its tables."""
    if isinstance(where, Path):
        return where.exists()  # noqa: ASYNC240 (one look at a local disk)
    database = Database(make_engine(where))
    try:
        return await database.version() is not None
    except _FAILURES as error:
        raise _cannot_open(where, error) from error
    finally:
        await database.close()


def make_engine(
    where: Path | str, *, timeout_seconds: float = TIMEOUT_SECONDS, statement_seconds: float = TIMEOUT_SECONDS
) -> AsyncEngine:
    """The engine for a SQLite file or a PostgreSQL URL; connects to nothing yet."""
    if isinstance(where, Path):
        engine = create_async_engine(
            URL.create("sqlite+aiosqlite", database=str(where)), connect_args={"timeout": statement_seconds}
        )
        event.listen(engine.sync_engine, "connect", _prepare_sqlite)
        event.listen(engine.sync_engine, "begin", _begin_sqlite)
        return engine
    url, options = _postgresql(where)
    import asyncpg

    class Abrupt(asyncpg.Connection):  # type: ignore[misc]
        """SQLAlchemy gives a broken connection two seconds to say goodbye to a server that may hang; this one none."""

        async def close(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 (asyncpg's)
            if timeout is None:
                await super().close()
            else:
                self.terminate()

    # A restarted server leaves dead connections in the pool: each is tried before use.
    return create_async_engine(
        url,
        pool_pre_ping=True,
        pool_timeout=timeout_seconds,
        connect_args={
            **options,
            "connection_class": Abrupt,
            "timeout": timeout_seconds,
            "command_timeout": statement_seconds,
        },
    )


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where `_begin_sqlite` says, not at the first write
    cursor = connection.cursor()
    for pragma in ("foreign_keys=ON", "journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A writer that only becomes one after its first read loses what others wrote in between, or fails.
    if begin := connection.get_execution_options().get(_BEGIN, "BEGIN"):
        connection.exec_driver_sql(begin)


def _postgresql(given: str) -> tuple[URL, dict[str, object]]:
    """The URL as SQLAlchemy wants it and the options that asyncpg takes elsewhere. Nothing of a URL is ever shown."""
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        raise SettingsError(f"DATABASE_URL cannot be understood; {_ACCEPTED}") from None
    if url.drivername not in ("postgres", "postgresql", "postgresql+asyncpg"):
        raise SettingsError(f"DATABASE_URL names a database of the kind {url.drivername!r}; {_ACCEPTED}")
    if not url.database:
        raise SettingsError(f"DATABASE_URL names no database; {_ACCEPTED}")
    if find_spec("asyncpg") is None:
        raise SettingsError("DATABASE_URL needs asyncpg; run `pip install 'citewell[postgres]'`")
    query = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
    options: dict[str, object] = {}
    for ignored in ("channel_binding", "gssencmode", "connect_timeout"):  # asyncpg decides these by itself
        query.pop(ignored, None)
    if mode := query.pop("sslmode", None):
        options["ssl"] = _encryption(mode, query.pop("sslrootcert", None))
    # What a server is told at the start: Neon, for one, finds its endpoint in `options`.
    options["server_settings"] = {
        "application_name": "citewell",
        **{name: query.pop(name) for name in ("application_name", "options") if name in query},
    }
    if unknown := sorted(query.keys() - {"host", "port"}):
        raise SettingsError(f"DATABASE_URL has options that are not known: {', '.join(unknown)}; take them out")
    return url.set(drivername="postgresql+asyncpg", query=query), options


def _encryption(mode: str, authorities: str | None) -> str | ssl.SSLContext:
    match mode:
        case "disable" | "allow" | "prefer" | "require":
            return mode
        case "verify-ca" | "verify-full":
            try:
                context = ssl.create_default_context(cafile=None if authorities in (None, "system") else authorities)
            except OSError as error:
                raise SettingsError(f"DATABASE_URL: sslrootcert cannot be read ({error.strerror or error})") from None
            context.check_hostname = mode == "verify-full"
            return context
        case _:
            raise SettingsError(
                f"DATABASE_URL: sslmode={mode!r} is none of disable, allow, prefer, require, verify-ca, verify-full"
            )


@contextmanager
def _translated() -> Iterator[None]:
    """What the driver raises, as ours; the details are in the log. A broken constraint is the caller's to handle."""
    try:
        yield
    except (IntegrityError, DataError):
        raise
    except _FAILURES as error:
        _log.warning("the database does not answer: %s", _reason(error))
        raise StoreUnavailable("the database does not answer") from error


def _reason(error: BaseException) -> str:
    """In one line, without the statement and its values."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    if isinstance(cause, TimeoutError) and not str(cause):
        return "no answer in time"
    return " ".join((str(cause) or type(cause).__name__).split())


def _cannot_open(where: Path | str, error: Exception) -> StoreUnavailable:
    if isinstance(where, Path):
        named = str(where)
    else:
        url = make_url(where)
        named = f"{url.database!r} at {url.host or url.query.get('host', 'this machine')}"
    return StoreUnavailable(f"the database {named} cannot be opened: {_reason(error.__cause__ or error)}")
