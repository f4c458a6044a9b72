"""`POST /chat`, `/chat/stream` and `/history/{session_id}`: conversations that the server stores."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from citewell.models import Filters
from citewell.schemas.answer import RatedAnswerFields
from citewell.schemas.errors import ErrorResponse
from citewell.schemas.fields import Query, SectionName, Selection, UrlPrefix, Uuid4, is_none
from citewell.schemas.location import SourceLocation
from citewell.schemas.request import Request

CitationStatus = Literal["valid", "moved", "changed", "deleted", "unknown"]


class MetadataFilter(Request):
    source_url_prefix: UrlPrefix | None = Field(
        None,
        description="How the page's address begins: an absolute URL, or a path from `/`.",
        examples=["/docs/module1"],
    )
    section: SectionName | None = Field(
        None, description="The exact name of a section.", examples=["Inverse Kinematics"]
    )

    def to_filters(self) -> Filters:
        """The filters of a search; raises BadFilter."""
        return Filters(source_url_prefix=self.source_url_prefix, section=self.section)


class ChatRequest(Request):
    query: Query = Field(examples=["What is inverse kinematics?"])
    selected_text: Selection | None = Field(None, description="If given, the answer comes from this text alone.")
    session_id: Uuid4 | None = Field(None, description="The session to continue; left out, a new one is created.")
    filters: MetadataFilter | None = None


class SourceCitation(SourceLocation):
    source_url: str = Field(description="The page at the quoted words; without an address, `/` and the file's path.")
    title: str
    section: str
    chunk_position: int = Field(ge=0)
    similarity_score: float = Field(ge=0, le=1)
    snippet: str = Field(max_length=200)
    quotes: list[str | None] | None = Field(
        None,
        exclude_if=is_none,
        description="For each marker `[n]` of this source in the answer, in order: the words of the chunk that it "
        "rests on, verbatim, or null where they are unknown. `[n]` in code, in a link or after a backslash is none.",
    )
    status: CitationStatus | None = Field(
        None, exclude_if=is_none, description="Only in a history: whether the citation is still valid."
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


class ChatResponse(RatedAnswerFields):
    """`answer` is null exactly when `fallback_message` is not: then the sources are all there is."""

    answer: str | None
    fallback_message: str | None
    sources: list[SourceCitation | SelectedTextCitation]
    metadata: ResponseMetadata
    session_id: UUID


class ChatEventFields(BaseModel):
    """What the events of `/chat/stream` and `/api/v1/chat/stream` share."""

    stage: Literal["retrieving", "generating"] | None = Field(None, exclude_if=is_none)
    delta: str | None = Field(None, exclude_if=is_none)
    done: Literal[True] | None = Field(None, exclude_if=is_none)
    error: ErrorResponse | None = Field(None, exclude_if=is_none)


class ChatEvent(ChatEventFields):
    """One event of `/chat/stream`: a stage, a piece of text, or the end with the whole response or an error."""

    response: ChatResponse | None = Field(None, exclude_if=is_none)


class HistoryEntry(RatedAnswerFields):
    """An exchange with everything that its reader was shown."""

    timestamp: datetime
    query: str
    response: str
    sources: list[SourceCitation | SelectedTextCitation]
    complete: bool = Field(True, description="False where the client disconnected before the answer was complete.")
    metadata: ResponseMetadata | None = Field(None, exclude_if=is_none)
    feedback: Literal["up", "down"] | None = Field(None, exclude_if=is_none, description="The reader's vote, if any.")


class HistoryResponse(BaseModel):
    session_id: UUID
    entries: list[HistoryEntry] = Field(description="Oldest first.")
    total_entries: int = Field(ge=0)
