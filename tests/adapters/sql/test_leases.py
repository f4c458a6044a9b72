"""Several processes write to one PostgreSQL: each to its own project, or one to everything."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from citewell.adapters.sql import Database, sole_writer
from citewell.errors import IngestRunning
from citewell.models import Project
from tests.conftest import ready
from tests.fakes.postgres import PostgresServer

pytestmark = pytest.mark.anyio

OURS, THEIRS = Project.named("ours").id, Project.named("theirs").id


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    return ready(postgres_server)


@pytest.fixture
async def one(url: str) -> AsyncIterator[Database]:
    database = await Database.open(url)
    yield database
    await database.close()


@pytest.fixture
async def other(url: str) -> AsyncIterator[Database]:
    """The same database, as another process has it."""
    database = await Database.open(url)
    yield database
    await database.close()


@pytest.fixture
async def third(url: str) -> AsyncIterator[Database]:
    database = await Database.open(url)
    yield database
    await database.close()


async def _nothing(_: AsyncConnection) -> None:
    pass


def writing(database: Database, project: UUID | None, *, place: str = "") -> AbstractAsyncContextManager[None]:
    return sole_writer(database, project, place=place, wait=False, on_wait=lambda: None, last_out=_nothing)


async def write(database: Database) -> None:
    async with database.writing() as connection:
        await connection.execute(text("INSERT INTO facts VALUES ('x', 'y') ON CONFLICT DO NOTHING"))


async def run_out(database: Database) -> None:
    """As if its holder had not reported for long."""
    async with database.writing(fenced=False) as connection:
        await connection.execute(text("UPDATE leases SET expires_at = clock_timestamp() - interval '1 second'"))


async def test_two_projects_are_written_at_the_same_time_and_one_project_by_one_process(
    one: Database, other: Database, third: Database
) -> None:
    async with writing(one, OURS), writing(other, THEIRS):
        await write(one)
        await write(other)
        for project in (OURS, THEIRS, None):
            with pytest.raises(IngestRunning, match="ingestion already in progress"):
                async with writing(third, project):
                    pass
    async with writing(other, OURS):
        await write(other)


async def test_who_wants_everything_waits_for_all_and_keeps_out_those_that_come_later(
    one: Database, other: Database, third: Database
) -> None:
    waits, events = asyncio.Event(), list[str]()

    async def everything() -> None:
        async with sole_writer(other, None, wait=True, on_wait=waits.set, last_out=_nothing):
            events.append("everything")

    async with writing(one, OURS):
        waiting = asyncio.create_task(everything())
        await waits.wait()
        with pytest.raises(IngestRunning):
            async with writing(third, THEIRS):
                pass
        await write(one)
        events.append("ours")
    await waiting
    assert events == ["ours", "everything"]
    async with writing(one, THEIRS):
        pass


async def test_who_gives_up_waiting_for_everything_stands_in_nobody_s_way(
    one: Database, other: Database, third: Database
) -> None:
    waits = asyncio.Event()

    async def everything() -> None:
        async with sole_writer(other, None, wait=True, on_wait=waits.set, last_out=_nothing):
            raise AssertionError("ours is being written")

    async with writing(one, OURS):
        waiting = asyncio.create_task(everything())
        await waits.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        async with writing(third, THEIRS):
            pass


async def test_who_was_thought_dead_cannot_write_any_more(one: Database, other: Database) -> None:
    async with writing(one, OURS):
        await write(one)
        await run_out(other)
        async with writing(other, OURS):
            await write(other)
            with pytest.raises(IngestRunning, match="another process has taken over"):
                await write(one)
        with pytest.raises(IngestRunning, match="another process has taken over"):
            await write(one)


async def test_nobody_takes_over_in_the_middle_of_a_transaction(one: Database, other: Database) -> None:
    async with writing(one, OURS):
        async with one.writing() as connection:
            await run_out(other)
            with pytest.raises(IngestRunning):
                async with writing(other, OURS):
                    pass
            await connection.execute(text("SELECT 1"))
        async with writing(other, OURS):
            pass


async def test_a_lease_of_a_dead_process_of_the_same_home_folder_is_free_at_once(
    one: Database, other: Database
) -> None:
    async with AsyncExitStack() as killed:
        await killed.enter_async_context(writing(one, None, place="this kernel:1:2"))
        with pytest.raises(IngestRunning):
            async with writing(other, None, place="this kernel:1:3"):
                pass
        async with writing(other, None, place="this kernel:1:2"):  # it could not hold that lock else
            with pytest.raises(IngestRunning):
                await write(one)


async def test_a_holder_renews_its_lease(one: Database, other: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("citewell.adapters.sql.queue.leases._RENEW_SECONDS", 0.5)
    async with writing(one, OURS):
        await run_out(other)
        for _ in range(600):
            async with other.reading() as connection:
                if await connection.scalar(text("SELECT expires_at > clock_timestamp() FROM leases")):
                    break
            await asyncio.sleep(0.05)
        else:
            raise AssertionError("it was not renewed")
        with pytest.raises(IngestRunning):
            async with writing(other, OURS):
                pass


async def test_a_server_that_was_restarted_knows_who_may_write(
    one: Database, other: Database, postgres_server: PostgresServer
) -> None:
    async with writing(one, OURS):
        postgres_server.restart()
        with pytest.raises(IngestRunning):
            async with writing(other, OURS):
                pass
        await write(one)
