"""Fit the confidence of answers from a text that the reader selected.

    python benchmarks/fit/selections.py DATA [--write]

`benchmarks/lib/sets.py` describes the layout of DATA. A selection is the sentence, the paragraph or the article that a
question was written from (covered), that it was written against (adversarial), another of the same article or
site, or any other. All printed numbers come from weights that were fitted without the article or site. Then the weights
are fitted on all questions; --write puts these into the package.
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
from citewell.evaluate.metrics import Array, calibration_error
from citewell.models import Matrix, Passage, Vector
from citewell.ports import Embeddable, Embedding
from citewell.similarity_scale import SimilarityScale
from citewell.text.units import split_units, unit_text

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.fit.ranking import WEIGHTS, sigmoid
from benchmarks.lib.folds import FOLDS, fold_of
from benchmarks.lib.sets import Question, QuestionSet, RawText, find_sets, read_set

MAX_CHARACTERS = 64_000  # of a selection
# Weights of the kinds and lengths: people mostly select paragraphs.
KIND_WEIGHTS = {"covered": 2.0, "adversarial": 1.0, "same article": 1.0, "other": 1.0}
LENGTH_WEIGHTS = {"sentence": 0.5, "paragraph": 1.0, "article": 0.5, "site": 0.5}


@dataclass(frozen=True, slots=True)
class Case:
    length: str
    kind: str
    group: str
    question: str
    selection: str
    answers: tuple[str, ...] = ()


class CachingEmbedder:
    """The local embedding model with a cache."""

    model = MiniLmEmbedder.model
    dimensions = MiniLmEmbedder.dimensions

    fitted = True

    def __init__(self) -> None:
        self._embedder = MiniLmEmbedder()
        self._known: dict[Embeddable, Embedding] = {}

    async def embed_passages(self, passages: Sequence[Embeddable]) -> list[Embedding]:
        new = [passage for passage in passages if passage not in self._known]
        self._known |= zip(new, await self._embedder.embed_passages(new) if new else [], strict=True)
        return [self._known[passage] for passage in passages]

    async def embed_query(self, text: str) -> Vector:
        return await self._embedder.embed_query(text)

    async def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return await self._embedder.embed_queries(texts)

    async def warm(self) -> None:
        await self._embedder.warm()

    async def close(self) -> None:
        await self._embedder.close()


class NoIndex:
    """An index that fails when it is used: a selection is answered without one."""

    async def search(self, *_: object, **__: object) -> tuple[Passage, ...]:
        raise AssertionError("a selection is answered without the index")

    async def frequencies(self, *_: object, **__: object) -> tuple[int, list[int]]:
        raise AssertionError("a selection is answered without the index")

    async def scale(self) -> SimilarityScale:
        raise AssertionError("a selection is answered without the index")

    def problem(self) -> str | None:
        return None

    async def close(self) -> None:
        pass


def read_cases(data: Path) -> Iterator[Case]:
    """Questions with a selected text, from every set that has any; the same every time."""
    with TemporaryDirectory() as home:
        for source in find_sets(data)[0]:
            question_set = read_set(source, Path(home))
            if source.kind == "docs":
                yield from _site_cases(question_set)
            elif any(question.near or question.lang for question in question_set.questions):
                yield from _paragraph_cases(question_set)


def _site_cases(question_set: QuestionSet) -> Iterator[Case]:
    rng = random.Random(7)
    texts = {text.file: text.text[:MAX_CHARACTERS] for text in question_set.texts}
    rows = rng.sample(question_set.covered, min(len(question_set.covered), 8))
    pages = [row.relevant[0].split("#")[0] for row in rows]
    for row, page in zip(rows, pages, strict=True):
        other = rng.choice([name for name in pages if name != page])
        yield Case("site", "covered", question_set.source.name, row.text, texts[page], row.answers)
        yield Case("site", "same article", question_set.source.name, row.text, texts[other])


def _paragraph_cases(question_set: QuestionSet) -> Iterator[Case]:
    texts = {text.file: text for text in question_set.texts}
    by_language: dict[str, list[Question]] = defaultdict(list)
    for row in question_set.questions:
        by_language[row.lang].append(row)
    for language, rows in by_language.items():
        rng = random.Random(7)
        covered = [row for row in rows if row.answerable]
        adversarial = [row for row in rows if row.unanswerable and row.near]
        same_language = [text for text in question_set.texts if text.language == language]
        most = 300 if len(covered) > 1000 else 50
        for row in rng.sample(covered, min(len(covered), most)):
            yield from _cases_of_question(row, texts[row.relevant[0]], same_language, rng)
        for row in rng.sample(adversarial, min(len(adversarial), most)):
            near = texts[row.near[0]]
            yield Case("paragraph", "adversarial", near.title, row.text, near.text)


def _cases_of_question(
    row: Question, own: RawText, same_language: Sequence[RawText], rng: random.Random
) -> Iterator[Case]:
    kind = f" ({own.language})" if own.language not in ("", "en") else ""
    others = [text for text in same_language if text.title == own.title and text.file != own.file]
    other_articles = [text for text in same_language if text.title != own.title] or [
        text for text in same_language if text.file != own.file
    ]
    other = rng.choice(other_articles)
    yield Case(f"paragraph{kind}", "covered", own.title, row.text, own.text, row.answers)
    yield Case(f"paragraph{kind}", "other", own.title, row.text, other.text)
    if others and rng.random() < 0.5:
        yield Case(f"paragraph{kind}", "same article", own.title, row.text, rng.choice(others).text)
    sentences = [unit_text(own.text, unit) for unit in split_units(own.text)]
    with_answer = [sentence for sentence in sentences if any(answer in sentence for answer in row.answers)]
    if not kind and len(with_answer) == 1 and len(sentences) > 1 and rng.random() < 0.5:
        yield Case("sentence", "covered", own.title, row.text, with_answer[0], row.answers)
        yield Case(
            "sentence", "same article", own.title, row.text, rng.choice([s for s in sentences if s not in with_answer])
        )
        yield Case(
            "sentence",
            "other",
            own.title,
            row.text,
            unit_text(other.text, rng.choice(split_units(other.text))),
        )
    if not kind and others and rng.random() < 0.1:
        whole = "\n\n".join(text.text for text in same_language if text.title == own.title)
        other_whole = "\n\n".join(text.text for text in same_language if text.title == other.title)
        yield Case("article", "covered", own.title, row.text, whole[:MAX_CHARACTERS], row.answers)
        yield Case("article", "other", own.title, row.text, other_whole[:MAX_CHARACTERS])


async def compute_features(cases: Sequence[Case]) -> tuple[Array, list[str]]:
    """The features of each case, and the text that would be quoted."""
    engines = AnswerEngines(CachingEmbedder(), NoIndex(), LocalReranker(), embedder_timeout_seconds=600)
    rows, quotes = [], []
    for number, case in enumerate(cases):
        question = " ".join(case.question.split())
        retrieval = await retrieve_from_selection(question, case.selection, engines=engines, limit=5)
        scored = score_candidates(question, retrieval.passages, retrieval.weights)
        rows.append(confidence.selection_features(question, retrieval, scored))
        quotes.append(" ".join(quote.text for quote in select_quotes(question, scored, retrieval.passages)))
        if number % 100 == 0:
            print(f"\r{number} of {len(cases)}", end="", flush=True)
    print("\r", end="")
    return np.array(rows), quotes


def case_weights(cases: Sequence[Case]) -> Array:
    sizes = Counter((case.length, case.kind) for case in cases)
    # Other languages than English have a small weight each.
    weights = [
        KIND_WEIGHTS[case.kind] * (LENGTH_WEIGHTS.get(case.length) or 0.1) / sizes[case.length, case.kind]
        for case in cases
    ]
    return np.array(weights) / sum(weights)


def fit(rows: Array, right: Array, share: Array) -> Array:
    """Logistic regression by Newton's method, with a small weight decay."""
    spread = rows.std(axis=0) + 1e-6
    inputs = rows / spread
    decay = np.full(rows.shape[1], 1e-4)
    weights = np.zeros(rows.shape[1])
    for _ in range(40):
        probabilities = sigmoid(inputs @ weights)
        pull = inputs.T @ (share * (probabilities - right)) + decay * weights
        curve = (inputs * (share * probabilities * (1 - probabilities))[:, None]).T @ inputs + np.diag(decay)
        weights -= np.linalg.solve(curve, pull)
    return np.asarray(weights / spread, dtype=np.float64)


