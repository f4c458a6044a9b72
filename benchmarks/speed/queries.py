"""Query latency on many chunks, compared with the minimum: embedding the question and one engine query.

    python benchmarks/speed/queries.py [--chunks 100000] [--home FOLDER] [--questions 120] [--json OUT]

The chunks are generated: words as rare as in a language, sentences, headings, a few windows each whose vectors lie
around their topic's own. Every question asks after one chunk, of which one window lies near the question. Only topics
and questions are embedded; a chunk's vectors are made by numpy. What is measured is interleaved, question by
question, since machines are noisy. A home that holds such an index already is asked again without building.
"""

import argparse
import asyncio
import json
import resource
import statistics
import tempfile
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib.resources import files
from itertools import accumulate, pairwise
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from citewell.adapters.minilm import MiniLmEmbedder
from citewell.adapters.qdrant_edge import QdrantEdgeBuilder, QdrantEdgeIndex
from citewell.adapters.qdrant_edge.index import fusion_query, weighted_terms
from citewell.answer.engines import AnswerEngines
from citewell.answer.flow import answer, collect
from citewell.answer.retrieval.rerank import LocalReranker
from citewell.answer.retrieval.search import CANDIDATES, retrieve
from citewell.models import Chunk, Matrix, Project, Vector, chunk_id, content_hash, document_id
from citewell.ports import Change, Embedding, Entry
from citewell.text.terms import content_words

PROJECT, NEIGHBOUR = Project.named("benchmark"), Project.named("neighbour")
_TOPICS = 1000
_WORDS_PER_TOPIC = 40  # words that a topic uses more than others do
_CHUNKS_PER_DOCUMENT = 12  # chunks
_CHUNKS_PER_CHANGE = 500
_NEIGHBOUR_EVERY = 10  # every tenth document is another project's


class Corpus:
    """Generated chunks by number; the same number gives the same chunk."""

    def __init__(self) -> None:
        data = files("citewell").joinpath("data")
        lines = data.joinpath("function-words.txt").read_text(encoding="utf-8").splitlines()
        small = next(line.split(":")[1].split() for line in lines if line.startswith("english:"))
        entries = data.joinpath("bert-uncased-vocabulary.txt").read_text(encoding="utf-8").split("\n")
        rng = np.random.default_rng(7)
        large = [entry for entry in entries if entry.isascii() and entry.isalpha() and len(entry) > 3]
        known = {*small}
        self.words = [*small, *(word for word in rng.permutation(large).tolist() if word not in known)]
        frequency = 1 / (np.arange(len(self.words)) + 2.7)
        self._cumulated = np.cumsum(frequency / frequency.sum())
        self._rare = rng.integers(len(small) + 500, len(self.words), size=(_TOPICS, _WORDS_PER_TOPIC))

    def topic(self, number: int) -> int:
        return number // _CHUNKS_PER_DOCUMENT % _TOPICS

    def title(self, topic: int) -> str:
        return " ".join(self.words[place] for place in self._rare[topic, :3]).capitalize()

    def chunk(self, number: int) -> tuple[Chunk, Project]:
        rng = np.random.default_rng((1, number))
        topic, document = self.topic(number), number // _CHUNKS_PER_DOCUMENT
        project = NEIGHBOUR if document % _NEIGHBOUR_EVERY == 9 else PROJECT
        lengths = rng.integers(8, 26, size=rng.integers(18, 27)).tolist()
        places = np.searchsorted(self._cumulated, rng.random(sum(lengths))).clip(max=len(self.words) - 1)
        is_topical = rng.random(len(places)) < 0.12
        places[is_topical] = rng.choice(self._rare[topic], size=int(is_topical.sum()))
        words = [self.words[place] for place in places.tolist()]
        sentences = [" ".join(words[first:last]).capitalize() for first, last in pairwise(accumulate([0, *lengths]))]
        text = "\n\n".join(". ".join(sentences[first : first + 6]) + "." for first in range(0, len(sentences), 6))
        path = f"{self.words[self._rare[topic, 0]]}/{document:06d}.md"
        identity = document_id(project, path)
        section = " ".join(self.words[place] for place in self._rare[topic, 3 + number % 5 : 6 + number % 5])
        content = content_hash(self.title(topic), section, text)
        start = (number % _CHUNKS_PER_DOCUMENT) * 2500
        chunk = Chunk(
            id=chunk_id(identity, content),
            document_id=identity,
            content_hash=content,
            index=number % _CHUNKS_PER_DOCUMENT,
            source=path,
            chapter=self.title(topic),
            section=section,
            headings=(section,),
            text=text,
            start=start,
            end=start + len(text),
            first_line=1 + start // 100,
            last_line=1 + (start + len(text)) // 100,
        )
        return chunk, project

    def question(self, number: int) -> str:
        """After a few neighbouring words of a chunk, and what its page is about."""
        chunk, _ = self.chunk(number)
        sentence = chunk.text.split(". ")[number % 7]
        subject = " ".join(content_words(sentence)[:3]).lower()
        opening = ("What is", "How do I use", "Why does it need", "Which part has")[number % 4]
        return f"{opening} {subject} in {chunk.chapter.lower()}?"


