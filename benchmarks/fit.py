"""Fit the weights of the extractive answer and of its confidence on real questions.

    python benchmarks/fit.py DATA --home FOLDER [--write]

DATA is laid out like the evaluation data (`retrieval/*/{corpus,queries}.jsonl`, `docs/*`, `offtopic/`);
every set is ingested into a project of its own under --home, once. Questions are split by article or
site: weights are judged on articles and sites they did not see, then fitted on all; --write puts them
into the package. The example book's golden questions are never read here.
"""

import argparse
import asyncio
import hashlib
import json
import random
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from citewell.adapters.minilm import MiniLmEmbedder
from citewell.adapters.qdrant_edge import QdrantEdgeIndex, QdrantEdgeShelf
from citewell.adapters.sql import SqlLibrary
from citewell.answer import confidence as confidence_model
from citewell.answer import extract as extract_model
from citewell.answer.extract import candidates
from citewell.answer.retrieve import weigh
from citewell.answer.units import quote
from citewell.ingest.chunk import ChunkSize
from citewell.ingest.flow import Engines, ingest
from citewell.ingest.reading import Recipe
from citewell.models import Passage, Project
from citewell.terms import stems, subject

WEIGHTS = Path(extract_model.__file__).with_name("weights.json")
TOP = 5
PASSAGES = {"squad2", "chunking", "claude_docs"}  # sets of passages; the others are docs sites
FITTED_ON = {"covered": 2.0, "off topic": 1.0, "other docs": 1.0}
ALIKE = {"physical_ai_mohsin", "physical_ai_sirfan"}  # two books on one subject
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question put to a corpus, and what came of it."""

    corpus: str
    group: str
    kind: str  # "covered", "taken away" or "off topic"
    units: Array
    gold: NDArray[np.bool_]
    inputs: tuple[Any, ...]
    found: bool


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def half(group: str) -> int:
    """0 or 1, the same for a whole article or site."""
    return hashlib.sha256(group.encode()).digest()[0] & 1


def write_corpus(rows: Iterable[dict[str, Any]], folder: Path) -> dict[str, str]:
    """A file per passage; gives the passage id of each path."""
    names = {}
    for number, row in enumerate(rows):
        name = f"{number:05d}.md"
        title = json.dumps(row.get("title") or "Untitled")
        (folder / name).write_text(f"---\ntitle: {title}\n---\n{row['text']}\n", encoding="utf-8")
        names[name] = str(row["id"])
    return names


class Bench:
    def __init__(self, home: Path, library: SqlLibrary) -> None:
        self.embedder = MiniLmEmbedder()
        where = {"model": self.embedder.model, "dimensions": self.embedder.dimensions}
        self.library = library
        self.shelf = QdrantEdgeShelf(home / "index", **where)  # type: ignore[arg-type]
        self.index = QdrantEdgeIndex(home / "index", **where)  # type: ignore[arg-type]
        self.names: dict[str, dict[str, str]] = defaultdict(dict)
        self.spoken: dict[str, dict[str, list[frozenset[str]]]] = defaultdict(lambda: defaultdict(list))

    async def add(self, name: str, folder: Path) -> None:
        engines = Engines(self.library, self.library, self.library, self.library, self.embedder, self.shelf)
        done = await ingest(
            [folder],
            project=Project.named(name),
            engines=engines,
            recipe=Recipe(size=ChunkSize()),
            progress=lambda *_: None,
        )
        print(f"{name}: {done.files_processed} files, {done.chunks_embedded} chunks embedded in {done.seconds:.0f} s")

    async def load(self, names: Sequence[str]) -> None:
        projects = {Project.named(name).id: name for name in names}
        async for batch in self.library.chunks():
            for project, chunk in batch:
                if project in projects:
                    name = projects[project]
                    self.spoken[name][self.name(name, chunk.source)].append(frozenset(stems(chunk.text)))

    def name(self, corpus: str, path: str) -> str:
        return self.names[corpus].get(path, path)

    async def ask(
        self, corpus: str, row: dict[str, Any], *, group: str, kind: str, without: Sequence[str] = ()
    ) -> Asked:
        """Retrieve as the answer flow does, as if the documents `without` did not exist."""
        question = " ".join(row["text"].split())
        project = Project.named(corpus).id
        vector = await self.embedder.embed_query(question)
        ranked = await self.index.search(project, vector=vector, words=question, limit=40 if without else 20)
        ranked = tuple(one for one in ranked if self.name(corpus, one.chunk.source) not in without)[:20]
        spoken = subject(question)
        total, counts = await self.index.frequencies(project, list(spoken.values()))
        frequencies = dict(zip(spoken, counts, strict=True))
        for gone in without:
            for said in self.spoken[corpus][gone]:
                total -= 1
                frequencies = {stem: max(0, count - (stem in said)) for stem, count in frequencies.items()}
        found = weigh(ranked, total=total, frequencies=frequencies, limit=TOP)
        passages = found.passages
        units = candidates(question, passages, found.weights)
        gold = np.array([self.is_gold(corpus, row, passages, one) for one in units], dtype=bool)
        relevant = set(row.get("relevant", ()))
        hit = any(self.name(corpus, one.chunk.source) in relevant for one in passages)
        return Asked(
            corpus,
            group,
            kind,
            np.array([one.features for one in units]) if units else np.zeros((0, len(extract_model.FEATURES))),
            gold,
            (question, found, units),
            hit,
        )

    def is_gold(self, corpus: str, row: dict[str, Any], passages: Sequence[Passage], unit: Any) -> bool:
        passage = passages[unit.passage]
        if self.name(corpus, passage.chunk.source) not in row.get("relevant", ()):
            return False
        text = flat(quote(passage.chunk.text, unit.unit))
        if spans := row.get("spans"):
            return any(text in flat(span["text"]) or flat(span["text"]) in text for span in spans)
        if any(flat(answer) in text for answer in (*row.get("answers", ()), *row.get("keywords_in_file", ()))):
            return True
        # A key written in the asker's words: most of what it says must stand in the unit.
        keys = [frozenset(subject(answer)) for answer in row.get("answers", ())]
        return any(len(key) > 2 and len(key & unit.words) >= 0.6 * len(key) for key in keys)


def flat(text: str) -> str:
    return " ".join(re.sub(r"[*`]", "", text).split()).casefold()


async def gather(data: Path, home: Path) -> list[Asked]:
    home.mkdir(parents=True, exist_ok=True)
    library = await SqlLibrary.open(home / "citewell.db")
    bench = Bench(home, library)
    questions: dict[str, list[dict[str, Any]]] = {}
    for queries in sorted(data.glob("retrieval/*/queries.jsonl")):
        name = queries.parent.name
        if name not in PASSAGES:
            continue
        corpus = [row for row in lines(queries.with_name("corpus.jsonl")) if row.get("lang", "en") == "en"]
        with tempfile.TemporaryDirectory() as folder:
            bench.names[name] = write_corpus(corpus, Path(folder))
            await bench.add(name, Path(folder))
        questions[name] = [row for row in lines(queries) if row.get("lang", "en") == "en"]
    for queries in sorted(data.glob("docs/*.queries.jsonl")):
        name = queries.name.removesuffix(".queries.jsonl")
        with tempfile.TemporaryDirectory() as folder:
            for source in queries.with_name(name).rglob("*"):
                if source.suffix in (
                    ".md",
                    ".mdx",
                    ".rst",
                ):  # no reader for .rst yet: its headings are Markdown's too
                    path = source.relative_to(queries.with_name(name))
                    target = Path(folder, path).with_suffix(".md" if source.suffix == ".rst" else source.suffix)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(source.read_bytes())
                    bench.names[name][target.relative_to(folder).as_posix()] = path.as_posix()
            await bench.add(name, Path(folder))
        questions[name] = lines(queries)
    await bench.load(list(questions))
    sites = [path.name.removesuffix(".queries.jsonl") for path in data.glob("docs/*.queries.jsonl")]
    strangers = lines(data / "offtopic" / "queries.jsonl")
    chosen = random.Random(7)
    asked: list[Asked] = []
    for name, rows in questions.items():
        for row in chosen.sample(rows, min(len(rows), 1600)):
            group = group_of(name, row)
            if row.get("unanswerable"):
                asked.append(await bench.ask(name, row, group=group, kind="adversarial"))
                continue
            asked.append(await bench.ask(name, row, group=group, kind="covered"))
            if name != "chunking":
                asked.append(await bench.ask(name, row, group=group, kind="taken away", without=row["relevant"]))
        for row in strangers:
            asked.append(await bench.ask(name, row, group=f"{name}:{row['id']}", kind="off topic"))
        for other, foreign in questions.items():
            if name in sites and other != name and not {name, other} <= ALIKE:
                for row in chosen.sample(foreign, min(len(foreign), 50)):
                    asked.append(await bench.ask(name, row, group=f"{name}:{other}", kind="other docs"))
        print(f"{name}: asked, {len(asked)} so far")
    await bench.index.close()
    await library.close()
    return asked


def group_of(name: str, row: dict[str, Any]) -> str:
    first = (row.get("relevant") or [row.get("near", row["id"])])[0]
    return f"{name}:{str(first).rsplit(':', 1)[0] if name == 'squad2' else first}"


def fit_extract(asked: Sequence[Asked], rounds: int = 400, decay: float = 2.0) -> Array:
    """Conditional logit: raise the odds of the gold units of a question over its others."""
    cases = [one for one in asked if one.kind == "covered" and one.gold.any()]
    sizes = Counter(one.corpus for one in cases)
    # A corpus weighs by the root of its size: readers who paraphrase are few in the data, not in life.
    share = np.array([1 / np.sqrt(sizes[one.corpus]) for one in cases])
    share /= share.sum()
    weights = np.zeros(len(extract_model.FEATURES))
    moment = np.zeros_like(weights)
    spread = np.zeros_like(weights)
    for step in range(1, rounds + 1):
        gradient = -decay * weights / len(cases)
        for one, part in zip(cases, share, strict=True):
            scores = np.exp(one.units @ weights - (one.units @ weights).max())
            inside = scores * one.gold
            gradient += ((inside / inside.sum() - scores / scores.sum()) @ one.units) * part
        moment = 0.9 * moment + 0.1 * gradient
        spread = 0.99 * spread + 0.01 * gradient**2
        weights += 0.1 * (moment / (1 - 0.9**step)) / (np.sqrt(spread / (1 - 0.99**step)) + 1e-9)
    return weights


def contained(asked: Sequence[Asked], weights: Array, most: int) -> float:
    """Share of covered questions whose `most` best units hold the gold answer."""
    cases = [one for one in asked if one.kind == "covered" and one.corpus == "squad2"]
    return float(np.mean([one.gold[np.argsort(-(one.units @ weights), kind="stable")[:most]].any() for one in cases]))


def confidence_inputs(asked: Sequence[Asked], extract: Array) -> tuple[Array, Array, Array]:
    """Features, labels and weights: each corpus weighs the same, and covered as much as not covered."""
    extract_model._WEIGHTS[:] = extract
    inputs = np.array([confidence_model.features(*one.inputs) for one in asked])
    labels = np.array([float(one.kind == "covered" and one.found) for one in asked])
    sizes = Counter((one.corpus, one.kind) for one in asked)
    weight = np.array([FITTED_ON.get(one.kind, 0.0) / sizes[one.corpus, one.kind] for one in asked])
    return inputs, labels, weight / weight.mean()


def fit_confidence(inputs: Array, labels: Array, weight: Array, decay: float = 1.0) -> Array:
    """Logistic regression by Newton's method."""
    weights = np.zeros(inputs.shape[1])
    for _ in range(50):
        odds = sigmoid(inputs @ weights)
        gradient = inputs.T @ (weight * (labels - odds)) - decay * weights
        curvature = (inputs * (weight * odds * (1 - odds))[:, None]).T @ inputs + decay * np.eye(len(weights))
        weights += np.linalg.solve(curvature, gradient)
    return weights


