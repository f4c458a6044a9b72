"""How an index grows: generated chunks through the ports of an engine, at several sizes.

    python benchmarks/speed/scaling.py run --engine embedded --chunks 10000 100000 1000000 [--json OUT] [--home FOLDER]
    python benchmarks/speed/scaling.py draw OUT...        plots in docs/img, and the table of docs/scaling.md on stdout

Vectors are 64 numbers wide, two windows to a chunk, gathered around 1,000 topics; texts have 40 words (`--words`), as
rare as in a language. So a chunk is about a tenth of a real one, and a million can be built on two cores while somebody
waits. What is measured is the index alone: nothing is parsed or embedded. Every size is built and asked in processes of
its own; an index that is in the given home already is only asked. Recall compares the first ten that are found for a
question without words with those of a comparison with every vector, computed by numpy. The latency is that of questions
with words: hybrid. The processor time of the process says more than the clock where other work shares the machine.
The engine `pgvector` uses the database of DATABASE_URL, or starts one for the time of the benchmark.
"""

import argparse
import asyncio
import json
import os
import resource
import shutil
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time
from uuid import uuid5

import numpy as np
from numpy.typing import NDArray

from citewell.models import Chunk, Project, Vector, chunk_id, content_hash
from citewell.ports import Change, Embedding, Entry, Index
from citewell.text import bert_vocabulary

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.lib.scaling_charts import draw, table

PROJECT, NEIGHBOUR = Project.named("benchmark").id, Project.named("neighbour").id
DIMENSIONS, WINDOWS = 64, 2
MODEL = "generated-64"
_TOPICS = 1000
_CHUNKS_PER_CHANGE = 500
_CHUNKS_PER_DOCUMENT = 10
_NEIGHBOUR_EVERY = 10  # every tenth document is another project's
_QUESTIONS = 200


