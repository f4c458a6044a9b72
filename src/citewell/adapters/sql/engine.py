"""The SQLAlchemy engine of a SQLite file or of a PostgreSQL URL. Connects to nothing yet."""

import ssl
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from citewell.errors import SettingsError

TIMEOUT_SECONDS = 5.0
BEGIN = "citewell_begin"
"""Execution option: the statement that begins a transaction in SQLite; None for none."""

_POOL_SIZE = 5  # and as many again while they are needed: a server has two pools, and PostgreSQL takes 100 in all

# PgBouncer may give each transaction another connection: a statement is prepared and used within one, and has no name
# that the next one could stumble over. Names of our own would pile up in the server.
_FOR_POOLERS: dict[str, object] = {
    "statement_cache_size": 0,
    "prepared_statement_cache_size": 0,
    "prepared_statement_name_func": lambda: "",
}

_URL_HINT = "it must look like postgresql://user:password@host:5432/name; leave it out for SQLite in CITEWELL_HOME"


def make_engine(
    location: Path | str, *, timeout_seconds: float = TIMEOUT_SECONDS, statement_seconds: float = TIMEOUT_SECONDS
) -> AsyncEngine:
    """The SQLAlchemy engine for a SQLite file or a PostgreSQL URL; does not connect yet."""
    if isinstance(location, Path):
        engine = create_async_engine(
            # Never creates the file: an empty one would look like a library without documents.
            URL.create("sqlite+aiosqlite", database=location.absolute().as_uri(), query={"uri": "true", "mode": "rw"}),
            connect_args={"timeout": statement_seconds},
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
        pool_timeout=0.8 * timeout_seconds,  # says so before whoever waits gives up
        pool_size=_POOL_SIZE,
        max_overflow=_POOL_SIZE,
        connect_args={
            **options,
            **_FOR_POOLERS,
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
    if begin := connection.get_execution_options().get(BEGIN, "BEGIN"):
        connection.exec_driver_sql(begin)


def check_database_url(location: Path | str) -> None:
    """Raise SettingsError for an invalid database URL; opens nothing."""
    if not isinstance(location, Path):
        _postgresql(location)


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
    root_cert = query.pop("sslrootcert", None)
    if mode := query.pop("sslmode", None):
        options["ssl"] = _ssl(mode, root_cert)
    # Sent when a connection starts: Neon, for example, finds its endpoint in `options`.
    sent = {name: query.pop(name) for name in ("application_name", "options") if name in query}
    # Columns without a time zone, which other programs may have made, are in UTC.
    options["server_settings"] = {"application_name": "citewell", "timezone": "UTC"} | sent
    if unknown := sorted(query.keys() - {"host", "port"}):
        raise SettingsError(f"DATABASE_URL has options that are not known: {', '.join(unknown)}; take them out")
    return url.set(drivername="postgresql+asyncpg", query=query), options


def _ssl(mode: str, root_cert: str | None) -> str | ssl.SSLContext:
    match mode:
        case "disable" | "allow" | "prefer":
            return mode
        case "require" if root_cert is None:
            return mode
        case "require" | "verify-ca" | "verify-full":  # with a certificate, libpq's `require` verifies it, too
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
