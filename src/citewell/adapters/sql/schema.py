"""Creates the tables, or migrates those of an older version. Alembic is imported only if it must migrate.

In PostgreSQL, `sessions` and `conversations` may have been made by another program, by the contract that Citewell
implements: they are used as they are, with our columns added. Other tables with our names cannot be used.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Column, Connection, MetaData, String, Table, select, text

from citewell.adapters.sql import tables
from citewell.errors import DatabaseUnusable

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0005"
"""The newest revision in `migrations/versions`; it has the tables of `tables.py`."""

_BEFORE_ALEMBIC = "0001"  # revision of a database that has tables but no revision number
_BEFORE_ADOPTION = "0003"
_FIRST_TABLES = frozenset(
    {"projects", "texts", "documents", "chunks", "staged_documents", "staged_chunks", "embeddings", "facts"}
)
_LOCK = 0x6369_7465_7765_6C6C  # "citewell"

_ALEMBIC_VERSION, _OUR_VERSION = "alembic_version", "citewell_version"  # the second one where the first is another's

# Columns of the contract, with the types that they may have. All other columns of these tables are ours.
_TIME = ("timestamp with time zone", "timestamp without time zone")
_TEXT = ("text", "character varying")
_ID = ("uuid", *_TEXT)
_JSON = ("jsonb", "json")
_CONTRACT: dict[str, dict[str, tuple[str, ...]]] = {
    "sessions": {"session_id": _ID, "created_at": _TIME, "last_active": _TIME},
    "conversations": {
        "id": (),
        "session_id": _ID,
        "timestamp": _TIME,
        "query": _TEXT,
        "response": _TEXT,
        "sources": _JSON,
        "metadata": _JSON,
        "created_at": _TIME,
    },
}
_OURS: dict[str, tuple[str, ...]] = {
    "project_id": ("uuid",),
    "owner": _TEXT,
    "complete": ("boolean",),
    "once": _TEXT,
    "feedback": _TEXT,
}
_LEFT_TO_DEFAULTS = {("conversations", "id"), ("conversations", "created_at")}
_LENGTHS = {"session_id": 36, "query": 32_000, "response": 100_000}
_OTHER_LENGTH = 64

_OWN_DATABASE = (
    "give Citewell a database of its own, or a schema of its own with `?options=-csearch_path%3DNAME` at the end of "
    "DATABASE_URL"
)

_COLUMNS = """
    SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
           a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE pg_table_is_visible(c.oid) AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0
      AND NOT a.attisdropped AND c.relname = ANY(:names)
"""


@dataclass(frozen=True, slots=True)
class _ExistingColumn:
    type: str
    must_be_given: bool
    """Whether it has no default and may not be null."""


_Existing = Mapping[str, Mapping[str, _ExistingColumn]]
"""The columns of each table that is there; only in PostgreSQL, elsewhere they are not looked up."""


def version(connection: Connection) -> str | None:
    """The revision of a database's tables; None if they are not Citewell's, or there are none."""
    return _version(connection, _existing(connection))


def is_current(connection: Connection) -> bool:
    """Whether all tables are there and of this version; raises DatabaseUnusable where they cannot be."""
    existing = _existing(connection)
    current = _version(connection, existing)
    _check_usable(connection, existing, current)
    return current == HEAD and not _is_incomplete(existing)


def has_documents(connection: Connection) -> bool:
    """Whether an ingest was ever committed to the database."""
    if tables.facts.name not in _existing(connection):
        return False
    generations = select(tables.facts.c.value).where(tables.facts.c.name.startswith(tables.INDEX_GENERATION))
    return connection.scalar(generations.limit(1)) is not None


def upgrade_to_head(connection: Connection) -> None:
    """Create or migrate the tables in the current transaction. Other processes wait, and then find it done."""
    if connection.dialect.name == "postgresql":  # SQLite has one writer; PostgreSQL releases this at the end
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    existing = _existing(connection)
    current = _version(connection, existing)
    _check_usable(connection, existing, current)
    if current is None and not existing.keys() & tables.tables.tables.keys():
        version_table = _version_table(_version_table_name(existing))
        tables.tables.create_all(connection)
        version_table.create(connection)
        connection.execute(version_table.insert().values(version_num=HEAD))
    elif current != HEAD or _is_incomplete(existing):
        _migrate(connection, existing, _BEFORE_ADOPTION if current == HEAD else current)


def configuration(connection: Connection) -> "Config":
    """The Alembic configuration for commands on this connection."""
    from alembic.config import Config

    attributes = {"connection": connection, "version_table": _version_table_name(_existing(connection))}
    config = Config(attributes=attributes)
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config


def _migrate(connection: Connection, existing: _Existing, old: str | None) -> None:
    from alembic import command
    from alembic.script import ScriptDirectory

    config = configuration(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if old is not None and old not in known:
        raise DatabaseUnusable(
            f"it was made by a newer version of Citewell (its tables are {old!r}, this one knows them up to "
            f"{HEAD!r}); update Citewell"
        )
    if old is not None and old != _version(connection, existing, default=None):
        command.stamp(config, old)
    command.upgrade(config, "head")


def _existing(connection: Connection) -> _Existing:
    if connection.dialect.name == "sqlite":
        rows = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'"))
        return {name: {} for (name,) in rows if not name.startswith("sqlite_")}
    found: dict[str, dict[str, _ExistingColumn]] = {}
    names = [*tables.tables.tables, _ALEMBIC_VERSION, _OUR_VERSION]
    for table, column, kind, must_be_given in connection.execute(text(_COLUMNS), {"names": names}):
        found.setdefault(table, {})[column] = _ExistingColumn(kind, must_be_given)
    return found


def _version(connection: Connection, existing: _Existing, default: str | None = _BEFORE_ALEMBIC) -> str | None:
    """The revision in the version table, or the default for the tables of Citewell without one."""
    name = _version_table_name(existing)
    if name in existing:
        return connection.scalar(select(_version_table(name).c.version_num))
    return default if existing.keys() >= _FIRST_TABLES else None


def _version_table_name(existing: _Existing) -> str:
    """Alembic's usual name, unless another program uses Alembic in the same database."""
    is_foreign = _ALEMBIC_VERSION in existing and not existing.keys() >= _FIRST_TABLES
    return _OUR_VERSION if is_foreign or _OUR_VERSION in existing else _ALEMBIC_VERSION


