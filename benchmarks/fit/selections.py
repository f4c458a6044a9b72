"""Tell what a reader's selection answers from what it does not: fit the confidence of answers from a selection.

    python benchmarks/fit/selections.py DATA [--write]

DATA is laid out as `sets.py` says. A selection is the sentence, the paragraph or the article that a question was
written from (covered), that it was written against (adversarial), another of the same article or site, or any other.
Whatever is printed was judged by weights that saw nothing of the article or site. Then all is fitted on all; --write
puts that into the package.
"""

import argparse
import asyncio
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from citewell.adapters.minilm import MiniLmEmbedder
from citewell.answer.engines import AnswerEngines
from citewell.answer.quoting import confidence
from citewell.answer.quoting.score import score_candidates
from citewell.answer.quoting.select import select_quotes
from citewell.answer.retrieval.rerank import LocalReranker
from citewell.answer.retrieval.selection import retrieve_from_selection
from citewell.evaluate.metrics import calibration_error
from citewell.models import Matrix, Passage, Vector
from citewell.ports import Embeddable, Embedding
from citewell.similarity_scale import SimilarityScale
from citewell.text.units import split_units, unit_text

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.fit.ranking import WEIGHTS, sigmoid
from benchmarks.lib.folds import FOLDS, fold_of
from benchmarks.lib.sets import Question, Set, Text, find_sets, read_set
from benchmarks.lib.training_cases import Array

MOST = 64_000  # characters a selection may have
# How much each kind weighs, and each length: paragraphs are what people select.
KINDS = {"covered": 2.0, "adversarial": 1.0, "same article": 1.0, "other": 1.0}
LENGTHS = {"sentence": 0.5, "paragraph": 1.0, "article": 0.5, "site": 0.5}


@dataclass(frozen=True, slots=True)
class Case:
    length: str
    kind: str
    group: str
    question: str
    selection: str
    answers: tuple[str, ...] = ()


class Remembering:
    """The local model, which embeds nothing twice."""

    model = MiniLmEmbedder.model
    dimensions = MiniLmEmbedder.dimensions

    fitted = True

    def __init__(self) -> None:
        self._embedder = MiniLmEmbedder()
        self._known: dict[Embeddable, Embedding] = {}

    async def embed_passages(self, passages: Sequence[Embeddable]) -> list[Embedding]:
        new = [one for one in passages if one not in self._known]
        self._known |= zip(new, await self._embedder.embed_passages(new) if new else [], strict=True)
        return [self._known[one] for one in passages]

    async def embed_query(self, text: str) -> Vector:
        return await self._embedder.embed_query(text)

    async def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return await self._embedder.embed_queries(texts)

    async def warm(self) -> None:
        await self._embedder.warm()

    async def close(self) -> None:
        await self._embedder.close()


class Nowhere:
    """The index that a selection does without."""

    async def search(self, *_: object, **__: object) -> tuple[Passage, ...]:
        raise AssertionError("a selection is answered without the index")

    async def frequencies(self, *_: object, **__: object) -> tuple[int, list[int]]:
        raise AssertionError("a selection is answered without the index")

    async def scale(self) -> SimilarityScale:
        raise AssertionError("a selection is answered without the index")

    async def close(self) -> None:
        pass


def cases(data: Path) -> Iterator[Case]:
    """Questions with what is selected, from every set whose lines are questions; the same every time."""
    with TemporaryDirectory() as home:
        for source in find_sets(data)[0]:
            one = read_set(source, Path(home))
            if source.kind == "docs":
                yield from _of_site(one)
            elif any(row.near or row.lang for row in one.questions):
                yield from _of_paragraphs(one)


def _of_site(one: Set) -> Iterator[Case]:
    chosen = random.Random(7)
    texts = {text.file: text.text[:MOST] for text in one.texts}
    rows = chosen.sample(one.covered, min(len(one.covered), 8))
    pages = [row.relevant[0].split("#")[0] for row in rows]
    for row, page in zip(rows, pages, strict=True):
        other = chosen.choice([name for name in pages if name != page])
        yield Case("site", "covered", one.source.name, row.text, texts[page], row.answers)
        yield Case("site", "same article", one.source.name, row.text, texts[other])


def _of_paragraphs(one: Set) -> Iterator[Case]:
    texts = {text.file: text for text in one.texts}
    spoken: dict[str, list[Question]] = defaultdict(list)
    for row in one.questions:
        spoken[row.lang].append(row)
    for tongue, rows in spoken.items():
        chosen = random.Random(7)
        covered = [row for row in rows if row.answerable]
        against = [row for row in rows if row.unanswerable and row.near]
        alike = [text for text in one.texts if text.language == tongue]
        most = 300 if len(covered) > 1000 else 50
        for row in chosen.sample(covered, min(len(covered), most)):
            yield from _with_paragraphs(row, texts[row.relevant[0]], alike, chosen)
        for row in chosen.sample(against, min(len(against), most)):
            near = texts[row.near[0]]
            yield Case("paragraph", "adversarial", near.title, row.text, near.text)


