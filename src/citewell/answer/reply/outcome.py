"""Turns what was found into an `Answer`: quotes, an LLM's text, sources alone, or a refusal. Pure.

Knows nothing of engines and streams: the answer flow decides which of these it needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from citewell.answer.question import ResolvedQuestion
from citewell.answer.quoting import CONFIDENCE_BANDS, Quote, QuoteSelection
from citewell.answer.reply.refusal import nearest_topics, refusal
from citewell.answer.retrieval import Retrieval
from citewell.answer.writing import WrittenText
from citewell.models import QUOTED, Answer, Cite, Filters, Mode, Passage, Piece, Segment, TokenUsage
from citewell.text import split_units

EXTRACTIVE = "extractive"
"""The model's name where no LLM wrote the answer."""

LLM_UNAVAILABLE = "The language model is unavailable; this answer quotes the documents instead."
_CUT_OFF = "The answer was cut off: it is as long as the language model may write."
_UNSUPPORTED = "The documents do not support what the language model wrote; this answer quotes them instead."


@dataclass(frozen=True, slots=True)
class Draft:
    """A question with the passages and quotes found for it; each method is one way to answer."""

    question: ResolvedQuestion
    retrieval: Retrieval
    filters: Filters
    quotes: QuoteSelection
    selection: Passage | None = None
    """The reader's selection, if the answer may come from nothing else."""

    def from_quotes(self, notice: str = "", usage: TokenUsage | None = None) -> Answer:
        segments = tuple(self._quote_segment(quote) for quote in self.quotes.quotes)
        return self._answer(segments, EXTRACTIVE, self.quotes.confidence, notice=notice, usage=usage)

    def from_sources(self) -> Answer:
        """Only the passages, without a text: for readers who are told that no LLM could be asked."""
        low_confidence = self.quotes.confidence < CONFIDENCE_BANDS["weak"]
        return replace(self._answer((), EXTRACTIVE, 0.0), low_confidence=low_confidence)

    def refuse(self, model: str = EXTRACTIVE, usage: TokenUsage | None = None) -> Answer:
        selected = self.selection is not None
        text, topics = refusal(self.question, self.retrieval.passages, self.filters, selected=selected)
        return self._answer((Segment(text, ()),), model, 0.0, nearest=topics, usage=usage)

    def from_text(self, text: WrittenText) -> tuple[list[Piece], Answer]:
        """The answer that an LLM wrote, and what is still to be shown of it.

        A refusal is said in our words; quotes stand in for a text of which nothing is supported.
        """
        if text.segments and not text.declined:
            return [], self._written(text)
        answer = self.refuse(text.model, text.usage) if text.declined else self.from_quotes(_UNSUPPORTED, text.usage)
        gap = ["\n\n"] if text.segments else []
        return [*gap, *to_pieces(answer)], replace(answer, segments=(*text.segments, *answer.segments))

    def _written(self, text: WrittenText) -> Answer:
        cited = any(segment.passages for segment in text.segments)
        scores = [segment.support.score for segment in text.segments if segment.support]
        supported = sum(scores) / len(scores) if scores else 1.0
        return self._answer(
            text.segments,
            text.model,
            self.quotes.confidence * supported if cited else 0.0,
            nearest=() if cited or self.selection else nearest_topics(self.retrieval.passages),
            usage=text.usage,
            notice=_CUT_OFF if text.usage and text.usage.truncated else "",
        )

    def _answer(
        self,
        segments: tuple[Segment, ...],
        model: str,
        confidence: float,
        *,
        nearest: tuple[Passage, ...] = (),
        usage: TokenUsage | None = None,
        notice: str = "",
    ) -> Answer:
        covered = confidence > 0 or any(segment.support for segment in segments)
        mode: Mode = "selected_text" if self.selection else "full" if covered else "no_results"
        return Answer(
            segments=segments,
            confidence=confidence,
            mode=mode if segments else "retrieval_only",
            model=model,
            retrieved=(self.selection,) if self.selection else self.retrieval.passages,
            question=self.question.question,
            nearest=nearest,
            low_confidence=covered and confidence < CONFIDENCE_BANDS["weak"],
            usage=usage,
            notice=notice,
        )

    def _quote_segment(self, quote: Quote) -> Segment:
        """A quote with the passage it comes from, or with the selection it is part of."""
        passage = self.retrieval.passages[quote.passage]
        if self.selection:
            return Segment(quote.text, (self.selection,), passage.chunk.start + quote.start, QUOTED)
        source_words = passage.chunk.text[slice(*quote.stretch)]
        return Segment(quote.text, (passage,), quote.start, QUOTED, ((passage, source_words),))


def to_pieces(answer: Answer) -> list[Piece]:
    """The answer as it is streamed: prose runs on, lists, code and tables stand on lines of their own."""
    pieces: list[Piece] = []
    segments: Sequence[Segment] = answer.segments
    for position, segment in enumerate(segments):
        if position:
            pieces.append("\n\n" if "\n" in segment.text or "\n" in segments[position - 1].text else " ")
        pieces.append(segment.text)
        if segment.passages and _ends_in_block(segment.text):
            pieces.append("\n\n")
        pieces.extend(Cite(passage) for passage in segment.passages)
    return pieces


def _ends_in_block(text: str) -> bool:
    """Whether a citation marker right after the text would become part of a code block, formula or table."""
    kinds = [unit.kind for unit in split_units(text)[-1:]]
    return "\n" in text and (kinds in (["code"], ["math"], ["row"]) or text.rstrip().endswith(("```", "~~~")))
