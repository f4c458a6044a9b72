"""The one entry point of this package for the answer flow: passages from the reader's selection or from the index."""

from uuid import UUID

from citewell.answer.engines import AnswerEngines
from citewell.answer.retrieval.search import Retrieval, retrieve
from citewell.answer.retrieval.selection import retrieve_from_selection
from citewell.models import NO_FILTERS, Filters


async def retrieve_passages(
    question: str,
    *,
    project: UUID,
    engines: AnswerEngines,
    limit: int,
    selection: str = "",
    hint: str = "",
    filters: Filters = NO_FILTERS,
) -> Retrieval:
    """The passages that answer best.

    With a `selection`, only its parts: the index is not searched. Else those of the index that pass the `filters`;
    `hint` is the text the reader looks at, which may decide which of them comes first.
    """
    if selection:
        return await retrieve_from_selection(question, selection, engines=engines, limit=limit)
    return await retrieve(question, project=project, engines=engines, limit=limit, filters=filters, hint=hint)
