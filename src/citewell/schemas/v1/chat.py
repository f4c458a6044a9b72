"""`POST /api/v1/chat` and `/api/v1/chat/stream`: the client keeps the conversation."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from citewell.schemas.answer import AnswerFields
from citewell.schemas.chat import ChatEventFields
from citewell.schemas.fields import HistoryText, Query, Uuid, is_none
from citewell.schemas.location import Location
from citewell.schemas.request import Request

Role = Literal["user", "assistant", "system"]


class HistoryMessage(Request):
    """A message of the conversation so far."""

    role: Role
    content: HistoryText


class ChatRequest(Request):
    projectId: Uuid = Field(examples=["2369c456-6c49-5e11-8418-43a18a4fa2d6"])  # noqa: N815 (the contract's spelling)
    message: Query = Field(examples=["Why do gyroscopes drift?"])
    history: list[HistoryMessage] | None = Field(
        None, max_length=1000, description="Earlier messages; the last 5 exchanges are used."
    )
    mode: Literal["vector"] | None = Field(None, description="How to search; there is only one way so far.")


class Message(BaseModel):
    role: Role
    content: str


class Source(Location):
    """`document_text[start:end] == chunkText`. A synthesized source has null ids and comes first.

    A document that is stored whole has null `id` and `chunkIndex`; the response cites it as `[<documentId>]`.
    """

    id: str | None = Field(description="The chunk's id, as it stands in brackets in the response.")
    documentId: UUID | None  # noqa: N815
    chunkText: str = Field(min_length=1)  # noqa: N815
    chunkIndex: int | None = Field(ge=0)  # noqa: N815
    source: str = Field(min_length=1, description="The file's name.")
    distance: float | None = Field(ge=0, le=1, description="Cosine distance: 0 is identical.")
    source_url: str | None = Field(description="The live page at the quoted words, where it has an address.")
    chapter: str | None = None
    section: str | None = None


class ChatResponse(AnswerFields):
    response: str
    messages: list[Message]
    sources: list[Source]
    model: str
    totalDuration: int | None = Field(ge=0, description="Milliseconds.")  # noqa: N815
    promptEvalCount: int | None = Field(ge=0)  # noqa: N815
    evalCount: int | None = Field(ge=0)  # noqa: N815


class ChatEvent(ChatEventFields):
    """One event of the stream: a stage, a piece of text, or the end with the whole response or an error."""

    response: ChatResponse | None = Field(None, exclude_if=is_none)
