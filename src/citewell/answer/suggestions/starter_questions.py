"""Suggests first questions for an empty chat: made from the documents' headings, only those that they surely answer.

Calls no LLM, and searches at most `MAX_SEARCHES` times.
"""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from citewell.answer.engines import AnswerEngines
from citewell.answer.question import resolve_follow_up
from citewell.answer.quoting import CONFIDENCE_BANDS, quote, read_passages
from citewell.answer.retrieval import retrieve
from citewell.answer.suggestions.heading_questions import heading_questions
from citewell.models import DocumentSummary, Project
from citewell.ports import Library

MAX_SUGGESTIONS = 4
MAX_SEARCHES = 16
_MAX_PASSAGES = 5  # as many as an answer uses
_MAX_HEADINGS, _MAX_CHARACTERS = 60, 100_000  # read of one document: it may be a whole book


async def suggest_questions(project: Project, *, engines: AnswerEngines, library: Library) -> list[str]:
    """Up to four questions, at most one from a document, from all over the project; the same for the same documents."""
    suggestions: list[str] = []
    for documents in sample_documents(await library.documents(project)):
        for document_id, question in await _best_questions(documents, library):
            if question not in suggestions and await _is_answered_by(
                document_id, question, project=project, engines=engines
            ):
                suggestions.append(question)
                break
    return suggestions


def sample_documents(documents: Sequence[DocumentSummary]) -> list[list[DocumentSummary]]:
    """Documents to try, in a list for each suggestion: evenly from the first to the last. Pure."""
    count = min(MAX_SUGGESTIONS, len(documents))
    parts = [
        documents[index * len(documents) // count : (index + 1) * len(documents) // count] for index in range(count)
    ]
    return [_evenly_spaced(part, MAX_SEARCHES // MAX_SUGGESTIONS) for part in parts]


def _evenly_spaced(documents: Sequence[DocumentSummary], limit: int) -> list[DocumentSummary]:
    """At most `limit` of the documents, evenly from the first to the last."""
    count = min(limit, len(documents))
    return [documents[(2 * index + 1) * len(documents) // (2 * count)] for index in range(count)]


async def _best_questions(documents: Sequence[DocumentSummary], library: Library) -> list[tuple[UUID, str]]:
    """As many questions as may be searched for: the best of each document before the second best of any."""
    ranked: list[tuple[int, int, UUID, str]] = []
    for document in documents:
        chunks = [chunk async for batch in library.chunks(document.id) for _, chunk in batch]
        headings = dict.fromkeys(heading for chunk in chunks for heading in (chunk.chapter, *chunk.headings))
        text = "\n\n".join(chunk.text for chunk in chunks)
        # In a thread: this takes time, and must not block the event loop.
        questions = await asyncio.to_thread(heading_questions, list(headings)[:_MAX_HEADINGS], text[:_MAX_CHARACTERS])
        ranked += [(index, question.rank, document.id, question.question) for index, question in enumerate(questions)]
    ranked.sort(key=lambda row: row[:2])
    return [(document_id, question) for _, _, document_id, question in ranked[: MAX_SEARCHES // MAX_SUGGESTIONS]]


async def _is_answered_by(document_id: UUID, question: str, *, project: Project, engines: AnswerEngines) -> bool:
    """Whether the answer would be confident, with the best passage from this document."""
    resolved = resolve_follow_up(question)
    if resolved.question != question or not resolved.wants_answer:
        return False
    retrieval = await retrieve(question, project=project.id, engines=engines, limit=_MAX_PASSAGES)
    if not retrieval.passages or retrieval.passages[0].chunk.document_id != document_id:
        return False
    selection = quote(resolved, await read_passages(resolved, retrieval, engines.reader))
    return bool(selection.quotes) and selection.confidence >= CONFIDENCE_BANDS["weak"]
