"""Creates the tables, or migrates those of an older version. Alembic is imported only if it must migrate."""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Column, Connection, MetaData, String, Table, inspect, select, text

from citewell.adapters.sql import tables
from citewell.errors import StoreUnavailable

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0003"
"""The newest revision in `migrations/versions`; it has the tables of `tables.py`."""

_BEFORE_ALEMBIC = "0001"  # revision of a database that has tables but no revision number
_LOCK = 0x6369_7465_7765_6C6C  # "citewell"

# As Alembic creates it, so that a new database need not import Alembic.
_version = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))


def version(connection: Connection) -> str | None:
    """The revision of a database's tables; None for an empty database."""
    inspector = inspect(connection)
    if inspector.has_table(_version.name):
        return connection.scalar(select(_version.c.version_num))
    return _BEFORE_ALEMBIC if inspector.has_table(tables.documents.name) else None


def upgrade_to_head(connection: Connection) -> None:
    """Create or migrate the tables in the current transaction. Other processes wait, and then find it done."""
    if connection.dialect.name == "postgresql":  # SQLite has one writer; PostgreSQL releases this at the end
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    match version(connection):
        case current if current == HEAD:
            pass
        case None:
            tables.tables.create_all(connection)
            _version.create(connection)
            connection.execute(_version.insert().values(version_num=HEAD))
        case old:
            _migrate(connection, old)


def configuration(connection: Connection) -> "Config":
    """The Alembic configuration for commands on this connection."""
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
