"""Databases of every version come up as this version's, whole, whoever opens them and however many at once."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Row, insert, inspect, select, text

from citewell.adapters.sql import schema, tables
from citewell.adapters.sql.database import Database
from citewell.adapters.sql.engine import make_engine
from citewell.errors import StoreUnavailable
from tests.fakes.postgres import PostgresServer

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where there is no database yet, or one without a table."""
    if request.param == "sqlite":
        return tmp_path / "citewell.db"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.create()


async def test_a_new_database_has_the_tables_of_this_version(empty: Path | str) -> None:
    database = await Database.open(empty)
    async with database.reading() as connection:
        assert await connection.run_sync(_differences) == []
        assert await connection.run_sync(schema.version) == schema.HEAD
    await database.close()


async def test_every_step_up_from_the_first_version_ends_at_the_same_tables(empty: Path | str) -> None:
    await _make_first_version(empty)
    database = await Database.open(empty)
    async with database.reading() as connection:
        assert await connection.run_sync(_differences) == []
        names = await connection.run_sync(lambda sync: ScriptDirectory.from_config(schema.configuration(sync)))
    assert names.get_heads() == [schema.HEAD]
    await database.close()


async def test_an_old_database_keeps_everything_and_learns_what_is_new(empty: Path | str, book_home: Path) -> None:
    book = await Database.open(book_home / "citewell.db")
    async with book.reading() as connection:
        before = {table.name: (await connection.execute(select(table))).all() for table in tables.tables.sorted_tables}
    await book.close()
    then = await _make_first_version(empty, before)
    database = await Database.open(empty)
    async with database.reading() as connection:
        after = {table.name: (await connection.execute(select(table))).all() for table in tables.tables.sorted_tables}
    await database.close()
    assert len(after["chunks"]) > 10
    for name, rows in before.items():
        assert sorted(map(repr, after[name])) == (sorted(map(repr, rows)) if name in then else []), name


@pytest.mark.parametrize("old", [False, True], ids=["new", "old"])
async def test_many_may_be_the_first_to_open_a_database(empty: Path | str, old: bool) -> None:
    if old:
        await _make_first_version(empty)
    found = await asyncio.gather(*(asyncio.to_thread(_opened, empty) for _ in range(8)))
    assert found == [schema.HEAD] * 8


async def test_a_database_of_a_newer_version_is_left_alone(empty: Path | str) -> None:
    database = await Database.open(empty)
    async with database.writing() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '0999'"))
    await database.close()
    with pytest.raises(StoreUnavailable, match=r"newer version of Citewell \(its tables are '0999'.*update Citewell"):
        await Database.open(empty)


def test_alembic_is_not_loaded_to_open_a_database_that_is_up_to_date(tmp_path: Path) -> None:
    program = """
import asyncio, sys
from pathlib import Path
from citewell.adapters.sql import Database
for _ in range(2):
    asyncio.run(Database.open(Path("citewell.db")))
print("alembic" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.strip() == "False"


def _opened(where: Path | str) -> str | None:
    async def run() -> str | None:
        database = await Database.open(where)
        async with database.reading() as connection:
            found = await connection.run_sync(schema.version)
        await database.close()
        return found

    return asyncio.run(run())


async def _make_first_version(where: Path | str, rows: dict[str, Sequence[Row[Any]]] | None = None) -> set[str]:
    """A database as it was before there were migrations, with what these rows had then; gives its tables' names."""

    def make(connection: Connection) -> set[str]:
        command.upgrade(schema.configuration(connection), "0001")
        connection.execute(text("DROP TABLE alembic_version"))
        names = set(inspect(connection).get_table_names())
        for table in tables.tables.sorted_tables:
            if rows and rows[table.name] and table.name in names:
                then = {column["name"] for column in inspect(connection).get_columns(table.name)}
                values = [{name: row._mapping[name] for name in then} for row in rows[table.name]]
                connection.execute(insert(table), values)
        return names

    if isinstance(where, Path):
        await asyncio.to_thread(where.touch)  # an engine opens a file, and never makes one
    engine = make_engine(where)
    async with engine.begin() as connection:
        names = await connection.run_sync(make)
    await engine.dispose()
    return names


def _differences(connection: Connection) -> list[Any]:
    """Between the tables that are there and those of `tables.py`."""
    options = {"compare_type": True, "compare_server_default": True}
    found: list[Any] = compare_metadata(MigrationContext.configure(connection, opts=options), tables.tables)
    return found
