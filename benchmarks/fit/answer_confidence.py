"""Fit the confidence of an answer to whether answers were right, judged on sites that the fit did not see.

    python benchmarks/fit/answer_confidence.py DATA [--home FOLDER] [--threshold P] [--write]

Asks the questions of `answers.jsonl` (`quality/answers.py` says where the documents are), quotes without declining, and
labels each answer: right if it holds the keys, wrong if not, or if the documents do not answer. Prints the report of
`quality/answers.py` with each site judged by weights fitted on the four others, and what each threshold costs. --write
puts the weights of all sites, and the threshold, into the package.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import citewell
from citewell.answer.engines import AnswerEngines
from citewell.answer.question import resolve
from citewell.answer.quoting import (
    CONFIDENCE_BANDS,
    QuoteSelection,
    estimate_confidence,
    score_candidates,
    select_quotes,
)
from citewell.answer.quoting.confidence import ANSWER_FEATURES, answer_features
from citewell.answer.reply import Draft, NumberedMarkers, to_pieces
from citewell.answer.retrieval import retrieve
from citewell.models import NO_FILTERS

sys.path.insert(0, str(Path(__file__).parents[2]))
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
PASSAGES = 5
PENALTY = 30.0  # of squared weights of features with unit spread: with 280 answers, less fits noise (docs/log.md)
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer that was quoted without declining, with the features of its confidence."""

    question: AnswerQuestion
    text: str
    topic: float
    features: Array
    right: bool
    grounded: bool


async def label(question: AnswerQuestion, engines: AnswerEngines) -> LabelledAnswer:
    resolved = await resolve(question.question, (), None, selection="", hint="")
    retrieval = await retrieve(resolved.search_text, project=PROJECT.id, engines=engines, limit=PASSAGES)
    candidates = score_candidates(retrieval.question, retrieval.passages, retrieval.weights)
    quotes = select_quotes(retrieval.question, candidates, retrieval.passages)
    markers = NumberedMarkers()
    draft = Draft(resolved, retrieval, NO_FILTERS, QuoteSelection(quotes, 1.0), None)
    text = "".join(markers.render(piece) for piece in to_pieces(draft.from_quotes()))
    cited = {passage.chunk.source for passage in markers.passages}
    return LabelledAnswer(
        question=question,
        text=text,
        topic=estimate_confidence(retrieval.question, retrieval, candidates),
        features=answer_features(retrieval.question, retrieval, candidates, quotes),
        right=question.answerable and is_right(question, text),
        grounded=any(source.endswith(file) or file.endswith(source) for source in cited for file in question.files),
    )


async def label_all(questions: Sequence[AnswerQuestion], *, data: Path, home: Path) -> list[LabelledAnswer]:
    answers = []
    for site in dict.fromkeys(question.site for question in questions):
        async with open_site(site, data=data, home=home) as engines:
            answers += [await label(question, engines) for question in questions if question.site == site]
    return answers


def fit(answers: Sequence[LabelledAnswer]) -> Array:
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


def confidence(answer: LabelledAnswer, weights: Array) -> float:
    return float(1 / (1 + np.exp(-(answer.features @ weights))))


def judge_left_out(answers: Sequence[LabelledAnswer]) -> list[ScoredAnswer]:
    """Every answer with the confidence of weights that were fitted without its site; nothing is declined yet."""
    scored = []
    for site in dict.fromkeys(answer.question.site for answer in answers):
        weights = fit([answer for answer in answers if answer.question.site != site])
        for answer in answers:
            if answer.question.site == site:
                off_topic = answer.topic < CONFIDENCE_BANDS["refuse"]
                odds = 0.0 if off_topic else confidence(answer, weights)
                scored.append(
                    ScoredAnswer(answer.question, answer.text, odds, off_topic, answer.right, answer.grounded)
                )
    return scored


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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--threshold", type=float, default=0.3)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = options.home or Path(scratch)
        answers = asyncio.run(label_all(read_questions(options.data), data=options.data, home=home))
    scored = judge_left_out(answers)
    print(report(decline(scored, options.threshold)))
    print(trade_off(scored))
    weights = {name: round(float(value), 3) for name, value in zip(ANSWER_FEATURES, fit(answers), strict=True)}
    print(json.dumps(weights, indent=1))
    if options.write:
        shipped = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))
        shipped |= {"answer": weights, "bands": shipped["bands"] | {"decline": options.threshold}}
        WEIGHTS_FILE.write_text(json.dumps(shipped, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
