"""Which points of a collection belong to a project and to one of its generations, and match a search's filters.

Payload of a point beside the chunk's: `added`, the generation that it came with, and `removed`, the first generation
that it is not in; without `removed` it is in every later one.
"""

from collections.abc import Sequence
from uuid import UUID

from qdrant_client.models import Condition, FieldCondition, Filter, MatchAny, MatchPrefix, MatchValue, Range

from citewell.adapters.index_format import normalize_url
from citewell.models import NO_FILTERS, Filters

ADDED, REMOVED = "added", "removed"


def of_project(project: UUID) -> FieldCondition:
    return FieldCondition(key="project_id", match=MatchValue(value=str(project)))


def of_documents(documents: Sequence[UUID]) -> FieldCondition:
    return FieldCondition(key="document_id", match=MatchAny(any=[str(document) for document in documents]))


def up_to(field: str, generation: int) -> FieldCondition:
    return FieldCondition(key=field, range=Range(lte=generation))


def after(field: str, generation: int) -> FieldCondition:
    return FieldCondition(key=field, range=Range(gt=generation))


def in_generation(project: UUID, generation: int, filters: Filters = NO_FILTERS, *more: Condition) -> Filter:
    """The points of a generation that match `filters`."""
    narrower: list[Condition] = [
        FieldCondition(key=field, match=MatchValue(value=value))
        for field, value in (("section", filters.section), ("chapter", filters.chapter))
        if value is not None
    ]
    if (path := filters.path) is not None:
        in_place = MatchPrefix(prefix=path) if path.endswith("/") else MatchValue(value=path)
        narrower.append(FieldCondition(key="filename", match=in_place))
    if filters.source_url_prefix is not None:
        prefix = MatchPrefix(prefix=normalize_url(filters.source_url_prefix))
        narrower.append(FieldCondition(key="matchable_urls", match=prefix))
    return Filter(
        must=[of_project(project), up_to(ADDED, generation), *narrower, *more], must_not=[up_to(REMOVED, generation)]
    )
