"""`citewell search`: passages without an answer."""

import json
from collections.abc import Sequence

import click

from citewell.cli import remote
from citewell.cli.options import Server, command, json_option, search_options
from citewell.cli.output import describe_location, passage_json
from citewell.models import Filters, Passage, Project


@click.command()
@click.argument("words")
@search_options
@json_option
@command
async def search(words: str, project: str, top_k: int, filters: Filters, server: Server | None, as_json: bool) -> None:
    """Search a project for passages about WORDS, without answering."""
    if not words.strip():
        raise click.UsageError("there is nothing to search for")
    if server:
        passages: Sequence[Passage] = await remote.search(server, words, project=project, top_k=top_k, filters=filters)
    else:
        passages = await _search(words, Project.named(project), top_k, filters)
    if as_json:
        click.echo(json.dumps([passage_json(passage) for passage in passages], ensure_ascii=False))
        return
    for number, passage in enumerate(passages, start=1):
        excerpt = " ".join(passage.chunk.text.split())[:200]
        click.echo(f"{number}. {describe_location(passage, passage.chunk.first_line)}\n   {excerpt}")
    if not passages:
        click.echo(f"Nothing found in {filters or f'project {project!r}'}.")


async def _search(words: str, project: Project, top_k: int, filters: Filters) -> Sequence[Passage]:
    from citewell import wiring
    from citewell.answer.retrieval import retrieve
    from citewell.settings import read_settings

    async with wiring.open_for_answers(read_settings()) as resources:
        retrieval = await retrieve(words, project=project.id, engines=resources.engines, limit=top_k, filters=filters)
    return retrieval.passages
