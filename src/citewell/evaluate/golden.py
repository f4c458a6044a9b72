"""Golden questions: what readers ask, where the answer stands, and a few words it has to contain."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from pydantic import BaseModel, ConfigDict, ValidationError

from citewell.answer import flow
from citewell.answer.citations import Numbered
from citewell.errors import SettingsError
from citewell.models import Passage, Project


class Question(BaseModel):
    """A line of the file: `relevant` are paths, `relevant_sections` path#Heading, `answers` alternatives."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    text: str
    relevant: tuple[str, ...] = ()
    relevant_sections: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    unanswerable: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """A question and what was answered."""

    question: Question
    text: str
    confidence: float
    found: tuple[Passage, ...]
    seconds: float

    @property
    def declined(self) -> bool:
        return self.confidence == 0

    def rank(self) -> int | None:
        """Where the first relevant file stands among the found passages, counting from 1."""
        files = list(dict.fromkeys(passage.chunk.source for passage in self.found))
        hits = [files.index(path) + 1 for path in self.question.relevant if path in files]
        return min(hits, default=None)

    def contains_key(self) -> bool:
        """Whether the answer says one of the key answers, whatever the spacing, case and emphasis."""
        said = _flat(self.text)
        return any(_flat(answer) in said for answer in self.question.answers)


def read_questions(path: Path) -> list[Question]:
    """Every question of a JSONL file; a line that is none is named."""
    questions = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            questions.append(Question.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            raise SettingsError(
                f"{path}:{number}: not a question ({field + ': ' if field else ''}{first['msg']})"
            ) from error
    if not questions:
        raise SettingsError(f"{path}: no question in this file")
    return questions


async def run_questions(questions: Sequence[Question], *, project: Project, engines: flow.Engines) -> list[Outcome]:
    """Ask each question on its own, as a reader would."""
    return [await _ask(question, project=project, engines=engines) for question in questions]


async def _ask(question: Question, *, project: Project, engines: flow.Engines) -> Outcome:
    began = perf_counter()
    pieces = flow.answer(question.text, project=project, engines=engines)
    text, answer = await flow.whole(pieces, Numbered().render)
    return Outcome(question, text, answer.confidence, answer.found, perf_counter() - began)


def _flat(text: str) -> str:
    return " ".join(re.sub(r"[*_`\\]|\s*\[\d+\]", "", text).split()).casefold()
