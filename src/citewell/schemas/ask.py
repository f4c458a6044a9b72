"""`POST /api/ask` and `/api/ask/stream`: one question, one answer."""

from pydantic import Field

from citewell.schemas.answer import RatedAnswerFields
from citewell.schemas.fields import Question, Whole, is_none
from citewell.schemas.location import SourceLocation
from citewell.schemas.request import Request


class AskRequest(Request):
    question: Question = Field(examples=["Why do gyroscopes drift?"])
    top_k: Whole = Field(5, ge=1, le=20, description="How many passages to retrieve.")


class Citation(SourceLocation):
    chapter: str = Field(examples=["02-proprioception"])
    chapter_title: str = Field(examples=["Proprioception: Sensing the Body"])
    source_file: str = Field(examples=["02-body-and-senses/02-proprioception.mdx"])
    excerpt: str = Field(max_length=200)


class AskResponse(RatedAnswerFields):
    """`[1]` in the answer is the first of the citations. Confidence 0 means the documents do not answer.

    Then `nearest` may name the topics that come nearest to the question.
    """

    answer: str
    citations: list[Citation]
    confidence: float = Field(ge=0, le=1)


class StreamChunk(RatedAnswerFields):
    """One event; every `content` joined is the answer. Citations and confidence come with the last."""

    content: str
    done: bool = False
    citations: list[Citation] | None = Field(None, exclude_if=is_none)
    confidence: float | None = Field(None, exclude_if=is_none)
    error: str | None = Field(None, exclude_if=is_none)
