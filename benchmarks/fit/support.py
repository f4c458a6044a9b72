"""Fit the support score: how likely a passage supports a sentence, on claims that people judged.

    python benchmarks/fit/support.py DATA [--write | --shipped]

DATA has `claims/claims.jsonl` {claim, passage, label, source, …}. Cross-validation: claims are split into seven folds,
three times; claims that share a passage, a claim, a question or a title are in one fold, so every printed number comes
from trees that were fitted without them. Every source and label has the same weight; the threshold is one half. It also
prints scores for whole sources that were left out, and for sentences of the passages with one thing changed.
--write fits on all claims and puts the trees into the package; --shipped scores the trees in the package, for claims
that they were not fitted on.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import citewell
from citewell.adapters.minilm import MiniLmEmbedder
from citewell.answer.support.altered_quote import ALTERED_QUOTE_FACTOR, is_altered_quote
from citewell.answer.support.features import SUPPORT_FEATURES, support_features
from citewell.answer.support.passage_facts import claim_text, read_facts
from citewell.evaluate.metrics import Array, calibration_error, statistic_with_interval
from citewell.ports import Embeddable
from citewell.text.words import split_words

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.lib.edits import edit_sentences, sentences
from benchmarks.lib.folds import FOLDS, fold_of

if TYPE_CHECKING:  # not a dependency of the project: only fitting needs it
    from lightgbm import LGBMClassifier

JUDGED_BY_PEOPLE = ("begin-wow", "expertqa", "scifact", "wice")
"""The sources whose mean is our goal."""
WEIGHTS = Path(citewell.__file__).parent / "data" / "support.json"
SPLITS = 3
_TREES = 150
THRESHOLD = 0.5  # both kinds of mistake cost the same


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence, a passage, and whether it supports the sentence; claims that share a text have the same `group`."""

    source: str
    group: str
    claim: str
    passage: str
    supported: bool


@dataclass(frozen=True, slots=True)
class Features:
    """Claims with their features."""

    claims: Sequence[Claim]
    rows: Array
    similarity: Array
    misquoted: NDArray[np.bool_]

    @property
    def supported(self) -> NDArray[np.bool_]:
        return np.array([claim.supported for claim in self.claims])

    @property
    def source(self) -> NDArray[np.str_]:
        return np.array([claim.source for claim in self.claims])

    def inputs(self, *, with_similarity: bool) -> Array:
        return np.column_stack([self.rows, self.similarity]) if with_similarity else self.rows

    def only(self, keep: NDArray[np.bool_]) -> "Features":
        claims = [claim for claim, is_kept in zip(self.claims, keep, strict=True) if is_kept]
        return Features(claims, self.rows[keep], self.similarity[keep], self.misquoted[keep])


def read_claims(data: Path) -> list[Claim]:
    """All claims; those that share a passage, a claim, a question or a title have the same group."""
    lines = (data / "claims" / "claims.jsonl").read_text(encoding="utf-8").splitlines()
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        while parent.setdefault(key, key) != key:
            key = parent[key]
        return key

    keys = [
        [f"{name}:{row[name]}" for name in ("passage", "claim", "question", "title") if row.get(name)] for row in rows
    ]
    for shared in keys:
        for key in shared[1:]:
            parent[root(key)] = root(shared[0])
    return [
        Claim(row["source"], root(shared[0]), row["claim"], row["passage"], row["label"] == "supported")
        for row, shared in zip(rows, keys, strict=True)
    ]


def edited_claims(claims: Sequence[Claim]) -> list[Claim]:
    """Sentences of every third passage, unchanged and changed; `source` names the change."""
    passages = {claim.passage: claim.group for claim in claims}
    foreign_sentences = [sentence for passage in passages for sentence in sentences(passage)[:3]]
    return [
        Claim(kind, group, sentence, passage, supported)
        for number, (passage, group) in enumerate(passages.items())
        if number % 3 == 0
        for kind, sentence, supported in edit_sentences(passage, foreign_sentences, random.Random(number))
    ]


def compute_features(claims: Sequence[Claim], similarity: Array) -> Features:
    texts = [(claim_text(claim.claim), read_facts(claim.passage)) for claim in claims]
    with_words = [bool(split_words(claim) and evidence.sentences) for claim, evidence in texts]
    rows = [
        list(support_features(*pair).values()) if has_words else [0.0] * len(SUPPORT_FEATURES)
        for pair, has_words in zip(texts, with_words, strict=True)
    ]
    return Features(
        claims,
        np.array(rows),
        similarity,
        np.array([has_words and is_altered_quote(*pair) for pair, has_words in zip(texts, with_words, strict=True)]),
    )


async def similarities(claims: Sequence[Claim]) -> Array:
    """The cosine similarity of each claim to the nearest window of its passage."""
    embedder = MiniLmEmbedder()
    passages = list(dict.fromkeys(claim.passage for claim in claims))
    windows = await embedder.embed_passages([Embeddable(text=passage, label="") for passage in passages])
    passage_vectors = {passage: embedding.vectors for passage, embedding in zip(passages, windows, strict=True)}
    claim_embeddings = await embedder.embed_passages([Embeddable(text=claim.claim, label="") for claim in claims])
    means = [embedding.vectors.mean(axis=0) for embedding in claim_embeddings]
    return np.array(
        [
            (passage_vectors[claim.passage] @ (mean / np.linalg.norm(mean))).max()
            for claim, mean in zip(claims, means, strict=True)
        ]
    )


