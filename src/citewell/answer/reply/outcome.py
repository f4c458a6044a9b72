"""Turns what was found into an `Answer`: quotes, an LLM's text, sources alone, or a refusal. Pure.

Knows nothing of engines and streams: the answer flow decides which of these it needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from citewell.answer.question import ResolvedQuestion
from citewell.answer.quoting import CONFIDENCE_BANDS, Quote, QuoteSelection
from citewell.answer.reply.refusal import refusal
from citewell.answer.retrieval import Retrieval
from citewell.answer.writing import WrittenText, ends_in_block
from citewell.models import QUOTED, Answer, Cite, Filters, Mode, Passage, Piece, Segment, TokenUsage

EXTRACTIVE = "extractive"
"""The model's name where no LLM wrote the answer."""

LLM_UNAVAILABLE = "The language model is unavailable; this answer quotes the documents instead."
_CUT_OFF = "The answer was cut off: it is as long as the language model may write."
_UNSUPPORTED = "The documents do not support what the language model wrote; this answer quotes them instead."
_TOO_LITTLE = "The documents do not support enough of what the language model wrote; this answer quotes them instead."
_NO_ANSWER = "The language model wrote no answer; this answer quotes the documents instead."


@dataclass(frozen=True, slots=True)
class Draft:
    """A question with the passages and quotes found for it; each method is one way to answer."""

    question: ResolvedQuestion
    retrieval: Retrieval
    filters: Filters
    quotes: QuoteSelection
    selection: Passage | None = None
    """The reader's selection, if the answer may come from nothing else."""
    title: str = ""
    """What the documents are called, for refusals."""

    def from_quotes(self, notice: str = "", usage: TokenUsage | None = None) -> Answer:
        segments = tuple(self._quote_segment(quote) for quote in self.quotes.quotes)
        return self._answer(segments, EXTRACTIVE, self.quotes.confidence, notice=notice, usage=usage)

    def from_sources(self) -> Answer:
        """Only the passages, without a text: for readers who are told that no LLM could be asked."""
        low_confidence = self.quotes.confidence < CONFIDENCE_BANDS["weak"]
        return replace(self._answer((), EXTRACTIVE, 0.0), low_confidence=low_confidence)

    def refuse(self) -> Answer:
        passages, selected = self.retrieval.passages or self.retrieval.nearest, self.selection is not None
        text, topics = refusal(self.question, passages, self.filters, title=self.title, selected=selected)
        return self._answer((Segment(text, ()),), EXTRACTIVE, 0.0, nearest=topics)

    def from_text(self, text: WrittenText) -> tuple[list[Piece], Answer]:
        """The answer that an LLM wrote, or the quotes if nothing of it is shown; and what is still to be shown."""
        if not text.segments:
            notices = {"none": _NO_ANSWER, "unsupported": _UNSUPPORTED, "partly supported": _TOO_LITTLE}
            answer = self.from_quotes(notices[text.claims], text.usage)
            return to_pieces(answer), replace(answer, unsupported=text.unsupported)
        scores = [segment.support.score for segment in text.segments if segment.support]
        confidence = self.quotes.confidence * sum(scores) / len(scores)
        notice = _CUT_OFF if text.usage and text.usage.truncated else ""
        answer = self._answer(text.segments, text.model, confidence, usage=text.usage, notice=notice)
        return [], replace(answer, unsupported=text.unsupported)

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
        if segment.passages and ends_in_block(segment.text):
            pieces.append("\n\n")
        pieces.extend(Cite(passage) for passage in segment.passages)
    return pieces
