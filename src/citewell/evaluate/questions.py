"""Golden questions: what readers ask, where the answer stands, and a few words it has to contain.

Knows the file they come in, never what was answered.
"""

import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from citewell.errors import SettingsError

_PAGE = re.compile(r"#page=(\d+)$")


class Span(BaseModel):
    """Where an answer stands in its document, in characters; `text`, where given, says what stands there."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    start: int = Field(ge=0)
    end: int = Field(gt=0)
    text: str = ""


class Question(BaseModel):
    """A line of the file: `relevant` are paths (a PDF's may end in `#page=3`), `relevant_sections` path#Heading,
    `answers` alternatives, `spans` places in the relevant document."""

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)

    id: str = ""
    text: str = Field(pattern=r"\S")
    relevant: tuple[str, ...] = ()
    relevant_sections: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    unanswerable: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The relevant paths, without their pages."""
        return tuple(dict.fromkeys(_PAGE.sub("", place) for place in self.relevant))

    @property
    def pages(self) -> tuple[tuple[str, int], ...]:
        """The relevant pages, for files that have any."""
        found = [(place, _PAGE.search(place)) for place in self.relevant]
        return tuple((place[: page.start()], int(page[1])) for place, page in found if page)

    @property
    def sections(self) -> tuple[tuple[str, str], ...]:
        """The relevant headings, each with its path."""
        return tuple((path, heading) for path, _, heading in (one.partition("#") for one in self.relevant_sections))


def read_questions(path: Path) -> list[Question]:
    """Every question of a JSONL file; one without an id gets its line's number, a line that is none is named."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: not UTF-8; save it as UTF-8") from error
    questions = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            question = Question.model_validate_json(line)
        except ValidationError as error:
            raise SettingsError(f"{path}:{number}: not a question ({_first(error)})") from error
        questions.append(question if question.id else question.model_copy(update={"id": str(number)}))
    if not questions:
        raise SettingsError(f"{path}: no question in this file")
    return questions


def _first(error: ValidationError) -> str:
    """The first thing that is wrong."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    wrong = "it is empty" if first["type"] == "string_pattern_mismatch" else first["msg"]
    return f"{field}: {wrong}" if field else wrong
