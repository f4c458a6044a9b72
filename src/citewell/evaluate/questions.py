"""Golden questions: what readers ask, where the answer is, and words that it must contain.

This module reads the JSONL file; it knows nothing of answers.
"""

import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from citewell.errors import SettingsError

_PAGE = re.compile(r"#page=(\d+)$")


class Span(BaseModel):
    """The position of an answer in its document, in characters, and optionally the text there."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    start: int = Field(ge=0)
    end: int = Field(gt=0)
    text: str = ""


class Question(BaseModel):
    """A line of the file. `relevant`: paths (of a PDF also with `#page=3`); `relevant_sections`: path#Heading;
    `answers`: alternatives; `spans`: positions in the relevant document."""

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
        return tuple(dict.fromkeys(_PAGE.sub("", path) for path in self.relevant))

    @property
    def pages(self) -> tuple[tuple[str, int], ...]:
        """The relevant pages, each with its path, where `relevant` names any."""
        matches = [(path, _PAGE.search(path)) for path in self.relevant]
        return tuple((path[: match.start()], int(match[1])) for path, match in matches if match)

    @property
    def sections(self) -> tuple[tuple[str, str], ...]:
        """The relevant headings, each with its path."""
        return tuple((path, heading) for path, _, heading in (name.partition("#") for name in self.relevant_sections))


def read_questions(path: Path) -> list[Question]:
    """The questions of a JSONL file. One without an id gets the number of its line.

    Raises SettingsError with the line's number for a line that is no question.
    """
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
            raise SettingsError(f"{path}:{number}: not a question ({_first_error(error)})") from error
        questions.append(question if question.id else question.model_copy(update={"id": str(number)}))
    if not questions:
        raise SettingsError(f"{path}: no question in this file")
    return questions


def _first_error(error: ValidationError) -> str:
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    message = "it is empty" if first["type"] == "string_pattern_mismatch" else first["msg"]
    return f"{field}: {message}" if field else message
