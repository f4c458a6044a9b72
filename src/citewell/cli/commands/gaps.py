"""`citewell gaps`: what readers asked and the documents do not answer."""

import json
from datetime import datetime

import click

from citewell.cli.options import command, json_option, project_option
from citewell.cli.remote import Server, server_options
from citewell.errors import NotFound
from citewell.models import Project

_MOST = 1000


@click.command()
@project_option
@server_options
@json_option
@command
async def gaps(project: str, server: Server | None, as_json: bool) -> None:
    """Questions that readers asked a server and that the documents do not answer, newest first."""
    found = await _gaps(Project.named(project), server)
    if as_json:
        told = [{"question": question, "times": times, "lastAskedAt": at.isoformat()} for question, times, at in found]
        click.echo(json.dumps({"gaps": told}, ensure_ascii=False))
        return
    for question, times, at in found:
        click.echo(f"{at.astimezone():%Y-%m-%d %H:%M}  {times:4}×  {' '.join(question.split())}")
    if not found:
        click.echo("No question that was asked over HTTP was left without an answer.")


async def _gaps(project: Project, server: Server | None) -> list[tuple[str, int, datetime]]:
    """Each question, how often it was asked and when last."""
    from citewell import wiring
    from citewell.settings import read_settings

    if server:
        async with server.client() as client:
            told = await client.gaps(project=project.id, limit=_MOST)
        return [(one.question, one.times, one.lastAskedAt) for one in told]
    async with wiring.open_stores(read_settings()) as kept:
        if await kept.projects.project(project.id) is None:
            names = ", ".join(one.name for one, _ in await kept.projects.projects())
            raise NotFound(f"there is no project {project.name!r}; there are {names}")
        held = await kept.gaps.gaps(project.id, limit=_MOST)
    return [(one.question, one.times, one.last_at) for one in held]
