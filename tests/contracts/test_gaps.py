"""What every Gaps promises."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import insert

from citewell.adapters.sql import SqlGaps, SqlProjects, tables
from citewell.adapters.sql.database import Database
from citewell.models import Gap, Project

pytestmark = pytest.mark.anyio

OURS, THEIRS = Project.named("ours"), Project.named("theirs")
LONG_AGO = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
async def gaps(opened: Database) -> SqlGaps:
    for project in (OURS, THEIRS):
        await SqlProjects(opened).create(project)
    return SqlGaps(opened)


async def asked(gaps: SqlGaps, project: Project = OURS) -> list[tuple[str, int]]:
    return [(one.question, one.times) for one in await gaps.gaps(project.id, limit=2000)]


async def test_what_was_asked_last_comes_first_with_how_often_and_when(gaps: SqlGaps) -> None:
    before = datetime.now(UTC)
    for question in ("Who sings?", "Who dances? 漢字 🤖", "Who sings?"):
        await gaps.record(OURS.id, question)
    found = await gaps.gaps(OURS.id, limit=50)
    assert [(one.question, one.times) for one in found] == [("Who sings?", 2), ("Who dances? 漢字 🤖", 1)]
    assert before <= found[0].first_at < found[1].last_at < found[0].last_at <= datetime.now(UTC)
    assert await gaps.gaps(OURS.id, limit=1) == found[:1]


@pytest.mark.parametrize(
    "again", ["who sings", "  WHO\n sings?? ", "¿Who sings?", "Ｗｈｏ sings?", "“Who sings?”", "Who sings…"]
)
async def test_the_same_question_written_otherwise_counts_as_one(gaps: SqlGaps, again: str) -> None:
    await gaps.record(OURS.id, "Who sings?")
    await gaps.record(OURS.id, again)
    assert await asked(gaps) == [(again, 2)]


@pytest.mark.parametrize(("one", "other"), [("C++?", "C?"), ("कमल?", "कमला?"), ("?!", "???"), ("résumé", "resume")])
async def test_other_questions_are_counted_apart(gaps: SqlGaps, one: str, other: str) -> None:
    await gaps.record(OURS.id, one)
    await gaps.record(OURS.id, other)
    assert await asked(gaps) == [(other, 1), (one, 1)]


async def test_projects_do_not_mix(gaps: SqlGaps) -> None:
    await gaps.record(OURS.id, "Who sings?")
    await gaps.record(THEIRS.id, "Who sings?")
    await gaps.clear(OURS.id)
    assert (await asked(gaps), await asked(gaps, THEIRS)) == ([], [("Who sings?", 1)])


async def test_of_a_project_that_is_not_there_nothing_is_kept(gaps: SqlGaps) -> None:
    nowhere = uuid4()
    await gaps.record(nowhere, "Who sings?")
    assert await gaps.gaps(nowhere, limit=50) == []


async def test_the_oldest_make_room(gaps: SqlGaps, opened: Database) -> None:
    row = {"question": "Once?", "times": 9, "first_at": LONG_AGO, "last_at": LONG_AGO}
    for project in (OURS, THEIRS):
        async with opened.writing() as connection:
            rows = [{**row, "project_id": project.id, "hash": f"{number:064}"} for number in range(1000)]
            await connection.execute(insert(tables.gaps), rows)
    for number in range(3):
        await gaps.record(OURS.id, f"Question {number}?")
    kept = await asked(gaps)
    assert len(kept) == 1000
    assert kept[:4] == [("Question 2?", 1), ("Question 1?", 1), ("Question 0?", 1), ("Once?", 9)]
    assert len(await asked(gaps, THEIRS)) == 1000, "only where it is full"


async def test_what_no_database_takes_and_what_is_endless_is_kept_as_far_as_it_can_be(gaps: SqlGaps) -> None:
    await gaps.record(OURS.id, "a\0b\ud800c?")
    for end in ("one", "two"):
        await gaps.record(OURS.id, f"{'word ' * 6000}{end}")
    found = await asked(gaps)
    assert found[2] == ("a\ufffdb\ufffdc?", 1)
    assert [(len(question), times) for question, times in found[:2]] == [(1000, 1), (1000, 1)]


async def test_two_processes_count_one_question_together(gaps: SqlGaps, database: Path | str) -> None:
    other = await Database.open(database)
    both = (gaps, SqlGaps(other))
    await asyncio.gather(*(both[number % 2].record(OURS.id, "Who sings?") for number in range(20)))
    await other.close()
    assert await asked(gaps) == [("Who sings?", 20)]
    assert isinstance((await gaps.gaps(OURS.id, limit=1))[0], Gap)