def questioned_chunks(chunks: int, questions: int) -> list[int]:
    """The chunks that questions are about: spread over the corpus, all of one project."""
    corpus = Corpus()
    numbers = np.linspace(0, chunks - 1, questions * 2).astype(int).tolist()
    return [number for number in numbers if corpus.chunk(number)[1] == PROJECT][:questions]


def make_windows(number: int, text: str, topic: Vector, near: "Vector | None") -> Embedding:
    """About five windows around the topic's vector; the middle one near the question, where one is asked."""
    rng = np.random.default_rng((2, number))
    count = int(rng.integers(4, 7))
    page = topic + rng.normal(0, 0.6 / 384**0.5, 384)
    rows: Matrix = (page + rng.normal(0, 0.6 / 384**0.5, (count, 384))).astype(np.float32)
    if near is not None:
        rows[count // 2] = near + rng.normal(0, 0.7 / 384**0.5, 384)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    ends = [len(text) * part // count for part in range(count + 1)]
    return Embedding(rows, tuple(pairwise(ends)))


def build(folder: Path, chunks: int, topics: Matrix, near: Mapping[int, Vector]) -> tuple[float, float]:
    """A published index; the seconds it took and the megabytes at the peak, of a process that does nothing else."""
    corpus = Corpus()

    async def changes() -> AsyncIterator[Change]:
        for first in range(0, chunks, _CHUNKS_PER_CHANGE):
            entries = []
            for number in range(first, min(first + _CHUNKS_PER_CHANGE, chunks)):
                chunk, project = corpus.chunk(number)
                embedding = make_windows(number, chunk.text, topics[corpus.topic(number)], near.get(number))
                entries.append(Entry(project.id, chunk, embedding))
            yield Change(entries=entries)
            print(f"\r{first + len(entries)} of {chunks} chunks", end="", flush=True)

    began = perf_counter()
    builder = QdrantEdgeBuilder(folder, model=MiniLmEmbedder.model, dimensions=MiniLmEmbedder.dimensions)

    async def build() -> None:
        await builder.publish(await builder.stage(changes(), base=None))

    asyncio.run(build())
    print("\r", end="")
    return perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def measure(engines: AnswerEngines, index: QdrantEdgeIndex, questions: list[str]) -> dict[str, list[float]]:
    """Seconds for each question: its embedding, one engine query, finding passages, and answering."""
    seconds_by_step: dict[str, list[float]] = {"embed": [], "query": [], "retrieve": [], "answer": []}
    for question in [questions[-1], *questions]:
        began = perf_counter()
        vector = await engines.embedder.embed_query(question)
        embed = perf_counter()
        generation = index.opened()
        terms = weighted_terms(generation.counts, PROJECT.id, question)
        generation.shard.query(fusion_query(PROJECT.id, vector=vector, terms=terms, limit=CANDIDATES))
        queried = perf_counter()
        await retrieve(question, project=PROJECT.id, engines=engines, limit=5)
        retrieved = perf_counter()
        await collect(answer(question, project=PROJECT, engines=engines), str)
        answered = perf_counter()
        for name, seconds in zip(
            seconds_by_step,
            (embed - began, queried - embed, retrieved - queried, answered - retrieved),
            strict=True,
        ):
            seconds_by_step[name].append(seconds)
    return {name: values[1:] for name, values in seconds_by_step.items()}  # the first question loads the model


async def share_found_in_top_5(engines: AnswerEngines, questions: Mapping[int, str]) -> float:
    """The share of questions whose own chunk is among the first five: that what is measured does find."""
    corpus, hits = Corpus(), 0
    for number, question in questions.items():
        _, result = await collect(answer(question, project=PROJECT, engines=engines), str)
        hits += corpus.chunk(number)[0].id in {passage.chunk.id for passage in result.retrieved}
    return hits / len(questions)


def embed(embedder: MiniLmEmbedder, texts: list[str]) -> Matrix:
    async def run() -> NDArray[np.float32]:
        return np.stack([await embedder.embed_query(text) for text in texts])

    return asyncio.run(run())


def run(home: Path, chunks: int, count: int) -> dict[str, float]:
    embedder = MiniLmEmbedder()
    corpus = Corpus()
    numbers = questioned_chunks(chunks, count)
    questions = {number: corpus.question(number) for number in numbers}
    index = QdrantEdgeIndex(home / "index", model=embedder.model, dimensions=embedder.dimensions)
    results: dict[str, float] = {"chunks": chunks, "questions": len(questions)}
    if not (home / "index" / "CURRENT").exists():
        topics = embed(embedder, [corpus.title(topic) for topic in range(_TOPICS)])
        near = dict(zip(numbers, embed(embedder, list(questions.values())), strict=True))
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as builder:
            build_seconds, peak_megabytes = builder.submit(build, home / "index", chunks, topics, near).result()
        results |= {"build_seconds": build_seconds, "build_peak_megabytes": peak_megabytes}
        print(f"{chunks} chunks built in {build_seconds:.0f} s; peak memory {peak_megabytes:.0f} MB")
    engines = AnswerEngines(embedder, index, LocalReranker())

    async def ask() -> tuple[dict[str, list[float]], float]:
        seconds_by_step = await measure(engines, index, list(questions.values()))
        return seconds_by_step, await share_found_in_top_5(engines, questions)

    seconds_by_step, share_found = asyncio.run(ask())
    for name, values in seconds_by_step.items():
        p50, p95 = statistics.median(values) * 1000, statistics.quantiles(values, n=20)[-1] * 1000
        results |= {f"{name}_p50_ms": p50, f"{name}_p95_ms": p95}
        print(f"{name:8} p50 {p50:6.1f} ms   p95 {p95:6.1f} ms")
    minimum = results["embed_p50_ms"] + results["query_p50_ms"]
    results["retrieve_over_least"] = results["retrieve_p50_ms"] / minimum
    results["answer_over_retrieve"] = results["answer_p50_ms"] / results["retrieve_p50_ms"]
    results["found"] = share_found
    print(f"retrieve / (embed + query): {results['retrieve_over_least']:.2f}  (goal: at most 1.50)")
    print(f"answer / retrieve:          {results['answer_over_retrieve']:.2f}  (goal: at most 1.60)")
    print(f"{share_found:.0%} of the questions find the chunk they are about in the first five")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=120)
    parser.add_argument("--home", type=Path, help="where the index is kept; without, it is thrown away")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    options = parser.parse_args()
    if options.chunks < options.questions * 2:
        parser.error(f"{options.questions} questions need at least {options.questions * 2} chunks")
    if options.home:
        results = run(options.home, options.chunks, options.questions)
    else:
        with tempfile.TemporaryDirectory() as home:
            results = run(Path(home), options.chunks, options.questions)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
