"""`/api/v1/projects/{id}/documents`, `/api/v1/documents/{id}` and its chunks."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

Status = Literal["PENDING", "PROCESSING", "COMPLETED", "FAILED"]


class Document(BaseModel):
    documentId: UUID  # noqa: N815
    projectId: UUID  # noqa: N815
    filename: str = Field(description="Its path in the project.")
    status: Status
    error: str | None = Field(description="The reason, where the status is FAILED.")
    title: str | None = None
    url: str | None = None
    chunkCount: int = Field(0, ge=0)  # noqa: N815
    characters: int = Field(0, ge=0)
    updatedAt: datetime  # noqa: N815


class DocumentList(BaseModel):
    documents: list[Document]


class ChunkPlace(BaseModel):
    """The place of a chunk. The text of a document that is stored whole has null `id` and `chunkIndex`."""

    id: str | None
    chunkIndex: int | None = Field(ge=0)  # noqa: N815
    section: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    line: int = Field(ge=1)
    lastLine: int = Field(ge=1)  # noqa: N815
    page: int | None = None


class DocumentDetail(Document):
    text: str | None = Field(None, description="The whole text, where `?text=true` asks for it.")
    chunks: list[ChunkPlace]


class Chunk(ChunkPlace):
    """One chunk with its text, and its neighbours."""

    documentId: UUID  # noqa: N815
    source: str
    chapter: str
    headings: list[str]
    chunkText: str  # noqa: N815
    source_url: str | None
    previous: "Neighbour | None"
    next: "Neighbour | None"


class Neighbour(BaseModel):
    id: str | None
    chunkIndex: int | None = Field(ge=0)  # noqa: N815
    chunkText: str  # noqa: N815


Chunk.model_rebuild()
