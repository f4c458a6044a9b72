"""`POST /api/query`: "ask about this passage" buttons in a book."""

from pydantic import Field

from citewell.schemas.answer import AnswerFields
from citewell.schemas.fields import Hint, ShortQuery
from citewell.schemas.location import SourceLocation
from citewell.schemas.request import Request


class QueryRequest(Request):
    query: ShortQuery = Field(examples=["What does this mean?"])
    selected_text: Hint | None = Field(
        None,
        description="Text the reader selected: a hint that steers the search.",
        examples=["Integrating a bias makes the result drift."],
    )


class Source(SourceLocation):
    chapter: str = Field(min_length=1)
    section: str = Field(min_length=1)
    filename: str = Field(min_length=1)
    score: float = Field(ge=0, le=1)


class QueryResponse(AnswerFields):
    """`[1]` in the answer is the first source. Where the documents do not cover the question, the answer says so,
    and the sources name the nearest topics that they cover."""

    answer: str = Field(min_length=1)
    sources: list[Source] = Field(min_length=1, max_length=5)
