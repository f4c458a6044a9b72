"""`citewell eval`: how good the answers are, for a person to read and for a build to fail on."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from citewell.cli.options import command, json_option, project_option
from citewell.errors import SettingsError, StoreUnavailable
from citewell.models import Evaluation, Passage, Project

if TYPE_CHECKING:
    from citewell.evaluate.relevance import Placement
    from citewell.evaluate.run import Outcome
    from citewell.evaluate.scores import Score
    from citewell.evaluate.thresholds import Threshold
    from citewell.settings import Settings


def _in_a_folder(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """Better said before a thousand questions are asked than after."""
    if path is not None and not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder {path.parent}")
    return path


@click.command(name="eval")
@click.argument("questions", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@project_option
@click.option("--min", "least", multiple=True, metavar="SCORE=X", help="Fail if SCORE is below X. May be repeated.")
@click.option("--max", "most", multiple=True, metavar="SCORE=X", help="Fail if SCORE is above X. May be repeated.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    callback=_in_a_folder,
    metavar="FILE.html",
    help="Write a page with drawings, the questions that went wrong and what was found instead.",
)
@json_option
@command
async def evaluate(
    questions: Path, project: str, least: tuple[str, ...], most: tuple[str, ...], report: Path | None, as_json: bool
) -> None:
    """Ask the questions of a JSONL file and score what comes back: found, answered, declined, cited.

    \b
    citewell eval questions.jsonl --min hit@5=0.9 --min declined=0.8 --max p95_ms=500

    Exit code 1 means that a score is on the wrong side of its bound. docs/authors.md says what each score means.
    """
    from citewell import wiring
    from citewell.evaluate.questions import read_questions
    from citewell.evaluate.run import run_questions
    from citewell.evaluate.scores import missing, score
    from citewell.evaluate.text_report import text_report
    from citewell.settings import read_settings

    gates = _gates(least, most)
    golden = read_questions(questions)
    settings, named = read_settings(), Project.named(project)
    async with wiring.open_for_answers(settings) as reading:
        outcomes = await run_questions(
            golden, project=named, engines=reading.engines, library=reading.library, progress=_progress
        )
    scores = score(outcomes)
    await _keep(settings, named, scores, questions=len(outcomes))
    warnings = missing(outcomes)
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        click.echo(json.dumps(_run_json(scores, outcomes, gates=gates, warnings=warnings), ensure_ascii=False))
    else:
        click.echo(text_report(scores, outcomes))
    if report is not None:
        _write_report(report, scores, outcomes, project=project, questions=questions, warnings=warnings)
    failed = [gate for gate in gates if not gate.passes(scores)]
    for gate in failed:
        click.echo(f"failed: {gate.failure(scores)}", err=True)
    sys.exit(1 if failed else 0)


async def _keep(settings: "Settings", project: Project, scores: "dict[str, Score]", *, questions: int) -> None:
    """For the page that authors look at. A database that takes nothing is no reason to lose what was found out."""
    from citewell import wiring

    made = Evaluation(datetime.now(UTC), questions, {name: _score_json(one) for name, one in scores.items()})
    try:
        async with wiring.open_stores(settings) as kept:
            await kept.evaluations.save(project.id, made)
    except StoreUnavailable as error:
        click.echo(f"warning: the scores could not be kept for the server to show: {error}", err=True)


def _gates(least: tuple[str, ...], most: tuple[str, ...]) -> "list[Threshold]":
    from citewell.evaluate.thresholds import Threshold

    try:
        return [*(Threshold.parse("min", bound) for bound in least), *(Threshold.parse("max", bound) for bound in most)]
    except SettingsError as error:
        raise click.UsageError(str(error)) from error


def _progress(done: int, total: int) -> None:
    """On a terminal, one line that is written over and gone at the end."""
    if sys.stderr.isatty():
        click.echo(f"\rAsking {done} of {total} …" if done < total else "\r\033[K", nl=False, err=True)


def _write_report(
    path: Path,
    scores: "dict[str, Score]",
    outcomes: "list[Outcome]",
    *,
    project: str,
    questions: Path,
    warnings: list[str],
) -> None:
    from citewell.evaluate.html_report import html_report

    page = html_report(
        scores, outcomes, project=project, questions=questions.name, made=datetime.now(UTC), warnings=warnings
    )
    try:
        path.write_text(page, encoding="utf-8", errors="replace")
    except OSError as error:
        raise click.ClickException(f"--report {path}: {error.strerror}") from error
    click.echo(f"The report is in {path}", err=True)


def _run_json(
    scores: "dict[str, Score]", outcomes: "list[Outcome]", *, gates: "list[Threshold]", warnings: list[str]
) -> dict[str, object]:
    from citewell.evaluate.scores import reliability

    return {
        "questions": len(outcomes),
        "uncovered": sum(one.question.unanswerable for one in outcomes),
        "scores": {name: _score_json(one) for name, one in scores.items()},
        "reliability": [
            {"count": one.count, "confidence": round(one.confidence, 4), "right": round(one.right, 4)}
            for one in reliability(outcomes)
        ],
        "gates": [{"score": gate.name, gate.side: gate.bound, "passed": gate.passes(scores)} for gate in gates],
        "warnings": warnings,
        "outcomes": [_outcome_json(one) for one in outcomes],
    }


def _score_json(one: "Score") -> dict[str, object]:
    if one.value is None:
        return {"value": None, "low": None, "high": None, "n": 0}
    return {"value": round(one.value, 4), "low": round(one.low, 4), "high": round(one.high, 4), "n": one.count}


def _outcome_json(one: "Outcome") -> dict[str, object]:
    return {
        "id": one.question.id,
        "text": one.question.text,
        "unanswerable": one.question.unanswerable,
        "answer": one.text,
        "confidence": round(one.answer.confidence, 4),
        "declined": one.declined,
        "complaint": one.complaint,
        "answeredRightly": one.answered_rightly,
        "keyAnswer": one.says_key,
        "file": _placement_json(one.by_file),
        "heading": _placement_json(one.by_heading),
        "passage": _placement_json(one.by_passage),
        "citations": len(one.citations),
        "citationsResolve": sum(each.resolves for each in one.citations),
        "citationsQuote": sum(each.quotes is True for each in one.citations),
        "milliseconds": round(one.seconds * 1000, 1),
        "found": [_found_json(passage) for passage in one.ranking],
    }


def _placement_json(placement: "Placement | None") -> dict[str, object] | None:
    return None if placement is None else {"rank": placement.rank, "ndcg": round(placement.ndcg, 4)}


def _found_json(passage: Passage) -> dict[str, object]:
    from citewell.evaluate.run import excerpt

    chunk = passage.chunk
    return {
        "id": chunk.id,
        "source": chunk.source,
        "section": chunk.section,
        "page": chunk.page,
        "score": round(passage.score, 4),
        "excerpt": excerpt(passage),
    }
