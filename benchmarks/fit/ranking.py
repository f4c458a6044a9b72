"""Fit what ranks, quotes and doubts on real questions: the weights of the reranker, the extract and the confidence.

    python benchmarks/fit/ranking.py DATA --home FOLDER [--write]

DATA is laid out as `sets.py` says; every set is taken in below --home, once. Questions are split seven ways by
article, site or small set: what is printed was judged by weights that saw nothing of the group, from the ranking to
the confidence. Then everything is fitted on all; --write puts that into the package, and the seven splits into
`folds.json`, with which `retrieval.py` judges sets that were fitted on. The example book is never read here.
"""

import argparse
import asyncio
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import citewell
from citewell.answer.quoting import confidence as confidence_model
from citewell.answer.quoting import score as extract_model
from citewell.answer.quoting.score import Candidate
from citewell.answer.retrieval import rerank as rerank_model
from citewell.evaluate.metrics import calibration_error, graded_ndcg, hit_at

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.lib.folds import FOLDS, FOLDS_FILE, digest, fold_of, install
from benchmarks.lib.training_cases import Array, Asked, asks, gather

WEIGHTS = Path(citewell.__file__).parent / "data" / "ranking.json"
TOP = 5
HARD = 12  # the passages a reader might see first; what is far below needs no telling apart
FITTED_ON = {"covered": 2.0, "off topic": 1.0, "other docs": 1.0, "adversarial": 1.0}
# Confidence is the chance of being right, so these are choices and not fits: to refuse a covered question is four
# times as bad as to answer an uncovered one doubtfully, and what is likelier wrong than right is doubtful. Thresholds
# taken from some sites' questions did worse on the others (docs/log.md).
BANDS = {"refuse": 0.2, "weak": 0.5}
_RELEVANCE = extract_model.QUOTE_FEATURES.index("relevance")


@dataclass(frozen=True, slots=True)
class Weights:
    rerank: Array
    extract: Array
    confidence: Array

    def as_json(self) -> dict[str, dict[str, float]]:
        def named(features: Sequence[str], values: Array) -> dict[str, float]:
            return {name: round(float(value), 3) for name, value in zip(features, values, strict=True)}

        return {
            "rerank": named(rerank_model.PASSAGE_FEATURES, self.rerank),
            "extract": named(extract_model.QUOTE_FEATURES, self.extract),
            "confidence": named(confidence_model.CONFIDENCE_FEATURES, self.confidence),
            "bands": BANDS,
        }


def shares(cases: Sequence[Asked]) -> Array:
    """What each question weighs: sets nearly alike whatever their size, claims and keywords less than questions."""
    sizes = Counter(one.corpus for one in cases)
    share = np.array([sizes[one.corpus] ** -0.7 * (1.0 if asks(one.one) else 0.4) for one in cases])
    return np.asarray(share / share.sum(), dtype=np.float64)


def conditional_logit(rows: Sequence[Array], wanted: Sequence[NDArray[Any]], share: Array, decay: float) -> Array:
    """Raise the odds of the wanted rows of each case over its others; Adam, on features of unit spread."""
    longest = max(map(len, rows))
    inputs = np.zeros((len(rows), longest, rows[0].shape[1]))
    mask = np.zeros((len(rows), longest), dtype=bool)
    right = np.zeros((len(rows), longest))
    for place, (one, gold) in enumerate(zip(rows, wanted, strict=True)):
        inputs[place, : len(one)] = one
        mask[place, : len(one)] = True
        right[place, : len(one)] = gold
    spread = inputs[mask].std(axis=0) + 1e-6
    inputs /= spread
    weights = np.zeros(inputs.shape[2])
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, 301):
        scores = np.where(mask, inputs @ weights, -np.inf)
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        inside = odds * right
        pull = inside / inside.sum(axis=1, keepdims=True) - odds / odds.sum(axis=1, keepdims=True)
        gradient = np.einsum("ij,ijk->k", pull * share[:, None], inputs) - decay / len(rows) * weights
        first = 0.9 * first + 0.1 * gradient
        second = 0.99 * second + 0.01 * gradient**2
        weights += 0.05 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-9)
    return np.asarray(weights / spread, dtype=np.float64)


