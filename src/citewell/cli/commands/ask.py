"""`citewell ask`"""

import json

import click

from citewell.cli import remote
from citewell.cli.options import command, filter_options, json_option, project_option, top_k_option
from citewell.cli.output import AnswerPrinter, answer_json
from citewell.cli.remote import Server, server_options
from citewell.models import Filters, Project


@click.command()
@click.argument("question")
@project_option
@top_k_option
@filter_options
@server_options
@json_option
@command
async def ask(question: str, project: str, top_k: int, where: Filters, server: Server | None, as_json: bool) -> None:
    """Answer a question from the project's documents, with the sources under the answer."""
    from citewell import wiring
    from citewell.answer import flow
    from citewell.settings import read_settings

    if not question.strip():
        raise click.UsageError("the question is empty")
    if server:
        await remote.ask(server, question, project=project, top_k=top_k, where=where, as_json=as_json)
        return
    shown = AnswerPrinter(silent=as_json)
    async with wiring.open_for_answers(read_settings()) as reading:
        engines, named = reading.engines, Project.named(project)
        pieces = flow.answer(question, project=named, engines=engines, top_k=top_k, filters=where, buffered=as_json)
        text, answer = await flow.collect(pieces, shown.render)
        shown.end()
    if as_json:
        click.echo(json.dumps(answer_json(text, answer, shown.cited), ensure_ascii=False))
    else:
        click.echo(shown.sources(answer))
