"""`/api/v1/projects/{id}/gaps` and its neighbours: what authors want to know."""

from datetime import datetime

from pydantic import BaseModel, Field


class Gap(BaseModel):
    question: str = Field(description="As it was last asked; a follow-up with what it follows up on.")
    times: int = Field(ge=1)
    lastAskedAt: datetime  # noqa: N815


class GapList(BaseModel):
    gaps: list[Gap] = Field(description="What was asked last comes first.")
