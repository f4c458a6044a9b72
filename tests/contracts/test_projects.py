"""What every Projects promises."""

import asyncio
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from citewell.adapters.sql import SqlGaps, SqlKeys, SqlProjects, SqlSessions, SqlUploads
from citewell.adapters.sql.database import Database
from citewell.models import Key, Owner, Project, StoredExchange, Upload
from tests.conftest import PROJECT

pytestmark = pytest.mark.anyio

OURS, THEIRS = Project.named("ours"), Project.named("theirs")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def projects(opened: Database) -> SqlProjects:
    return SqlProjects(opened)


async def test_the_default_project_is_there_before_anything_else(projects: SqlProjects) -> None:
    assert [one for one, _ in await projects.projects()] == [PROJECT]


async def test_the_default_project_is_found_before_anything_else(projects: SqlProjects) -> None:
    found = await projects.project(PROJECT.id)
    assert found is not None
    assert await projects.projects() == [found]


async def test_projects_are_listed_by_name_with_when_they_were_made(projects: SqlProjects) -> None:
    before = datetime.now(UTC)
    for one in (THEIRS, OURS):
        assert await projects.create(one)
    listed = await projects.projects()
    assert [one for one, _ in listed] == [PROJECT, OURS, THEIRS]
    assert all(before <= made <= datetime.now(UTC) for _, made in listed)


async def test_a_project_that_is_there_stays_as_it_is(projects: SqlProjects) -> None:
    assert await projects.create(OURS)
    made = await projects.project(OURS.id)
    assert not await projects.create(OURS)
    assert await projects.project(OURS.id) == made


async def test_of_many_at_once_one_makes_the_project(projects: SqlProjects) -> None:
    assert sorted(await asyncio.gather(*(projects.create(OURS) for _ in range(4)))) == [False, False, False, True]


async def test_an_unknown_project_is_none(projects: SqlProjects) -> None:
    assert await projects.project(uuid4()) is None


async def test_a_dropped_project_takes_what_was_its_own_and_nothing_else(
    projects: SqlProjects, opened: Database
) -> None:
    sessions, uploads, gaps = SqlSessions(opened), SqlUploads(opened), SqlGaps(opened)
    told: dict[UUID, StoredExchange] = {}
    for one in (OURS, THEIRS):
        await projects.create(one)
        told[one.id] = await sessions.record(StoredExchange(uuid4(), NOON, "Q?", "A."), Owner(one.id))
        await uploads.add(Upload(uuid4(), one, "a.md", "ingest", "PENDING", 1, NOON), content=b"a")
        await gaps.record(one.id, "Who sings?")
    await projects.delete(OURS.id)
    assert await projects.project(OURS.id) is None
    assert await sessions.history(told[OURS.id].session_id, Owner(OURS.id)) == ([], 0)
    assert await uploads.uploads(OURS.id) == []
    assert await sessions.history(told[THEIRS.id].session_id, Owner(THEIRS.id)) == ([told[THEIRS.id]], 1)
    assert len(await uploads.uploads(THEIRS.id)) == 1
    assert [len(await gaps.gaps(one.id, limit=9)) for one in (OURS, THEIRS)] == [0, 1]
    assert await projects.create(OURS)


async def test_a_key_to_a_dropped_project_does_not_open_a_new_one_of_its_name(
    projects: SqlProjects, opened: Database
) -> None:
    keys = SqlKeys(opened)
    for identity, project in (("mine", OURS.id), ("theirs", THEIRS.id), ("every", None)):
        await keys.add(Key(identity, identity, "ask", NOON, project=project), digest="d" * 64)
    await projects.delete(OURS.id)
    assert {one.id for one in await keys.keys() if one.revoked_at is None} == {"theirs", "every"}


async def test_the_default_project_is_there_again_once_dropped(projects: SqlProjects) -> None:
    await projects.projects()
    await projects.delete(PROJECT.id)
    assert [one for one, _ in await projects.projects()] == [PROJECT]
