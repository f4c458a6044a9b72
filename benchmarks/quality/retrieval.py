"""Compare Citewell's retrieval with a plain RAG pipeline, on the same question sets in one run.

    python benchmarks/quality/retrieval.py DATA [--home FOLDER] [--json OUT] [--only SET ...]

Indexes every set in DATA (`benchmarks/lib/sets.py` describes the layout), then asks its questions through Citewell and
through each part of the pipeline in `benchmarks/lib/baseline.py`. Intervals are 95 % bootstraps over questions.
--home keeps the embeddings, so a second run embeds nothing.
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

from citewell import wiring
from citewell.answer.engines import AnswerEngines
from citewell.answer.retrieval.rerank import Retrieval
from citewell.answer.retrieval.search import retrieve
from citewell.errors import CitewellError
from citewell.models import Passage

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.lib.answers import Refusals, answer_table, has_short_answers, measure_refusals
from benchmarks.lib.baseline import Baseline, Piece
from benchmarks.lib.folds import HeldOutWeights
from benchmarks.lib.sets import (
    PROJECT,
    Question,
    QuestionSet,
    Source,
    find_sets,
    index_set,
    read_off_topic,
    read_set,
    settings_for,
)
from benchmarks.lib.tables import (
    OURS,
    RetrievedText,
    Table,
    file_table,
    join_tables,
    page_table,
    section_key,
    section_table,
    span_table,
)
from benchmarks.lib.training_cases import group_of

RIVAL = "RRF"
_LIMIT = 20  # passages asked for; distinct files among them are ranked


@dataclass(frozen=True, slots=True)
class Report:
    """The results of one set."""

    source: Source
    tables: list[Table]
    refusals: Refusals | None

    def as_text(self) -> str:
        parts = [table.as_text() for table in self.tables]
        return "\n\n".join([*parts, self.refusals.as_text()] if self.refusals else parts)

    def as_json(self) -> dict[str, Any]:
        return {
            "set": self.source.label,
            "tables": [table.as_json() for table in self.tables],
            "refusals": self.refusals.as_json() if self.refusals else None,
        }


async def retrieve_ours(
    question: Question, question_set: QuestionSet, *, engines: AnswerEngines, held_out: HeldOutWeights
) -> Retrieval:
    """Retrieve with Citewell, with weights that were fitted without this question."""
    held_out.use_for(group_of(question_set, question))
    text = " ".join(question.text.split())
    return await retrieve(
        text,
        project=PROJECT.id,
        engines=engines,
        limit=_LIMIT,
    )


def from_passage(passage: Passage, question_set: QuestionSet) -> RetrievedText:
    chunk = passage.chunk
    start, end = chunk.start, chunk.end
    if row := question_set.written.get(chunk.source):
        start, end = row.offset(start), row.offset(end)
    sections = frozenset(section_key(chunk.source, heading) for heading in (chunk.chapter, *chunk.headings))
    return RetrievedText(question_set.document_name(chunk.source), chunk.page, sections, start, end)


def from_piece(piece: Piece) -> RetrievedText:
    """A piece is under every heading in it, and under the last one before it."""
    text = piece.source
    before = [path for start, path in text.outline if start <= piece.start][-1:]
    inside = [path for start, path in text.outline if piece.start < start < piece.end]
    sections = frozenset(section_key(text.file, heading) for path in (*before, *inside) for heading in path)
    return RetrievedText(text.file, text.page, sections, piece.start, piece.end)


async def measure(source: Source, home: Path, off_topic: Sequence[Question], held_out: HeldOutWeights) -> Report:
    question_set = read_set(source, home)
    seen = sum(held_out.knows(group_of(question_set, question)) for question in question_set.covered)
    log(
        f"{source.label}: {seen} of {len(question_set.covered)} questions were fitted on; "
        "each is scored with weights fitted without it"
    )
    result = await index_set(question_set)
    log(
        f"{source.label}: {result.files_processed} files, {result.chunks_embedded} chunks embedded "
        f"in {result.seconds:.0f} s"
    )
    for error in result.errors:
        log(f"{source.label}: {error}")
    if missing := question_set.missing():
        log(f"{source.label}: {len(missing)} relevant texts are missing ({missing[0]} …); they count as not found")
    async with wiring.open_for_answers(settings_for(question_set.home)) as resources:
        tables = (
            await _tables(question_set, engines=resources.engines, held_out=held_out) if question_set.covered else []
        )
        declined = None
        if source.kind in ("docs", "pdf") and (question_set.questions or off_topic):
            declined = await measure_refusals(
                source.label, question_set, off_topic, engines=resources.engines, held_out=held_out
            )
    return Report(source, tables, declined)


async def _tables(question_set: QuestionSet, *, engines: AnswerEngines, held_out: HeldOutWeights) -> list[Table]:
    label, questions = question_set.source.label, question_set.covered
    began = perf_counter()
    baseline = Baseline(question_set, embedder=engines.embedder)
    pieces = await baseline.rank([(question.text, question.lang) for question in questions])
    log(f"{label}: {len(baseline.pieces)} pieces of the baseline in {perf_counter() - began:.0f} s")
    began = perf_counter()
    retrievals = [
        await retrieve_ours(question, question_set, engines=engines, held_out=held_out) for question in questions
    ]
    log(f"{label}: {len(questions)} questions asked in {perf_counter() - began:.0f} s")
    rankings = {
        OURS: [[from_passage(passage, question_set) for passage in ranking.passages] for ranking in retrievals],
        **{system: [list(map(from_piece, ranking)) for ranking in ranked] for system, ranked in pieces.items()},
    }
    tables: list[Table] = []
    short = has_short_answers(question_set)
    for language in dict.fromkeys(question.lang for question in questions):
        positions = [position for position, question in enumerate(questions) if question.lang == language]
        subset = [questions[position] for position in positions]
        subset_rankings = {system: [ranked[position] for position in positions] for system, ranked in rankings.items()}
        title = f"{label} [{language}]" if language else label
        spans = span_table(title, subset, subset_rankings, rival=RIVAL)
        # Sets with exact spans have few and long documents, so finding the right document says little.
        tables += [spans] if spans else [file_table(title, subset, subset_rankings, rival=RIVAL)]
        others = (
            page_table(title, subset, subset_rankings, rival=RIVAL),
            section_table(title, subset, subset_rankings, rival=RIVAL),
        )
        tables += [table for table in others if table]
        if short:
            first = [retrievals[position] for position in positions]
            bm25_pieces = [pieces["BM25"][position] for position in positions]
            tables.append(
                answer_table(
                    title, question_set, subset, first, baseline=baseline, pieces=bm25_pieces, held_out=held_out
                )
            )
    return tables


def select_sets(sources: Sequence[Source], only: Sequence[str]) -> list[Source]:
    names = {name for source in sources for name in (source.name, source.label)}
    if unknown := [name for name in only if name not in names]:
        known = ", ".join(source.label for source in sources)
        raise SystemExit(f"--only {unknown[0]}: no such set with questions; there are {known or 'none'}")
    return [source for source in sources if not only or source.name in only or source.label in only]


async def run(data: Path, home: Path, only: Sequence[str]) -> dict[str, Any]:
    sources, skipped = find_sets(data)
    for line in skipped:
        log(f"skipped {line}")
    off_topic = read_off_topic(data)
    held_out = HeldOutWeights.read()
    reports = []
    for source in select_sets(sources, only):
        report = await measure(source, home, off_topic, held_out)
        reports.append(report)
        print(f"{report.as_text()}\n", flush=True)
    result: dict[str, Any] = {"sets": [report.as_json() for report in reports]}
    for table in joined_tables(reports):
        print(f"{table.as_text()}\n")
        result.setdefault("joined", []).append(table.as_json())
    return result


def joined_tables(reports: Sequence[Report]) -> list[Table]:
    """File-level rankings over several sets: all questions about each site, the docs sets, and every site together."""
    asked = [report for report in reports if report.source.kind != "retrieval" and report.tables]
    groups = {
        f"all questions about {report.source.name}": [
            other for other in asked if other.source.corpus == report.source.corpus
        ]
        for report in asked
    }
    groups["all docs sites together"] = [report for report in asked if report.source.kind == "docs"]
    groups["all questions about documents"] = asked
    return [
        join_tables(title, [report.tables[0] for report in group]) for title, group in groups.items() if len(group) > 1
    ]


def log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path, help="a folder with retrieval/, docs/, pdf/, answers/ and offtopic/")
    parser.add_argument("--home", type=Path, help="where to index the sets; default: a temporary folder")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write all numbers to this file")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="SET", help="only these sets, such as squad2 or docs/ray"
    )
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as temporary:
            result = asyncio.run(run(options.data, options.home or Path(temporary), options.only))
    except CitewellError as error:
        sys.exit(f"error: {error}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
