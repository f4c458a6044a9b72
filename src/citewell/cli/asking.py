"""Commands that ask: ask, search, serve."""

import json
import re
import shutil
import sys

import click

from citewell.cli.running import command, json_option, project_option
from citewell.errors import CitewellError
from citewell.models import Answer, Passage, Piece, Project

_EMPHASIS = re.compile(r"(\*\*|(?<![\w*])\*)(?=\S)(.+?)(?<=\S)\1")  # for people who read, not for machines
_top_k = click.option("--top-k", type=click.IntRange(1, 20), default=5, show_default=True, help="Passages to look at.")


@click.command()
@click.argument("question")
@project_option
@_top_k
@json_option
@command
async def ask(question: str, project: str, top_k: int, as_json: bool) -> None:
    """Answer a question from the project's documents, with the sources under the answer."""
    from citewell import wiring
    from citewell.answer import flow
    from citewell.answer.citations import Numbered
    from citewell.settings import read_settings

    if not question.strip():
        raise click.UsageError("the question is empty")
    marks = Numbered()
    terminal = _Terminal()

    def render(piece: Piece) -> str:
        words = marks.render(piece)
        if not as_json:
            terminal.write(_EMPHASIS.sub(r"\2", words))
        return words

    async with wiring.reading(read_settings()) as reading:
        pieces = flow.answer(question, project=Project.named(project), engines=reading.engines, top_k=top_k)
        text, answer = await flow.whole(pieces, render)
    if as_json:
        click.echo(json.dumps(_answer_json(text, answer, marks.passages), ensure_ascii=False))
    else:
        click.echo(_sources_text(answer, marks.passages))


class _Terminal:
    """Writes a stream, breaking long lines between words where a person reads along."""

    def __init__(self) -> None:
        self._width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
        self._column = 0

    def write(self, text: str) -> None:
        for part in re.split(r"(\s)", text) if self._width and "\n" not in text else [text]:
            if self._width and self._column + len(part) > self._width and part.strip():
                click.echo()
                self._column = 0
            if part == " " and self._column == 0 and self._width:
                continue
            click.echo(part, nl=False)
            self._column = len(part) - part.rfind("\n") - 1 if "\n" in part else self._column + len(part)


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
    rows = [f"  [{number}] {_place(passage, answer.line(passage))}" for number, passage in enumerate(cited, start=1)]
    return "\n".join(["", "", f"Sources (confidence {answer.confidence:.0%})", *rows])


def _place(passage: Passage, line: int) -> str:
    chunk = passage.chunk
    page = f" page {chunk.page}" if chunk.page else f":{line}"
    link = f"\n      {chunk.url}" if chunk.url else ""
    return f"{chunk.source}{page}  {chunk.label}  (score {passage.score:.2f}){link}"


@click.command()
@click.argument("words")
@project_option
@_top_k
@json_option
@command
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
            reranker=reading.engines.reranker,
            limit=top_k,
        )
    if as_json:
        click.echo(json.dumps([_passage_json(passage) for passage in found.passages], ensure_ascii=False))
        return
    for number, passage in enumerate(found.passages, start=1):
        excerpt = " ".join(passage.chunk.text.split())[:200]
        click.echo(f"{number}. {_place(passage, passage.chunk.first_line)}\n   {excerpt}")
    if not found.passages:
        click.echo(f"Nothing found in project {project!r}.")


@click.command()
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
