"""The way into the database, on both engines, while all is well and while it is not."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest
from anyio import move_on_after
from sqlalchemy import select, text, update
from sqlalchemy.exc import IntegrityError

from citewell.adapters.sql import engine, tables
from citewell.adapters.sql.database import Database
from citewell.errors import SettingsError, StoreUnavailable
from tests.fakes.postgres import PostgresServer

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "given",
    [
        "postgres://u:p@db.example.org/book",
        "postgresql://u:p@db.example.org:6432/book?sslmode=require&channel_binding=require",
        "postgresql://u:p@db.example.org/book?sslmode=verify-full&application_name=docs",
        "postgresql://u:p%40ss@[::1]/book?options=endpoint%3Dep-1",
        "postgresql:///book?host=/var/run/postgresql",
    ],
)
def test_the_urls_that_hosts_hand_out_are_taken(given: str) -> None:
    engine.check_database_url(given)
    assert engine.make_engine(given).url.drivername == "postgresql+asyncpg"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("mysql://u:hunter2@db/book", "a database of the kind 'mysql'; it must look like postgresql://"),
        ("sqlite:///hunter2.db", "leave it out for SQLite in CITEWELL_HOME"),
        ("hunter2", "cannot be understood"),
        ("postgresql://u:hunter2@db:port/book", "cannot be understood"),
        ("postgresql://u:hunter2@db", "names no database"),
        ("postgresql://u:hunter2@db/book?sslmode=maybe", "sslmode='maybe' is none of disable, allow"),
        ("postgresql://u:hunter2@db/book?pgbouncer=true", "options that are not known: pgbouncer; take them out"),
        ("postgresql://u:hunter2@db/book?sslmode=verify-ca&sslrootcert=/no/such", "sslrootcert cannot be read"),
    ],
)
def test_a_wrong_url_is_explained_without_its_password(given: str, says: str) -> None:
    with pytest.raises(SettingsError) as raised:
        engine.check_database_url(given)
    assert says in str(raised.value)
    assert "hunter2" not in str(raised.value)


async def test_counting_up_by_many_at_once_loses_nothing(database: Path | str) -> None:
    both = [await Database.open(database) for _ in range(2)]
    counter = tables.facts.c.name == "counter"
    async with both[0].writing() as connection:
        await connection.execute(both[0].insert(tables.facts).values(name="counter", value="0"))

    async def count(one: Database) -> None:
        async with one.writing() as connection:
            value = await connection.scalar(select(tables.facts.c.value).where(counter).with_for_update())
            await asyncio.sleep(0)
            await connection.execute(update(tables.facts).where(counter).values(value=str(int(value or 0) + 1)))

    await asyncio.gather(*(count(both[n % 2]) for n in range(40)))
    async with both[0].reading() as connection:
        assert await connection.scalar(select(tables.facts.c.value).where(counter)) == "40"
    for one in both:
        await one.close()


async def test_a_reader_does_not_wait_for_a_writer(database: Path | str) -> None:
    one = await Database.open(database)
    async with one.writing() as writer:
        await writer.execute(one.insert(tables.facts).values(name="new", value="1"))
        async with one.reading() as reader:
            assert await reader.scalar(select(tables.facts.c.value).where(tables.facts.c.name == "new")) is None
    async with one.reading() as reader:
        assert await reader.scalar(select(tables.facts.c.value).where(tables.facts.c.name == "new")) == "1"
    await one.close()


async def test_a_transaction_that_fails_leaves_nothing(database: Path | str) -> None:
    one = await Database.open(database)

    async def half() -> None:
        async with one.writing() as connection:
            await connection.execute(one.insert(tables.facts).values(name="half", value="1"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await half()
    async with one.reading() as connection:
        assert (await connection.execute(select(tables.facts))).all() == []
    await one.close()


async def test_work_that_is_cancelled_leaves_no_connection_and_no_lock_behind(database: Path | str) -> None:
    one = await Database.open(database)

    async def work(number: int) -> None:
        async with one.writing() as connection:
            await connection.execute(one.insert(tables.facts).values(name=f"{number}", value="1"))
            await connection.execute(update(tables.facts).where(tables.facts.c.name == f"{number}").values(value="2"))

    async def leave(number: int) -> None:
        with move_on_after(number % 20 / 1000):  # a web framework breaks every await
            await work(number)

    async def stop(number: int) -> None:
        with suppress(TimeoutError):  # asyncio only one
            await asyncio.wait_for(work(number), number % 20 / 1000)

    for batch in range(6):
        await asyncio.gather(
            *(leave(40 * batch + n) for n in range(20)), *(stop(40 * batch + n) for n in range(20, 40))
        )
    async with one.writing() as connection:
        values = (await connection.execute(select(tables.facts.c.value))).scalars().all()
    assert set(values) <= {"2"}, "nothing is half done"
    await one.close()


async def test_closing_waits_for_whoever_still_has_a_connection(database: Path | str) -> None:
    one = await Database.open(database)
    holds, may_end = asyncio.Event(), asyncio.Event()

    async def read() -> object:
        async with one.reading() as connection:
            holds.set()
            await may_end.wait()
            return await connection.scalar(select(1))

    reading = asyncio.create_task(read())
    await holds.wait()
    closing = asyncio.create_task(one.close())
    await asyncio.sleep(0.05)
    assert not closing.done()
    may_end.set()
    await closing
    assert reading.done()
    assert await reading == 1


async def test_an_exchange_without_its_session_is_refused(database: Path | str) -> None:
    one = await Database.open(database)
    row = {"session_id": uuid4(), "query": "q", "response": "r", "complete": True}
    with pytest.raises(IntegrityError):
        async with one.writing() as connection:
            await connection.execute(one.insert(tables.conversations).values(row))
    await one.close()


async def test_a_folder_in_the_way_is_named_when_the_database_is_opened(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"the database .* cannot be opened: unable to open database file"):
        await Database.open(tmp_path)


async def test_a_wrong_password_is_named_without_being_shown(postgres_url: str) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be opened: password authentication failed") as raised:
        await Database.open(postgres_url.replace("secret", "hunter2"))
    assert "hunter2" not in str(raised.value)


@pytest.fixture
def server(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    """The server, brought back after whatever is done to it."""
    yield postgres_server
    postgres_server.restart()


async def test_a_server_that_was_restarted_is_used_again(server: PostgresServer) -> None:
    one = await Database.open(server.create())
    await _answers(one)
    server.restart()
    await _answers(one)
    await one.close()


async def test_a_server_that_is_gone_is_said_to_be_and_comes_back(
    server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    one = await Database.open(server.create())
    async with one.reading() as connection:
        server.stop()
        with pytest.raises(StoreUnavailable, match=r"^the database does not answer$"):
            await _answers(one)
        await connection.invalidate()
    assert "the database does not answer: " in caplog.text
    server.start()
    await _answers(one)
    await one.close()


async def test_a_server_that_hangs_is_given_up(server: PostgresServer) -> None:
    one = await Database.open(server.create(), timeout_seconds=1)
    await _answers(one)
    server.freeze()
    with pytest.raises(StoreUnavailable, match=r"^the database does not answer$"):
        await asyncio.wait_for(_answers(one), 20)
    server.thaw()
    await _answers(one)
    await one.close()


async def test_a_server_that_hangs_in_a_transaction_is_given_up(server: PostgresServer) -> None:
    one = await Database.open(server.create(), timeout_seconds=1)

    async def ask() -> None:
        async with one.writing() as connection:
            await connection.execute(text("SELECT 1"))
            server.freeze()
            await connection.execute(text("SELECT 2"))

    with pytest.raises(StoreUnavailable, match=r"^the database does not answer$"):
        await asyncio.wait_for(ask(), 20)
    server.thaw()
    await _answers(one)
    await one.close()


async def _answers(database: Database) -> None:
    async with database.reading() as connection:
        assert await connection.scalar(text("SELECT 1")) == 1
