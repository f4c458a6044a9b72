"""`citewell gaps`: unanswered questions."""

import json
from datetime import datetime

import click

from citewell.cli.options import Server, command, json_option, project_option, server_options
from citewell.errors import NotFound
from citewell.models import Project

_MAX_QUESTIONS = 1000


@click.command()
@project_option
@server_options
@json_option
@command
async def gaps(project: str, server: Server | None, as_json: bool) -> None:
    """List unanswered questions: what readers asked a server and the documents do not cover, newest first."""
    questions = await _unanswered_questions(Project.named(project), server)
    if as_json:
        rows = [{"question": text, "times": times, "lastAskedAt": at.isoformat()} for text, times, at in questions]
        click.echo(json.dumps({"gaps": rows}, ensure_ascii=False))
        return
    for text, times, at in questions:
        click.echo(f"{at.astimezone():%Y-%m-%d %H:%M}  {times:4}×  {' '.join(text.split())}")
    if not questions:
        click.echo("There are no unanswered questions. Only questions over HTTP are recorded.")


async def _unanswered_questions(project: Project, server: Server | None) -> list[tuple[str, int, datetime]]:
    """Each question, how often it was asked, and when it was last asked."""
    from citewell import wiring
    from citewell.settings import read_settings

    if server:
        async with server.client() as client:
            listed = await client.gaps(project=project.id, limit=_MAX_QUESTIONS)
        return [(gap.question, gap.times, gap.lastAskedAt) for gap in listed]
    async with wiring.open_stores(read_settings()) as stores:
        if await stores.projects.project(project.id) is None:
            names = ", ".join(known.name for known, _ in await stores.projects.projects())
            raise NotFound(f"there is no project {project.name!r}; there are {names}")
        stored = await stores.gaps.gaps(project.id, limit=_MAX_QUESTIONS)
    return [(gap.question, gap.times, gap.last_at) for gap in stored]
