"""Quality and speed of the Qdrant server that QDRANT_URL names, beside the embedded index on this machine.

    QDRANT_URL=… [QDRANT_API_KEY=…] python benchmarks/qdrant_server.py [DATA] [--chunks 10000] [--json OUT]

Speed: generated chunks are built into both, then both are searched with the same questions. Up to 100,000 chunks the
embedded index compares with every vector, so the share of its results that the server finds, too, is the server's
recall. Quality: the golden questions of the example book on both; with DATA, a folder of question sets, also
`benchmarks/quality/retrieval.py`. The collections have names of their own, and are deleted at the end.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import UUID, uuid4

import numpy as np

from citewell import wiring
from citewell.adapters.hashing import HashingEmbedder
from citewell.errors import CitewellError
from citewell.evaluate.questions import read_questions
from citewell.evaluate.run import run_questions
from citewell.evaluate.scores import score
from citewell.ingest.flow import ingest
from citewell.models import Project, Vector
from citewell.ports import Change, Entry, Index
from citewell.settings import Settings, read_settings
from citewell.wiring.indexes import make_index, make_index_builder

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.quality import retrieval
from benchmarks.speed.queries import NEIGHBOUR, PROJECT, Corpus, make_windows, questioned_chunks

BOOK = Path(__file__).parents[1] / "examples" / "robotics-book"
_TOPICS, _DIMENSIONS, _TOP = 1000, 384, 10
_CHUNKS_PER_CHANGE = 500
_NO_DATABASE: Any = None  # neither of the two engines uses it


class _NoLibrary:
    async def generation(self, project: UUID | None = None) -> None:
        """None: an index is compared here, not a library."""


_NO_LIBRARY: Any = _NoLibrary()


class _Vectors(HashingEmbedder):
    """The length of the generated vectors; nothing is embedded."""

    model = "generated vectors"
    dimensions = _DIMENSIONS


def generated_vectors(count: int, *, seed: int) -> list[Vector]:
    rows = np.random.default_rng(seed).normal(size=(count, _DIMENSIONS)).astype(np.float32)
    return list(rows / np.linalg.norm(rows, axis=1, keepdims=True))


async def changes(chunks: int, project: Project, near: dict[int, Vector]) -> AsyncIterator[Change]:
    """The generated chunks of a project."""
    corpus, topics = Corpus(), generated_vectors(_TOPICS, seed=3)
    entries: list[Entry] = []
    for number in range(chunks):
        chunk, owner = corpus.chunk(number)
        if owner == project:
            embedding = make_windows(number, chunk.text, topics[corpus.topic(number)], near.get(number))
            entries.append(Entry(owner.id, chunk, embedding))
        if len(entries) == _CHUNKS_PER_CHANGE:
            yield Change(entries=entries)
            entries = []
    yield Change(entries=entries)


async def build(settings: Settings, chunks: int, near: dict[int, Vector]) -> float:
    """Build the generated chunks into an index; returns how many it took in per second."""
    began = perf_counter()
    both = [PROJECT, NEIGHBOUR] if settings.index_engine == "qdrant" else [PROJECT]
    for project in both:  # in the embedded index, our project alone: a builder there is for all of them
        builder = make_index_builder(settings, _Vectors(), project.id, _NO_DATABASE)
        await builder.publish(await builder.stage(changes(chunks, project, near), base=None))
        await builder.close()
    return chunks / (perf_counter() - began)


async def timed(call: Callable[[int], Awaitable[Any]], numbers: Sequence[int]) -> tuple[list[Any], dict[str, float]]:
    """What a call gives for each number, and its p50 and p95 in milliseconds; the first call is made twice."""
    await call(numbers[0])
    results, milliseconds = [], []
    for number in numbers:
        began = perf_counter()
        results.append(await call(number))
        milliseconds.append((perf_counter() - began) * 1000)
    return results, {"p50_ms": statistics.median(milliseconds), "p95_ms": statistics.quantiles(milliseconds, n=20)[-1]}


async def measure_speed(engines: dict[str, Settings], chunks: int, questions: int) -> dict[str, Any]:
    corpus, numbers = Corpus(), questioned_chunks(chunks, questions)
    vectors = generated_vectors(len(numbers), seed=5)
    near = dict(zip(numbers, vectors, strict=True))
    result: dict[str, Any] = {"chunks": chunks, "questions": len(numbers)}
    found: dict[str, list[Any]] = {}
    for name, settings in engines.items():
        rate = await build(settings, chunks, near)
        index = make_index(settings, _Vectors(), _NO_LIBRARY, _NO_DATABASE)

        def search(number: int, index: Index = index) -> Awaitable[Any]:
            return index.search(PROJECT.id, vector=near[number], words=corpus.question(number), limit=_TOP)

        def count(number: int, index: Index = index) -> Awaitable[Any]:
            return index.frequencies(PROJECT.id, corpus.question(number).lower().split()[-3:])

        found[name], times = await timed(search, numbers)
        _, counting = await timed(count, numbers)
        await index.close()
        result[name] = {"chunks_per_second": rate, "search": times, "frequencies": counting}
        print(
            f"{name:9} {rate:8.0f} chunks/s   search p50 {times['p50_ms']:7.1f} ms p95 {times['p95_ms']:7.1f} ms   "
            f"frequencies p50 {counting['p50_ms']:6.1f} ms"
        )
    result |= compare(found["embedded"], found["qdrant"])
    print(
        f"of {_TOP} passages of the embedded index the server finds {result['recall']:.4f}; "
        f"largest difference of a score {result['largest_score_difference']:.1e}"
    )
    return result


def compare(exact: Sequence[Any], found: Sequence[Any]) -> dict[str, float]:
    shares, differences = [], [0.0]
    for theirs, ours in zip(exact, found, strict=True):
        expected = {passage.chunk.id: passage.score for passage in theirs}
        scores = {passage.chunk.id: passage.score for passage in ours}
        shares.append(len(expected.keys() & scores.keys()) / len(expected))
        differences += [abs(expected[chunk] - scores[chunk]) for chunk in expected.keys() & scores.keys()]
    return {"recall": statistics.mean(shares), "largest_score_difference": max(differences)}


async def measure_quality(engines: dict[str, Settings]) -> dict[str, Any]:
    """The scores of the example book's golden questions."""
    result: dict[str, Any] = {}
    book = Project.named("example book")
    for name, settings in engines.items():
        async with wiring.open_for_ingest(settings, project=book.id, wait=True, on_wait=lambda: None) as ingesting:
            recipe = wiring.ingest_recipe(settings)
            await ingest([BOOK], project=book, engines=ingesting, recipe=recipe, progress=lambda *_: None)
        async with wiring.open_for_answers(settings) as reading:
            questions = read_questions(BOOK / "golden.jsonl")
            outcomes = await run_questions(questions, project=book, engines=reading.engines, library=reading.library)
        result[name] = {measure: one.value for measure, one in score(outcomes).items()}
    print(f"{'example book':22}" + "".join(f"{name:>12}" for name in engines))
    for measure in next(iter(result.values())):
        values = [result[name][measure] for name in engines]
        print(f"{measure:22}" + "".join(f"{'–' if value is None else f'{value:.4f}':>12}" for value in values))
    return result


