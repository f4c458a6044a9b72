"""`citewell ask`: one question, one answer."""

import json

import click

from citewell.cli import remote
from citewell.cli.options import Server, command, json_option, search_options
from citewell.cli.output import AnswerPrinter, answer_json
from citewell.models import Filters, Project


@click.command()
@click.argument("question")
@search_options
@json_option
@command
async def ask(question: str, project: str, top_k: int, filters: Filters, server: Server | None, as_json: bool) -> None:
    """Answer a question from the documents of a project, with its sources."""
    from citewell import wiring
    from citewell.answer import flow
    from citewell.settings import read_settings

    if not question.strip():
        raise click.UsageError("the question is empty")
    if server:
        await remote.ask(server, question, project=project, top_k=top_k, filters=filters, as_json=as_json)
        return
    printer = AnswerPrinter(silent=as_json)
    async with wiring.open_for_answers(read_settings()) as resources:
        pieces = flow.answer(
            question,
            project=Project.named(project),
            engines=resources.engines,
            top_k=top_k,
            filters=filters,
            buffered=as_json,
        )
        text, answer = await flow.collect(pieces, printer.render)
        printer.end()
    if as_json:
        click.echo(json.dumps(answer_json(text, answer, printer.cited), ensure_ascii=False))
    else:
        click.echo(printer.sources(answer))
