"""What every Uploads promises."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import select

from citewell.adapters.sql import SqlUploads, tables
from citewell.adapters.sql.database import Database
from citewell.models import Project, Upload

pytestmark = pytest.mark.anyio

OURS, THEIRS = Project.named("ours"), Project.named("theirs")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def uploads(opened: Database) -> SqlUploads:
    return SqlUploads(opened)


def upload(path: str, *, minute: int = 0, project: Project = OURS) -> Upload:
    return Upload(uuid4(), project, path, "ingest", "PENDING", 3, NOON + timedelta(minutes=minute))


async def test_what_is_taken_is_what_was_added(uploads: SqlUploads) -> None:
    one = upload("docs/ü.md")
    await uploads.add(one, content=b"\0\xff\n")
    taken = await uploads.claim()
    assert taken == (replace(one, status="PROCESSING", attempts=1), b"\0\xff\n")
    assert await uploads.uploads(OURS.id) == [taken[0]]


async def test_nothing_waiting_is_none(uploads: SqlUploads) -> None:
    assert await uploads.claim() is None


async def test_the_oldest_is_taken_first_whosever_it_is(uploads: SqlUploads) -> None:
    for one in (upload("b.md", minute=2), upload("a.md", minute=1, project=THEIRS), upload("c.md", minute=3)):
        await uploads.add(one, content=b"abc")
    taken = [await uploads.claim() for _ in range(4)]
    assert [one and one[0].path for one in taken] == ["a.md", "b.md", "c.md", None]


async def test_a_project_lists_its_own_oldest_first(uploads: SqlUploads) -> None:
    ours = [upload("b.md", minute=1), upload("a.md", minute=2)]
    for one in (*ours[::-1], upload("b.md", project=THEIRS)):
        await uploads.add(one, content=b"abc")
    assert await uploads.uploads(OURS.id) == ours


async def test_the_newest_wish_for_a_path_takes_the_place_of_what_waits_or_failed(uploads: SqlUploads) -> None:
    first, second = upload("a.md"), upload("a.md", minute=1)
    third = replace(upload("a.md", minute=2), kind="delete", size=0)
    await uploads.add(first, content=b"one")
    await uploads.add(second, content=b"two")
    assert await uploads.uploads(OURS.id) == [second]
    assert await uploads.claim() == (replace(second, status="PROCESSING", attempts=1), b"two")
    await uploads.finish(second.id, error="an empty file")
    await uploads.add(third, content=b"")
    assert await uploads.uploads(OURS.id) == [third]


async def test_a_new_wish_waits_while_the_old_one_is_worked_on(uploads: SqlUploads) -> None:
    old, new = upload("a.md"), upload("a.md", minute=1)
    await uploads.add(old, content=b"old")
    await uploads.claim()
    await uploads.add(new, content=b"new")
    await uploads.finish(old.id, error="it was no use")
    assert await uploads.uploads(OURS.id) == [new]
    assert await uploads.claim() == (replace(new, status="PROCESSING", attempts=1), b"new")


async def test_what_is_finished_leaves_the_line(uploads: SqlUploads) -> None:
    one = upload("a.md")
    await uploads.add(one, content=b"abc")
    await uploads.claim()
    await uploads.finish(one.id)
    assert await uploads.uploads(OURS.id) == []


async def test_what_failed_stays_with_its_reason_and_without_its_content(uploads: SqlUploads, opened: Database) -> None:
    one = upload("a.md")
    await uploads.add(one, content=b"abc")
    await uploads.claim()
    await uploads.finish(one.id, error="not a PDF\0")
    assert await uploads.uploads(OURS.id) == [replace(one, status="FAILED", attempts=1, error="not a PDF\ufffd")]
    async with opened.reading() as connection:
        assert await connection.scalar(select(tables.uploads.c.content)) is None
    assert await uploads.claim() is None
    await uploads.resume()
    assert await uploads.claim() is None


async def test_what_a_dead_worker_had_taken_is_taken_again(uploads: SqlUploads) -> None:
    one = upload("a.md")
    await uploads.add(one, content=b"abc")
    await uploads.claim()
    assert await uploads.claim() is None, "its worker may be alive"
    await uploads.resume()
    assert await uploads.claim() == (replace(one, status="PROCESSING", attempts=2), b"abc")


async def test_what_is_released_waits_as_if_it_had_not_been_taken(uploads: SqlUploads) -> None:
    one = upload("a.md")
    await uploads.add(one, content=b"abc")
    await uploads.claim()
    await uploads.release(one.id)
    assert await uploads.uploads(OURS.id) == [one]


async def test_of_one_project_only_its_own_are_taken_and_resumed(uploads: SqlUploads) -> None:
    for one in (upload("b.md", minute=2), upload("a.md", minute=1, project=THEIRS), upload("c.md", minute=3)):
        await uploads.add(one, content=b"abc")
    assert await uploads.waiting() == [THEIRS.id, OURS.id]
    taken = [await uploads.claim(OURS.id) for _ in range(3)]
    assert [one and one[0].path for one in taken] == ["b.md", "c.md", None]
    await uploads.claim(THEIRS.id)
    await uploads.resume(THEIRS.id)
    assert [one.status for one in await uploads.uploads()] == ["PENDING", "PROCESSING", "PROCESSING"]
    assert await uploads.waiting() == [THEIRS.id, OURS.id]


async def test_only_new_takes_no_deletion_and_nothing_that_was_tried_before(uploads: SqlUploads) -> None:
    await uploads.add(upload("a.md", minute=1), content=b"abc")
    await uploads.add(replace(upload("b.md", minute=2), kind="delete"), content=b"")
    await uploads.add(upload("c.md", minute=3), content=b"abc")
    assert await uploads.claim(OURS.id, only_new=True)
    assert await uploads.claim(OURS.id, only_new=True) is None, "the deletion is next"
    await uploads.resume(OURS.id)
    assert await uploads.claim(OURS.id, only_new=True) is None, "a worker died on it"


async def test_two_workers_never_take_the_same(uploads: SqlUploads, database: Path | str) -> None:
    for number in range(20):
        await uploads.add(upload(f"{number:02}.md", minute=number), content=b"abc")
    other = await Database.open(database)
    taken: list[str] = []

    async def work(line: SqlUploads) -> None:
        while one := await line.claim():
            taken.append(one[0].path)

    await asyncio.gather(work(uploads), work(SqlUploads(other)))
    await other.close()
    assert sorted(taken) == [f"{number:02}.md" for number in range(20)]


async def test_what_waits_or_failed_can_be_withdrawn_and_what_runs_cannot(uploads: SqlUploads) -> None:
    one = upload("a.md")
    await uploads.add(one, content=b"abc")
    assert not await uploads.withdraw(THEIRS.id, "a.md")
    assert await uploads.withdraw(OURS.id, "a.md")
    assert not await uploads.withdraw(OURS.id, "a.md")
    await uploads.add(one, content=b"abc")
    await uploads.claim()
    assert not await uploads.withdraw(OURS.id, "a.md")
    await uploads.finish(one.id, error="an empty file")
    assert await uploads.withdraw(OURS.id, "a.md")


async def test_a_path_that_no_database_takes_is_kept_with_marks_in_its_place(uploads: SqlUploads) -> None:
    await uploads.add(upload("a\0\ud800.md"), content=b"abc")
    assert [one.path for one in await uploads.uploads(OURS.id)] == ["a\ufffd\ufffd.md"]
    assert await uploads.withdraw(OURS.id, "a\0\ud800.md")
