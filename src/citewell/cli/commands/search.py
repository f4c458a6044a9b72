"""`citewell search`"""

import json
from collections.abc import Sequence

import click

from citewell.cli import remote
from citewell.cli.options import command, filter_options, json_option, project_option, top_k_option
from citewell.cli.output import describe_location, passage_json
from citewell.cli.remote import Server, server_options
from citewell.models import Filters, Passage, Project


@click.command()
@click.argument("words")
@project_option
@top_k_option
@filter_options
@server_options
@json_option
@command
async def search(words: str, project: str, top_k: int, where: Filters, server: Server | None, as_json: bool) -> None:
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
        click.echo(f"{number}. {describe_location(passage, passage.chunk.first_line)}\n   {excerpt}")
    if not found:
        click.echo(f"Nothing found in {where or f'project {project!r}'}.")


async def _search(words: str, project: Project, top_k: int, where: Filters) -> Sequence[Passage]:
    from citewell import wiring
    from citewell.answer.retrieval import retrieve
    from citewell.settings import read_settings

    async with wiring.open_for_answers(read_settings()) as reading:
        found = await retrieve(words, project=project.id, engines=reading.engines, limit=top_k, filters=where)
    return found.passages
