"""Find what questions are about: ours beside the pipeline one writes in an afternoon, on the same data in one run.

    python benchmarks/retrieval.py DATA [--home FOLDER] [--json OUT] [--only SET ...]

Every set in DATA is taken in (`sets.py` says how DATA is laid out and what is skipped), then asked its questions
through the product's own path and through each part of `afternoon.py`. Intervals are 95 % bootstraps over
questions. With --home what was embedded is kept, and a second run embeds nothing.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from afternoon import Afternoon, Piece
from answers import Refusals, answer_table, has_short_answers, refusals
from asking import group_of
from citewell import wiring
from citewell.answer.engines import AnswerEngines
from citewell.answer.retrieval.rerank import Retrieval
from citewell.answer.retrieval.search import retrieve
from citewell.errors import CitewellError
from citewell.models import Passage
from folds import Unseen
from sets import PROJECT, Question, Set, Source, find_sets, off_topic, read_set, settings_for, take_in
from tables import OURS, Found, Table, file_table, joined, page_table, section, section_table, span_table

RIVAL = "RRF"
_LIMIT = 20  # passages asked for; distinct files among them are ranked


@dataclass(frozen=True, slots=True)
class Report:
    """All that was measured on one set."""

    source: Source
    tables: list[Table]
    refusals: Refusals | None

    def shown(self) -> str:
        parts = [table.shown() for table in self.tables]
        return "\n\n".join([*parts, self.refusals.shown()] if self.refusals else parts)

    def as_json(self) -> dict[str, Any]:
        return {
            "set": self.source.label,
            "tables": [table.as_json() for table in self.tables],
            "refusals": self.refusals.as_json() if self.refusals else None,
        }


async def ours(question: Question, one: Set, *, engines: AnswerEngines, unseen: Unseen) -> Retrieval:
    """THE one call of the product's own path, with weights that were fitted without this question."""
    unseen.use_for(group_of(one, question))
    asked = " ".join(question.text.split())
    return await retrieve(
        asked,
        project=PROJECT.id,
        engines=engines,
        limit=_LIMIT,
    )


def found_by_us(passage: Passage, one: Set) -> Found:
    chunk = passage.chunk
    start, end = chunk.start, chunk.end
    if row := one.written.get(chunk.source):
        start, end = row.offset(start), row.offset(end)
    sections = frozenset(section(chunk.source, heading) for heading in (chunk.chapter, *chunk.headings))
    return Found(one.named(chunk.source), chunk.page, sections, start, end)


def found_by_others(piece: Piece) -> Found:
    """A piece stands below every heading in it, and below the last one before it."""
    text = piece.source
    before = [path for start, path in text.outline if start <= piece.start][-1:]
    inside = [path for start, path in text.outline if piece.start < start < piece.end]
    sections = frozenset(section(text.file, heading) for path in (*before, *inside) for heading in path)
    return Found(text.file, text.page, sections, piece.start, piece.end)


async def measure(source: Source, home: Path, strangers: Sequence[Question], unseen: Unseen) -> Report:
    one = read_set(source, home)
    seen = sum(unseen.knows(group_of(one, question)) for question in one.covered)
    say(
        f"{source.label}: {seen} of {len(one.covered)} questions were fitted on; weights fitted without each judge them"
    )
    done = await take_in(one)
    say(f"{source.label}: {done.files_processed} files, {done.chunks_embedded} chunks embedded in {done.seconds:.0f} s")
    for error in done.errors:
        say(f"{source.label}: {error}")
    if missing := one.missing():
        say(f"{source.label}: {len(missing)} relevant texts are not there ({missing[0]} …); they count as missed")
    async with wiring.open_for_answers(settings_for(one.home)) as reading:
        tables = await _tables(one, engines=reading.engines, unseen=unseen) if one.covered else []
        declined = None
        if source.kind != "retrieval" and (one.questions or strangers):
            declined = await refusals(source.label, one, strangers, engines=reading.engines, unseen=unseen)
    return Report(source, tables, declined)


async def _tables(one: Set, *, engines: AnswerEngines, unseen: Unseen) -> list[Table]:
    label, questions = one.source.label, one.covered
    began = perf_counter()
    afternoon = Afternoon(one, embedder=engines.embedder)
    pieces = await afternoon.ranked([(question.text, question.lang) for question in questions])
    say(f"{label}: {len(afternoon.pieces)} pieces in an afternoon of {perf_counter() - began:.0f} s")
    began = perf_counter()
    found = [await ours(question, one, engines=engines, unseen=unseen) for question in questions]
    say(f"{label}: {len(questions)} questions asked in {perf_counter() - began:.0f} s")
    rankings = {
        OURS: [[found_by_us(passage, one) for passage in each.passages] for each in found],
        **{system: [list(map(found_by_others, each)) for each in ranked] for system, ranked in pieces.items()},
    }
    tables: list[Table] = []
    short = has_short_answers(one)
    for language in dict.fromkeys(question.lang for question in questions):
        kept = [place for place, question in enumerate(questions) if question.lang == language]
        some = [questions[place] for place in kept]
        their = {system: [ranked[place] for place in kept] for system, ranked in rankings.items()}
        title = f"{label} [{language}]" if language else label
        spans = span_table(title, some, their, rival=RIVAL)
        # Where exact spans are known, the documents are few and long, and finding the right one says little.
        tables += [spans] if spans else [file_table(title, some, their, rival=RIVAL)]
        others = (page_table(title, some, their, rival=RIVAL), section_table(title, some, their, rival=RIVAL))
        tables += [table for table in others if table]
        if short:
            first = [found[place] for place in kept]
            said = [pieces["BM25"][place] for place in kept]
            tables.append(answer_table(title, one, some, first, afternoon=afternoon, pieces=said, unseen=unseen))
    return tables


def chosen(sources: Sequence[Source], only: Sequence[str]) -> list[Source]:
    names = {name for source in sources for name in (source.name, source.label)}
    if unknown := [name for name in only if name not in names]:
        known = ", ".join(source.label for source in sources)
        raise SystemExit(f"--only {unknown[0]}: no such set with questions; there are {known or 'none'}")
    return [source for source in sources if not only or source.name in only or source.label in only]


async def run(data: Path, home: Path, only: Sequence[str]) -> dict[str, Any]:
    sources, skipped = find_sets(data)
    for line in skipped:
        say(f"skipped {line}")
    strangers = off_topic(data)
    unseen = Unseen.read()
    reports = []
    for source in chosen(sources, only):
        report = await measure(source, home, strangers, unseen)
        reports.append(report)
        print(f"{report.shown()}\n", flush=True)
    result: dict[str, Any] = {"sets": [report.as_json() for report in reports]}
    sites = [report.tables[0] for report in reports if report.source.kind == "docs" and report.tables]
    if len(sites) > 1:
        together = joined("all docs sites together", sites)
        print(together.shown())
        result["docs"] = together.as_json()
    return result


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path, help="a folder with retrieval/, docs/, pdf/ and offtopic/")
    parser.add_argument("--home", type=Path, help="where sets are taken in and kept; else they are forgotten")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every number to this file as well")
    parser.add_argument("--only", nargs="+", default=[], metavar="SET", help="these sets alone: squad2, docs/ray")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as forgotten:
            result = asyncio.run(run(options.data, options.home or Path(forgotten), options.only))
    except CitewellError as error:
        sys.exit(f"error: {error}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
