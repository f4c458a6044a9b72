"""What every Evaluations promises."""

from datetime import UTC, datetime

import pytest

from citewell.adapters.sql import SqlEvaluations, SqlProjects
from citewell.adapters.sql.database import Database
from citewell.models import Evaluation, Project

pytestmark = pytest.mark.anyio

OURS, THEIRS = Project.named("ours"), Project.named("theirs")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def evaluations(opened: Database) -> SqlEvaluations:
    return SqlEvaluations(opened)


def made(minute: int, value: float | None) -> Evaluation:
    scores: dict[str, object] = {"hit@5": {"value": value, "low": 0.5, "high": 1.0, "n": 20}}
    return Evaluation(NOON.replace(minute=minute), 20, scores)


async def test_the_last_evaluation_of_a_project_stands(evaluations: SqlEvaluations) -> None:
    assert await evaluations.last(OURS.id) is None
    await evaluations.save(THEIRS.id, made(0, 0.1))
    for one in (made(1, 0.75), made(2, None)):
        await evaluations.save(OURS.id, one)
        assert await evaluations.last(OURS.id) == one
    assert await evaluations.last(THEIRS.id) == made(0, 0.1)


async def test_it_goes_with_its_project(evaluations: SqlEvaluations, opened: Database) -> None:
    for project in (OURS, THEIRS):
        await evaluations.save(project.id, made(0, 0.1))
    await SqlProjects(opened).delete(OURS.id)
    assert await evaluations.last(OURS.id) is None
    assert await evaluations.last(THEIRS.id) == made(0, 0.1)
