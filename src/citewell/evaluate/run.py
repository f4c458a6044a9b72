"""Ask golden questions through the answer flow, and record the outcome of each.

An answer is scored as a reader gets it, from five passages. The ranking is scored ten deep, so it comes from a
second search: a flow that retrieves ten passages would also answer from ten.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from uuid import UUID

from citewell.answer import flow
from citewell.answer.engines import AnswerEngines
from citewell.answer.reply import NumberedMarkers
from citewell.answer.retrieval import retrieve
from citewell.evaluate.questions import Question
from citewell.evaluate.relevance import (
    DEPTH,
    IndexedDocument,
    Placement,
    Relevant,
    contains_answer,
    find_relevant,
    place_items,
)
from citewell.models import Answer, Passage, Project, Segment
from citewell.ports import Library


@dataclass(frozen=True, slots=True)
class Citation:
    """Whether a citation leads to its passage; `quotes`: whether the passage contains the quote, None if none."""

    resolves: bool
    quotes: bool | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A question, its answer, and the passages that were retrieved."""

    question: Question
    text: str
    answer: Answer
    ranking: tuple[Passage, ...]
    """The first ten passages."""
    relevant: Relevant
    citations: tuple[Citation, ...]
    seconds: float

    @property
    def declined(self) -> bool:
        return self.answer.confidence == 0

    @property
    def by_file(self) -> Placement | None:
        return place_items(self._ids, self.relevant.files)

    @property
    def by_heading(self) -> Placement | None:
        return place_items(self._ids, self.relevant.headings)

    @property
    def by_passage(self) -> Placement | None:
        return place_items(self._ids, self.relevant.passages)

    @property
    def answer_text(self) -> str:
        """The answer without its citation markers."""
        return " ".join(segment.text for segment in self.answer.segments)

    @property
    def has_key_answer(self) -> bool | None:
        """Whether the answer contains one of the key answers; None if the question has none."""
        if self.question.unanswerable or not self.question.answers:
            return None
        return not self.declined and contains_answer(self.answer_text, self.question.answers)

    @property
    def is_right(self) -> bool | None:
        """What confidence predicts: there is an answer, from passages that include the right file, and it contains
        a key answer if the question has any. False for uncovered questions and for refusals.

        None if a covered question names neither file nor key answer.
        """
        if self.question.unanswerable or self.declined:
            return False
        right_file = {passage.chunk.source for passage in self.answer.retrieved} & set(self.question.files)
        checks = [bool(right_file)] if self.question.files else []
        checks += [self.has_key_answer] if self.has_key_answer is not None else []
        return all(checks) if checks else None

    @property
    def complaint(self) -> str | None:
        """What went wrong; of several, the one that causes the others. None if nothing did."""
        if self.question.unanswerable:
            return None if self.declined else "answered, though not covered"
        problems = {
            "right file not found": self.by_file is not None and not self.by_file.is_hit_at(5),
            "declined, though covered": self.declined,
            "key answer missing": self.has_key_answer is False,
            "a citation does not hold": any(
                not citation.resolves or citation.quotes is False for citation in self.citations
            ),
        }
        return next((name for name, applies in problems.items() if applies), None)

    @property
    def _ids(self) -> list[str]:
        return [passage.chunk.id for passage in self.ranking]


def excerpt(passage: Passage) -> str:
    """The first 200 characters of a passage, on one line."""
    return " ".join(passage.chunk.text.split())[:200]


async def run_questions(
    questions: Sequence[Question],
    *,
    project: Project,
    engines: AnswerEngines,
    library: Library,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[Outcome]:
    """Ask the questions one after the other, each without a conversation before it."""
    documents = _Documents(library, {document.path: document.id for document in await library.documents(project)})
    outcomes: list[Outcome] = []
    if questions:  # the first search loads the model, which readers of a running server do not wait for
        await _retrieve(questions[0], project=project, engines=engines)
    for question in questions:
        outcomes.append(await _ask(question, project=project, engines=engines, documents=documents))
        progress(len(outcomes), len(questions))
    return outcomes


class _Documents:
    """The project's documents, each fetched once."""

    def __init__(self, library: Library, paths: dict[str, UUID]) -> None:
        self._library = library
        self._paths = paths
        self._ids = frozenset(paths.values())
        self._fetched: dict[UUID, IndexedDocument | None] = {}

    async def named_by(self, question: Question) -> dict[str, IndexedDocument]:
        """The documents that a question names and the project has, by path."""
        paths = dict.fromkeys([*question.files, *(path for path, _ in question.sections)])
        fetched = {path: await self.fetch(self._paths[path]) for path in paths if path in self._paths}
        return {path: document for path, document in fetched.items() if document}

    async def fetch(self, document_id: UUID) -> IndexedDocument | None:
        if document_id not in self._fetched:
            document = await self._library.document(document_id) if document_id in self._ids else None
            chunks = (
                [chunk async for batch in self._library.chunks(document_id) for _, chunk in batch] if document else []
            )
            self._fetched[document_id] = IndexedDocument(document, tuple(chunks)) if document else None
        return self._fetched[document_id]


async def _ask(question: Question, *, project: Project, engines: AnswerEngines, documents: _Documents) -> Outcome:
    began = perf_counter()
    pieces = flow.answer(question.text, project=project, engines=engines)
    text, answer = await flow.collect(pieces, NumberedMarkers().render)
    seconds = perf_counter() - began
    return Outcome(
        question=question,
        text=text,
        answer=answer,
        ranking=await _retrieve(question, project=project, engines=engines),
        relevant=find_relevant(question, await documents.named_by(question)),
        citations=tuple(
            [citation for segment in answer.segments for citation in await _check_citations(segment, documents)]
        ),
        seconds=seconds,
    )


async def _retrieve(question: Question, *, project: Project, engines: AnswerEngines) -> tuple[Passage, ...]:
    text = " ".join(question.text.split())
    retrieval = await retrieve(text, project=project.id, engines=engines, limit=DEPTH)
    return retrieval.passages


async def _check_citations(segment: Segment, documents: _Documents) -> list[Citation]:
    """Look up each citation of a segment in the library, as a reader would."""
    return [
        Citation(
            resolves=_resolves(passage, await documents.fetch(passage.chunk.document_id)),
            quotes=_quotes(segment.text, passage) if segment.start is not None and position == 0 else None,
        )
        for position, passage in enumerate(segment.passages)
    ]


def _resolves(passage: Passage, indexed: IndexedDocument | None) -> bool:
    chunk = passage.chunk
    return (
        indexed is not None
        and any(known.id == chunk.id for known in indexed.chunks)
        and indexed.document.text[chunk.start : chunk.end] == chunk.text
    )


def _quotes(quote: str, passage: Passage) -> bool:
    """Whether the passage contains the quote; line by line, since rows of a table are quoted under its header."""
    text = _prose(passage.chunk.text)
    return all(_prose(line) in text for line in quote.splitlines())


def _prose(text: str) -> str:
    """A text as an answer quotes it: on one line, without the marks of a block quotation."""
    return " ".join(word for line in text.splitlines() for word in line.lstrip("> \t").split())
