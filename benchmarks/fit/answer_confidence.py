"""Fit what the reader's scores weigh, and the confidence of an answer, judged on sites that no fit saw.

    python benchmarks/fit/answer_confidence.py DATA [--home FOLDER] [--readers FOLDER | --no-reader]
                                                    [--threshold P] [--write]

Asks the questions of `answers.jsonl` (`quality/answers.py` says where the documents are), quotes without declining, and
labels each answer: right if it holds the keys, wrong if not, or if the documents do not answer. Prints the report of
`quality/answers.py` with each site judged by weights fitted on the four others, and what each threshold costs.
--readers names a folder with a reader for each site, SITE.onnx, that was trained without it; else the shipped one reads
all, which has seen them. --write puts the weights of all sites into the package.
"""

import argparse
import asyncio
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import citewell
from citewell.adapters.minilm_reader import MiniLmReader
from citewell.answer.engines import DECLINE_BELOW, AnswerEngines
from citewell.answer.question import ResolvedQuestion, resolve
from citewell.answer.quoting import CONFIDENCE_BANDS, QuoteSelection, Reading, score_candidates, select_quotes
from citewell.answer.quoting import score as score_model
from citewell.answer.quoting.confidence import (
    ANSWER_FEATURES,
    READ_FEATURES,
    answer_features,
    estimate_confidence,
    reading_features,
)
from citewell.answer.quoting.read import rank_by_reading, read_candidates
from citewell.answer.reply import Draft, NumberedMarkers, to_pieces
from citewell.answer.retrieval import Retrieval, retrieve
from citewell.models import NO_FILTERS
from citewell.ports import Reader
from citewell.text import unit_text

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.fit.reader_docs_examples import gold_units
from benchmarks.quality.answers import (
    PROJECT,
    AnswerQuestion,
    ScoredAnswer,
    is_right,
    open_site,
    read_questions,
    report,
)

WEIGHTS_FILE = Path(citewell.__file__).parent / "data" / "ranking.json"
READ_INPUTS = ("words", "unit", "window")
PASSAGES = 5
PENALTY = 30.0  # of squared weights of features with unit spread: with 280 answers, less fits noise (docs/log.md)
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ReadQuestion:
    """A question with what was retrieved and read for it."""

    question: AnswerQuestion
    resolved: ResolvedQuestion
    retrieval: Retrieval
    reading: Reading
    """With all passages that were read, in the order before reading."""
    gold: tuple[int, ...]
    """The candidates that a gold quote contains."""


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer that was quoted without declining, with the features of its confidence."""

    question: AnswerQuestion
    text: str
    topic: float
    features: Array
    right: bool
    grounded: bool


async def read(question: AnswerQuestion, engines: AnswerEngines, reader: Reader | None) -> ReadQuestion:
    resolved = await resolve(question.question, (), None, selection="", hint="")
    retrieval = await retrieve(resolved.search_text, project=PROJECT.id, engines=engines, limit=PASSAGES)
    candidates = score_candidates(retrieval.question, retrieval.passages, retrieval.weights)
    reading = Reading(retrieval, candidates, estimate_confidence(retrieval.question, retrieval, candidates))
    if reader:
        passages = (*retrieval.passages, *retrieval.further)
        candidates = score_candidates(retrieval.question, passages, retrieval.weights, with_code=True)
        read = await read_candidates(retrieval.question, candidates, passages, reader)
        reading = Reading(replace(retrieval, passages=passages), read, reading.topic_confidence, was_read=True)
    passages = reading.retrieval.passages
    texts = [unit_text(passages[one.passage].chunk.text, one.unit) for one in reading.candidates]
    return ReadQuestion(question, resolved, retrieval, reading, tuple(gold_units(question, texts)))


def label(read: ReadQuestion) -> LabelledAnswer:
    """Quotes without declining, with the present weights of the reader's scores."""
    question, retrieval, candidates = read.question, read.retrieval, read.reading.candidates
    if read.reading.was_read:
        retrieval, candidates = rank_by_reading(retrieval, read.reading.retrieval.passages, candidates)
    quotes = select_quotes(retrieval.question, candidates, retrieval.passages)
    markers = NumberedMarkers()
    draft = Draft(read.resolved, retrieval, NO_FILTERS, QuoteSelection(quotes, 1.0), None)
    text = "".join(markers.render(piece) for piece in to_pieces(draft.from_quotes()))
    cited = {passage.chunk.source for passage in markers.passages}
    features = answer_features(retrieval.question, retrieval, candidates, quotes)
    if read.reading.was_read:
        features = np.concatenate([features, reading_features(candidates, quotes)])
    return LabelledAnswer(
        question=question,
        text=text,
        topic=read.reading.topic_confidence,
        features=features,
        right=question.answerable and is_right(question, text),
        grounded=any(source.endswith(file) or file.endswith(source) for source in cited for file in question.files),
    )


def reader_for(site: str, options: argparse.Namespace) -> Reader | None:
    if options.no_reader:
        return None
    if not options.readers:
        return MiniLmReader()
    weights = options.readers / f"{site}.onnx"
    return MiniLmReader(weights=weights, sha256=hashlib.sha256(weights.read_bytes()).hexdigest())


async def read_all(questions: Sequence[AnswerQuestion], options: argparse.Namespace, home: Path) -> list[ReadQuestion]:
    result = []
    for site in sites_of(questions):
        reader = reader_for(site, options)
        async with open_site(site, data=options.data, home=home) as engines:
            result += [await read(question, engines, reader) for question in questions if question.site == site]
    return result