def claim_weights(cases: Features) -> Array:
    """The weight of each claim: every source and label the same in total."""
    pairs = [(claim.source, claim.supported) for claim in cases.claims]
    sizes = Counter(pairs)
    share = np.array([1 / sizes[pair] for pair in pairs])
    return np.asarray(share / share.mean(), dtype=np.float64)


def fit(cases: Features, *, with_similarity: bool) -> "LGBMClassifier":
    """Small boosted trees with monotone features: one more missing name never raises the score."""
    from lightgbm import LGBMClassifier

    directions = [*SUPPORT_FEATURES.values(), 1] if with_similarity else list(SUPPORT_FEATURES.values())
    model = LGBMClassifier(
        n_estimators=_TREES, learning_rate=0.04, num_leaves=8, min_child_samples=25, subsample=0.8, subsample_freq=1,
        colsample_bytree=0.4, reg_lambda=5, monotone_constraints=directions, random_state=7, n_jobs=2, verbose=-1,
    )  # fmt: skip
    return model.fit(cases.inputs(with_similarity=with_similarity), cases.supported, sample_weight=claim_weights(cases))


def predict(model: "LGBMClassifier", cases: Features, *, with_similarity: bool) -> Array:
    if not cases.claims:
        return np.zeros(0)
    probabilities = np.asarray(model.predict_proba(cases.inputs(with_similarity=with_similarity)), dtype=np.float64)[
        :, 1
    ]
    return np.where(cases.misquoted, ALTERED_QUOTE_FACTOR * probabilities, probabilities)


def bands(probabilities: Array, cases: Features) -> dict[str, float]:
    """The thresholds: supported from one half; weak from where fewer than one in five of the claims below is."""
    weight = claim_weights(cases)
    weak = 0.1
    for place in np.linspace(0.1, THRESHOLD, 81):
        below = probabilities < place
        if below.any() and np.average(cases.supported[below], weights=weight[below]) < 0.2:
            weak = float(place)
    return {"supported": THRESHOLD, "weak": round(weak, 3)}


def balanced_accuracy(rows: Array) -> float:
    """Balanced accuracy; a row is the share of splits that called a claim supported, and whether it is."""
    called, right = rows[:, 0], rows[:, 1] > 0.5
    return float((called[right].mean() + 1 - called[~right].mean()) / 2) if 0 < right.sum() < len(right) else 0.5


def auroc(probabilities: Array, right: NDArray[np.bool_]) -> float:
    """The probability that a supported claim scores above an unsupported one (AUROC); ties count half."""
    order = np.sort(probabilities)
    ranks = (np.searchsorted(order, probabilities, "left") + np.searchsorted(order, probabilities, "right") + 1) / 2
    most = right.sum()
    return float((ranks[right].sum() - most * (most + 1) / 2) / (most * (~right).sum()))


def report(title: str, splits: Array, cases: Features) -> None:
    """Print the scores by source: the mean over splits, with intervals over claims. `splits` has a row per split."""
    print(f"\n{title}\n{'source':24} {'number':>6} {'supported':>9}  {'balanced accuracy':22}  AUROC")
    scores: dict[str, tuple[float, float]] = {}
    for name in sorted(set(cases.source)):
        of_source = cases.source == name
        right = cases.supported[of_source]
        called_supported = (splits[:, of_source] >= THRESHOLD).mean(axis=0)
        accuracy = statistic_with_interval(np.column_stack([called_supported, right]), balanced_accuracy)
        scores[name] = (
            accuracy.value,
            float(np.mean([auroc(probabilities[of_source], right) for probabilities in splits])),
        )
        print(f"{name:24} {of_source.sum():6} {right.mean():9.2f}  {accuracy!s:22}  {scores[name][1]:.3f}")
    if all(name in scores for name in JUDGED_BY_PEOPLE):
        means = np.mean([scores[name] for name in JUDGED_BY_PEOPLE], axis=0)
        print(f"{'mean of ' + ', '.join(JUDGED_BY_PEOPLE):>42}  {means[0]:.3f} {'':16}  {means[1]:.3f}")
    errors = [
        calibration_error(np.column_stack([probabilities, cases.supported, claim_weights(cases)]))
        for probabilities in splits
    ]
    print(f"calibration error {np.mean(errors):.3f}")


