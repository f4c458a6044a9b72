"""`POST /api/v1/feedback`: a reader's vote on an answer."""

from typing import Literal

from pydantic import Field

from citewell.schemas.fields import Uuid, Uuid4
from citewell.schemas.request import Request

Vote = Literal["up", "down"]


class FeedbackRequest(Request):
    session_id: Uuid4
    request_id: Uuid = Field(description="The `metadata.request_id` of the answer.")
    vote: Vote | None = Field(description="Null takes a vote back.")
    project_id: Uuid | None = Field(None, description="The session's project; the default one if left out.")
