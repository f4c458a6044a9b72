"""Scores beyond retrieval: whether the best sentences contain the answer, and which questions are declined."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sentencex import get_sentence_boundaries

from benchmarks.lib.baseline import Baseline, Piece, stem_words
from benchmarks.lib.folds import HeldOutWeights
from benchmarks.lib.sets import PROJECT, Question, QuestionSet
from benchmarks.lib.tables import OURS, Table
from benchmarks.lib.training_cases import group_of
from citewell.answer import flow
from citewell.answer.engines import AnswerEngines
from citewell.answer.quoting.score import score_candidates
from citewell.answer.reply.markers import NumberedMarkers
from citewell.answer.retrieval.rerank import Retrieval
from citewell.evaluate.metrics import Array, Estimate, calibration_error, mean_with_interval, statistic_with_interval
from citewell.evaluate.relevance import normalize_text
from citewell.text.units import unit_text

_TOP_PASSAGES = 5  # the sentences come from these
_MAX_SENTENCES = 3
_MAX_ANSWER_CHARACTERS = 100  # of an answer that can be a quoted span
_OVERLAP = "idf overlap"


@dataclass(frozen=True, slots=True)
class Refusals:
    """The shares of questions that were declined, and the calibration error of confidence."""

    title: str
    shares: dict[str, tuple[int, Estimate]]
    calibration: dict[str, Estimate]

    def as_text(self) -> str:
        lines = [f"{self.title}, declined"]
        lines += [f"  {name:24}{share}   of {number}" for name, (number, share) in self.shares.items()]
        lines += [f"  {name:24}{error}" for name, error in self.calibration.items()]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        shares = {name: {"questions": number, **asdict(share)} for name, (number, share) in self.shares.items()}
        return {"declined": shares, "calibration": {name: asdict(error) for name, error in self.calibration.items()}}


def has_short_answers(question_set: QuestionSet) -> bool:
    """Whether most questions have an answer that is a short span of a relevant text."""
    texts = {text.file: normalize_text(text.text) for text in question_set.texts}
    spans = [
        any(
            len(answer) <= _MAX_ANSWER_CHARACTERS and normalize_text(answer) in texts.get(file, "")
            for answer in question.answers
            for file in question.relevant
        )
        for question in question_set.covered
    ]
    return question_set.source.kind == "retrieval" and bool(spans) and sum(spans) > len(spans) / 2


def answer_table(
    title: str,
    question_set: QuestionSet,
    questions: Sequence[Question],
    retrievals: Sequence[Retrieval],
    *,
    baseline: Baseline,
    pieces: Sequence[Sequence[Piece]],
    held_out: HeldOutWeights,
) -> Table:
    """The share of questions whose answer is in the best 1, 2, 3 sentences: Citewell's, and BM25's by IDF overlap."""
    our_best = []
    for question, retrieval in zip(questions, retrievals, strict=True):
        held_out.use_for(group_of(question_set, question))
        our_best.append(our_sentences(question, retrieval))
    baseline_best = [
        _sentences_by_overlap(question, question_pieces, baseline)
        for question, question_pieces in zip(questions, pieces, strict=True)
    ]
    scores = {
        system: {
            f"in best {most}": np.array(
                [
                    _contains_answer(question_pieces[:most], question.answers)
                    for question, question_pieces in zip(questions, best, strict=True)
                ]
            )
            for most in range(1, _MAX_SENTENCES + 1)
        }
        for system, best in ((OURS, our_best), (_OVERLAP, baseline_best))
    }
    return Table(f"{title}, answers", tuple(question.id for question in questions), scores, _OVERLAP)


def our_sentences(question: Question, retrieval: Retrieval) -> list[str]:
    """Citewell's best sentences: the most likely units of the first passages, without duplicates."""
    text = " ".join(question.text.split())
    passages = retrieval.passages[:_TOP_PASSAGES]
    ranked = sorted(score_candidates(text, passages, retrieval.weights), key=lambda candidate: -candidate.log_odds)
    return list(
        dict.fromkeys(unit_text(passages[candidate.passage].chunk.text, candidate.unit) for candidate in ranked)
    )[:_MAX_SENTENCES]


def _sentences_by_overlap(question: Question, pieces: Sequence[Piece], baseline: Baseline) -> list[str]:
    stems = set(stem_words(question.text, question.lang))
    sentences = [
        boundary["text"]
        for piece in pieces[:_TOP_PASSAGES]
        for boundary in get_sentence_boundaries(piece.source.language or "en", piece.text)
    ]
    shared = [stems.intersection(stem_words(sentence, question.lang)) for sentence in sentences]
    order = sorted(range(len(sentences)), key=lambda at: -sum(map(baseline.rarity, sorted(shared[at]))))
    return [sentences[at] for at in order[:_MAX_SENTENCES]]


def _contains_answer(sentences: Sequence[str], answers: Sequence[str]) -> float:
    return float(
        any(normalize_text(answer) in normalize_text(sentence) for answer in answers for sentence in sentences)
    )


async def measure_refusals(
    title: str,
    question_set: QuestionSet,
    off_topic: Sequence[Question],
    *,
    engines: AnswerEngines,
    held_out: HeldOutWeights,
) -> Refusals:
    """Ask all questions through the answer flow. Right: answered from a relevant file, or declined if not covered."""
    uncovered = [question for question in question_set.questions if question.unanswerable]
    kinds = {"answerable": question_set.covered, "unanswerable": uncovered, "off topic": off_topic}
    shares: dict[str, tuple[int, Estimate]] = {}
    rows: list[Array] = []
    for kind, questions in kinds.items():
        if not questions:
            continue
        answers = []
        for question in questions:
            held_out.use_for(group_of(question_set, question))
            answers.append(await _ask(question, question_set, engines=engines))
        outcomes = np.array(answers)
        shares[kind] = len(outcomes), mean_with_interval(outcomes[:, 0] == 0)
        rows.append(outcomes)
    whole = np.concatenate(rows)
    return Refusals(
        title,
        shares,
        {
            "ECE": statistic_with_interval(_with_weights(whole, balanced=False), calibration_error),
            "ECE, both halves alike": statistic_with_interval(_with_weights(whole, balanced=True), calibration_error),
        },
    )


async def _ask(question: Question, question_set: QuestionSet, *, engines: AnswerEngines) -> tuple[float, float, float]:
    """The confidence of the answer, whether a relevant file was retrieved, and whether there is one."""
    pieces = flow.answer(question.text, project=PROJECT, engines=engines)
    _, answer = await flow.collect(pieces, NumberedMarkers().render)
    relevant = {file.split("#page=")[0] for file in question.relevant}
    right = question.answerable and any(
        question_set.document_name(passage.chunk.source) in relevant for passage in answer.retrieved
    )
    return answer.confidence, float(right), float(question.answerable)


def _with_weights(rows: Array, *, balanced: bool) -> Array:
    """Confidence, right, weight: all questions alike, or covered and uncovered ones with the same total weight."""
    covered = rows[:, 2] == 1
    weight = np.ones(len(rows))
    if balanced and covered.any() and not covered.all():
        weight = np.where(covered, 0.5 / covered.sum(), 0.5 / (~covered).sum())
    return np.column_stack([rows[:, 0], rows[:, 1], weight])
