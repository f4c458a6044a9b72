"""Tell what was found: in a writer's words, each held against the passages; or in quotations; or that it is not there.

Quotations stand in for a writer that fails before its first word. Whatever is told streams as pieces, and ends with
an `Answer`.
"""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Literal

from citewell.answer.question import ResolvedQuestion
from citewell.answer.quoting import CONFIDENCE_BANDS, Quote
from citewell.answer.reply.refusal import nearest_topics, refusal
from citewell.answer.retrieval import Retrieval
from citewell.answer.writing import PassageContext, Pipeline
from citewell.errors import WriterUnavailable
from citewell.models import QUOTED, Answer, Cite, Exchange, Filters, Mode, Passage, Piece, Segment, TokenUsage
from citewell.ports import Writer
from citewell.text import split_units

_log = logging.getLogger("citewell.answer")

EXTRACTIVE = "extractive"

Fallback = Literal["quotes", "sources"]
"""What there is where a writer fails."""

_QUOTED_INSTEAD = "The language model is unavailable; this answer quotes the documents instead."
_CUT_OFF = "The answer was cut off: it is as long as the language model may write."
_NOT_BORNE_OUT = "What the language model wrote is not borne out by the documents; this answer quotes them instead."


@dataclass(frozen=True, slots=True)
class Draft:
    """A question with what was found on it, and all the ways there are to tell it."""

    asked: ResolvedQuestion
    found: Retrieval
    where: Filters
    quotes: Sequence[Quote]
    """None where the passages do not answer."""
    certainty: float
    selection: Passage | None = None

    def quoted(self, notice: str = "", spent: TokenUsage | None = None) -> Answer:
        return self._answer(self._quotations(), EXTRACTIVE, self.certainty, notice=notice, spent=spent)

    def declined(self, model: str = EXTRACTIVE, spent: TokenUsage | None = None) -> Answer:
        selected = self.selection is not None
        words, topics = refusal(self.asked, self.found.passages, self.where, selected=selected)
        return self._answer((Segment(words, ()),), model, 0.0, nearest=topics, spent=spent)

    def written(self, segments: tuple[Segment, ...], model: str, spent: TokenUsage | None) -> Answer:
        cited = any(segment.passages for segment in segments)
        claims = [segment.support.score for segment in segments if segment.support]
        borne_out = sum(claims) / len(claims) if claims else 1.0
        topics = () if cited or self.selection else nearest_topics(self.found.passages)
        certainty = self.certainty * borne_out if cited else 0.0
        notice = _CUT_OFF if spent and spent.truncated else ""
        return self._answer(segments, model, certainty, nearest=topics, spent=spent, notice=notice)

    def unwritten(self) -> Answer:
        """Only sources: what was found, and not a word about it."""
        return replace(self._answer((), EXTRACTIVE, 0.0), low_confidence=self.certainty < CONFIDENCE_BANDS["weak"])

    def _answer(
        self,
        segments: tuple[Segment, ...],
        model: str,
        confidence: float,
        *,
        nearest: tuple[Passage, ...] = (),
        spent: TokenUsage | None = None,
        notice: str = "",
    ) -> Answer:
        covered = confidence > 0 or any(segment.support for segment in segments)
        mode: Mode = "selected_text" if self.selection else "full" if covered else "no_results"
        return Answer(
            segments=segments,
            confidence=confidence,
            mode=mode if segments else "retrieval_only",
            model=model,
            retrieved=(self.selection,) if self.selection else self.found.passages,
            question=self.asked.question,
            nearest=nearest,
            low_confidence=covered and confidence < CONFIDENCE_BANDS["weak"],
            usage=spent,
            notice=notice,
        )

    def _quotations(self) -> tuple[Segment, ...]:
        """The quotes with what they rest on: the passage each stands in, or the selection it is part of."""
        passages = self.found.passages
        if self.selection:
            return tuple(
                Segment(one.text, (self.selection,), passages[one.passage].chunk.start + one.start, QUOTED)
                for one in self.quotes
            )
        return tuple(_quotation(one, passages[one.passage]) for one in self.quotes)


