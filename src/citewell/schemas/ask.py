"""`POST /api/ask` and `/api/ask/stream`: the web chat's door."""

from uuid import UUID

from pydantic import BaseModel, Field

from citewell.schemas.fields import Question, Whole, unsaid
from citewell.schemas.location import Receipt
from citewell.schemas.support import NOTICE, SUPPORT, SupportedSentence


class AskRequest(BaseModel):
    question: Question = Field(examples=["Why do gyroscopes drift?"])
    top_k: Whole = Field(5, ge=1, le=20, description="How many passages to look at.")


class Citation(Receipt):
    chapter: str = Field(examples=["02-proprioception"])
    chapter_title: str = Field(examples=["Proprioception: Sensing the Body"])
    source_file: str = Field(examples=["02-body-and-senses/02-proprioception.mdx"])
    excerpt: str = Field(max_length=200)
    chunk_id: str | None = Field(None, description="The chunk's id, which never comes to mean other words.")
    document_id: UUID | None = None
    source_url: str | None = Field(None, description="The live page at the quoted words, where it has an address.")


class Topic(BaseModel):
    """What the book does cover; `url` is its live page, where it has one."""

    title: str
    url: str | None = Field(None, exclude_if=unsaid)
    source_file: str


class AskResponse(BaseModel):
    """`[1]` in the answer is the first of the citations. Confidence 0 means the book does not say.

    Then `nearest` may name the topics it covers nearest to the question.
    """

    answer: str
    citations: list[Citation]
    confidence: float = Field(ge=0, le=1)
    nearest: list[Topic] | None = Field(None, exclude_if=unsaid)
    support: list[SupportedSentence] | None = SUPPORT
    notice: str | None = NOTICE


class StreamChunk(BaseModel):
    """One event; joined, every `content` gives the answer. Citations and confidence come with the last."""

    content: str
    done: bool = False
    citations: list[Citation] | None = Field(None, exclude_if=unsaid)
    confidence: float | None = Field(None, exclude_if=unsaid)
    nearest: list[Topic] | None = Field(None, exclude_if=unsaid)
    support: list[SupportedSentence] | None = SUPPORT
    notice: str | None = NOTICE
    error: str | None = Field(None, exclude_if=unsaid)
