"""`GET /api/v1/welcome`: what a chat page shows before the first question."""

from uuid import UUID

from pydantic import BaseModel, Field


class ProjectName(BaseModel):
    id: UUID
    name: str


class Welcome(BaseModel):
    """The project that is asked, others that may be asked, and suggested questions that the documents answer."""

    project: ProjectName = Field(description="The project that is asked.")
    projects: list[ProjectName] = Field(description="Projects that the caller may ask, by name, without empty ones.")
    documents: int = Field(ge=0, description="How many documents the project has.")
    questions: list[str] = Field(max_length=4, description="Suggested questions, from the documents' headings.")
