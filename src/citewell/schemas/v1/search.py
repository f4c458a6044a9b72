"""`POST /api/v1/search`: passages without an answer."""

from uuid import UUID

from pydantic import BaseModel, Field

from citewell.schemas.chat import MetadataFilter
from citewell.schemas.fields import Query, Whole
from citewell.schemas.v1.chat import Source


class SearchRequest(BaseModel):
    projectId: UUID | None = Field(None, description="The default project, if left out.")  # noqa: N815
    query: Query = Field(examples=["gyroscope drift"])
    top_k: Whole = Field(5, ge=1, le=20)
    filters: MetadataFilter | None = None


class SearchResponse(BaseModel):
    """Best first, as an answer would use them. The order also considers words, so `distance` need not ascend."""

    results: list[Source]
