"""`POST /api/v1/search`: passages without an answer."""

from pydantic import BaseModel, Field

from citewell.schemas.chat import MetadataFilter
from citewell.schemas.fields import Query, Uuid, Whole
from citewell.schemas.request import Request
from citewell.schemas.v1.chat import Source


class SearchRequest(Request):
    projectId: Uuid | None = Field(None, description="The default project, if left out.")  # noqa: N815
    query: Query = Field(examples=["gyroscope drift"])
    top_k: Whole = Field(5, ge=1, le=20)
    filters: MetadataFilter | None = None


class SearchResponse(BaseModel):
    """Best first, as an answer would use them. The order also considers words, so `distance` need not ascend."""

    results: list[Source]
