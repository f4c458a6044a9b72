"""Beyond finding: whether the best sentences hold the answer, and whether what is not covered is declined."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sentencex import get_sentence_boundaries

from afternoon import Afternoon, Piece, spoken
from asking import group_of
from citewell.answer import flow
from citewell.answer.engines import AnswerEngines
from citewell.answer.quoting.score import score_candidates
from citewell.answer.reply.markers import NumberedMarkers
from citewell.answer.retrieval.rerank import Retrieval
from citewell.text.units import unit_text
from folds import Unseen
from scoring import Array, Estimate, bootstrapped, calibration_error, estimate
from sets import PROJECT, Question, Set
from tables import OURS, Table

_READ = 5  # passages that sentences are taken from
_MOST = 3
_SHORT = 100  # characters of an answer that is a span, not an essay
_OVERLAP = "idf overlap"


@dataclass(frozen=True, slots=True)
class Refusals:
    """Shares that were declined, and how far confidence is from being right as often as it says."""

    title: str
    shares: dict[str, tuple[int, Estimate]]
    calibration: dict[str, Estimate]

    def shown(self) -> str:
        lines = [f"{self.title}, declined"]
        lines += [f"  {name:24}{share}   of {number}" for name, (number, share) in self.shares.items()]
        lines += [f"  {name:24}{error}" for name, error in self.calibration.items()]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        shares = {name: {"questions": number, **asdict(share)} for name, (number, share) in self.shares.items()}
        return {"declined": shares, "calibration": {name: asdict(one) for name, one in self.calibration.items()}}


def has_short_answers(one: Set) -> bool:
    """Whether most questions have an answer that is a short span of a relevant text."""
    texts = {text.file: _flat(text.text) for text in one.texts}
    spans = [
        any(
            len(answer) <= _SHORT and _flat(answer) in texts.get(file, "")
            for answer in asked.answers
            for file in asked.relevant
        )
        for asked in one.covered
    ]
    return one.source.kind == "retrieval" and bool(spans) and sum(spans) > len(spans) / 2


def answer_table(
    title: str,
    one: Set,
    questions: Sequence[Question],
    found: Sequence[Retrieval],
    *,
    afternoon: Afternoon,
    pieces: Sequence[Sequence[Piece]],
    unseen: Unseen,
) -> Table:
    """Share of questions whose answer stands in the best one, two, three sentences; ours, and BM25's by idf overlap."""
    mine = []
    for question, retrieved in zip(questions, found, strict=True):
        unseen.use_for(group_of(one, question))
        mine.append(our_sentences(question, retrieved))
    theirs = [_by_overlap(question, said, afternoon) for question, said in zip(questions, pieces, strict=True)]
    scores = {
        system: {
            f"in best {most}": np.array(
                [_holds(said[:most], question.answers) for question, said in zip(questions, sentences, strict=True)]
            )
            for most in range(1, _MOST + 1)
        }
        for system, sentences in ((OURS, mine), (_OVERLAP, theirs))
    }
    return Table(f"{title}, answers", tuple(question.id for question in questions), scores, _OVERLAP)


def our_sentences(question: Question, found: Retrieval) -> list[str]:
    """THE place that says what our best sentences are: the likeliest units of the first passages, none twice."""
    asked = " ".join(question.text.split())
    passages = found.passages[:_READ]
    ranked = sorted(score_candidates(asked, passages, found.weights), key=lambda one: -one.log_odds)
    return list(dict.fromkeys(unit_text(passages[one.passage].chunk.text, one.unit) for one in ranked))[:_MOST]


def _by_overlap(question: Question, pieces: Sequence[Piece], afternoon: Afternoon) -> list[str]:
    wanted = set(spoken(question.text, question.lang))
    said = [
        boundary["text"]
        for piece in pieces[:_READ]
        for boundary in get_sentence_boundaries(piece.source.language or "en", piece.text)
    ]
    shared = [wanted.intersection(spoken(sentence, question.lang)) for sentence in said]
    order = sorted(range(len(said)), key=lambda at: -sum(map(afternoon.rarity, sorted(shared[at]))))
    return [said[at] for at in order[:_MOST]]


def _holds(sentences: Sequence[str], answers: Sequence[str]) -> float:
    return float(any(_flat(answer) in _flat(sentence) for answer in answers for sentence in sentences))


def _flat(text: str) -> str:
    return " ".join(re.sub(r"[*_`\\]", "", text).split()).casefold()


async def refusals(
    title: str, one: Set, strangers: Sequence[Question], *, engines: AnswerEngines, unseen: Unseen
) -> Refusals:
    """Ask everything through the answer flow. Right is: answered from a relevant file, or declined where uncovered."""
    uncovered = [question for question in one.questions if question.unanswerable]
    kinds = {"answerable": one.covered, "unanswerable": uncovered, "off topic": strangers}
    shares: dict[str, tuple[int, Estimate]] = {}
    rows: list[Array] = []
    for kind, questions in kinds.items():
        if not questions:
            continue
        answers = []
        for question in questions:
            unseen.use_for(group_of(one, question))
            answers.append(await _asked(question, one, engines=engines))
        asked = np.array(answers)
        shares[kind] = len(asked), estimate(asked[:, 0] == 0)
        rows.append(asked)
    whole = np.concatenate(rows)
    return Refusals(
        title,
        shares,
        {
            "ECE": bootstrapped(_weighed(whole, balanced=False), calibration_error),
            "ECE, both halves alike": bootstrapped(_weighed(whole, balanced=True), calibration_error),
        },
    )


async def _asked(question: Question, one: Set, *, engines: AnswerEngines) -> tuple[float, float, float]:
    """The answer's confidence, whether a relevant file was found, and whether there is one."""
    pieces = flow.answer(question.text, project=PROJECT, engines=engines)
    _, answer = await flow.collect(pieces, NumberedMarkers().render)
    relevant = {file.split("#page=")[0] for file in question.relevant}
    right = question.answerable and any(one.named(passage.chunk.source) in relevant for passage in answer.retrieved)
    return answer.confidence, float(right), float(question.answerable)


def _weighed(rows: Array, *, balanced: bool) -> Array:
    """Confidence, right, weight: each question alike, or the covered ones together as much as all others together."""
    covered = rows[:, 2] == 1
    weight = np.ones(len(rows))
    if balanced and covered.any() and not covered.all():
        weight = np.where(covered, 0.5 / covered.sum(), 0.5 / (~covered).sum())
    return np.column_stack([rows[:, 0], rows[:, 1], weight])
