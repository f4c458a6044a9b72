"""The passages that an LLM was given so far. Mutable: a search adds more while an answer is written."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from citewell.answer.engines import AnswerEngines
from citewell.answer.retrieval import retrieve
from citewell.answer.writing.prompt import (
    ANSWER_TOKENS,
    HISTORY_SHARE,
    MARGIN_TOKENS,
    QUESTION_SHARE,
    count_tokens,
    fit,
    fit_history,
    fit_question,
    request,
    rules,
    search_results,
)
from citewell.errors import CitewellError, EmptyKnowledgeBase
from citewell.models import Exchange, Filters, Passage
from citewell.ports import WritingTask


@dataclass(slots=True)
class PassageContext:
    """The passages before an LLM, numbered from 1. A search adds more, as long as the LLM can read them."""

    engines: AnswerEngines
    project: UUID
    filters: Filters
    free_tokens: int = 0
    """Tokens that are left for passages."""
    passages: list[Passage] = field(default_factory=list)

    def add(self, passage: Passage) -> tuple[int, str, Passage] | None:
        """The passage's number and as much of it as there is room for; nothing where there is none."""
        for number, given in enumerate(self.passages, 1):
            if given.chunk.id == passage.chunk.id:
                return number, "(given before)", passage
        if not (text := fit(passage.chunk.text, self.free_tokens)):
            return None
        self.free_tokens -= count_tokens(text) + count_tokens(passage.chunk.label) + 30
        self.passages.append(passage)
        return len(self.passages), text, passage

    def at(self, number: int) -> Passage | None:
        return self.passages[number - 1] if 0 < number <= len(self.passages) else None

    async def search(self, query: str, limit: int, score_threshold: float) -> str:
        """What the tool `search_book_content` does."""
        try:
            found = await retrieve(query, project=self.project, engines=self.engines, limit=limit, filters=self.filters)
        except EmptyKnowledgeBase:
            return search_results([])
        except CitewellError:
            return json.dumps({"results": [], "total_results": 0, "message": "The search failed. Answer without it."})
        return search_results(self._add_all([one for one in found.passages if one.score >= score_threshold]))

    def assignment(
        self,
        question: str,
        passages: Sequence[Passage],
        *,
        context_tokens: int,
        history: Sequence[Exchange] = (),
        selected: bool = False,
    ) -> WritingTask:
        """The question with the passages, added by rank until the LLM can read no more."""
        longest, instructions = min(ANSWER_TOKENS, context_tokens // 5), rules(selected=selected)
        free = context_tokens - longest - count_tokens(instructions) - MARGIN_TOKENS
        question, history = (
            fit_question(question, round(free * QUESTION_SHARE)),
            fit_history(history, round(free * HISTORY_SHARE)),
        )
        told = sum(count_tokens(exchange.question) + count_tokens(exchange.answer) for exchange in history)
        self.free_tokens = free - count_tokens(question) - told
        wish = request(question, self._add_all(passages))
        return WritingTask(instructions, wish, history, None if selected else self.search, longest)

    def _add_all(self, passages: Sequence[Passage]) -> list[tuple[int, str, Passage]]:
        return [added for passage in passages if (added := self.add(passage))]
