"""Fit the weights that rank passages, choose quotes and estimate confidence, on question sets.

    python benchmarks/fit/ranking.py DATA --home FOLDER [--write]

`benchmarks/lib/sets.py` describes the layout of DATA; every set is indexed once, below --home. Cross-validation: the
questions are split into seven folds by article, site or small set, and every printed number comes from weights that
were fitted without the question's group. Then the weights are fitted on all questions. --write puts these into the
package, and those of the folds into `folds.json`, which `benchmarks/quality/retrieval.py` uses for sets that were
fitted on. The example book is not used.
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
from citewell.evaluate.metrics import Array, calibration_error, graded_ndcg, hit_at

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.lib.folds import FOLDS, FOLDS_FILE, fold_of, group_digest, install_weights
from benchmarks.lib.training_cases import Case, gather_cases, has_questions

WEIGHTS = Path(citewell.__file__).parent / "data" / "ranking.json"
TOP_PASSAGES = 5
HARD_PASSAGES = 12  # the passages that compete for the first places
FITTED_ON = {"covered": 2.0, "off topic": 1.0, "other docs": 1.0, "adversarial": 1.0}
# Confidence is the probability of being right, so these thresholds are chosen, not fitted: refusing a covered question
# is four times as bad as a doubtful answer to an uncovered one, and an answer that is more likely wrong than right is
# doubtful. Thresholds fitted on some sites did worse on the others (docs/log.md).
BANDS = {"refuse": 0.2, "weak": 0.5, "decline": 0.3}  # the last one is for `answer_confidence.py`
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


def case_weights(cases: Sequence[Case]) -> Array:
    """The weight of each case: sets count nearly the same whatever their size, claims and keywords less."""
    sizes = Counter(case.corpus for case in cases)
    share = np.array(
        [sizes[case.corpus] ** -0.7 * (1.0 if has_questions(case.question_set) else 0.4) for case in cases]
    )
    return np.asarray(share / share.sum(), dtype=np.float64)


def conditional_logit(rows: Sequence[Array], positives: Sequence[NDArray[Any]], share: Array, decay: float) -> Array:
    """Conditional logit: raise the odds of each case's positive rows over its others; Adam, on scaled features."""
    longest = max(map(len, rows))
    inputs = np.zeros((len(rows), longest, rows[0].shape[1]))
    mask = np.zeros((len(rows), longest), dtype=bool)
    targets = np.zeros((len(rows), longest))
    for place, (features, gold) in enumerate(zip(rows, positives, strict=True)):
        inputs[place, : len(features)] = features
        mask[place, : len(features)] = True
        targets[place, : len(features)] = gold
    spread = inputs[mask].std(axis=0) + 1e-6
    inputs /= spread
    weights = np.zeros(inputs.shape[2])
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, 301):
        scores = np.where(mask, inputs @ weights, -np.inf)
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        inside = odds * targets
        pull = inside / inside.sum(axis=1, keepdims=True) - odds / odds.sum(axis=1, keepdims=True)
        gradient = np.einsum("ij,ijk->k", pull * share[:, None], inputs) - decay / len(rows) * weights
        first = 0.9 * first + 0.1 * gradient
        second = 0.99 * second + 0.01 * gradient**2
        weights += 0.05 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-9)
    return np.asarray(weights / spread, dtype=np.float64)


def fit_rerank(cases: Sequence[Case]) -> Array:
    """Rank relevant passages above the others; fit twice more on the passages that then come first, the hard ones."""
    covered = [case for case in cases if case.kind == "covered" and case.relevant.any() and not case.relevant.all()]
    weights = conditional_logit(
        [case.rows for case in covered], [case.relevant for case in covered], case_weights(covered), 3.0
    )
    for _ in range(2):
        first = [np.argsort(-(case.rows @ weights), kind="stable")[:HARD_PASSAGES] for case in covered]
        hard = [(case, top) for case, top in zip(covered, first, strict=True) if case.relevant[top].any()]
        weights = conditional_logit(
            [case.rows[top] for case, top in hard],
            [case.relevant[top] for case, top in hard],
            case_weights([case for case, _ in hard]),
            3.0,
        )
    return weights


