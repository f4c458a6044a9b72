"""`/api/v1/projects/{id}/gaps`, `/feedback`, `/evaluation`, `/ingests`: reports for authors."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from citewell.schemas.v1.feedback import Vote


class Gap(BaseModel):
    question: str = Field(description="As it was last asked; a follow-up with what it follows up on.")
    times: int = Field(ge=1)
    lastAskedAt: datetime  # noqa: N815


class GapList(BaseModel):
    gaps: list[Gap] = Field(description="The question asked last comes first.")


class Voted(BaseModel):
    question: str
    answer: str = Field(max_length=300, description="The beginning of the answer.")
    vote: Vote
    at: datetime = Field(description="When it was answered.")


class FeedbackReport(BaseModel):
    up: int = Field(ge=0)
    down: int = Field(ge=0)
    last: list[Voted] = Field(description="The newest answer first.")


class Scored(BaseModel):
    """A score with its 95 % confidence interval, over `n` cases; null where no question measures it."""

    value: float | None
    low: float | None
    high: float | None
    n: int = Field(ge=0)


class EvaluationReport(BaseModel):
    at: datetime | None = Field(description="Null where nothing was evaluated yet.")
    questions: int = Field(ge=0)
    scores: dict[str, Scored] = Field(description="By name, as `citewell eval --json` prints them.")


class Ingest(BaseModel):
    """A run of `citewell ingest`, or a batch of the upload worker."""

    id: UUID
    startedAt: datetime  # noqa: N815
    updatedAt: datetime  # noqa: N815
    finishedAt: datetime | None  # noqa: N815
    state: Literal["running", "done", "failed", "interrupted"] = Field(
        description="`done` also where some files could not be read; `interrupted` where its process died."
    )
    stage: Literal["planning", "reading", "embedding", "publishing"]
    done: int = Field(ge=0, description="Of `total` files; while `embedding`, of new chunks.")
    total: int = Field(ge=0)
    filesProcessed: int = Field(ge=0)  # noqa: N815
    chunksCreated: int = Field(ge=0)  # noqa: N815
    errors: list[str] = Field(description="The first 20 errors.")


class IngestList(BaseModel):
    ingests: list[Ingest] = Field(description="The last 20, newest first.")