def _quotation(quote: Quote, passage: Passage) -> Segment:
    words = passage.chunk.text[slice(*quote.stretch)]
    return Segment(quote.text, (passage,), quote.start, QUOTED, ((passage, words),))


async def deliver(
    case: Draft,
    *,
    writer: Writer | None,
    context: PassageContext,
    history: Sequence[Exchange],
    instead: Fallback,
    at_once: bool,
) -> AsyncGenerator[Piece | Answer, None]:
    """The pieces, then the answer. A writer that breaks off is an error, unless all is told at once: then it is as if
    it had not begun."""
    answer = case.quoted() if case.quotes else case.declined()
    if case.quotes and writer:
        begun = False
        try:
            async with aclosing(_written(case, writer, context, history, at_once=at_once)) as writing:
                async for piece in writing:
                    begun = True
                    yield piece
            return
        except WriterUnavailable as error:
            _log.warning("the answer was not written%s: %s", " to its end" if begun else "", error)
            if begun:
                raise WriterUnavailable("the language model broke off; ask again in a moment") from error
            answer = case.quoted(_QUOTED_INSTEAD) if instead == "quotes" else case.unwritten()
    for piece in (*_pieces(answer.segments), answer):
        yield piece


async def _written(
    case: Draft, writer: Writer, context: PassageContext, history: Sequence[Exchange], *, at_once: bool
) -> AsyncGenerator[Piece | Answer, None]:
    work = context.assignment(
        case.asked.question,
        case.found.passages,
        context_tokens=writer.context_tokens,
        history=history,
        selected=case.selection is not None,
    )
    if not context.passages:
        raise WriterUnavailable("no passage fits into CITEWELL_LLM_CONTEXT_TOKENS beside the rules and the question")
    pipeline = Pipeline(context.passages, work.instructions, selection=case.selection, strict=context.engines.strict)
    spent: TokenUsage | None = None
    waiting: list[Piece] = []
    shown = False
    try:
        async with aclosing(writer.write(work)) as deltas:
            async for delta in deltas:
                if isinstance(delta, TokenUsage):
                    spent = delta
                    continue
                waiting += pipeline.feed(delta)
                if at_once:
                    continue
                for piece in waiting:
                    shown = True
                    yield piece
                waiting = []
    except WriterUnavailable:
        for piece in pipeline.end() if shown else ():
            yield piece  # what was written, though nobody knew yet how it would go on
        raise
    for piece in (*waiting, *pipeline.end()):
        yield piece
    segments = tuple(pipeline.segments)
    if segments and not pipeline.declined:
        yield case.written(segments, writer.model, spent)
        return
    if not pipeline.has_words and not pipeline.declined:
        raise WriterUnavailable(f"{writer.model} wrote nothing for its reader")
    answer = case.declined(writer.model, spent) if pipeline.declined else case.quoted(_NOT_BORNE_OUT, spent)
    for piece in ("\n\n" if segments else "", *_pieces(answer.segments)):
        yield piece
    yield replace(answer, segments=(*segments, *answer.segments))


def _pieces(segments: Sequence[Segment]) -> list[Piece]:
    """The segments as they are streamed: prose runs on, lists, code and tables stand on lines of their own."""
    pieces: list[Piece] = []
    for position, segment in enumerate(segments):
        if position:
            pieces.append("\n\n" if "\n" in segment.text or "\n" in segments[position - 1].text else " ")
        pieces.append(segment.text)
        if segment.passages and _ends_in_a_block(segment.text):
            pieces.append("\n\n")
        pieces.extend(Cite(passage) for passage in segment.passages)
    return pieces


def _ends_in_a_block(text: str) -> bool:
    """Whether a mark right after the text would become part of a code block, formula or table."""
    return "\n" in text and split_units(text)[-1].kind in ("code", "math", "row")
