"""What an answer says about its own sentences."""

from pydantic import BaseModel, Field

from citewell.models import Verdict
from citewell.schemas.fields import unsaid


class SupportedSentence(BaseModel):
    """A sentence of the answer, and how well what it cites bears it out."""

    sentence: str
    verdict: Verdict
    score: float = Field(ge=0, le=1, description="How likely the cited words support it; 1 for a quotation.")
    chunk_ids: list[str] = Field(description="The chunks it cites.")


SUPPORT: list[SupportedSentence] | None = Field(
    None, exclude_if=unsaid, description="Each sentence that claims something, in order, with its verdict."
)
NOTICE: str | None = Field(
    None, exclude_if=unsaid, description="What to know about how this came about: that no language model wrote it."
)
