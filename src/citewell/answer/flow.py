"""The answer flow: understand, retrieve, rerank, write, cite. One stream of pieces, then one `Answer`.

Every door renders this stream in its own shape; there is no second path.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from time import perf_counter
from typing import Self

from citewell.answer.choose import Quote, choose
from citewell.answer.confidence import BANDS, certainty_in
from citewell.answer.decline import decline
from citewell.answer.extract import candidates
from citewell.answer.retrieve import LOOKED_AT, Engines, Retrieved, retrieve
from citewell.answer.selection import as_passage, selected
from citewell.answer.understand import Understood, about_marked, understand
from citewell.answer.units import quote, units
from citewell.models import EVERYWHERE, Answer, Cite, Exchange, Passage, Piece, Project, Reached, Segment, Where
from citewell.terms import readable, stems

_log = logging.getLogger("citewell.answer")

EXTRACTIVE = "extractive"


async def answer(
    question: str,
    *,
    project: Project,
    engines: Engines,
    top_k: int = 5,
    history: Sequence[Exchange] = (),
    where: Where = EVERYWHERE,
    selection: str = "",
    hint: str = "",
) -> AsyncGenerator[Piece | Answer, None]:
    """The answer as it is written: stages, text and citations, then the whole as an `Answer`.

    A `selection` is all that is answered from: no index is asked. A `hint` is what the reader looks at while asking
    everything there is. Close the stream when nobody listens any more.
    """
    with _Stages() as stages:
        question, selection, hint = map(readable, (question, selection, hint))
        asked = understand(question, history, marked=selection or hint)
        stages.reach("RETRIEVING")
        yield Reached("retrieving")
        if selection:
            found = await selected(asked.sought, selection, engines=engines, limit=top_k)
        else:
            asked = about_marked(asked, hint)
            found = await retrieve(
                asked.question, project=project.id, engines=engines, limit=top_k, where=where, hint=hint
            )
        stages.reach("GENERATING", passages=len(found.passages))
        yield Reached("generating")
        marked = as_passage(selection) if selection else None
        quotes, certainty = _quotes(asked, found)
        words, nearest = ("", ()) if quotes else decline(asked, found.passages, where, selected=bool(selection))
        segments = _segments(quotes, found.passages, marked) if quotes else (Segment(words, ()),)
        for piece in _pieces(segments):
            yield piece
        stages.reach("COMPLETED", confidence=round(certainty, 3), covered=bool(quotes))
    yield Answer(
        segments=segments,
        confidence=certainty if quotes else 0.0,
        mode="selected_text" if selection else "full" if quotes else "no_results",
        model=EXTRACTIVE,
        found=(marked,) if marked else found.passages,
        question=asked.question,
        nearest=nearest,
        low_confidence=bool(quotes) and certainty < BANDS["weak"],
    )


async def whole(pieces: AsyncGenerator[Piece | Answer, None], render: Callable[[Piece], str]) -> tuple[str, Answer]:
    """The stream collected: the rendered text, and the answer it ends with."""
    said: list[str] = []
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, Answer):
                return "".join(said), piece
            said.append(render(piece))
    raise RuntimeError("an answer stream ends with an Answer")


def _quotes(asked: Understood, found: Retrieved) -> tuple[list[Quote], float]:
    """The quotes that answer, none where the passages do not; and how sure that is."""
    if not asked.wants_answer or not found.passages:
        return [], 0.0
    sought = asked.sought if found.selected else asked.question
    scored = candidates(sought, found.passages, found.weights, favour=dict.fromkeys(found.looked_at, LOOKED_AT))
    certainty = certainty_in(sought, found, scored)
    fresh = [one for one in scored if not asked.was_said(quote(found.passages[one.passage].chunk.text, one.unit))]
    if found.selected and sought:
        echo = frozenset(stems(sought))
        fresh = [one for one in fresh if not one.words <= echo]
    elif asked.points:
        fresh = fresh or scored  # there may be nothing but what was marked
    return (choose(asked.question, fresh, found.passages) if certainty >= BANDS["refuse"] else []), certainty


def _segments(quotes: Sequence[Quote], passages: Sequence[Passage], marked: Passage | None) -> tuple[Segment, ...]:
    """The quotes with what they rest on: the passage each stands in, or the selection it is part of."""
    if marked:
        return tuple(Segment(one.text, (marked,), passages[one.passage].chunk.start + one.start) for one in quotes)
    return tuple(Segment(one.text, (passages[one.passage],), one.start) for one in quotes)


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
    return "\n" in text and units(text)[-1].kind in ("code", "math", "row")


class _Stages:
    """What the log tells of one question: each stage with the time since it came in, and how it ended."""

    def __enter__(self) -> Self:
        self._began = perf_counter()
        self.reach("RECEIVED")
        return self

    def reach(self, stage: str, **facts: object) -> None:
        latency_ms = round((perf_counter() - self._began) * 1000, 1)
        _log.info(stage, extra={"stage": stage, "latency_ms": latency_ms, **facts})

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.reach("FAILED", error=kind.__name__)