def rank_passages(case: Case, weights: Array) -> list[int]:
    return np.argsort(-(case.rows @ weights), kind="stable").tolist()  # type: ignore[no-any-return]


def candidate_units(case: Case, rerank: Array) -> tuple[list[Candidate], Array]:
    """The quotable units of the first passages as the answer flow has them, and which contain the answer."""
    candidates: list[Candidate] = []
    gold = []
    relevance = case.rows @ rerank
    for rank, place in enumerate(rank_passages(case, rerank)[:TOP_PASSAGES]):
        passage_units, is_gold = case.units(place)
        for unit in passage_units:
            features = unit.features.copy()
            features[_RELEVANCE] = relevance[place] - relevance.max()
            candidates.append(replace(unit, passage=rank, features=features))
        gold.append(is_gold)
    extract_model.mark_most_covered(candidates)
    return candidates, np.concatenate(gold).astype(float) if gold else np.zeros(0)


def fit_extract(cases: Sequence[Case], rerank: Array) -> Array:
    usable, rows, golds = [], [], []
    for case in cases:
        if (
            case.kind != "covered"
            or is_foreign_language(case)
            or not (case.row.answers or case.row.spans or case.row.keywords_in_file)
        ):
            continue
        candidates, gold = candidate_units(case, rerank)
        if gold.any() and not gold.all():
            usable.append(case)
            rows.append(np.array([unit.features for unit in candidates]))
            golds.append(gold)
    return conditional_logit(rows, golds, case_weights(usable), 4.0)


def confidence_inputs(case: Case, rerank: Array) -> Array:
    """The features of a case that confidence is computed from; the `extract` weights must be installed."""
    order = rank_passages(case, rerank)[:TOP_PASSAGES]
    retrieval = replace(case.retrieval, passages=tuple(case.retrieval.passages[place] for place in order))
    return confidence_model.confidence_features(case.question, retrieval, candidate_units(case, rerank)[0])


def is_right(case: Case, rerank: Array) -> float:
    return float(case.kind == "covered" and case.relevant[rank_passages(case, rerank)[:TOP_PASSAGES]].any())


def fit_confidence(cases: Sequence[Case], inputs: Array, labels: Array, decay: float = 1.0) -> Array:
    """Logistic regression by Newton's method; each corpus has the same weight, as have covered and uncovered."""
    sizes = Counter((case.corpus, case.kind) for case in cases)
    share = np.array([FITTED_ON.get(case.kind, 0.0) / sizes[case.corpus, case.kind] for case in cases])
    share /= share.mean()
    weights = np.zeros(inputs.shape[1])
    for _ in range(50):
        odds = sigmoid(inputs @ weights)
        gradient = inputs.T @ (share * (labels - odds)) - decay * weights
        curvature = (inputs * (share * odds * (1 - odds))[:, None]).T @ inputs + decay * np.eye(len(weights))
        weights += np.linalg.solve(curvature, gradient)
    return weights


def fit(cases: Sequence[Case]) -> Weights:
    rerank = fit_rerank(cases)
    extract = fit_extract(cases, rerank)
    install_weights({"extract": extract})
    fitting = [case for case in cases if used_for_confidence(case)]
    inputs = np.array([confidence_inputs(case, rerank) for case in fitting])
    labels = np.array([is_right(case, rerank) for case in fitting])
    return Weights(rerank, extract, fit_confidence(fitting, inputs, labels))


def used_for_confidence(case: Case) -> bool:
    """Whether the confidence is fitted on this case: a question of a set in one language. Not claims, and not questions
    written in a paragraph's own words to be unanswerable: features cannot detect those."""
    languages = {row.lang for row in case.question_set.questions}
    return (
        case.kind in FITTED_ON
        and has_questions(case.question_set)
        and len(languages) == 1
        and (case.site or case.kind != "adversarial")
    )


