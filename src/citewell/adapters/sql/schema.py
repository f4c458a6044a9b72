"""Brings a database to the tables of this version, whatever version made it. Alembic is loaded only if it must move."""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Column, Connection, MetaData, String, Table, inspect, select, text

from citewell.adapters.sql import tables
from citewell.errors import StoreUnavailable

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0003"
"""The newest of `migrations/versions`; its tables are those of `tables.py`."""

_BEFORE_ALEMBIC = "0001"  # a database with tables but without a version
_LOCK = 0x6369_7465_7765_6C6C  # "citewell"

# As Alembic makes it, so that a new database need not wait for Alembic.
_version = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))


def version(connection: Connection) -> str | None:
    """The version that a database's tables have; None for an empty one."""
    known = inspect(connection)
    if known.has_table(_version.name):
        return connection.scalar(select(_version.c.version_num))
    return _BEFORE_ALEMBIC if known.has_table(tables.documents.name) else None


def bring_to_head(connection: Connection) -> None:
    """Make or change the tables, in the transaction that runs; whoever else comes for that waits and finds it done."""
    if connection.dialect.name == "postgresql":  # on SQLite nobody else writes, and PostgreSQL forgets it at the end
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    match version(connection):
        case tables_now if tables_now == HEAD:
            pass
        case None:
            tables.tables.create_all(connection)
            _version.create(connection)
            connection.execute(_version.insert().values(version_num=HEAD))
        case old:
            _migrate(connection, old)


def configuration(connection: Connection) -> "Config":
    """What Alembic's commands need to work on a connection."""
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config


def _migrate(connection: Connection, old: str) -> None:
    from alembic import command
    from alembic.script import ScriptDirectory

    config = configuration(connection)
    if old not in {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}:
        raise StoreUnavailable(
            f"it was made by a newer version of Citewell (its tables are {old!r}, this one knows them up to "
            f"{HEAD!r}); update Citewell"
        )
    if not inspect(connection).has_table(_version.name):
        command.stamp(config, old)
    command.upgrade(config, "head")
