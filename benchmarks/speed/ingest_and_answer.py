"""Ingest throughput compared with the bare embedding model, and the latency of each step of a question.

    python benchmarks/speed/ingest_and_answer.py FOLDER [--rounds N]

Ingest throughput is a fraction of what the bare ONNX session does with the same windows in the same run, since seconds
differ between machines. Rounds alternate between the two.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from citewell import wiring
from citewell.adapters.local_model import batches
from citewell.adapters.minilm import MiniLmEmbedder
from citewell.answer.question import resolve_follow_up
from citewell.answer.quoting import quote, read_passages
from citewell.answer.retrieval.search import retrieve
from citewell.ingest.flow import ingest
from citewell.ingest.read_ahead import read_document
from citewell.ingest.walk import walk
from citewell.models import Project
from citewell.ports import Embeddable
from citewell.settings import Settings

PROJECT = Project.named("benchmark")


def windows_of(folder: Path, embedder: MiniLmEmbedder) -> list[list[int]]:
    files = walk([folder]).files
    recipe = wiring.ingest_recipe(Settings())
    passages: dict[str, Embeddable] = {}
    for file in files:
        parsed = read_document(file, PROJECT, recipe)
        passages.update({chunk.embedding_key: Embeddable(chunk.label, chunk.text) for chunk in parsed.chunks})
    return embedder.windows(list(passages.values()))


def raw_seconds(windows: list[list[int]], embedder: MiniLmEmbedder) -> float:
    """The model alone, with prepared windows in the best order."""
    began = perf_counter()
    for rows in batches(windows):
        embedder.run([windows[row] for row in rows])
    return perf_counter() - began


async def pipeline_seconds(folder: Path, embedder: MiniLmEmbedder) -> float:
    """The whole ingest, from files to a published index, without a cache."""
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home))
        async with wiring.open_for_ingest(settings, wait=False, on_wait=lambda: None) as engines:
            with_embedder = replace(engines, embedder=embedder)
            result = await ingest(
                [folder],
                project=PROJECT,
                engines=with_embedder,
                recipe=wiring.ingest_recipe(settings),
                progress=lambda *_: None,
            )
    return result.seconds


async def query_latencies(folder: Path, questions: list[str]) -> dict[str, list[float]]:
    """Seconds of each step for each question; "read" is quoting after a model has read the passages."""
    seconds_by_step: dict[str, list[float]] = {"embed": [], "search": [], "quote": [], "read": []}
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home))
        async with wiring.open_for_ingest(settings, wait=False, on_wait=lambda: None) as engines:
            await ingest(
                [folder],
                project=PROJECT,
                engines=engines,
                recipe=wiring.ingest_recipe(settings),
                progress=lambda *_: None,
            )
        async with wiring.open_for_answers(settings) as resources:
            embedder = resources.engines.embedder
            for question in [questions[0], *questions]:
                began = perf_counter()
                await embedder.embed_query(question)
                embedded = perf_counter()
                retrieval = await retrieve(question, project=PROJECT.id, engines=resources.engines, limit=5)
                searched = perf_counter()
                resolved = resolve_follow_up(question)
                quote(resolved, await read_passages(resolved, retrieval, None))
                quoted = perf_counter()
                quote(resolved, await read_passages(resolved, retrieval, resources.engines.reader))
                read = perf_counter()
                seconds_by_step["embed"].append(embedded - began)
                seconds_by_step["search"].append(
                    searched - embedded - (embedded - began)
                )  # retrieving embeds once more
                seconds_by_step["quote"].append(quoted - searched)
                seconds_by_step["read"].append(read - quoted)
    return {name: values[1:] for name, values in seconds_by_step.items()}  # the first question loads the model


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    embedder = MiniLmEmbedder()
    embedder.load()
    windows = windows_of(options.folder, embedder)
    tokens = sum(map(len, windows))
    ratios, raws = [], []
    for _ in range(options.rounds):
        raw = raw_seconds(windows, embedder)
        pipeline = asyncio.run(pipeline_seconds(options.folder, embedder))
        ratios.append(raw / pipeline)
        raws.append(raw)
    print(f"{len(windows)} windows, {tokens} tokens; bare session {tokens / statistics.median(raws):.0f} tokens/s")
    spread = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"ingest / bare session: {statistics.median(ratios):.2f}  (rounds: {spread})")
    golden = options.folder / "golden.jsonl"
    if golden.exists():
        questions = [json.loads(line)["text"] for line in golden.read_text(encoding="utf-8").splitlines()]
        steps = asyncio.run(query_latencies(options.folder, questions))
        for name, values in steps.items():
            cut = statistics.quantiles(values, n=20)
            print(f"{name:8} p50 {statistics.median(values) * 1000:6.1f} ms   p95 {cut[-1] * 1000:6.1f} ms")
        found = statistics.median(map(sum, zip(steps["embed"], steps["search"], strict=True)))
        for name, label in (("quote", "without a reader"), ("read", "with a reader")):
            whole = statistics.median(map(sum, zip(steps["embed"], steps["search"], steps[name], strict=True)))
            print(f"question {label} / (embed + search): {whole / found:.2f}   p50 {whole * 1000:.1f} ms")


if __name__ == "__main__":
    main()
