"""What every endpoint says about an answer beside its text and sources.

A new visible field of an answer is declared here once, and filled in `http/rendering.py` once.
"""

from pydantic import BaseModel, Field

from citewell.models import Verdict
from citewell.schemas.fields import is_none


class SupportedSentence(BaseModel):
    """A sentence of the answer, and how well the passages it cites support it."""

    sentence: str
    verdict: Verdict
    score: float = Field(ge=0, le=1, description="How likely the cited passages support it; 1 for a quotation.")
    chunk_ids: list[str] = Field(description="The chunks it cites; of a document that is stored whole, its id.")


class Topic(BaseModel):
    """A topic that the documents cover; `url` is its live page, where it has one."""

    title: str
    url: str | None = Field(None, exclude_if=is_none)
    source_file: str


class AnswerFields(BaseModel):
    """Fields of every response that shows an answer."""

    support: list[SupportedSentence] | None = Field(
        None, exclude_if=is_none, description="Each sentence that makes a claim, in order, with its verdict."
    )
    unsupported: list[str] | None = Field(
        None,
        exclude_if=is_none,
        description="What the language model also wrote and the documents do not clearly support. Not in the answer.",
    )
    notice: str | None = Field(
        None,
        exclude_if=is_none,
        description="What to know about how the answer was made, for example that no language model wrote it.",
    )


class RatedAnswerFields(AnswerFields):
    """The same for endpoints that also rate the answer. The contracts of `/api/query` and `/api/v1/chat` do not."""

    confidence: float | None = Field(
        None, exclude_if=is_none, ge=0, le=1, description="How likely this answers the question; 0 where nothing does."
    )
    nearest: list[Topic] | None = Field(
        None, exclude_if=is_none, description="Where nothing was answered: the topics nearest to the question."
    )
