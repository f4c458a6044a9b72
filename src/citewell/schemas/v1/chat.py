"""`POST /api/v1/chat` and `/api/v1/chat/stream`: clients that keep the conversation themselves."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from citewell.schemas.errors import ErrorResponse
from citewell.schemas.fields import Query, Text, unsaid
from citewell.schemas.location import Receipt
from citewell.schemas.support import NOTICE, SUPPORT, SupportedSentence


class Message(BaseModel):
    role: Literal["user", "assistant", "system"]
    content: Text


class ChatRequest(BaseModel):
    projectId: UUID = Field(examples=["2369c456-6c49-5e11-8418-43a18a4fa2d6"])  # noqa: N815 (the contract's spelling)
    message: Query = Field(examples=["Why do gyroscopes drift?"])
    history: list[Message] | None = Field(None, description="What was said before; the last 5 exchanges count.")
    mode: str | None = Field(None, max_length=64, description="How to search, where there is more than one way.")


class Source(Receipt):
    """`document_text[start:end] == chunkText`. A synthesized source has null ids and comes first."""

    id: str | None = Field(description="The chunk; what stands in brackets in the response.")
    documentId: UUID | None  # noqa: N815
    chunkText: str = Field(min_length=1)  # noqa: N815
    chunkIndex: int | None = Field(ge=0)  # noqa: N815
    source: str = Field(min_length=1, description="What to call it: the file's name.")
    distance: float | None = Field(ge=0, le=1, description="Cosine distance: 0 is identical.")
    source_url: str | None = Field(description="The live page at the quoted words, where it has an address.")
    chapter: str | None = None
    section: str | None = None


class ChatResponse(BaseModel):
    response: str
    messages: list[Message]
    sources: list[Source]
    model: str
    totalDuration: int | None = Field(ge=0, description="Milliseconds.")  # noqa: N815
    promptEvalCount: int | None = Field(ge=0)  # noqa: N815
    evalCount: int | None = Field(ge=0)  # noqa: N815
    support: list[SupportedSentence] | None = SUPPORT
    notice: str | None = NOTICE


class ChatEvent(BaseModel):
    """One event of the stream: a stage, a piece of text, or the end with the whole response or an error."""

    stage: Literal["retrieving", "generating"] | None = Field(None, exclude_if=unsaid)
    delta: str | None = Field(None, exclude_if=unsaid)
    done: Literal[True] | None = Field(None, exclude_if=unsaid)
    response: ChatResponse | None = Field(None, exclude_if=unsaid)
    error: ErrorResponse | None = Field(None, exclude_if=unsaid)
