"""What quoting needs to know of a question."""

from typing import Protocol


class QuotableQuestion(Protocol):
    """What quoting needs to know of a question; `citewell.answer.question.ResolvedQuestion` has all of it."""

    @property
    def question(self) -> str: ...
    @property
    def search_text(self) -> str:
        """The text that was searched for; empty where only the meaning of a selection is asked for."""

    @property
    def wants_answer(self) -> bool: ...
    @property
    def refers_to_marked_text(self) -> bool: ...
    def was_shown(self, quote: str) -> bool:
        """Whether the reader has seen these words already."""
