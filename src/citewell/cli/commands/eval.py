"""`citewell eval`: scores the answers to golden questions; a build can fail on the scores."""

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


def _check_folder_exists(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """Fail before the questions are asked, not after."""
    if path is not None and not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder {path.parent}")
    return path


@click.command(name="eval")
@click.argument("questions", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@project_option
@click.option("--min", "minimums", multiple=True, metavar="SCORE=X", help="Fail if SCORE is below X. May be repeated.")
@click.option("--max", "maximums", multiple=True, metavar="SCORE=X", help="Fail if SCORE is above X. May be repeated.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    callback=_check_folder_exists,
    metavar="FILE.html",
    help="Write an HTML report: charts, the questions that went wrong, and the passages they found.",
)
@json_option
@command
async def evaluate(
    questions: Path,
    project: str,
    minimums: tuple[str, ...],
    maximums: tuple[str, ...],
    report: Path | None,
    as_json: bool,
) -> None:
    """Ask the questions of a JSONL file and score the answers: retrieval, refusals, citations.

    \b
    citewell eval questions.jsonl --min hit@5=0.9 --min declined=0.8 --max p95_ms=500

    Exit code 1 means that a score is below its --min or above its --max. docs/authors.md explains the scores.
    """
    from citewell import wiring
    from citewell.evaluate.questions import read_questions
    from citewell.evaluate.run import run_questions
    from citewell.evaluate.scores import missing_warnings, score
    from citewell.evaluate.text_report import text_report
    from citewell.settings import read_settings

    thresholds = _parse_thresholds(minimums, maximums)
    golden = read_questions(questions)
    settings, target = read_settings(), Project.named(project)
    async with wiring.open_for_answers(settings) as resources:
        outcomes = await run_questions(
            golden, project=target, engines=resources.engines, library=resources.library, progress=_show_progress
        )
    scores = score(outcomes)
    await _save_scores(settings, target, scores, questions=len(outcomes))
    warnings = missing_warnings(outcomes)
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        click.echo(
            json.dumps(_run_json(scores, outcomes, thresholds=thresholds, warnings=warnings), ensure_ascii=False)
        )
    else:
        click.echo(text_report(scores, outcomes))
    if report is not None:
        _write_report(report, scores, outcomes, project=project, questions=questions, warnings=warnings)
    failed = [threshold for threshold in thresholds if not threshold.passes(scores)]
    for threshold in failed:
        click.echo(f"failed: {threshold.failure(scores)}", err=True)
    sys.exit(1 if failed else 0)


async def _save_scores(settings: "Settings", project: Project, scores: "dict[str, Score]", *, questions: int) -> None:
    """Save the scores for the library page. If the database fails, warn: the scores are printed all the same."""
    from citewell import wiring

    evaluation = Evaluation(datetime.now(UTC), questions, {name: _score_json(score) for name, score in scores.items()})
    try:
        async with wiring.open_stores(settings) as stores:
            await stores.evaluations.save(project.id, evaluation)
    except StoreUnavailable as error:
        click.echo(f"warning: the scores were not saved for the server: {error}", err=True)


def _parse_thresholds(minimums: tuple[str, ...], maximums: tuple[str, ...]) -> "list[Threshold]":
    from citewell.evaluate.thresholds import Threshold

    try:
        return [
            *(Threshold.parse("min", bound) for bound in minimums),
            *(Threshold.parse("max", bound) for bound in maximums),
        ]
    except SettingsError as error:
        raise click.UsageError(str(error)) from error


def _show_progress(done: int, total: int) -> None:
    """Show a progress line on a terminal, and remove it at the end."""
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
    click.echo(f"Wrote the report to {path}", err=True)


def _run_json(
    scores: "dict[str, Score]", outcomes: "list[Outcome]", *, thresholds: "list[Threshold]", warnings: list[str]
) -> dict[str, object]:
    from citewell.evaluate.scores import reliability

    return {
        "questions": len(outcomes),
        "uncovered": sum(outcome.question.unanswerable for outcome in outcomes),
        "scores": {name: _score_json(score) for name, score in scores.items()},
        "reliability": [
            {"count": group.count, "confidence": round(group.confidence, 4), "right": round(group.right, 4)}
            for group in reliability(outcomes)
        ],
        "gates": [
            {"score": threshold.name, threshold.side: threshold.bound, "passed": threshold.passes(scores)}
            for threshold in thresholds
        ],
        "warnings": warnings,
        "outcomes": [_outcome_json(outcome) for outcome in outcomes],
    }


def _score_json(score: "Score") -> dict[str, object]:
    if score.value is None:
        return {"value": None, "low": None, "high": None, "n": 0}
    return {"value": round(score.value, 4), "low": round(score.low, 4), "high": round(score.high, 4), "n": score.count}


def _outcome_json(outcome: "Outcome") -> dict[str, object]:
    return {
        "id": outcome.question.id,
        "text": outcome.question.text,
        "unanswerable": outcome.question.unanswerable,
        "answer": outcome.text,
        "confidence": round(outcome.answer.confidence, 4),
        "declined": outcome.declined,
        "complaint": outcome.complaint,
        "answeredRightly": outcome.is_right,
        "keyAnswer": outcome.has_key_answer,
        "file": _placement_json(outcome.by_file),
        "heading": _placement_json(outcome.by_heading),
        "passage": _placement_json(outcome.by_passage),
        "citations": len(outcome.citations),
        "citationsResolve": sum(citation.resolves for citation in outcome.citations),
        "citationsQuote": sum(citation.quotes is True for citation in outcome.citations),
        "milliseconds": round(outcome.seconds * 1000, 1),
        "found": [_passage_json(passage) for passage in outcome.ranking],
    }


def _placement_json(placement: "Placement | None") -> dict[str, object] | None:
    return None if placement is None else {"rank": placement.rank, "ndcg": round(placement.ndcg, 4)}


def _passage_json(passage: Passage) -> dict[str, object]:
    from citewell.evaluate.run import excerpt

    chunk = passage.chunk
    return {
        "id": chunk.id,
        "source": chunk.source,
        "section": chunk.section,
        "page": chunk.page,
        "score": round(passage.cosine, 4),
        "excerpt": excerpt(passage),
    }
