"""Overhead of Citewell on an LLM's answer: until the first word, and for each word after it.

    python benchmarks/speed/writing.py FOLDER [--questions FILE] [--rounds N]

A loopback server plays the LLM and returns sentences of the passages with citations. The time spent waiting for it is
subtracted; the rest is overhead: follow-ups, retrieval, prompt, citations, support checks. The time to the first word
is a ratio to retrieval alone, measured in the same rounds.
"""

import argparse
import asyncio
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from citewell import wiring
from citewell.answer.engines import AnswerEngines
from citewell.answer.flow import answer
from citewell.answer.retrieval.search import retrieve
from citewell.ingest.flow import ingest
from citewell.models import Project, TokenUsage
from citewell.ports import Writer, WritingTask
from citewell.settings import Settings

PROJECT = Project.named("benchmark")
MAX_SENTENCES = 12


class TimedWriter:
    """A writer that measures the time spent waiting for it, and the time its consumer spends on each word."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.model, self.context_tokens = writer.model, writer.context_tokens
        self.first_words_seconds = writer.first_words_seconds
        self.waited = 0.0
        self.busy: list[float] = []

    async def write(self, task: WritingTask) -> AsyncGenerator[str | TokenUsage, None]:
        async with aclosing(self._writer.write(task)) as words:
            while True:
                began = perf_counter()
                word = await anext(words, None)
                self.waited += perf_counter() - began
                if word is None:
                    return
                began = perf_counter()
                yield word
                self.busy.append(perf_counter() - began)

    async def reach(self) -> None:
        await self._writer.reach()

    async def close(self) -> None:
        await self._writer.close()


def quote_passages(request: dict[str, Any]) -> str:
    """An answer made of sentences of the passages, each with its citation."""
    prompt = "\n".join(str(part.get("content") or "") for part in request["messages"])
    sentences = []
    for number, _, text in re.findall(r"^\[(\d+)\][^\n]*\n<passage (\w+)>\n(.*?)\n</passage \2>", prompt, re.S | re.M):
        prose = " ".join(line for line in text.split("\n") if line[:1].isalpha())
        sentences += [f"{part} [{number}]." for part in prose.split(". ")[:4] if len(part) > 20]
    return " ".join(sentences[:MAX_SENTENCES])


def serve() -> None:
    """Run the fake LLM in a process of its own, so that it takes no CPU time of this one."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.fakes.llm import LLM, Says

    with LLM(lambda request: Says(quote_passages(request) or "NOT_COVERED")) as llm:
        print(llm.url, flush=True)
        sys.stdin.read()


@asynccontextmanager
async def open_engines(folder: Path, url: str, key: str) -> AsyncIterator[AnswerEngines]:
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home), llm_base_url=url, llm_model="loopback-1", llm_api_key=key)
        async with wiring.open_for_ingest(settings, wait=False, on_wait=lambda: None) as ingest_engines:
            recipe = wiring.ingest_recipe(settings)
            await ingest([folder], project=PROJECT, engines=ingest_engines, recipe=recipe, progress=lambda *_: None)
        async with wiring.open_for_answers(settings) as resources:
            yield resources.engines


async def measure(folder: Path, questions: list[str], rounds: int, url: str, key: str) -> None:
    retrieval, first, busy_seconds = [], [], []
    pieces = 0
    async with open_engines(folder, url, key) as answer_engines:
        for number in range(rounds + 1):
            for question in questions:
                began = perf_counter()
                await retrieve(question, project=PROJECT.id, engines=answer_engines, limit=5)
                searched = perf_counter() - began
                assert answer_engines.writer
                timed = TimedWriter(answer_engines.writer)
                began, first_word = perf_counter(), 0.0
                async with aclosing(
                    answer(question, project=PROJECT, engines=replace(answer_engines, writer=timed))
                ) as stream:
                    async for piece in stream:
                        if isinstance(piece, str) and not first_word:
                            first_word = perf_counter() - began - timed.waited
                        pieces += 1
                if number and timed.busy:  # the first round warms up
                    retrieval.append(searched)
                    first.append(first_word)
                    busy_seconds += timed.busy
    ratio = statistics.median(ours / theirs for ours, theirs in zip(first, retrieval, strict=True))
    print(f"{len(first)} answers, {len(busy_seconds)} words of 4 characters")
    print(f"first word: {ratio:.2f} x retrieval (median {statistics.median(first) * 1000:.1f} ms, LLM taken out)")
    mean, median = statistics.fmean(busy_seconds) * 1000, statistics.median(busy_seconds) * 1000
    print(f"each word: {mean:.4f} ms of ours, median {median:.4f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=Path, help="a golden.jsonl; by default the folder's own")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve()
    lines = (options.questions or options.folder / "golden.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line)["text"] for line in lines if line.strip()][:30]
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.fakes.llm import KEY

    command = [sys.executable, __file__, "-", "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdin
        url = process.stdout.readline().strip()
        asyncio.run(measure(options.folder, questions, options.rounds, url, KEY))
        process.stdin.close()
    return None


if __name__ == "__main__":
    main()