def sites_of(questions: Iterable[AnswerQuestion]) -> list[str]:
    return list(dict.fromkeys(question.site for question in questions))


def fit_reading(questions: Sequence[ReadQuestion]) -> Array:
    """Weights of words, unit and window, under which a unit of the gold quote is the likeliest one of its question."""
    groups = []
    for read in questions:
        if read.gold and read.reading.was_read:
            scores = [(one.log_odds_by_words, *(one.read or (0.0, 0.0))) for one in read.reading.candidates]
            groups.append((np.array(scores), np.array(read.gold)))
    start = np.array([0.7, 0.35, 0.4])  # the likeliest unit is not all that counts, so the fit stays near it
    weights = start.copy()
    for _ in range(400):
        gradient = -0.5 * (weights - start)
        for rows, gold in groups:
            odds = np.exp(rows @ weights - (rows @ weights).max())
            share = odds[gold] @ rows[gold] / odds[gold].sum() - odds @ rows / odds.sum()
            gradient += share / len(groups)
        weights += 0.1 * gradient
    return weights


def fit_confidence(answers: Sequence[LabelledAnswer]) -> Array:
    """Logistic regression by Newton's method, with a penalty on all weights but the bias."""
    rows = np.array([answer.features for answer in answers])
    labels = np.array([answer.right for answer in answers], dtype=float)
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-6
    mean[0], spread[0] = 0.0, 1.0  # the bias
    inputs = (rows - mean) / spread
    penalty = np.diag([1e-6, *[PENALTY] * (inputs.shape[1] - 1)])
    weights = np.zeros(inputs.shape[1])
    for _ in range(30):
        odds = 1 / (1 + np.exp(-(inputs @ weights)))
        gradient = inputs.T @ (labels - odds) - penalty @ weights
        curvature = (inputs * (odds * (1 - odds))[:, None]).T @ inputs + penalty
        weights += np.linalg.solve(curvature, gradient)
    raw = weights / spread
    raw[0] = weights[0] - float(weights[1:] @ (mean[1:] / spread[1:]))
    return np.asarray(raw, dtype=np.float64)


def judge_left_out(questions: Sequence[ReadQuestion]) -> list[ScoredAnswer]:
    """Every answer, quoted and judged by weights that were fitted without its site; nothing is declined yet."""
    scored = []
    for site in sites_of(read.question for read in questions):
        others = [read for read in questions if read.question.site != site]
        use(fit_reading(others) if others[0].reading.was_read else None)
        weights = fit_confidence(on_topic([label(read) for read in others]))
        for answer in (label(read) for read in questions if read.question.site == site):
            off_topic = not on_topic([answer])
            odds = 0.0 if off_topic else float(1 / (1 + np.exp(-(answer.features @ weights))))
            scored.append(ScoredAnswer(answer.question, answer.text, odds, off_topic, answer.right, answer.grounded))
    return scored


def on_topic(answers: Sequence[LabelledAnswer]) -> list[LabelledAnswer]:
    return [answer for answer in answers if answer.topic >= CONFIDENCE_BANDS["refuse"]]


def use(weights: Array | None) -> None:
    """Let the candidates use these weights of the reader's scores."""
    if weights is not None:
        score_model._READ_WEIGHTS[:] = weights


def decline(answers: Sequence[ScoredAnswer], threshold: float) -> list[ScoredAnswer]:
    return [
        replace(answer, declined=True, right=False) if answer.declined or answer.confidence < threshold else answer
        for answer in answers
    ]


def trade_off(answers: Sequence[ScoredAnswer]) -> str:
    lines = ["threshold  right  wrongly declined  near declined  far declined  overall"]
    for threshold in np.arange(0.1, 0.61, 0.05):
        judged = decline(answers, threshold)
        answerable = [answer for answer in judged if answer.question.answerable]
        near, far = ([a.declined for a in judged if a.question.kind == kind] for kind in ("near", "far"))
        shares = (
            np.mean([answer.right for answer in answerable]),
            np.mean([answer.declined for answer in answerable]),
            np.mean(near),
            np.mean(far),
            np.mean([answer.good for answer in judged]),
        )
        lines.append(f"{threshold:9.2f}  " + "  ".join(f"{100 * share:5.1f} %" for share in shares))
    return "\n".join(lines)


def rounded(names: Sequence[str], weights: Array) -> dict[str, float]:
    return {name: round(float(value), 3) for name, value in zip(names, weights, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--readers", type=Path)
    parser.add_argument("--no-reader", action="store_true")
    parser.add_argument("--threshold", type=float, default=DECLINE_BELOW)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = options.home or Path(scratch)
        questions = asyncio.run(read_all(read_questions(options.data), options, home))
    scored = judge_left_out(questions)
    print(report(decline(scored, options.threshold)))
    print(trade_off(scored))
    fitted = {}
    if not options.no_reader:
        reading = fit_reading(questions)
        use(reading)
        fitted["read"] = rounded(READ_INPUTS, reading)
    weights = fit_confidence(on_topic([label(read) for read in questions]))
    fitted |= (
        {"answer": rounded(ANSWER_FEATURES, weights)}
        if options.no_reader
        else {"answer_read": rounded(READ_FEATURES, weights)}
    )
    print(json.dumps(fitted, indent=1))
    if options.write:
        shipped = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))
        WEIGHTS_FILE.write_text(json.dumps(shipped | fitted, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
