"""The answer flow: understand, retrieve, rerank, write, cite. One stream of pieces, then one `Answer`.

Every door renders this stream in its own shape; there is no second path.
"""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from time import perf_counter

from citewell.answer.choose import Quote, choose
from citewell.answer.confidence import BANDS, confidence, features
from citewell.answer.decline import decline
from citewell.answer.extract import candidates
from citewell.answer.retrieve import Engines, Retrieved, retrieve
from citewell.answer.understand import Understood, understand
from citewell.answer.units import quote, units
from citewell.models import EVERYWHERE, Answer, Cite, Exchange, Passage, Piece, Project, Segment, Where

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
) -> AsyncIterator[Piece | Answer]:
    """The answer as it is written: text and citations, then the whole as an `Answer`."""
    began = perf_counter()
    asked = understand(question, history)
    found = await retrieve(asked.question, project=project.id, engines=engines, limit=top_k, where=where)
    _stage("retrieved", began, passages=len(found.passages))
    quotes, certainty = _quotes(asked, found)
    words, nearest = ("", ()) if quotes else decline(asked, found.passages, where)
    segments = _segments(quotes, found.passages) if quotes else (Segment(words, ()),)
    for piece in _pieces(segments):
        yield piece
    _stage("answered", began, confidence=round(certainty, 3), covered=bool(quotes))
    yield Answer(
        segments=segments,
        confidence=certainty if quotes else 0.0,
        mode="full" if quotes else "no_results",
        model=EXTRACTIVE,
        found=found.passages,
        question=asked.question,
        nearest=nearest,
        low_confidence=bool(quotes) and certainty < BANDS["weak"],
    )


async def whole(pieces: AsyncIterator[Piece | Answer], render: Callable[[Piece], str]) -> tuple[str, Answer]:
    """The stream collected: the rendered text, and the answer it ends with."""
    said: list[str] = []
    async for piece in pieces:
        if isinstance(piece, Answer):
            return "".join(said), piece
        said.append(render(piece))
    raise RuntimeError("an answer stream ends with an Answer")


def _quotes(asked: Understood, found: Retrieved) -> tuple[list[Quote], float]:
    """The quotes that answer, none where the passages do not; and how sure that is."""
    if not asked.wants_answer or not found.passages:
        return [], 0.0
    scored = candidates(asked.question, found.passages, found.weights)
    certainty = confidence(features(asked.question, found, scored))
    fresh = [one for one in scored if not asked.was_said(quote(found.passages[one.passage].chunk.text, one.unit))]
    return (choose(asked.question, fresh, found.passages) if certainty >= BANDS["refuse"] else []), certainty


def _segments(quotes: Sequence[Quote], passages: Sequence[Passage]) -> tuple[Segment, ...]:
    return tuple(Segment(quote.text, (passages[quote.passage],), quote.start) for quote in quotes)


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


def _stage(stage: str, began: float, **facts: object) -> None:
    latency_ms = round((perf_counter() - began) * 1000, 1)
    _log.info(stage, extra={"stage": stage, "latency_ms": latency_ms, **facts})
