"""First questions for an empty page: made of the book's own headings, shown only where the book surely answers them.

No language model is asked, and no more than `TRIES` searches are made.
"""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from citewell.answer.confidence import BANDS, certainty_in
from citewell.answer.extract import candidates
from citewell.answer.phrasing import questions
from citewell.answer.retrieve import Engines, retrieve
from citewell.answer.understand import understand
from citewell.models import Entered, Project
from citewell.ports import Library

MOST = 4
TRIES = 16
_PASSAGES = 5  # that an answer looks at
_HEADINGS, _CHARACTERS = 60, 100_000  # of a document that are read: a whole book may be one


async def suggest(project: Project, *, engines: Engines, library: Library) -> list[str]:
    """Up to four questions, one of a document at most, from all over the book; the same for the same book."""
    found: list[str] = []
    for part in parts(await library.documents(project)):
        for document, question in await _phrased(part, library):
            if question not in found and await _answers(question, document, project=project, engines=engines):
                found.append(question)
                break
    return found


def parts(documents: Sequence[Entered]) -> list[list[Entered]]:
    """The book in up to four parts, of each as many documents as may be tried, evenly from first to last. Pure."""
    count = min(MOST, len(documents))
    cut = [documents[place * len(documents) // count : (place + 1) * len(documents) // count] for place in range(count)]
    return [_evenly(part, TRIES // MOST) for part in cut]


def _evenly(documents: Sequence[Entered], most: int) -> list[Entered]:
    count = min(most, len(documents))
    return [documents[(2 * place + 1) * len(documents) // (2 * count)] for place in range(count)]


async def _phrased(documents: Sequence[Entered], library: Library) -> list[tuple[UUID, str]]:
    """As many questions as may be tried: the best of every document before the second best of any."""
    every: list[tuple[int, int, UUID, str]] = []
    for document in documents:
        chunks = [chunk async for batch in library.chunks(document.id) for _, chunk in batch]
        headings = dict.fromkeys(heading for chunk in chunks for heading in (chunk.chapter, *chunk.headings))
        text = "\n\n".join(chunk.text for chunk in chunks)
        # Words take time, and nobody else should wait for it.
        asked = await asyncio.to_thread(questions, list(headings)[:_HEADINGS], text[:_CHARACTERS])
        every += [(turn, one.rank, document.id, one.question) for turn, one in enumerate(asked)]
    every.sort(key=lambda one: one[:2])
    return [(document, question) for _, _, document, question in every[: TRIES // MOST]]


async def _answers(question: str, document: UUID, *, project: Project, engines: Engines) -> bool:
    """Whether an answer would be sure of itself, and would come from this document before all others."""
    asked = understand(question)
    if asked.question != question or not asked.wants_answer:
        return False
    found = await retrieve(question, project=project.id, engines=engines, limit=_PASSAGES)
    if not found.passages or found.passages[0].chunk.document_id != document:
        return False
    scored = candidates(question, found.passages, found.weights)
    return bool(certainty_in(question, found, scored) >= BANDS["weak"])