def unseen_confidence(asked: Sequence[Asked], extract: Array) -> Array:
    """Each question's confidence by weights that saw nothing of its corpus."""
    inputs, labels, weight = confidence_inputs(asked, extract)
    corpora = np.array([one.corpus for one in asked])
    odds = np.zeros(len(asked))
    for corpus in set(corpora.tolist()):
        rest = corpora != corpus
        weights = fit_confidence(inputs[rest], labels[rest], weight[rest])
        odds[~rest] = sigmoid(inputs[~rest] @ weights)
    return odds


def bands(asked: Sequence[Asked], odds: Array) -> dict[str, float]:
    """Refuse where a wrong refusal and a wrong answer weigh the same on the docs sites; doubt below the
    confidence that 95 % of questions about other documents stay under."""
    rows: dict[tuple[str, str], Array] = {}
    for key in {(one.corpus, one.kind) for one in asked if one.corpus not in PASSAGES}:
        rows[key] = np.array([value for one, value in zip(asked, odds, strict=True) if (one.corpus, one.kind) == key])

    def balance(limit: float) -> float:
        covered = [np.mean(values >= limit) for (_, kind), values in rows.items() if kind == "covered"]
        foreign = [
            np.mean(values >= limit) for (_, kind), values in rows.items() if kind not in ("covered", "taken away")
        ]
        return float(np.mean(covered) - np.mean(foreign))

    others = np.concatenate([values for (_, kind), values in rows.items() if kind == "other docs"])
    refuse = max(np.linspace(0.05, 0.6, 56), key=balance)
    return {"refuse": round(float(refuse), 3), "weak": round(float(max(refuse, np.quantile(others, 0.95))), 3)}


