"""Lets a model read the parts of the passages that may answer, before quotes are selected.

The features of `score.py` find where the answer may be; a model that reads the question beside the text tells whether
it is there. Reading is slow, so only the most promising windows are read. A window is a run of units below one heading.
Without a model, or where the model cannot read the question's language, the features alone decide.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from citewell.answer.quoting.confidence import CONFIDENCE_BANDS, can_judge_answers_to, estimate_confidence
from citewell.answer.quoting.question import QuotableQuestion
from citewell.answer.quoting.score import Candidate, score_candidates
from citewell.answer.retrieval import HINT_LOG_ODDS, Retrieval
from citewell.errors import ModelError
from citewell.models import Passage
from citewell.ports import ReadableWindow, Reader
from citewell.text import unit_text
from citewell.tracing import span

_log = logging.getLogger("citewell.answer")

MAX_WINDOWS = 12
"""Windows read for a question: more take longer than readers wait, and hardly help (docs/log.md)."""

_UNREAD = (-5.0, -4.0)  # log-odds of what was not worth reading: about as low as what was read and does not answer
_WINDOW_CHARACTERS = 480  # about as long as in training
_UNIT_CHARACTERS = 290  # counted of a long unit at most; the reader cuts it there, too
_HEADING_LINE = re.compile(r"^[ \t>]*#{1,6}[ \t]+(.+?)[ \t#]*(?:\{#[^}]*\})?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Reading:
    """The passages in the order after reading, and all that could be quoted of them."""

    retrieval: Retrieval
    candidates: Sequence[Candidate]
    topic_confidence: float
    """The probability that the passages are about what is asked for."""
    was_read: bool = False
    """Whether a model has read the candidates."""


@dataclass(frozen=True, slots=True)
class _Window:
    """Consecutive candidates of a passage below one heading."""

    heading: str
    candidates: tuple[Candidate, ...]

    @property
    def promise(self) -> float:
        return max(candidate.log_odds for candidate in self.candidates)


async def read_passages(question: QuotableQuestion, retrieval: Retrieval, reader: Reader | None) -> Reading:
    """Scores what could be quoted; with a reader, ranks the passages by what it read in them.

    Nothing is read where the passages are about something else. Where the model fails, the features alone decide.
    """
    if not question.wants_answer or not retrieval.passages:
        return Reading(retrieval, (), 0.0)
    text = retrieval.question or question.search_text
    read = reader is not None and not retrieval.from_selection and can_judge_answers_to(text)
    passages = (*retrieval.passages, *retrieval.further) if read else retrieval.passages
    candidates = score_candidates(
        text,
        passages,
        retrieval.weights,
        favour=dict.fromkeys(retrieval.hinted, HINT_LOG_ODDS),
        with_code=read,
    )
    first = [candidate for candidate in candidates if candidate.passage < len(retrieval.passages)]
    topic_confidence = estimate_confidence(text, retrieval, first, refers_to_selection=question.refers_to_marked_text)
    if reader is None or not read or topic_confidence < CONFIDENCE_BANDS["refuse"]:
        return Reading(retrieval, first, topic_confidence)
    try:
        with span("read"):
            candidates = await read_candidates(text, candidates, passages, reader)
    except ModelError as error:
        _log.warning("quoting without a reader: %s", error)
        return Reading(retrieval, first, topic_confidence)
    if retrieval.further:
        retrieval, candidates = rank_by_reading(retrieval, passages, candidates)
    return Reading(retrieval, candidates, topic_confidence, was_read=True)


async def read_candidates(
    question: str,
    candidates: Sequence[Candidate],
    passages: Sequence[Passage],
    reader: Reader,
    *,
    most: int = MAX_WINDOWS,
) -> list[Candidate]:
    """The candidates with what the reader thinks of them. It reads the most promising windows. Raises ModelError."""
    windows = readable_windows(candidates, passages, most)
    all_scores = await reader.read(question, [text for _, text in windows])
    read = {
        (candidate.passage, candidate.unit): (unit, scores.answers)
        for (window, _), scores in zip(windows, all_scores, strict=True)
        for candidate, unit in zip(window, scores.units, strict=False)
    }
    return [replace(candidate, read=read.get((candidate.passage, candidate.unit), _UNREAD)) for candidate in candidates]


def readable_windows(
    candidates: Sequence[Candidate], passages: Sequence[Passage], most: int
) -> list[tuple[tuple[Candidate, ...], ReadableWindow]]:
    """The most promising windows: the candidates in them, and their text for the reader."""
    windows = sorted(_split_windows(candidates, passages), key=lambda window: -window.promise)[:most]
    return [
        (
            window.candidates,
            ReadableWindow(
                window.heading,
                tuple(unit_text(passages[one.passage].chunk.text, one.unit) for one in window.candidates),
            ),
        )
        for window in windows
    ]


def _split_windows(candidates: Sequence[Candidate], passages: Sequence[Passage]) -> Iterator[_Window]:
    """All candidates, cut into windows that cross no heading."""
    for index, passage in enumerate(passages):
        chunk = passage.chunk
        headings = [(match.start(), match[1]) for match in _HEADING_LINE.finditer(chunk.text)]
        heading, length, run = chunk.topic, 0, list[Candidate]()
        for candidate in (candidate for candidate in candidates if candidate.passage == index):
            unit = candidate.unit
            above = [title for start, title in headings if start < unit.start]
            below = f"{chunk.chapter} > {above[-1]}" if above else chunk.topic
            characters = min(_UNIT_CHARACTERS, unit.end - unit.start)
            if run and (below != heading or length + characters > _WINDOW_CHARACTERS):
                yield _Window(heading, tuple(run))
                length, run = 0, []
            heading = below
            length += characters
            run.append(candidate)
        if run:
            yield _Window(heading, tuple(run))


def rank_by_reading(
    retrieval: Retrieval, passages: Sequence[Passage], candidates: Sequence[Candidate]
) -> tuple[Retrieval, list[Candidate]]:
    """As many passages as before, those with the best candidates first; and the candidates that stand in them."""
    best = [float("-inf")] * len(passages)
    for candidate in candidates:
        best[candidate.passage] = max(best[candidate.passage], candidate.log_odds)
    order = sorted(range(len(passages)), key=lambda index: -best[index])[: len(retrieval.passages)]
    place = {index: rank for rank, index in enumerate(order)}
    kept = [
        replace(candidate, passage=place[candidate.passage]) for candidate in candidates if candidate.passage in place
    ]
    kept.sort(key=lambda candidate: (candidate.passage, candidate.unit.start))
    return replace(retrieval, passages=tuple(passages[index] for index in order), further=()), kept
