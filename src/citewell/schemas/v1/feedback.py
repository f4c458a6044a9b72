"""`POST /api/v1/feedback`: a reader's vote on an answer."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from citewell.schemas.fields import Uuid4

Vote = Literal["up", "down"]


class FeedbackRequest(BaseModel):
    session_id: Uuid4
    request_id: UUID = Field(description="The `metadata.request_id` of the answer.")
    vote: Vote | None = Field(description="Null takes a vote back.")
    project_id: UUID | None = Field(None, description="The session's project; the default one if left out.")