def report(cases: Sequence[Case], probabilities: Array, share: Array, quotes: Sequence[str]) -> None:
    bands = confidence.CONFIDENCE_BANDS
    table: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for case, probability, quote in zip(cases, probabilities, quotes, strict=True):
        has_answer = float(any(" ".join(answer.split()).casefold() in quote.casefold() for answer in case.answers))
        table[case.length, case.kind].append(
            (float(probability >= bands["refuse"]), float(probability >= bands["weak"]), has_answer)
        )
    print(f"{'selection':18} {'kind':14} {'number':>6} {'answered':>9} {'surely':>7} {'key answer quoted':>18}")
    for (length, kind), rows in sorted(table.items()):
        answered, surely, has_answer = np.mean(rows, axis=0)
        quoted = has_answer if kind == "covered" else ""
        print(f"{length:18} {kind:14} {len(rows):6} {answered:9.3f} {surely:7.3f} {quoted:18}")
    right = np.array([case.kind == "covered" for case in cases], dtype=float)
    print(f"calibration error {calibration_error(np.column_stack([probabilities, right, share])):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    cases = list(read_cases(options.data))
    rows, quotes = asyncio.run(compute_features(cases))
    right = np.array([case.kind == "covered" for case in cases], dtype=float)
    share, fold = case_weights(cases), np.array([fold_of(case.group) for case in cases])
    probabilities = np.zeros(len(cases))
    for part in range(FOLDS):
        seen = fold != part
        probabilities[~seen] = sigmoid(rows[~seen] @ fit(rows[seen], right[seen], share[seen]))
    report(cases, probabilities, share, quotes)
    weights = fit(rows, right, share)
    named = {name: round(float(value), 3) for name, value in zip(confidence.SELECTION_FEATURES, weights, strict=True)}
    print(json.dumps(named, indent=1))
    if options.write:
        shipped = json.loads(WEIGHTS.read_text(encoding="utf-8"))
        WEIGHTS.write_text(json.dumps(shipped | {"selection": named}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
