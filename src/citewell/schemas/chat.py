"""`POST /chat`, `/chat/stream` and `/history/{session_id}`: chat clients with sessions."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from citewell.schemas.ask import Topic
from citewell.schemas.errors import ErrorResponse
from citewell.schemas.fields import SOMETHING, Query, Selection, Uuid4, unsaid
from citewell.schemas.location import Receipt
from citewell.schemas.support import NOTICE, SUPPORT, SupportedSentence

CitationStatus = Literal["valid", "moved", "changed", "deleted", "unknown"]


class MetadataFilter(BaseModel):
    source_url_prefix: str | None = Field(
        None,
        description="How the page's address begins: an absolute URL, or a path from `/`.",
        examples=["/docs/module1"],
        json_schema_extra={"pattern": "^(/|https?://)"},
    )
    section: str | None = Field(
        None,
        description="The name of a section, exactly.",
        examples=["Inverse Kinematics"],
        json_schema_extra={"pattern": SOMETHING},
    )


class ChatRequest(BaseModel):
    query: Query = Field(examples=["What is inverse kinematics?"])
    selected_text: Selection | None = Field(None, description="If given, the answer comes from this text alone.")
    session_id: Uuid4 | None = Field(None, description="The session to go on with; a new one is made if left out.")
    filters: MetadataFilter | None = None


class SourceCitation(Receipt):
    source_url: str = Field(description="The page at the quoted words; without an address, `/` and the file's path.")
    title: str
    section: str
    chunk_position: int = Field(ge=0)
    similarity_score: float = Field(ge=0, le=1)
    snippet: str = Field(max_length=200)
    chunk_id: str | None = None
    document_id: UUID | None = None
    quotes: list[str | None] | None = Field(
        None,
        exclude_if=unsaid,
        description="For each `[n]` in the answer that is of this source, in order: the words of the chunk that it "
        "rests on, verbatim, or null where nobody knows. `[n]` in code, in a link or after a backslash is none.",
    )
    status: CitationStatus | None = Field(
        None, exclude_if=unsaid, description="In a history: whether the citation still holds. An answer is fresh."
    )


class SelectedTextCitation(BaseModel):
    source_type: Literal["selected_text"] = "selected_text"
    selection_length: int = Field(ge=0)
    snippet: str = Field(max_length=200)
    relevance_note: str


class ResponseMetadata(BaseModel):
    query_time_ms: float = Field(ge=0)
    retrieval_count: int = Field(ge=0)
    mode: Literal["full", "selected_text", "retrieval_only", "no_results"]
    low_confidence: bool = False
    request_id: UUID


CONFIDENCE: float | None = Field(
    None, exclude_if=unsaid, ge=0, le=1, description="How likely this answers the question; 0 where nothing does."
)
NEAREST: list[Topic] | None = Field(
    None, exclude_if=unsaid, description="Where nothing was answered: topics that come nearest to the question."
)


class ChatResponse(BaseModel):
    """`answer` is null exactly when `fallback_message` is not: then the sources are all there is."""

    answer: str | None
    fallback_message: str | None
    sources: list[SourceCitation | SelectedTextCitation]
    metadata: ResponseMetadata
    session_id: UUID
    confidence: float | None = CONFIDENCE
    nearest: list[Topic] | None = NEAREST
    support: list[SupportedSentence] | None = SUPPORT
    notice: str | None = NOTICE


class ChatEvent(BaseModel):
    """One event of `/chat/stream`: a stage, a piece of text, or the end with the whole response or an error."""

    stage: Literal["retrieving", "generating"] | None = Field(None, exclude_if=unsaid)
    delta: str | None = Field(None, exclude_if=unsaid)
    done: Literal[True] | None = Field(None, exclude_if=unsaid)
    response: ChatResponse | None = Field(None, exclude_if=unsaid)
    error: ErrorResponse | None = Field(None, exclude_if=unsaid)


class HistoryEntry(BaseModel):
    """An exchange with all that its reader was given."""

    timestamp: datetime
    query: str
    response: str
    sources: list[SourceCitation | SelectedTextCitation]
    complete: bool = Field(True, description="False where the reader left before the answer was told.")
    metadata: ResponseMetadata | None = Field(None, exclude_if=unsaid)
    confidence: float | None = CONFIDENCE
    nearest: list[Topic] | None = NEAREST
    support: list[SupportedSentence] | None = SUPPORT
    notice: str | None = NOTICE
    feedback: Literal["up", "down"] | None = Field(None, exclude_if=unsaid, description="The reader's vote, if any.")


class HistoryResponse(BaseModel):
    session_id: UUID
    entries: list[HistoryEntry] = Field(description="Oldest first.")
    total_entries: int = Field(ge=0)