def predict_held_out(cases: Features, edits: Features, *, with_similarity: bool) -> tuple[Array, Array]:
    """The scores of all claims and edits by trees fitted on the other groups; a row per split."""
    probabilities, edit_probabilities = np.zeros((SPLITS, len(cases.claims))), np.zeros((SPLITS, len(edits.claims)))
    for split in range(SPLITS):
        fold = np.array([fold_of(f"{split} {claim.group}") for claim in cases.claims])
        edit_fold = np.array([fold_of(f"{split} {claim.group}") for claim in edits.claims])
        for part in range(FOLDS):
            model = fit(cases.only(fold != part), with_similarity=with_similarity)
            probabilities[split, fold == part] = predict(
                model, cases.only(fold == part), with_similarity=with_similarity
            )
            edit_probabilities[split, edit_fold == part] = predict(
                model, edits.only(edit_fold == part), with_similarity=with_similarity
            )
    return probabilities, edit_probabilities


def predict_unseen_sources(cases: Features, *, with_similarity: bool) -> Array:
    """The scores of each source by trees fitted on the other sources."""
    probabilities = np.zeros(len(cases.claims))
    for name in sorted(set(cases.source)):
        of_source = cases.source == name
        probabilities[of_source] = predict(
            fit(cases.only(~of_source), with_similarity=with_similarity),
            cases.only(of_source),
            with_similarity=with_similarity,
        )
    return probabilities


def export_trees(model: "LGBMClassifier", features: Sequence[str]) -> dict[str, Any]:
    """The trees in the format of `citewell.answer.support.score`."""
    nodes: list[tuple[int, float, int, int, float]] = []

    def add(node: Mapping[str, Any]) -> tuple[int, int]:
        position = len(nodes)
        if "leaf_value" in node:
            nodes.append((0, 0.0, position, position, float(f"{node['leaf_value']:.5g}")))
            return position, 0
        nodes.append((0, 0.0, 0, 0, 0.0))
        left, left_depth = add(node["left_child"])
        right, right_depth = add(node["right_child"])
        nodes[position] = (int(node["split_feature"]), float(f"{node['threshold']:.6g}"), left, right, 0.0)
        return position, 1 + max(left_depth, right_depth)

    trees = [add(tree["tree_structure"]) for tree in model.booster_.dump_model()["tree_info"]]
    feature, threshold, left, right, value = zip(*nodes, strict=True)
    return {
        "features": list(features),
        "depth": max(depth for _, depth in trees),
        "roots": [root for root, _ in trees],
        "feature": feature,
        "threshold": threshold,
        "left": left,
        "right": right,
        "value": value,
    }


def seconds_each(claims: Sequence[Claim]) -> tuple[float, float]:
    """CPU seconds per claim with a new passage, and with a passage that is in the cache."""
    from citewell.answer.support.score import support_score

    read_facts.cache_clear()
    started = time.process_time()
    for claim in claims:
        support_score(claim.claim, [claim.passage])
    first = time.process_time() - started
    cached = claims[-400:]  # as many as are cached
    started = time.process_time()
    for claim in cached:
        support_score(claim.claim, [claim.passage])
    return first / len(claims), (time.process_time() - started) / len(cached)


def judge_shipped(claims: Sequence[Claim]) -> None:
    from citewell.answer.support.score import support_score

    probabilities = np.array([support_score(claim.claim, [claim.passage]) for claim in claims])
    report("by what is in the package", probabilities[None], compute_features(claims, np.zeros(len(claims))))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--shipped", action="store_true")
    options = parser.parse_args()
    claims = read_claims(options.data)
    if options.shipped:
        judge_shipped(claims)
        return
    changed = edited_claims(claims)
    similarity = asyncio.run(similarities([*claims, *changed]))
    cases, edits = (
        compute_features(claims, similarity[: len(claims)]),
        compute_features(changed, similarity[len(claims) :]),
    )
    groups = {claim.group for claim in claims}
    sizes = sorted(Counter(fold_of(f"0 {claim.group}") for claim in claims).values())
    print(
        f"{len(claims)} claims in {len(groups)} groups, {SPLITS} splits into {FOLDS} parts, the first of {sizes} claims"
    )
    fitted: dict[str, Any] = {}
    for name, with_similarity in (("words", False), ("words and similarity", True)):
        probabilities, edit_probabilities = predict_held_out(cases, edits, with_similarity=with_similarity)
        report(f"{name}, groups unseen", probabilities, cases)
        print("sentences of the passages, called right")
        for kind in dict.fromkeys(edits.source):
            of_kind = edits.source == kind
            right = ((edit_probabilities >= THRESHOLD) == edits.supported)[:, of_kind].mean()
            print(f"{kind:24} {of_kind.sum():6} {edits.supported[of_kind].mean():9.2f}  {right:.3f}")
        report(f"{name}, source unseen", predict_unseen_sources(cases, with_similarity=with_similarity)[None], cases)
        if not with_similarity:  # what a similarity would add is shown, and not shipped: nothing has it in time
            fitted = {
                "words": export_trees(fit(cases, with_similarity=False), list(SUPPORT_FEATURES)),
                "bands": bands(probabilities.mean(axis=0), cases),
            }
    print(f"\n{fitted['bands']}")
    if options.write:
        WEIGHTS.write_text(json.dumps(fitted) + "\n", encoding="utf-8")
    first, again = seconds_each(claims)
    print(f"{1000 * first:.2f} ms for a claim and its passage, {1000 * again:.2f} ms when the passage was read before")


if __name__ == "__main__":
    main()
