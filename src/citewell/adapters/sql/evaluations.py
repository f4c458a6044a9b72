"""Evaluations in the database: the last one of each project."""

from uuid import UUID

from sqlalchemy import select

from citewell.adapters.sql.database import Database
from citewell.adapters.sql.tables import evaluations
from citewell.models import Evaluation


class SqlEvaluations:
    """Keeps the promises of Evaluations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, project: UUID, evaluation: Evaluation) -> None:
        made: dict[str, object] = {
            "at": evaluation.at,
            "questions": evaluation.questions,
            "scores": evaluation.scores,
        }
        new = self._database.insert(evaluations).values(project_id=project, **made)
        async with self._database.writing() as connection:
            await connection.execute(new.on_conflict_do_update(index_elements=["project_id"], set_=made))

    async def last(self, project: UUID) -> Evaluation | None:
        this = select(evaluations).where(evaluations.c.project_id == project)
        async with self._database.reading() as connection:
            row = (await connection.execute(this)).first()
        return None if row is None else Evaluation(row.at, row.questions, row.scores)