class Corpus:
    """Generated chunks in blocks; the same number gives the same block."""

    def __init__(self, words: int) -> None:
        self._words = words
        rng = np.random.default_rng(7)
        entries = [entry for entry in bert_vocabulary() if entry.isascii() and entry.isalpha() and len(entry) > 3]
        self.words = np.array(entries)[rng.permutation(len(entries))]
        frequency = 1 / (np.arange(len(entries)) + 2.7)
        self._cumulated = np.cumsum(frequency / frequency.sum())
        self._topics = rng.normal(size=(_TOPICS, DIMENSIONS))
        self._topics /= np.linalg.norm(self._topics, axis=1, keepdims=True)

    def vectors(self, block: int) -> NDArray[np.float32]:
        """The windows of the chunks of a block."""
        rng = np.random.default_rng((1, block))
        topics = self._topics[rng.integers(0, _TOPICS, _CHUNKS_PER_CHANGE)]
        pages = topics + rng.normal(0, 0.6 / DIMENSIONS**0.5, topics.shape)
        spread = rng.normal(0, 0.6 / DIMENSIONS**0.5, (_CHUNKS_PER_CHANGE, WINDOWS, DIMENSIONS))
        rows = pages[:, np.newaxis] + spread
        rows /= np.linalg.norm(rows, axis=2, keepdims=True)
        return rows.astype(np.float32)

    def texts(self, block: int) -> list[str]:
        rng = np.random.default_rng((2, block))
        places = np.searchsorted(self._cumulated, rng.random((_CHUNKS_PER_CHANGE, self._words)))
        return [" ".join(words) + "." for words in self.words[places.clip(max=len(self.words) - 1)].tolist()]

    def entries(self, block: int) -> list[Entry]:
        return [
            _entry(block * _CHUNKS_PER_CHANGE + place, text, rows)
            for place, (text, rows) in enumerate(zip(self.texts(block), self.vectors(block), strict=True))
        ]

    def questions(self, chunks: int) -> list[tuple[str, Vector]]:
        """Three words of a chunk, and a vector near one of its windows; spread over the corpus."""
        rng = np.random.default_rng(3)
        found = []
        for number in np.linspace(0, chunks - 1, _QUESTIONS).astype(int).tolist():
            block, place = divmod(number, _CHUNKS_PER_CHANGE)
            vector = self.vectors(block)[place, 0] + rng.normal(0, 0.6 / DIMENSIONS**0.5, DIMENSIONS)
            words = " ".join(self.texts(block)[place].rstrip(".").split(" ")[:3])
            found.append((words, (vector / np.linalg.norm(vector)).astype(np.float32)))
        return found

    def nearest(self, chunks: int, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """The similarity of the tenth nearest chunk of our project to each vector, by comparing all."""
        best = np.full((len(vectors), 10), -1.0, np.float32)
        for block in range(chunks // _CHUNKS_PER_CHANGE):
            numbers = np.arange(_CHUNKS_PER_CHANGE) + block * _CHUNKS_PER_CHANGE
            ours = numbers // _CHUNKS_PER_DOCUMENT % _NEIGHBOUR_EVERY != _NEIGHBOUR_EVERY - 1
            scores = np.einsum("qd,cwd->qcw", vectors, self.vectors(block)[ours], optimize=True).max(axis=2)
            best = -np.sort(-np.concatenate([best, scores], axis=1), axis=1)[:, :10]
        return best[:, 9]


def _entry(number: int, text: str, rows: NDArray[np.float32]) -> Entry:
    document = number // _CHUNKS_PER_DOCUMENT
    project = NEIGHBOUR if document % _NEIGHBOUR_EVERY == _NEIGHBOUR_EVERY - 1 else PROJECT
    path = f"part-{document % 50}/{document:07d}.md"
    identity = uuid5(project, path)
    content = content_hash("Title", "Section", text)
    chunk = Chunk(
        id=chunk_id(identity, content),
        document_id=identity,
        content_hash=content,
        index=number % _CHUNKS_PER_DOCUMENT,
        source=path,
        chapter=f"Title {document % 997}",
        section=f"Section {number % 5}",
        headings=(f"Section {number % 5}",),
        text=text,
        start=0,
        end=len(text),
        first_line=1,
        last_line=1,
    )
    half = len(text) // 2
    return Entry(project, chunk, Embedding(rows, ((0, half), (half, len(text)))))


async def publish(engine: str, home: Path, changes: AsyncIterator[Change]) -> None:
    match engine:
        case "embedded":
            from citewell.adapters.qdrant_edge import QdrantEdgeBuilder

            builder = QdrantEdgeBuilder(home / "index", model=MODEL, dimensions=DIMENSIONS)
            await builder.publish(await builder.stage(changes, base=None))
            await builder.close()
        case "pgvector":
            from benchmarks.lib import in_postgres

            home.mkdir(parents=True)
            projects = [PROJECT, NEIGHBOUR]
            url = os.environ["DATABASE_URL"]
            await in_postgres.build_in_postgres(url, projects, changes, model=MODEL, dimensions=DIMENSIONS)
        case _:
            raise SystemExit(f"there is no engine {engine!r}: it is `embedded` or `pgvector`")


def index_of(engine: str, home: Path) -> Index:
    if engine == "embedded":
        from citewell.adapters.qdrant_edge import QdrantEdgeIndex

        return QdrantEdgeIndex(home / "index", model=MODEL, dimensions=DIMENSIONS)
    from benchmarks.lib import in_postgres

    return in_postgres.index_in_postgres(os.environ["DATABASE_URL"], model=MODEL, dimensions=DIMENSIONS)


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def build(engine: str, home: Path, chunks: int, words: int) -> dict[str, float]:
    """Publish an index; in a process of its own."""
    corpus = Corpus(words)
    preparing = added = 0.0

    async def changes() -> AsyncIterator[Change]:
        nonlocal preparing, added
        for block in range(chunks // _CHUNKS_PER_CHANGE):
            began = perf_counter()
            entries = corpus.entries(block)
            preparing += perf_counter() - began
            yield Change(entries=entries)
            if block % 20 == 19:
                print(f"{(block + 1) * _CHUNKS_PER_CHANGE} chunks, {peak_megabytes():.0f} MB", flush=True)
        added = perf_counter()

    began, began_processor = perf_counter(), process_time()
    asyncio.run(publish(engine, home, changes()))
    seconds = perf_counter() - began - preparing
    return {
        "build_seconds": seconds,
        "build_processor_seconds": process_time() - began_processor - preparing,
        "finish_seconds": perf_counter() - added,
        "chunks_per_second": chunks / seconds,
        "build_peak_megabytes": peak_megabytes(),
        "megabytes_on_disk": disk_megabytes(engine, home),
    }


def disk_megabytes(engine: str, home: Path) -> float:
    if engine == "pgvector":
        from benchmarks.lib import in_postgres

        return asyncio.run(in_postgres.megabytes(os.environ["DATABASE_URL"]))
    return sum(file.stat().st_blocks * 512 for file in home.rglob("*") if file.is_file()) / 1e6


def ask(engine: str, home: Path, chunks: int, words: int) -> dict[str, float]:
    """Latency and recall; in a process of its own."""
    corpus = Corpus(words)
    questions = corpus.questions(chunks)
    index = index_of(engine, home)

    async def run() -> tuple[list[float], list[float], list[float], float]:
        seconds: list[float] = []
        processor: list[float] = []
        began = perf_counter()
        await index.search(PROJECT, vector=questions[0][1], words=questions[0][0], limit=40)
        opening = perf_counter() - began
        for _ in range(2):  # the second time, what a question reads from the disk is in memory
            seconds.clear()
            processor.clear()
            for words, vector in questions:
                began, began_processor = perf_counter(), process_time()
                await index.search(PROJECT, vector=vector, words=words, limit=40)
                await index.frequencies(PROJECT, words.split())
                seconds.append(perf_counter() - began)
                processor.append(process_time() - began_processor)
        tenth = corpus.nearest(chunks, np.stack([vector for _, vector in questions]))
        recalls = []
        for (_, vector), least in zip(questions, tenth.tolist(), strict=True):
            found = await index.search(PROJECT, vector=vector, words="", limit=10)
            recalls.append(sum(passage.cosine >= least - 1e-5 for passage in found) / 10)
        return seconds, processor, recalls, opening

    seconds, processor, recalls, opening = asyncio.run(run())
    return {
        "query_p50_ms": statistics.median(seconds) * 1000,
        "query_p95_ms": statistics.quantiles(seconds, n=20)[-1] * 1000,
        "query_processor_p50_ms": statistics.median(processor) * 1000,
        "query_processor_p95_ms": statistics.quantiles(processor, n=20)[-1] * 1000,
        "recall_at_10": statistics.mean(recalls),
        "open_seconds": opening,
        "read_peak_megabytes": peak_megabytes(),
    }


def run(engine: str, sizes: list[int], home: Path, output: Path | None, *, words: int, keep: bool) -> None:
    rows: list[dict[str, object]] = json.loads(output.read_text()) if output and output.exists() else []
    for chunks in sizes:
        folder = home / f"{engine}-{chunks}"
        row: dict[str, object] = {"engine": engine, "chunks": chunks, "load": os.getloadavg()[0]}
        for step in (ask,) if folder.exists() else (build, ask):
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                row |= process.submit(step, engine, folder, chunks, words).result()
        print(json.dumps(row), flush=True)
        kept = [other for other in rows if (other["engine"], other["chunks"]) != (engine, chunks)]
        rows = sorted([*kept, row], key=lambda one: (str(one["engine"]), int(str(one["chunks"]))))
        if output:
            output.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
        if not keep:
            shutil.rmtree(folder)


def _server(engine: str) -> AbstractContextManager[object]:
    """The database of an engine that has one: DATABASE_URL, or one that ends with the benchmark."""
    if engine != "pgvector":
        return nullcontext()
    from benchmarks.lib import in_postgres

    return in_postgres.server()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    running = kinds.add_parser("run")
    running.add_argument("--engine", default="embedded")
    running.add_argument("--chunks", type=int, nargs="+", default=[10_000, 100_000])
    running.add_argument("--words", type=int, default=40, help="words of each chunk (default: %(default)s)")
    running.add_argument("--home", type=Path, help="where the indexes are built and stay; default: a temporary folder")
    running.add_argument("--json", type=Path, help="add the numbers to this file")
    drawing = kinds.add_parser("draw")
    drawing.add_argument("results", type=Path, nargs="+")
    drawing.add_argument("--folder", type=Path, default=Path("docs/img"))
    options = parser.parse_args()
    if options.kind == "run":
        with tempfile.TemporaryDirectory() as folder, _server(options.engine):
            home = options.home or Path(folder)
            run(options.engine, options.chunks, home, options.json, words=options.words, keep=options.home is not None)
    else:
        rows = [row for file in options.results for row in json.loads(file.read_text(encoding="utf-8"))]
        draw(rows, options.folder)
        print(table(rows))


if __name__ == "__main__":
    main()
