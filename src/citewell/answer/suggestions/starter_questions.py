"""First questions for an empty page: made of the book's own headings, shown only where the book surely answers them.

No language model is asked, and no more than `TRIES` searches are made.
"""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from citewell.answer.engines import AnswerEngines
from citewell.answer.question import resolve_follow_up
from citewell.answer.quoting import CONFIDENCE_BANDS, estimate_confidence, score_candidates
from citewell.answer.retrieval import retrieve
from citewell.answer.suggestions.heading_questions import heading_questions
from citewell.models import DocumentSummary, Project
from citewell.ports import Library

MAX_SUGGESTIONS = 4
TRIES = 16
_PASSAGES = 5  # that an answer looks at
_HEADINGS, _CHARACTERS = 60, 100_000  # of a document that are read: a whole book may be one


async def suggest_questions(project: Project, *, engines: AnswerEngines, library: Library) -> list[str]:
    """Up to four questions, one of a document at most, from all over the book; the same for the same book."""
    found: list[str] = []
    for part in parts(await library.documents(project)):
        for document, question in await _phrased(part, library):
            if question not in found and await _answers(question, document, project=project, engines=engines):
                found.append(question)
                break
    return found


def parts(documents: Sequence[DocumentSummary]) -> list[list[DocumentSummary]]:
    """The book in up to four parts, of each as many documents as may be tried, evenly from first to last. Pure."""
    count = min(MAX_SUGGESTIONS, len(documents))
    cut = [documents[place * len(documents) // count : (place + 1) * len(documents) // count] for place in range(count)]
    return [_evenly(part, TRIES // MAX_SUGGESTIONS) for part in cut]


def _evenly(documents: Sequence[DocumentSummary], most: int) -> list[DocumentSummary]:
    count = min(most, len(documents))
    return [documents[(2 * place + 1) * len(documents) // (2 * count)] for place in range(count)]


async def _phrased(documents: Sequence[DocumentSummary], library: Library) -> list[tuple[UUID, str]]:
    """As many questions as may be tried: the best of every document before the second best of any."""
    every: list[tuple[int, int, UUID, str]] = []
    for document in documents:
        chunks = [chunk async for batch in library.chunks(document.id) for _, chunk in batch]
        headings = dict.fromkeys(heading for chunk in chunks for heading in (chunk.chapter, *chunk.headings))
        text = "\n\n".join(chunk.text for chunk in chunks)
        # Words take time, and nobody else should wait for it.
        asked = await asyncio.to_thread(heading_questions, list(headings)[:_HEADINGS], text[:_CHARACTERS])
        every += [(turn, one.rank, document.id, one.question) for turn, one in enumerate(asked)]
    every.sort(key=lambda one: one[:2])
    return [(document, question) for _, _, document, question in every[: TRIES // MAX_SUGGESTIONS]]


async def _answers(question: str, document: UUID, *, project: Project, engines: AnswerEngines) -> bool:
    """Whether an answer would be sure of itself, and would come from this document before all others."""
    asked = resolve_follow_up(question)
    if asked.question != question or not asked.wants_answer:
        return False
    found = await retrieve(question, project=project.id, engines=engines, limit=_PASSAGES)
    if not found.passages or found.passages[0].chunk.document_id != document:
        return False
    scored = score_candidates(question, found.passages, found.weights)
    return bool(estimate_confidence(question, found, scored) >= CONFIDENCE_BANDS["weak"])
