"""What every Ingests promises."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from citewell.adapters.sql import SqlIngests, SqlProjects
from citewell.adapters.sql.database import Database
from citewell.models import IngestRun, Project

pytestmark = pytest.mark.anyio

OURS, THEIRS = Project.named("ours"), Project.named("theirs")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def ingests(opened: Database) -> SqlIngests:
    return SqlIngests(opened)


def run(minute: int = 0, *, project: Project = OURS) -> IngestRun:
    at = NOON + timedelta(minutes=minute)
    return IngestRun(uuid4(), project.id, started_at=at, updated_at=at)


async def test_a_run_is_followed_to_its_end(ingests: SqlIngests) -> None:
    begun = run()
    await ingests.begin(begun)
    assert await ingests.ingests(OURS.id) == [begun]
    half = replace(begun, updated_at=NOON + timedelta(seconds=1), stage="reading", done=3, total=7, files_processed=2)
    await ingests.update(half)
    assert await ingests.ingests(OURS.id) == [half]
    over = NOON + timedelta(seconds=2)
    whole = replace(
        half,
        updated_at=over,
        finished_at=over,
        stage="publishing",
        done=7,
        errors=("ü.md: it is empty", "b.pdf: not a PDF"),
        files_processed=5,
        chunks_created=90,
        outcome="done",
    )
    await ingests.update(whole)
    assert await ingests.ingests(OURS.id) == [whole]


async def test_one_that_did_not_end_was_interrupted_when_the_next_begins(ingests: SqlIngests) -> None:
    dead, ended, next_one = run(0, project=THEIRS), replace(run(1), outcome="failed"), run(2)
    for one in (dead, ended, next_one):
        await ingests.begin(one)
    assert await ingests.ingests(THEIRS.id) == [replace(dead, outcome="interrupted")], "there is one writer at a time"
    assert await ingests.ingests(OURS.id) == [next_one, ended]


async def test_a_project_keeps_its_last_20_newest_first(ingests: SqlIngests) -> None:
    theirs = run(project=THEIRS)
    await ingests.begin(theirs)
    ours = [replace(run(minute), outcome="done") for minute in range(25)]
    for one in ours:
        await ingests.begin(one)
    assert await ingests.ingests(OURS.id) == ours[:4:-1]
    assert len(await ingests.ingests(THEIRS.id)) == 1


async def test_a_run_that_is_forgotten_does_not_come_back(ingests: SqlIngests, opened: Database) -> None:
    await SqlProjects(opened).create(OURS)
    one = run()
    await ingests.begin(one)
    await SqlProjects(opened).delete(OURS.id)
    await ingests.update(replace(one, outcome="done"))
    assert await ingests.ingests(OURS.id) == []


async def test_an_error_that_no_database_takes_is_kept_with_marks_in_its_place(ingests: SqlIngests) -> None:
    await ingests.begin(replace(run(), errors=("a\0b\udcffc",)))
    assert (await ingests.ingests(OURS.id))[0].errors == ("a\ufffdb\ufffdc",)