async def delete_collections(settings: Settings) -> None:
    from qdrant_client import AsyncQdrantClient

    key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
    with warnings.catch_warnings(action="ignore"):  # of a key without TLS, which was warned of before
        client = AsyncQdrantClient(settings.qdrant_url, api_key=key, check_compatibility=False)
    for collection in (await client.get_collections()).collections:
        if collection.name.startswith(f"{settings.qdrant_collection}-"):
            await client.delete_collection(collection.name)
    await client.close()


async def run(
    data: Path | None, home: Path, name: str, *, chunks: int, questions: int, speed_only: bool
) -> dict[str, Any]:
    settings = read_settings().model_copy(update={"index": "qdrant", "qdrant_collection": name})
    engines = {
        engine: settings.model_copy(update={"index": engine, "home": home / engine})
        for engine in ("embedded", "qdrant")
    }
    try:
        result = {"speed": await measure_speed(engines, chunks, questions)}
        if speed_only:
            return result
        book = {engine: one.model_copy(update={"home": home / f"{engine}-book"}) for engine, one in engines.items()}
        result["quality"] = await measure_quality(book)
        if data:
            result["retrieval"] = await retrieval.run(data, home / "sets", [])
    finally:
        await delete_collections(settings)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path, nargs="?", help="question sets, as for quality/retrieval.py")
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--speed-only", action="store_true", help="ask no questions about documents")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    options = parser.parse_args()
    if options.chunks < options.questions * 2:
        parser.error(f"{options.questions} questions need at least {options.questions * 2} chunks")
    name = f"citewell-benchmark-{uuid4().hex[:8]}"
    try:
        if read_settings().qdrant_url is None:
            sys.exit("error: set QDRANT_URL to the server that is to be measured")
        os.environ["CITEWELL_INDEX"], os.environ["CITEWELL_QDRANT_COLLECTION"] = "qdrant", name  # for the sets
        with tempfile.TemporaryDirectory() as home:
            result = asyncio.run(
                run(
                    options.data,
                    Path(home),
                    name,
                    chunks=options.chunks,
                    questions=options.questions,
                    speed_only=options.speed_only,
                )
            )
    except CitewellError as error:
        sys.exit(f"error: {error}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