def report(asked: Sequence[Asked], odds: Array, limits: dict[str, float]) -> None:
    rows: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one, value in zip(asked, odds, strict=True):
        rows[one.corpus, one.kind].append(value)
    print(f"{'corpus':20} {'questions':12} {'number':>6} {'answered':>9} {'surely':>7}")
    for (corpus, kind), values in sorted(rows.items()):
        answered, surely = (np.mean(np.array(values) >= limits[band]) for band in ("refuse", "weak"))
        print(f"{corpus:20} {kind:12} {len(values):6} {answered:9.3f} {surely:7.3f}")
    _, labels, weight = confidence_inputs(asked, extract_model._WEIGHTS.copy())
    tenth = np.clip((odds * 10).astype(int), 0, 9)
    gaps = [
        abs(np.average(odds[tenth == b] - labels[tenth == b], weights=weight[tenth == b])) * weight[tenth == b].sum()
        for b in set(tenth[weight > 0].tolist())
    ]
    print(f"calibration error {sum(gaps) / weight.sum():.3f}")


def sigmoid(values: Array) -> Array:
    return 1 / (1 + np.exp(-values))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    asked = asyncio.run(gather(options.data, options.home))
    halves = ([one for one in asked if half(one.group) == 0], [one for one in asked if half(one.group) == 1])
    for train, test in (halves, halves[::-1]):
        extract = fit_extract(train)
        shares = [round(contained(test, extract, most), 3) for most in (1, 2, 3)]
        print("squad2, unseen articles: gold answer in the best 1, 2, 3 units:", shares)
    extract = fit_extract(asked)
    odds = unseen_confidence(asked, extract)
    limits = bands(asked, odds)
    report(asked, odds, limits)
    weights = fit_confidence(*confidence_inputs(asked, extract))
    fitted = {
        "extract": dict(zip(extract_model.FEATURES, extract.round(3).tolist(), strict=True)),
        "confidence": dict(zip(confidence_model.FEATURES, weights.round(3).tolist(), strict=True)),
        "bands": limits,
    }
    print(json.dumps(fitted, indent=1))
    if options.write:
        WEIGHTS.write_text(json.dumps(fitted, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
