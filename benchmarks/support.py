"""Fit how likely a text supports a sentence, on claims that people held against passages.

    python benchmarks/support.py DATA [--write | --shipped]

DATA holds `claims/claims.jsonl` {claim, passage, label, source, …}. Claims are split seven ways, three times, by what
they share: a passage, a claim, a question or a title stand in one part only, so that what is printed was judged by
trees that saw nothing of it. Every source and label weighs the same, and one threshold, a half, is for all. Then it is
printed what trees make of a source that they saw nothing of, and of sentences of the passages with one thing changed.
--write fits on all and puts that into the package; --shipped judges all claims with what is in the package, for
claims that it was not fitted on.
"""

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from numpy.typing import NDArray

from citewell.adapters.minilm import MiniLmEmbedder
from citewell.answer.support.altered_quote import ALTERED_QUOTE_FACTOR, is_altered_quote
from citewell.answer.support.features import SUPPORT_FEATURES, support_features
from citewell.answer.support.passage_facts import claim_text, read_facts
from citewell.ports import Embeddable
from citewell.text import data_file, split_words
from edits import edited, sentences
from folds import FOLDS, fold_of
from scoring import Array, bootstrapped, calibration_error

NAMED = ("begin-wow", "expertqa", "scifact", "wice")
"""The sources that people judged; the mean over them is what we hold ourselves to."""
WEIGHTS = Path(str(data_file("support.json")))
SPLITS = 3
_TREES = 150
EVEN = 0.5  # every source and label weighs the same, so this is where either mistake costs the same


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence, a text, and whether the one supports the other; `group` is shared with whatever shares a text."""

    source: str
    group: str
    claim: str
    passage: str
    supported: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """Claims with what the trees read of them."""

    claims: Sequence[Claim]
    rows: Array
    similarity: Array
    misquoted: NDArray[np.bool_]

    @property
    def supported(self) -> NDArray[np.bool_]:
        return np.array([one.supported for one in self.claims])

    @property
    def source(self) -> NDArray[np.str_]:
        return np.array([one.source for one in self.claims])

    def inputs(self, *, similar: bool) -> Array:
        return np.column_stack([self.rows, self.similarity]) if similar else self.rows

    def only(self, keep: NDArray[np.bool_]) -> "Judged":
        some = [one for one, kept in zip(self.claims, keep, strict=True) if kept]
        return Judged(some, self.rows[keep], self.similarity[keep], self.misquoted[keep])


def read_claims(data: Path) -> list[Claim]:
    """Every claim, grouped with all that shares its passage, claim, question or title with it."""
    lines = (data / "claims" / "claims.jsonl").read_text(encoding="utf-8").splitlines()
    raw: list[dict[str, Any]] = [json.loads(line) for line in lines]
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        while parent.setdefault(key, key) != key:
            key = parent[key]
        return key

    keys = [
        [f"{name}:{one[name]}" for name in ("passage", "claim", "question", "title") if one.get(name)] for one in raw
    ]
    for shared in keys:
        for key in shared[1:]:
            parent[root(key)] = root(shared[0])
    return [
        Claim(one["source"], root(shared[0]), one["claim"], one["passage"], one["label"] == "supported")
        for one, shared in zip(raw, keys, strict=True)
    ]


def edits_of(claims: Sequence[Claim]) -> list[Claim]:
    """Sentences of every third passage as they stand and changed; the source says how."""
    passages = {one.passage: one.group for one in claims}
    foreign = [said for passage in passages for said in sentences(passage)[:3]]
    return [
        Claim(kind, group, said, passage, supported)
        for number, (passage, group) in enumerate(passages.items())
        if number % 3 == 0
        for kind, said, supported in edited(passage, foreign, random.Random(number))
    ]


def judged(claims: Sequence[Claim], similarity: Array) -> Judged:
    said = [(claim_text(one.claim), read_facts(one.passage)) for one in claims]
    spoken = [bool(split_words(claim) and evidence.sentences) for claim, evidence in said]
    rows = [
        list(support_features(*one).values()) if speaks else [0.0] * len(SUPPORT_FEATURES)
        for one, speaks in zip(said, spoken, strict=True)
    ]
    return Judged(
        claims,
        np.array(rows),
        similarity,
        np.array([speaks and is_altered_quote(*one) for one, speaks in zip(said, spoken, strict=True)]),
    )


async def similarities(claims: Sequence[Claim]) -> Array:
    """The cosine of each claim and the nearest window of its passage, as the index would have it."""
    embedder = MiniLmEmbedder()
    passages = list(dict.fromkeys(one.passage for one in claims))
    windows = await embedder.embed_passages([Embeddable(text=passage, label="") for passage in passages])
    at = {passage: found.vectors for passage, found in zip(passages, windows, strict=True)}
    asked = await embedder.embed_passages([Embeddable(text=one.claim, label="") for one in claims])
    means = [one.vectors.mean(axis=0) for one in asked]
    return np.array(
        [(at[one.passage] @ (mean / np.linalg.norm(mean))).max() for one, mean in zip(claims, means, strict=True)]
    )


def shares(cases: Judged) -> Array:
    """What each claim weighs: every source and label the same."""
    pairs = [(one.source, one.supported) for one in cases.claims]
    sizes = Counter(pairs)
    share = np.array([1 / sizes[pair] for pair in pairs])
    return np.asarray(share / share.mean(), dtype=np.float64)


def fit(cases: Judged, *, similar: bool) -> LGBMClassifier:
    """Small trees, none of which may turn a sign around: another missing name never speaks for a sentence."""
    directions = [*SUPPORT_FEATURES.values(), 1] if similar else list(SUPPORT_FEATURES.values())
    model = LGBMClassifier(
        n_estimators=_TREES, learning_rate=0.04, num_leaves=8, min_child_samples=25, subsample=0.8, subsample_freq=1,
        colsample_bytree=0.4, reg_lambda=5, monotone_constraints=directions, random_state=7, n_jobs=2, verbose=-1,
    )  # fmt: skip
    return model.fit(cases.inputs(similar=similar), cases.supported, sample_weight=shares(cases))


def chances(model: LGBMClassifier, cases: Judged, *, similar: bool) -> Array:
    if not cases.claims:
        return np.zeros(0)
    found = np.asarray(model.predict_proba(cases.inputs(similar=similar)), dtype=np.float64)[:, 1]
    return np.where(cases.misquoted, ALTERED_QUOTE_FACTOR * found, found)


def bands(odds: Array, cases: Judged) -> dict[str, float]:
    """Supported where that is likelier than not; weak down to where fewer than one in five of what is below is."""
    weight = shares(cases)
    weak = 0.1
    for place in np.linspace(0.1, EVEN, 81):
        below = odds < place
        if below.any() and np.average(cases.supported[below], weights=weight[below]) < 0.2:
            weak = float(place)
    return {"supported": EVEN, "weak": round(weak, 3)}


def balanced(rows: Array) -> float:
    """Rows are how often a claim was called supported, and whether it is."""
    called, right = rows[:, 0], rows[:, 1] > 0.5
    return float((called[right].mean() + 1 - called[~right].mean()) / 2) if 0 < right.sum() < len(right) else 0.5


def auroc(odds: Array, right: NDArray[np.bool_]) -> float:
    """How often a supported claim is put above an unsupported one; ties count half."""
    order = np.sort(odds)
    ranks = (np.searchsorted(order, odds, "left") + np.searchsorted(order, odds, "right") + 1) / 2
    most = right.sum()
    return float((ranks[right].sum() - most * (most + 1) / 2) / (most * (~right).sum()))


def report(title: str, splits: Array, cases: Judged) -> None:
    """A row per split into parts; what is printed is the mean over them, the interval that over claims."""
    print(f"\n{title}\n{'source':24} {'number':>6} {'supported':>9}  {'balanced accuracy':22}  AUROC")
    found: dict[str, tuple[float, float]] = {}
    for name in sorted(set(cases.source)):
        mine = cases.source == name
        right = cases.supported[mine]
        called = (splits[:, mine] >= EVEN).mean(axis=0)
        accuracy = bootstrapped(np.column_stack([called, right]), balanced)
        found[name] = accuracy.value, float(np.mean([auroc(odds[mine], right) for odds in splits]))
        print(f"{name:24} {mine.sum():6} {right.mean():9.2f}  {accuracy!s:22}  {found[name][1]:.3f}")
    if all(name in found for name in NAMED):
        four = np.mean([found[name] for name in NAMED], axis=0)
        print(f"{'mean of ' + ', '.join(NAMED):>42}  {four[0]:.3f} {'':16}  {four[1]:.3f}")
    errors = [calibration_error(np.column_stack([odds, cases.supported, shares(cases)])) for odds in splits]
    print(f"calibration error {np.mean(errors):.3f}")


def unseen(cases: Judged, edits: Judged, *, similar: bool) -> tuple[Array, Array]:
    """Every claim, and every edit, as trees see it that were fitted on the other groups; a row per split."""
    odds, changed = np.zeros((SPLITS, len(cases.claims))), np.zeros((SPLITS, len(edits.claims)))
    for split in range(SPLITS):
        fold = np.array([fold_of(f"{split} {one.group}") for one in cases.claims])
        edit_fold = np.array([fold_of(f"{split} {one.group}") for one in edits.claims])
        for part in range(FOLDS):
            model = fit(cases.only(fold != part), similar=similar)
            odds[split, fold == part] = chances(model, cases.only(fold == part), similar=similar)
            changed[split, edit_fold == part] = chances(model, edits.only(edit_fold == part), similar=similar)
    return odds, changed


def strangers(cases: Judged, *, similar: bool) -> Array:
    """Every source as trees see it that saw nothing of it."""
    odds = np.zeros(len(cases.claims))
    for name in sorted(set(cases.source)):
        mine = cases.source == name
        odds[mine] = chances(fit(cases.only(~mine), similar=similar), cases.only(mine), similar=similar)
    return odds


def exported(model: LGBMClassifier, features: Sequence[str]) -> dict[str, Any]:
    """The trees as `citewell.answer.support.score` walks them."""
    nodes: list[tuple[int, float, int, int, float]] = []

    def add(node: Mapping[str, Any]) -> tuple[int, int]:
        here = len(nodes)
        if "leaf_value" in node:
            nodes.append((0, 0.0, here, here, float(f"{node['leaf_value']:.5g}")))
            return here, 0
        nodes.append((0, 0.0, 0, 0, 0.0))
        left, left_depth = add(node["left_child"])
        right, right_depth = add(node["right_child"])
        nodes[here] = (int(node["split_feature"]), float(f"{node['threshold']:.6g}"), left, right, 0.0)
        return here, 1 + max(left_depth, right_depth)

    grown = [add(tree["tree_structure"]) for tree in model.booster_.dump_model()["tree_info"]]
    feature, edge, left, right, value = zip(*nodes, strict=True)
    return {
        "features": list(features),
        "depth": max(depth for _, depth in grown),
        "roots": [root for root, _ in grown],
        "feature": feature,
        "threshold": edge,
        "left": left,
        "right": right,
        "value": value,
    }


def seconds_each(claims: Sequence[Claim]) -> tuple[float, float]:
    """CPU seconds of holding a claim against a text that is read for the first time, and against one read before."""
    from citewell.answer.support.score import support_score

    read_facts.cache_clear()
    started = time.process_time()
    for one in claims:
        support_score(one.claim, [one.passage])
    first = time.process_time() - started
    known = claims[-400:]  # as many as are kept
    started = time.process_time()
    for one in known:
        support_score(one.claim, [one.passage])
    return first / len(claims), (time.process_time() - started) / len(known)


def judge_shipped(claims: Sequence[Claim]) -> None:
    from citewell.answer.support.score import support_score

    odds = np.array([support_score(one.claim, [one.passage]) for one in claims])
    report("by what is in the package", odds[None], judged(claims, np.zeros(len(claims))))


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
    changed = edits_of(claims)
    both = asyncio.run(similarities([*claims, *changed]))
    cases, edits = judged(claims, both[: len(claims)]), judged(changed, both[len(claims) :])
    groups = {one.group for one in claims}
    sizes = sorted(Counter(fold_of(f"0 {one.group}") for one in claims).values())
    print(
        f"{len(claims)} claims in {len(groups)} groups, {SPLITS} splits into {FOLDS} parts, the first of {sizes} claims"
    )
    fitted: dict[str, Any] = {}
    for name, similar in (("words", False), ("words and similarity", True)):
        odds, altered = unseen(cases, edits, similar=similar)
        report(f"{name}, groups unseen", odds, cases)
        print("sentences of the passages, called right")
        for kind in dict.fromkeys(edits.source):
            mine = edits.source == kind
            right = ((altered >= EVEN) == edits.supported)[:, mine].mean()
            print(f"{kind:24} {mine.sum():6} {edits.supported[mine].mean():9.2f}  {right:.3f}")
        report(f"{name}, source unseen", strangers(cases, similar=similar)[None], cases)
        if not similar:  # what a similarity would add is shown, and not shipped: nothing has it in time
            fitted = {
                "words": exported(fit(cases, similar=False), list(SUPPORT_FEATURES)),
                "bands": bands(odds.mean(axis=0), cases),
            }
    print(f"\n{fitted['bands']}")
    if options.write:
        WEIGHTS.write_text(json.dumps(fitted) + "\n", encoding="utf-8")
    first, again = seconds_each(claims)
    print(f"{1000 * first:.2f} ms for a claim and its passage, {1000 * again:.2f} ms when the passage was read before")


if __name__ == "__main__":
    main()
