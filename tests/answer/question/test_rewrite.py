"""One call resolves a question: by rules or by the LLM, with what the reader selected or looks at."""

from collections.abc import AsyncGenerator

import pytest

from citewell.answer.question import resolve
from citewell.errors import WriterUnavailable
from citewell.models import Exchange, TokenUsage
from citewell.ports import WritingTask

CAPTURE = Exchange("What is the capture point?", "It is where a foot must be set to stop. [1]")
SELECTION = "A temperature change shifts the bias."

pytestmark = pytest.mark.anyio


class Rewriter:
    """An LLM that answers every task with the same words, or fails."""

    model = "rewriter"
    context_tokens = 8000
    first_words_seconds = 30.0

    def __init__(self, words: str = "") -> None:
        self._words = words
        self.tasks: list[WritingTask] = []

    async def write(self, work: WritingTask) -> AsyncGenerator[str | TokenUsage, None]:
        self.tasks.append(work)
        if not self._words:
            raise WriterUnavailable("down")
        yield self._words

    async def reach(self) -> None:
        pass

    async def close(self) -> None:
        pass


async def test_without_an_llm_the_rules_resolve_a_follow_up() -> None:
    resolved = await resolve("how is it computed?", [CAPTURE], None)
    assert resolved.question == resolved.search_text == "how is the capture point computed?"


async def test_an_llm_resolves_a_follow_up_in_words_of_the_conversation() -> None:
    rewriter = Rewriter("How is the capture point computed to stop a foot?")
    resolved = await resolve("how is it computed?", [CAPTURE], rewriter)
    assert resolved.question == "How is the capture point computed to stop a foot?"


@pytest.mark.parametrize("words", ["How is the zero moment point computed?", "One?\nTwo?", ""])
async def test_an_llm_that_makes_something_up_or_fails_is_ignored(words: str) -> None:
    resolved = await resolve("how is it computed?", [CAPTURE], Rewriter(words))
    assert resolved.question == "how is the capture point computed?"


async def test_an_llm_is_not_called_where_text_is_marked() -> None:
    rewriter = Rewriter("Anything?")
    await resolve("what does this mean?", [CAPTURE], rewriter, selection=SELECTION)
    await resolve("what does this mean?", [CAPTURE], rewriter, hint=SELECTION)
    assert rewriter.tasks == []


async def test_a_question_about_the_selection_itself_searches_for_nothing_in_it() -> None:
    resolved = await resolve("what does this mean?", [], None, selection=SELECTION, hint="something else")
    assert (resolved.question, resolved.search_text) == ("what does this mean?", "")
    assert resolved.from_selection
    assert not resolved.was_shown(SELECTION)


async def test_any_other_question_is_searched_for_in_the_selection() -> None:
    resolved = await resolve("Why do gyroscopes drift?", [], None, selection=SELECTION)
    assert resolved.search_text == "Why do gyroscopes drift?"


async def test_a_question_about_the_hint_is_searched_for_with_its_words() -> None:
    resolved = await resolve("what does this mean?", [], None, hint=SELECTION)
    assert resolved.search_text == resolved.question == f"what does this mean ({SELECTION})?"
    assert resolved.was_shown(SELECTION)
    assert not resolved.from_selection


async def test_a_question_of_its_own_takes_no_notice_of_the_hint() -> None:
    resolved = await resolve("Who was Ada Lovelace?", [], None, hint=SELECTION)
    assert (resolved.question, resolved.refers_to_marked_text) == ("Who was Ada Lovelace?", False)
