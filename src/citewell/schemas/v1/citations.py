"""`/api/v1/citations`: the chunk behind a citation, and whether the citation is still valid."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from citewell.schemas.chat import CitationStatus
from citewell.schemas.fields import CitationId, CitedText, Uuid
from citewell.schemas.request import Request
from citewell.schemas.v1.chat import Source

_IDS_OR_ANSWER: JsonDict = {
    "anyOf": [
        {"required": ["ids"], "properties": {"ids": {"minItems": 1}}},
        {"required": ["answer"], "properties": {"answer": {"type": "string"}}},
    ]
}


class VerifyRequest(Request):
    """Chunk ids, or an answer with `[<chunk id>]` in it, or both."""

    model_config = ConfigDict(json_schema_extra=_IDS_OR_ANSWER)

    projectId: Uuid | None = Field(None, description="The default project, if left out.")  # noqa: N815
    ids: list[CitationId] = Field(default_factory=list, max_length=1000)
    answer: CitedText | None = None

    @model_validator(mode="after")
    def _check_not_empty(self) -> "VerifyRequest":
        if not self.ids and self.answer is None:
            raise PydanticCustomError("nothing_to_verify", "send chunk ids, or an answer that cites some")
        return self


class Verdict(BaseModel):
    """`valid`: the same text in the same place. `moved`: the same text in another place. `changed`: the document
    exists, the text does not. `deleted`: the document is gone. `unknown`: the server never had such a chunk.

    `now` is where the text is now, or for `changed` what replaced it.
    """

    id: str
    status: CitationStatus
    now: Source | None = None


class VerifyResponse(BaseModel):
    citations: list[Verdict]


class CitationDetail(BaseModel):
    """The chunk behind a citation, with the text around it.

    Of text that `moved`, its new place; of text that `changed`, what replaced it. Of a `deleted` document there is
    nothing to show.
    """

    id: str = Field(description="The chunk that was cited.")
    status: Literal["valid", "moved", "changed", "deleted"]
    documentId: UUID | None = None  # noqa: N815
    source: str | None = Field(None, description="The file's name.")
    title: str | None = Field(None, description="The document's title.")
    section: str | None = None
    headings: list[str] = Field(default_factory=list, description="From the outermost to the section's own.")
    chunkIndex: int | None = Field(None, ge=0)  # noqa: N815
    chunkCount: int | None = Field(None, ge=1, description="How many chunks the document has.")  # noqa: N815
    line: int | None = Field(None, ge=1)
    lastLine: int | None = Field(None, ge=1)  # noqa: N815
    page: int | None = Field(None, ge=1)
    chunkText: str | None = None  # noqa: N815
    before: str = Field("", description="The text directly before the chunk, at most 600 characters.")
    after: str = Field("", description="The text directly after it, at most 600 characters.")
    source_url: str | None = Field(None, description="The live page at the chunk's heading, where it has an address.")
