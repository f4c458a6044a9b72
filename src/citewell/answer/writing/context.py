"""Keep the numbered passages that an LLM has received, and fit more into its context window.

Mutable: a search adds passages while an answer is written. Knows nothing of what the LLM writes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from citewell.answer.engines import AnswerEngines
from citewell.answer.retrieval import retrieve
from citewell.answer.writing.prompt import (
    HISTORY_SHARE,
    MARGIN_TOKENS,
    MAX_ANSWER_TOKENS,
    QUESTION_SHARE,
    NumberedPassage,
    build_instructions,
    build_prompt,
    count_tokens,
    fit_history,
    fit_question,
    fit_text,
    format_search_results,
)
from citewell.errors import CitewellError, EmptyKnowledgeBase
from citewell.models import Exchange, Filters, Passage
from citewell.ports import WritingTask


@dataclass(slots=True)
class PassageContext:
    """The passages that an LLM can read, numbered from 1. A search adds more while there are free tokens."""

    engines: AnswerEngines
    project: UUID
    filters: Filters
    free_tokens: int = 0
    """Tokens still free for passages."""
    passages: list[Passage] = field(default_factory=list)

    def add(self, passage: Passage) -> NumberedPassage | None:
        """Add a passage, cut to the free tokens, and return it with its number; None if nothing fits."""
        if not (text := fit_text(passage.chunk.text, self.free_tokens)):
            return None
        self.free_tokens -= count_tokens(text) + count_tokens(passage.chunk.label) + 30
        number = self._number(passage)
        if number is None:
            self.passages.append(passage)
            number = len(self.passages)
        return number, text, passage

    async def search(self, query: str, limit: int, score_threshold: float) -> str:
        """Run the tool `search_book_content`: add the passages it finds, and return them as JSON for the LLM."""
        try:
            retrieval = await retrieve(
                query, project=self.project, engines=self.engines, limit=limit, filters=self.filters
            )
        except EmptyKnowledgeBase:
            return format_search_results([])
        except CitewellError:
            return json.dumps({"results": [], "total_results": 0, "message": "The search failed. Answer without it."})
        passages = [passage for passage in retrieval.passages if passage.cosine >= score_threshold]
        new_first = sorted(passages, key=lambda passage: self._number(passage) is not None)
        added = {result[2].chunk.id: result for result in self._add_all(new_first)}  # a text given again takes tokens
        return format_search_results([added[passage.chunk.id] for passage in passages if passage.chunk.id in added])

    def build_task(
        self,
        question: str,
        passages: Sequence[Passage],
        *,
        context_tokens: int,
        history: Sequence[Exchange] = (),
        selected: bool = False,
        deadline: float | None = None,
    ) -> WritingTask:
        """The task for the LLM, with as many of the passages, best first, as fit into its context window."""
        max_tokens, instructions = min(MAX_ANSWER_TOKENS, context_tokens // 5), build_instructions(selected=selected)
        free_tokens = context_tokens - max_tokens - count_tokens(instructions) - MARGIN_TOKENS
        question = fit_question(question, round(free_tokens * QUESTION_SHARE))
        history = fit_history(history, round(free_tokens * HISTORY_SHARE))
        history_tokens = sum(count_tokens(exchange.question) + count_tokens(exchange.answer) for exchange in history)
        self.free_tokens = free_tokens - count_tokens(question) - history_tokens
        prompt = build_prompt(question, self._add_all(passages))
        search = None if selected else self.search
        return WritingTask(instructions, prompt, history, search, max_tokens, deadline)

    def _number(self, passage: Passage) -> int | None:
        """The number of a passage that the LLM was given before."""
        known_ids = (known.chunk.id for known in self.passages)
        return next((number for number, known_id in enumerate(known_ids, 1) if known_id == passage.chunk.id), None)

    def _add_all(self, passages: Sequence[Passage]) -> list[NumberedPassage]:
        return [added for passage in passages if (added := self.add(passage))]
