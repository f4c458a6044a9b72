"""`POST /api/v1/citations/verify`: whether what was cited still stands."""

from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from citewell.wire.chat import CitationStatus
from citewell.wire.text import Text
from citewell.wire.v1_chat import Source

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