def _with_paragraphs(row: Question, own: Text, alike: Sequence[Text], chosen: random.Random) -> Iterator[Case]:
    kind = f" ({own.language})" if own.language not in ("", "en") else ""
    others = [text for text in alike if text.title == own.title and text.file != own.file]
    strange = [text for text in alike if text.title != own.title] or [text for text in alike if text.file != own.file]
    stranger = chosen.choice(strange)
    yield Case(f"paragraph{kind}", "covered", own.title, row.text, own.text, row.answers)
    yield Case(f"paragraph{kind}", "other", own.title, row.text, stranger.text)
    if others and chosen.random() < 0.5:
        yield Case(f"paragraph{kind}", "same article", own.title, row.text, chosen.choice(others).text)
    sentences = [unit_text(own.text, unit) for unit in split_units(own.text)]
    holding = [said for said in sentences if any(answer in said for answer in row.answers)]
    if not kind and len(holding) == 1 and len(sentences) > 1 and chosen.random() < 0.5:
        yield Case("sentence", "covered", own.title, row.text, holding[0], row.answers)
        yield Case(
            "sentence", "same article", own.title, row.text, chosen.choice([s for s in sentences if s not in holding])
        )
        yield Case(
            "sentence",
            "other",
            own.title,
            row.text,
            unit_text(stranger.text, chosen.choice(split_units(stranger.text))),
        )
    if not kind and others and chosen.random() < 0.1:
        whole = "\n\n".join(text.text for text in alike if text.title == own.title)
        strange_whole = "\n\n".join(text.text for text in alike if text.title == stranger.title)
        yield Case("article", "covered", own.title, row.text, whole[:MOST], row.answers)
        yield Case("article", "other", own.title, row.text, strange_whole[:MOST])


async def describe(asked: Sequence[Case]) -> tuple[Array, list[str]]:
    """A row of features for each case, and what would be quoted."""
    engines = AnswerEngines(Remembering(), Nowhere(), LocalReranker(), embedder_timeout_seconds=600)
    rows, said = [], []
    for number, one in enumerate(asked):
        question = " ".join(one.question.split())
        found = await retrieve_from_selection(question, one.selection, engines=engines, limit=5)
        scored = score_candidates(question, found.passages, found.weights)
        rows.append(confidence.selection_features(question, found, scored))
        said.append(" ".join(quoted.text for quoted in select_quotes(question, scored, found.passages)))
        if number % 100 == 0:
            print(f"\r{number} of {len(asked)}", end="", flush=True)
    print("\r", end="")
    return np.array(rows), said


def shares(asked: Sequence[Case]) -> Array:
    sizes = Counter((one.length, one.kind) for one in asked)
    # What is not in English comes in several languages, of which each weighs little.
    value = [KINDS[one.kind] * (LENGTHS.get(one.length) or 0.1) / sizes[one.length, one.kind] for one in asked]
    return np.array(value) / sum(value)


def fit(rows: Array, right: Array, share: Array) -> Array:
    """Logistic regression by Newton's method, with a little decay."""
    spread = rows.std(axis=0) + 1e-6
    inputs = rows / spread
    decay = np.full(rows.shape[1], 1e-4)
    weights = np.zeros(rows.shape[1])
    for _ in range(40):
        odds = sigmoid(inputs @ weights)
        pull = inputs.T @ (share * (odds - right)) + decay * weights
        curve = (inputs * (share * odds * (1 - odds))[:, None]).T @ inputs + np.diag(decay)
        weights -= np.linalg.solve(curve, pull)
    return np.asarray(weights / spread, dtype=np.float64)


def report(asked: Sequence[Case], odds: Array, share: Array, said: Sequence[str]) -> None:
    bands = confidence.CONFIDENCE_BANDS
    table: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for one, chance, words in zip(asked, odds, said, strict=True):
        told = float(any(" ".join(answer.split()).casefold() in words.casefold() for answer in one.answers))
        table[one.length, one.kind].append((float(chance >= bands["refuse"]), float(chance >= bands["weak"]), told))
    print(f"{'selection':18} {'kind':14} {'number':>6} {'answered':>9} {'surely':>7} {'key answer quoted':>18}")
    for (length, kind), rows in sorted(table.items()):
        answered, surely, told = np.mean(rows, axis=0)
        print(
            f"{length:18} {kind:14} {len(rows):6} {answered:9.3f} {surely:7.3f} {told if kind == 'covered' else '':18}"
        )
    right = np.array([one.kind == "covered" for one in asked], dtype=float)
    print(f"calibration error {calibration_error(np.column_stack([odds, right, share])):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    asked = list(cases(options.data))
    rows, said = asyncio.run(describe(asked))
    right = np.array([one.kind == "covered" for one in asked], dtype=float)
    share, fold = shares(asked), np.array([fold_of(one.group) for one in asked])
    odds = np.zeros(len(asked))
    for part in range(FOLDS):
        seen = fold != part
        odds[~seen] = sigmoid(rows[~seen] @ fit(rows[seen], right[seen], share[seen]))
    report(asked, odds, share, said)
    weights = fit(rows, right, share)
    named = {name: round(float(value), 3) for name, value in zip(confidence.SELECTION_FEATURES, weights, strict=True)}
    print(json.dumps(named, indent=1))
    if options.write:
        kept = json.loads(WEIGHTS.read_text(encoding="utf-8"))
        WEIGHTS.write_text(json.dumps(kept | {"selection": named}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
