"""`GET /api/v1/welcome`: what a chat page shows before the first question."""

from uuid import UUID

from pydantic import BaseModel, Field


class ProjectName(BaseModel):
    id: UUID
    name: str


class Welcome(BaseModel):
    """The project that is asked, others that may be asked, how the documents are presented, and starter questions."""

    project: ProjectName = Field(description="The project that is asked.")
    projects: list[ProjectName] = Field(description="Projects that the caller may ask, by name, without empty ones.")
    documents: int = Field(ge=0, description="How many documents the project has.")
    questions: list[str] = Field(
        max_length=8,
        description="Questions to begin with: in the default project those of `CITEWELL_STARTER_QUESTIONS`, else up to "
        "four made from the documents' headings.",
    )
    title: str | None = Field(description="What the documents are called (`CITEWELL_TITLE`); plain text.")
    welcome: str | None = Field(description="What to tell a reader first (`CITEWELL_WELCOME`); plain text.")
    logo: str | None = Field(description="The path of the logo on this server (`CITEWELL_LOGO`).", examples=["/logo"])
