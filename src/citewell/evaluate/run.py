"""Ask golden questions through the same flow as any reader, and note what came of each.

An answer is judged as a reader gets it, from five passages. The ranking is looked at ten deep, so it comes from a
second search: a flow told to look at ten would answer from ten.
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
from citewell.evaluate.relevance import DEPTH, Kept, Placement, Wanted, place, says, wanted
from citewell.models import Answer, Passage, Project, Segment
from citewell.ports import Library


@dataclass(frozen=True, slots=True)
class Citation:
    """Whether a citation leads to the words it stands for; `quotes` is None where the answer is not a quotation."""

    resolves: bool
    quotes: bool | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A question, what was answered, and what was found."""

    question: Question
    text: str
    answer: Answer
    ranking: tuple[Passage, ...]
    """The first ten passages."""
    wanted: Wanted
    citations: tuple[Citation, ...]
    seconds: float

    @property
    def declined(self) -> bool:
        return self.answer.confidence == 0

    @property
    def by_file(self) -> Placement | None:
        return place(self._ids, self.wanted.files)

    @property
    def by_heading(self) -> Placement | None:
        return place(self._ids, self.wanted.headings)

    @property
    def by_passage(self) -> Placement | None:
        return place(self._ids, self.wanted.passages)

    @property
    def words(self) -> str:
        """The answer without its marks."""
        return " ".join(segment.text for segment in self.answer.segments)

    @property
    def says_key(self) -> bool | None:
        """Whether the answer says one of the key answers; None where none is asked for."""
        if self.question.unanswerable or not self.question.answers:
            return None
        return not self.declined and says(self.words, self.question.answers)

    @property
    def answered_rightly(self) -> bool | None:
        """What confidence foretells: an answer was given, from passages that include the right file, and it says a
        key answer where the question has any. Never so for a question that is not covered, nor for a refusal.

        None where a covered question names neither file nor key, so nobody can tell.
        """
        if self.question.unanswerable or self.declined:
            return False
        right_file = {passage.chunk.source for passage in self.answer.retrieved} & set(self.question.files)
        checks = [bool(right_file)] if self.question.files else []
        checks += [self.says_key] if self.says_key is not None else []
        return all(checks) if checks else None

    @property
    def complaint(self) -> str | None:
        """What went wrong, the root of it first; None when nothing did."""
        if self.question.unanswerable:
            return None if self.declined else "answered, though not covered"
        wrongs = {
            "right file not found": self.by_file is not None and not self.by_file.within(5),
            "declined, though covered": self.declined,
            "key answer missing": self.says_key is False,
            "a citation does not hold": any(not one.resolves or one.quotes is False for one in self.citations),
        }
        return next((what for what, wrong in wrongs.items() if wrong), None)

    @property
    def _ids(self) -> list[str]:
        return [passage.chunk.id for passage in self.ranking]


def excerpt(passage: Passage) -> str:
    """How a passage begins, on one line."""
    return " ".join(passage.chunk.text.split())[:200]


async def run_questions(
    questions: Sequence[Question],
    *,
    project: Project,
    engines: AnswerEngines,
    library: Library,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[Outcome]:
    """Ask each question on its own, one after the other, as a reader would."""
    stacks = _Stacks(library, {one.path: one.id for one in await library.documents(project)})
    outcomes: list[Outcome] = []
    if questions:  # the first search loads the model, which no reader of a running server waits for
        await _ranking(questions[0], project=project, engines=engines)
    for question in questions:
        outcomes.append(await _ask(question, project=project, engines=engines, stacks=stacks))
        progress(len(outcomes), len(questions))
    return outcomes


class _Stacks:
    """The project's documents, each fetched once."""

    def __init__(self, library: Library, paths: dict[str, UUID]) -> None:
        self._library = library
        self._paths = paths
        self._ids = frozenset(paths.values())
        self._fetched: dict[UUID, Kept | None] = {}

    async def named(self, question: Question) -> dict[str, Kept]:
        """The documents that a question names, by path; those that are not there are left out."""
        paths = dict.fromkeys([*question.files, *(path for path, _ in question.sections)])
        found = {path: await self.fetch(self._paths[path]) for path in paths if path in self._paths}
        return {path: one for path, one in found.items() if one}

    async def fetch(self, document_id: UUID) -> Kept | None:
        if document_id not in self._fetched:
            document = await self._library.document(document_id) if document_id in self._ids else None
            chunks = (
                [chunk async for batch in self._library.chunks(document_id) for _, chunk in batch] if document else []
            )
            self._fetched[document_id] = Kept(document, tuple(chunks)) if document else None
        return self._fetched[document_id]


async def _ask(question: Question, *, project: Project, engines: AnswerEngines, stacks: _Stacks) -> Outcome:
    began = perf_counter()
    pieces = flow.answer(question.text, project=project, engines=engines)
    text, answer = await flow.collect(pieces, NumberedMarkers().render)
    seconds = perf_counter() - began
    return Outcome(
        question=question,
        text=text,
        answer=answer,
        ranking=await _ranking(question, project=project, engines=engines),
        wanted=wanted(question, await stacks.named(question)),
        citations=tuple([one for segment in answer.segments for one in await _checked(segment, stacks)]),
        seconds=seconds,
    )


async def _ranking(question: Question, *, project: Project, engines: AnswerEngines) -> tuple[Passage, ...]:
    asked = " ".join(question.text.split())
    found = await retrieve(
        asked,
        project=project.id,
        engines=engines,
        limit=DEPTH,
    )
    return found.passages


async def _checked(segment: Segment, stacks: _Stacks) -> list[Citation]:
    """Each citation of a segment, followed to the library as a reader would follow it."""
    return [
        Citation(
            resolves=_resolves(passage, await stacks.fetch(passage.chunk.document_id)),
            quotes=_quotes(segment.text, passage) if segment.start is not None and position == 0 else None,
        )
        for position, passage in enumerate(segment.passages)
    ]


def _resolves(passage: Passage, kept: Kept | None) -> bool:
    chunk = passage.chunk
    return (
        kept is not None
        and any(one.id == chunk.id for one in kept.chunks)
        and kept.document.text[chunk.start : chunk.end] == chunk.text
    )


def _quotes(said: str, passage: Passage) -> bool:
    """Whether the passage says these words; line by line, since rows of one table are quoted under its header."""
    text = _prose(passage.chunk.text)
    return all(_prose(line) in text for line in said.splitlines())


def _prose(text: str) -> str:
    """As an answer quotes it: on one line, without the marks of a block quotation."""
    return " ".join(word for line in text.splitlines() for word in line.lstrip("> \t").split())
