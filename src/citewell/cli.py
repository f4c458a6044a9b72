"""The command line: thin, like the HTTP doors. Engines are imported by the command that needs them,
so that `citewell --help` costs nothing."""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click

from citewell import __version__
from citewell.errors import CitewellError
from citewell.models import DEFAULT_PROJECT, Answer, IngestResult, Passage, Piece, Project

P = ParamSpec("P")
T = TypeVar("T")

_EMPHASIS = re.compile(r"(\*\*|(?<![\w*])\*)(?=\S)(.+?)(?<=\S)\1")  # for people who read, not for machines

_project = click.option(
    "--project", default=DEFAULT_PROJECT, show_default=True, metavar="NAME", help="The project to work in."
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
_top_k = click.option("--top-k", type=click.IntRange(1, 20), default=5, show_default=True, help="Passages to look at.")


def _command(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Run an async command; what we raise on purpose becomes one line and exit code 1."""

    @wraps(work)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return asyncio.run(work(*args, **kwargs))
        except CitewellError as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            click.echo("\nInterrupted; nothing was changed.", err=True)
            sys.exit(130)
        except BrokenPipeError:  # `citewell search … | head`
            sys.stderr.close()
            sys.exit(1)

    return run


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="citewell")
def main() -> None:
    """Ask your documents and trust the answer: every sentence cites the words it came from.

    \b
    citewell ingest docs/          take in a folder of Markdown or MDX
    citewell ask "How do I …?"     answer from it, with sources
    citewell serve                 the same as a web page and an API

    Settings come from the environment and .env; docs/settings.md lists them.
    """


@main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH…")
@_project
@click.option("--prune", is_flag=True, help="Remove documents of the project that are not under PATH… any more.")
@click.option("--no-wait", is_flag=True, help="Leave at once if another ingest is running.")
@_as_json
@_command
async def ingest(paths: tuple[Path, ...], project: str, prune: bool, no_wait: bool, as_json: bool) -> None:
    """Take in files and folders. Only what changed is read and embedded; the rest costs nothing.

    Exit code 0 means every file went in; 1 that some could not be read (the others did go in).
    """
    from citewell import wiring
    from citewell.ingest import flow
    from citewell.settings import read_settings

    settings = read_settings()

    def on_wait() -> None:
        click.echo("Another ingest is running; waiting for it to finish.", err=True)

    with _Progress(quiet=as_json) as progress:
        async with wiring.writing(settings, wait=not no_wait, on_wait=on_wait) as engines:
            result = await flow.ingest(
                paths,
                project=Project.named(project),
                engines=engines,
                size=wiring.chunk_size(settings),
                prune=prune,
                progress=progress,
            )
    click.echo(json.dumps(_result_json(result), ensure_ascii=False) if as_json else _result_text(result))
    sys.exit(result.exit_code)


class _Progress:
    """A bar on a terminal, a plain line every tenth of the way elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._bar: Any = None
        self._said = -1

    def __enter__(self) -> "_Progress":
        return self

    def __call__(self, done: int, total: int) -> None:
        if self._quiet or not total:
            return
        if self._terminal:
            if self._bar is None:
                self._bar = click.progressbar(length=total, label="Ingesting", file=sys.stderr)
            self._bar.update(done - self._bar.pos)
        elif (tenth := done * 10 // total) > self._said:
            self._said = tenth
            click.echo(f"{done} of {total} files", err=True)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.render_finish()


def _result_json(result: IngestResult) -> dict[str, object]:
    return {
        "files_processed": result.files_processed,
        "chunks_created": result.chunks_created,
        "errors": list(result.errors),
        "exit_code": result.exit_code,
        "warnings": list(result.warnings),
        "files_unchanged": result.files_unchanged,
        "files_removed": result.files_removed,
        "chunks_embedded": result.chunks_embedded,
        "seconds": round(result.seconds, 3),
    }


def _result_text(result: IngestResult) -> str:
    lines = [f"warning: {warning}" for warning in result.warnings]
    lines += [f"error: {error}" for error in result.errors]
    lines += [
        f"files processed  {result.files_processed} ({result.files_unchanged} unchanged)",
        f"files removed    {result.files_removed}",
        f"chunks created   {result.chunks_created} ({result.chunks_embedded} embedded)",
        f"errors           {len(result.errors)}",
        f"took             {result.seconds:.1f} s",
    ]
    return "\n".join(lines)


@main.command()
@click.argument("question")
@_project
@_top_k
@_as_json
@_command
async def ask(question: str, project: str, top_k: int, as_json: bool) -> None:
    """Answer a question from the project's documents, with the sources under the answer."""
    from citewell import wiring
    from citewell.answer import flow
    from citewell.answer.citations import Numbered
    from citewell.settings import read_settings

    if not question.strip():
        raise click.UsageError("the question is empty")
    marks = Numbered()

    def render(piece: Piece) -> str:
        words = marks.render(piece)
        if not as_json:
            click.echo(_EMPHASIS.sub(r"\2", words), nl=False)
        return words

    async with wiring.reading(read_settings()) as reading:
        pieces = flow.answer(question, project=Project.named(project), engines=reading.engines, top_k=top_k)
        text, answer = await flow.whole(pieces, render)
    if as_json:
        click.echo(json.dumps(_answer_json(text, answer, marks.passages), ensure_ascii=False))
    else:
        click.echo(_sources_text(answer, marks.passages))


def _answer_json(text: str, answer: Answer, cited: list[Passage]) -> dict[str, object]:
    return {
        "answer": text,
        "confidence": round(answer.confidence, 4),
        "mode": answer.mode,
        "model": answer.model,
        "citations": [_passage_json(passage) for passage in cited],
    }


def _passage_json(passage: Passage) -> dict[str, object]:
    chunk = passage.chunk
    return {
        "id": chunk.id,
        "documentId": str(chunk.document_id),
        "chunkIndex": chunk.index,
        "source": chunk.source,
        "chapter": chunk.chapter,
        "section": chunk.section,
        "start": chunk.start,
        "end": chunk.end,
        "line": chunk.first_line,
        "score": round(passage.score, 4),
        "text": chunk.text,
    }


def _sources_text(answer: Answer, cited: list[Passage]) -> str:
    if not cited:
        return ""
    rows = [f"  [{number}] {_place(passage)}" for number, passage in enumerate(cited, start=1)]
    return "\n".join(["", "", f"Sources (confidence {answer.confidence:.0%})", *rows])


def _place(passage: Passage) -> str:
    chunk = passage.chunk
    return f"{chunk.source}:{chunk.first_line}  {chunk.label}  (score {passage.score:.2f})"


@main.command()
@click.argument("words")
@_project
@_top_k
@_as_json
@_command
async def search(words: str, project: str, top_k: int, as_json: bool) -> None:
    """Find passages without answering: where the project's documents speak of WORDS."""
    from citewell import wiring
    from citewell.answer.retrieve import retrieve
    from citewell.settings import read_settings

    if not words.strip():
        raise click.UsageError("there is nothing to search for")
    async with wiring.reading(read_settings()) as reading:
        found = await retrieve(
            words,
            project=Project.named(project).id,
            embedder=reading.engines.embedder,
            index=reading.engines.index,
            limit=top_k,
        )
    if as_json:
        click.echo(json.dumps([_passage_json(passage) for passage in found.passages], ensure_ascii=False))
        return
    for number, passage in enumerate(found.passages, start=1):
        excerpt = " ".join(passage.chunk.text.split())[:200]
        click.echo(f"{number}. {_place(passage)}\n   {excerpt}")
    if not found.passages:
        click.echo(f"Nothing found in project {project!r}.")


@main.command()
@click.option("--host", help="The address to listen on [default: CITEWELL_HOST or 127.0.0.1].")
@click.option("--port", type=click.IntRange(0, 65535), help="The port to listen on [default: CITEWELL_PORT or 8000].")
def serve(host: str | None, port: int | None) -> None:
    """Serve the chat page and the API."""
    from citewell.http.server import run
    from citewell.settings import read_settings

    try:
        settings = read_settings()
        run(settings, host=host or settings.host, port=settings.port if port is None else port)
    except CitewellError as error:
        raise click.ClickException(str(error)) from error


@main.command(name="eval")
@click.argument("questions", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_project
@_as_json
@_command
async def evaluate(questions: Path, project: str, as_json: bool) -> None:
    """Ask the questions of a JSONL file and score the answers: found, answered, declined."""
    from citewell import wiring
    from citewell.evaluate.golden import read_questions, run_questions
    from citewell.evaluate.scores import score, table
    from citewell.settings import read_settings

    golden = read_questions(questions)
    async with wiring.reading(read_settings()) as reading:
        outcomes = await run_questions(golden, project=Project.named(project), engines=reading.engines)
    scores = score(outcomes)
    click.echo(json.dumps(scores) if as_json else table(scores, outcomes))
