"""Commands that ask: ask, search, serve."""

import json
from collections.abc import Sequence

import click

from citewell.cli import remote
from citewell.cli.remote import Server, server_options
from citewell.cli.running import command, json_option, project_option, top_k_option, where_options
from citewell.cli.showing import Shown, answer_json, passage_json, place
from citewell.errors import CitewellError
from citewell.models import Passage, Project, Where


@click.command()
@click.argument("question")
@project_option
@top_k_option
@where_options
@server_options
@json_option
@command
async def ask(question: str, project: str, top_k: int, where: Where, server: Server | None, as_json: bool) -> None:
    """Answer a question from the project's documents, with the sources under the answer."""
    from citewell import wiring
    from citewell.answer import flow
    from citewell.settings import read_settings

    if not question.strip():
        raise click.UsageError("the question is empty")
    if server:
        await remote.ask(server, question, project=project, top_k=top_k, where=where, as_json=as_json)
        return
    shown = Shown(silent=as_json)
    async with wiring.reading(read_settings()) as reading:
        engines, named = reading.engines, Project.named(project)
        pieces = flow.answer(question, project=named, engines=engines, top_k=top_k, where=where, at_once=as_json)
        text, answer = await flow.whole(pieces, shown.render)
        shown.end()
    if as_json:
        click.echo(json.dumps(answer_json(text, answer, shown.cited), ensure_ascii=False))
    else:
        click.echo(shown.sources(answer))


@click.command()
@click.argument("words")
@project_option
@top_k_option
@where_options
@server_options
@json_option
@command
async def search(words: str, project: str, top_k: int, where: Where, server: Server | None, as_json: bool) -> None:
    """Find passages without answering: where the project's documents speak of WORDS."""
    if not words.strip():
        raise click.UsageError("there is nothing to search for")
    if server:
        found: Sequence[Passage] = await remote.search(server, words, project=project, top_k=top_k, where=where)
    else:
        found = await _search(words, Project.named(project), top_k, where)
    if as_json:
        click.echo(json.dumps([passage_json(passage) for passage in found], ensure_ascii=False))
        return
    for number, passage in enumerate(found, start=1):
        excerpt = " ".join(passage.chunk.text.split())[:200]
        click.echo(f"{number}. {place(passage, passage.chunk.first_line)}\n   {excerpt}")
    if not found:
        click.echo(f"Nothing found in {where or f'project {project!r}'}.")


async def _search(words: str, project: Project, top_k: int, where: Where) -> Sequence[Passage]:
    from citewell import wiring
    from citewell.answer.retrieve import retrieve
    from citewell.settings import read_settings

    async with wiring.reading(read_settings()) as reading:
        found = await retrieve(words, project=project.id, engines=reading.engines, limit=top_k, where=where)
    return found.passages


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
