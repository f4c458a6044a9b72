"""`/api/v1/citations`: what was cited, and whether it still stands."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from citewell.schemas.chat import CitationStatus
from citewell.schemas.fields import Text
from citewell.schemas.v1.chat import Source

_ASKS: JsonDict = {
    "anyOf": [
        {"required": ["ids"], "properties": {"ids": {"minItems": 1}}},
        {"required": ["answer"], "properties": {"answer": {"type": "string"}}},
    ]
}


class VerifyRequest(BaseModel):
    """Chunk ids, or an answer with `[<chunk id>]` in it, or both."""

    model_config = ConfigDict(json_schema_extra=_ASKS)

    projectId: UUID | None = Field(None, description="The default project, if left out.")  # noqa: N815
    ids: list[Text] = Field(default_factory=list, max_length=1000)
    answer: Text | None = Field(None, max_length=200_000)

    @model_validator(mode="after")
    def _asks_something(self) -> "VerifyRequest":
        if not self.ids and self.answer is None:
            raise PydanticCustomError("missing", "say which chunk ids, or give an answer that cites some")
        return self


class Verdict(BaseModel):
    """`valid`: the same words in the same place. `moved`: the same words elsewhere. `changed`: the document is there,
    the words are not. `deleted`: the document is gone. `unknown`: there never was such a chunk here.

    `now` is where the words stand, or for `changed` what stands in their place.
    """

    id: str
    status: CitationStatus
    now: Source | None = None


class VerifyResponse(BaseModel):
    citations: list[Verdict]


class CitationDetail(BaseModel):
    """What stands behind a citation, with enough around it to read it in context.

    Of words that `moved`, where they stand now; of words that `changed`, what stands in their place. Where the document
    is `deleted` there is nothing to show.
    """

    id: str = Field(description="The chunk that was cited.")
    status: Literal["valid", "moved", "changed", "deleted"]
    documentId: UUID | None = None  # noqa: N815
    source: str | None = Field(None, description="The file's name.")
    title: str | None = Field(None, description="The document's.")
    section: str | None = None
    headings: list[str] = Field(default_factory=list, description="From the outermost to the section's own.")
    chunkIndex: int | None = Field(None, ge=0)  # noqa: N815
    chunkCount: int | None = Field(None, ge=1, description="How many chunks the document has.")  # noqa: N815
    line: int | None = Field(None, ge=1)
    lastLine: int | None = Field(None, ge=1)  # noqa: N815
    page: int | None = Field(None, ge=1)
    chunkText: str | None = None  # noqa: N815
    before: str = Field("", description="What stands directly before the chunk, in at most 600 characters.")
    after: str = Field("", description="What stands directly after it, in at most 600 characters.")
    source_url: str | None = Field(None, description="The live page at the chunk's heading, where it has an address.")