def is_foreign_language(case: Case) -> bool:
    return case.row.lang not in ("", "en")


def report(cases: Sequence[Case], folds: Sequence[Weights]) -> None:
    """Print the scores of all cases, each with weights fitted without its group."""
    held_out = [folds[fold_of(case.group)] for case in cases]
    scores: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    quoted: dict[str, list[list[bool]]] = defaultdict(list)
    answered: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    calibrated = []
    for fold in range(len(folds)):
        install_weights({"extract": folds[fold].extract})
        for case, weights in zip(cases, held_out, strict=True):
            if fold_of(case.group) != fold:
                continue
            name = f"{case.corpus} {case.row.lang}".strip()
            order = rank_passages(case, weights.rerank)
            if case.kind == "covered":
                files = list(
                    dict.fromkeys(
                        case.question_set.document_name(case.retrieval.passages[at].chunk.source) for at in order
                    )
                )[:10]
                relevant = frozenset(path.split("#page=")[0] for path in case.row.relevant)
                gain = graded_ndcg(files, dict.fromkeys(relevant, 1.0))
                scores[name].append((hit_at(1, files, relevant), hit_at(5, files, relevant), gain))
                if case.row.answers and not case.site:
                    candidates, gold = candidate_units(case, weights.rerank)
                    best = np.argsort([-unit.log_odds for unit in candidates], kind="stable")
                    quoted[name].append([bool(gold[best[:most]].any()) for most in (1, 2, 3)])
            if not is_foreign_language(case):
                odds = float(sigmoid(confidence_inputs(case, weights.rerank) @ weights.confidence))
                surely = float(odds >= BANDS["weak"])
                answered[case.corpus, case.kind].append((float(odds >= BANDS["refuse"]), surely))
                if used_for_confidence(case):
                    calibrated.append((case, odds, is_right(case, weights.rerank)))
    print(f"\n{'set':28} {'number':>6}  hit@1 hit@5 nDCG@10")
    for name, rows in sorted(scores.items()):
        print(f"{name:28} {len(rows):6}  " + " ".join(f"{value:.3f}" for value in np.mean(rows, axis=0)))
    print("\ngold answer in the best 1, 2, 3 units")
    for name, quoted_rows in sorted(quoted.items()):
        print(f"{name:28} {len(quoted_rows):6}  " + " ".join(f"{value:.3f}" for value in np.mean(quoted_rows, axis=0)))
    print(f"\n{'corpus':20} {'questions':12} {'number':>6} {'answered':>9} {'surely':>7}")
    for (corpus, kind), rates in sorted(answered.items()):
        means = np.mean(rates, axis=0)
        print(f"{corpus:20} {kind:12} {len(rates):6} {means[0]:9.3f} {means[1]:7.3f}")
    sizes = Counter((case.corpus, case.kind) for case, _, _ in calibrated)
    share = np.array([FITTED_ON[case.kind] / sizes[case.corpus, case.kind] for case, _, _ in calibrated])
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
    cases = asyncio.run(gather_cases(options.data, options.home))
    folds = [fit([case for case in cases if fold_of(case.group) != fold]) for fold in range(FOLDS)]
    report(cases, folds)
    whole = fit(cases)
    print(json.dumps(whole.as_json(), indent=1))
    if options.write:
        shipped = json.loads(WEIGHTS.read_text(encoding="utf-8"))  # `selections.py` fits the rest
        WEIGHTS.write_text(json.dumps(shipped | whole.as_json(), indent=1) + "\n", encoding="utf-8")
        fitted = {"groups": _digests(cases), "folds": [fold.as_json() for fold in folds]}
        FOLDS_FILE.write_text(json.dumps(fitted) + "\n", encoding="utf-8")


def _digests(cases: Sequence[Case]) -> list[str]:
    """The hashes of the groups that were fitted on."""
    return sorted({group_digest(case.group) for case in cases if case.kind == "covered"})


if __name__ == "__main__":
    main()