def fit_rerank(asked: Sequence[Asked]) -> Array:
    """Relevant passages over the others; twice more on those that then come first, which are the hard ones."""
    cases = [one for one in asked if one.kind == "covered" and one.relevant.any() and not one.relevant.all()]
    weights = conditional_logit([one.rows for one in cases], [one.relevant for one in cases], shares(cases), 3.0)
    for _ in range(2):
        first = [np.argsort(-(one.rows @ weights), kind="stable")[:HARD] for one in cases]
        hard = [(one, keep) for one, keep in zip(cases, first, strict=True) if one.relevant[keep].any()]
        weights = conditional_logit(
            [one.rows[keep] for one, keep in hard],
            [one.relevant[keep] for one, keep in hard],
            shares([one for one, _ in hard]),
            3.0,
        )
    return weights


def ranked(one: Asked, weights: Array) -> list[int]:
    return np.argsort(-(one.rows @ weights), kind="stable").tolist()  # type: ignore[no-any-return]


def units(one: Asked, rerank: Array) -> tuple[list[Candidate], Array]:
    """The units of the first passages as the flow would see them, and which hold the answer."""
    found: list[Candidate] = []
    gold = []
    relevance = one.rows @ rerank
    for rank, place in enumerate(ranked(one, rerank)[:TOP]):
        some, right = one.units(place)
        for unit in some:
            features = unit.features.copy()
            features[_RELEVANCE] = relevance[place] - relevance.max()
            found.append(replace(unit, passage=rank, features=features))
        gold.append(right)
    extract_model.mark_most_covered(found)
    return found, np.concatenate(gold).astype(float) if gold else np.zeros(0)


def fit_extract(asked: Sequence[Asked], rerank: Array) -> Array:
    cases, rows, golds = [], [], []
    for one in asked:
        if one.kind != "covered" or foreign(one) or not (one.row.answers or one.row.spans or one.row.keywords_in_file):
            continue
        found, gold = units(one, rerank)
        if gold.any() and not gold.all():
            cases.append(one)
            rows.append(np.array([unit.features for unit in found]))
            golds.append(gold)
    return conditional_logit(rows, golds, shares(cases), 4.0)


def doubts(one: Asked, rerank: Array) -> Array:
    """What the confidence reads of a question; `extract` must be installed."""
    order = ranked(one, rerank)[:TOP]
    found = replace(one.found, passages=tuple(one.found.passages[place] for place in order))
    return confidence_model.confidence_features(one.question, found, units(one, rerank)[0])


def right(one: Asked, rerank: Array) -> float:
    return float(one.kind == "covered" and one.relevant[ranked(one, rerank)[:TOP]].any())


def fit_confidence(cases: Sequence[Asked], inputs: Array, labels: Array, decay: float = 1.0) -> Array:
    """Logistic regression by Newton's method; each corpus alike, and covered as much as not covered."""
    sizes = Counter((one.corpus, one.kind) for one in cases)
    share = np.array([FITTED_ON.get(one.kind, 0.0) / sizes[one.corpus, one.kind] for one in cases])
    share /= share.mean()
    weights = np.zeros(inputs.shape[1])
    for _ in range(50):
        odds = sigmoid(inputs @ weights)
        gradient = inputs.T @ (share * (labels - odds)) - decay * weights
        curvature = (inputs * (share * odds * (1 - odds))[:, None]).T @ inputs + decay * np.eye(len(weights))
        weights += np.linalg.solve(curvature, gradient)
    return weights


def fit(asked: Sequence[Asked]) -> Weights:
    rerank = fit_rerank(asked)
    extract = fit_extract(asked, rerank)
    install({"extract": extract})
    cases = [one for one in asked if fits_confidence(one)]
    inputs = np.array([doubts(one, rerank) for one in cases])
    labels = np.array([right(one, rerank) for one in cases])
    return Weights(rerank, extract, fit_confidence(cases, inputs, labels))


def fits_confidence(one: Asked) -> bool:
    """Readers' questions in one language; not claims, and not what was written against a single paragraph, in its
    words, to be unanswerable: to tell that takes reading."""
    languages = {row.lang for row in one.one.questions}
    return one.kind in FITTED_ON and asks(one.one) and len(languages) == 1 and (one.site or one.kind != "adversarial")


