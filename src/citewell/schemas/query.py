"""`POST /api/query`: "ask about this passage" buttons in a book."""

from uuid import UUID

from pydantic import BaseModel, Field

from citewell.schemas.fields import Hint, ShortQuery
from citewell.schemas.location import Receipt
from citewell.schemas.support import NOTICE, SUPPORT, SupportedSentence


class QueryRequest(BaseModel):
    query: ShortQuery = Field(examples=["What does this mean?"])
    selected_text: Hint | None = Field(
        None,
        description="Words the reader marked: a hint that steers the search, at most 200 words.",
        examples=["Integrating a bias makes the result drift."],
    )


class Source(Receipt):
    chapter: str = Field(min_length=1)
    section: str = Field(min_length=1)
    filename: str = Field(min_length=1)
    score: float = Field(ge=0, le=1)
    chunk_id: str | None = None
    document_id: UUID | None = None
    source_url: str | None = None


class QueryResponse(BaseModel):
    """`[1]` in the answer is the first source. What the book does not cover, the answer says; then the sources
    name the nearest topics it does cover."""

    answer: str = Field(min_length=1)
    sources: list[Source] = Field(min_length=1, max_length=5)
    support: list[SupportedSentence] | None = SUPPORT
    notice: str | None = NOTICE