def _version_table(name: str) -> Table:
    """As Alembic creates it, so that a new database need not import Alembic."""
    return Table(name, MetaData(), Column("version_num", String(32), primary_key=True))


def _is_incomplete(existing: _Existing) -> bool:
    """Whether another program has made its tables anew since they were adopted."""
    return any(
        columns and not columns.keys() >= set(tables.tables.tables[name].c.keys())
        for name, columns in existing.items()
        if name in _CONTRACT
    )


def _check_usable(connection: Connection, existing: _Existing, current: str | None) -> None:
    """Raise DatabaseUnusable for tables that are in the way, naming table and column."""
    if connection.dialect.name == "sqlite" or current not in (None, HEAD):
        return  # `sqlite_file` has looked at the file; other versions have other tables
    for name, table in tables.tables.tables.items():
        columns = existing.get(name)
        if name in _CONTRACT:
            if columns is not None:
                _check_adoptable(name, columns)
            elif current == HEAD:
                raise DatabaseUnusable(f"its table {name} is gone; restore it from a dump")
        elif current is None and columns is not None:
            raise DatabaseUnusable(f"its table {name} is another program's; {_OWN_DATABASE}")
        elif current == HEAD and (missing := [column.name for column in table.c if column.name not in (columns or {})]):
            raise DatabaseUnusable(f"its table {name} has no column {missing[0]}; restore it from a dump")
    ids = {columns["session_id"].type == "uuid" for name, columns in existing.items() if name in _CONTRACT}
    if len(ids) == 2:
        raise DatabaseUnusable(
            f"the columns session_id of its tables sessions and conversations differ in type; {_OWN_DATABASE}"
        )


def _check_adoptable(table: str, columns: Mapping[str, _ExistingColumn]) -> None:
    """Raise DatabaseUnusable unless rows of the contract can be read from the table and written to it."""
    for name in _CONTRACT[table]:
        if name not in columns:
            raise DatabaseUnusable(f"its table {table} is another program's: it has no column {name}; {_OWN_DATABASE}")
    for name, column in columns.items():
        types = _CONTRACT[table].get(name, _OURS.get(name, ()))
        kind = re.sub(r"\(\d+\)", "", column.type)
        length = re.search(r"varying\((\d+)\)", column.type)
        if types and kind not in types:
            raise DatabaseUnusable(
                f"the column {name} of its table {table} has the type {column.type}, and not {' or '.join(types)}; "
                f"{_OWN_DATABASE}"
            )
        if types and length and int(length[1]) < _LENGTHS.get(name, _OTHER_LENGTH):
            raise DatabaseUnusable(
                f"the column {name} of its table {table} has the type {column.type}, which is too short; make it text"
            )
        is_filled = (types or name in _CONTRACT[table]) and (table, name) not in _LEFT_TO_DEFAULTS
        if column.must_be_given and not is_filled:
            raise DatabaseUnusable(
                f"the column {name} of its table {table} has no default, and Citewell does not fill it; give it one, "
                f"or {_OWN_DATABASE}"
            )