def foreign(one: Asked) -> bool:
    return one.row.lang not in ("", "en")


def report(asked: Sequence[Asked], folds: Sequence[Weights]) -> None:
    """Every number by weights that did not see the question's group."""
    unseen = [folds[fold_of(one.group)] for one in asked]
    scores: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    held: dict[str, list[list[bool]]] = defaultdict(list)
    answered: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    calibrated = []
    for fold in range(len(folds)):
        install({"extract": folds[fold].extract})
        for one, weights in zip(asked, unseen, strict=True):
            if fold_of(one.group) != fold:
                continue
            name = f"{one.corpus} {one.row.lang}".strip()
            order = ranked(one, weights.rerank)
            if one.kind == "covered":
                files = list(dict.fromkeys(one.one.named(one.found.passages[at].chunk.source) for at in order))[:10]
                wanted = frozenset(path.split("#page=")[0] for path in one.row.relevant)
                gain = graded_ndcg(files, dict.fromkeys(wanted, 1.0))
                scores[name].append((hit_at(1, files, wanted), hit_at(5, files, wanted), gain))
                if one.row.answers and not one.site:
                    found, gold = units(one, weights.rerank)
                    best = np.argsort([-unit.log_odds for unit in found], kind="stable")
                    held[name].append([bool(gold[best[:most]].any()) for most in (1, 2, 3)])
            if not foreign(one):
                odds = float(sigmoid(doubts(one, weights.rerank) @ weights.confidence))
                surely = float(odds >= BANDS["weak"])
                answered[one.corpus, one.kind].append((float(odds >= BANDS["refuse"]), surely))
                if fits_confidence(one):
                    calibrated.append((one, odds, right(one, weights.rerank)))
    print(f"\n{'set':28} {'number':>6}  hit@1 hit@5 nDCG@10")
    for name, rows in sorted(scores.items()):
        print(f"{name:28} {len(rows):6}  " + " ".join(f"{value:.3f}" for value in np.mean(rows, axis=0)))
    print("\ngold answer in the best 1, 2, 3 units")
    for name, rows_held in sorted(held.items()):
        print(f"{name:28} {len(rows_held):6}  " + " ".join(f"{value:.3f}" for value in np.mean(rows_held, axis=0)))
    print(f"\n{'corpus':20} {'questions':12} {'number':>6} {'answered':>9} {'surely':>7}")
    for (corpus, kind), shown in sorted(answered.items()):
        sure = np.mean(shown, axis=0)
        print(f"{corpus:20} {kind:12} {len(shown):6} {sure[0]:9.3f} {sure[1]:7.3f}")
    sizes = Counter((one.corpus, one.kind) for one, _, _ in calibrated)
    share = np.array([FITTED_ON[one.kind] / sizes[one.corpus, one.kind] for one, _, _ in calibrated])
    forecasts = np.column_stack([[row[1:] for row in calibrated], share])
    print(f"calibration error {calibration_error(forecasts):.3f}")


def sigmoid(values: Any) -> Any:
    return 1 / (1 + np.exp(-values))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    asked = asyncio.run(gather(options.data, options.home))
    folds = [fit([one for one in asked if fold_of(one.group) != fold]) for fold in range(FOLDS)]
    report(asked, folds)
    whole = fit(asked)
    print(json.dumps(whole.as_json(), indent=1))
    if options.write:
        kept = json.loads(WEIGHTS.read_text(encoding="utf-8"))  # `selections.py` fits its own
        WEIGHTS.write_text(json.dumps(kept | whole.as_json(), indent=1) + "\n", encoding="utf-8")
        saw = {"groups": _digests(asked), "folds": [fold.as_json() for fold in folds]}
        FOLDS_FILE.write_text(json.dumps(saw) + "\n", encoding="utf-8")


def _digests(asked: Sequence[Asked]) -> list[str]:
    """The groups that were fitted on, shortened: a question of another group is judged by the package's weights."""
    return sorted({digest(one.group) for one in asked if one.kind == "covered"})


if __name__ == "__main__":
    main()
