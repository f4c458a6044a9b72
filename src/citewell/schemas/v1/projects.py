"""`/api/v1/projects`: create, list, get, delete."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field

from citewell.schemas.fields import Name
from citewell.schemas.request import Request


class ProjectRequest(Request):
    name: Name = Field(examples=["handbook"], description="The same name is the same project on every server.")


class Project(BaseModel):
    id: UUID
    name: str
    createdAt: datetime | None = Field(description="Null for the default project while it is empty.")  # noqa: N815
    documents: int = Field(ge=0)
    chunks: int = Field(ge=0)


class ProjectList(BaseModel):
    projects: list[Project]
