"""`GET /api/v1/welcome`: what a chat page shows before the first question."""

from uuid import UUID

from pydantic import BaseModel, Field


class ProjectName(BaseModel):
    id: UUID
    name: str


class Welcome(BaseModel):
    """Where a question goes, where else one could go, and questions that the documents surely answer."""

    project: ProjectName = Field(description="The one that is asked.")
    projects: list[ProjectName] = Field(description="Those that the caller may ask, by name; empty ones are left out.")
    documents: int = Field(ge=0, description="How many the project holds.")
    questions: list[str] = Field(
        max_length=4, description="From the documents' own headings, for a reader who does not know what to ask."
    )
