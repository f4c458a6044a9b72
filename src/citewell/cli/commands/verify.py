"""`citewell verify`: whether what was cited still stands."""

import json
import sys
from typing import TextIO

import click

from citewell.cli.options import command, json_option, project_option
from citewell.cli.remote import Server, server_options
from citewell.models import Project, Trace

_HOLDS = frozenset({"valid", "moved"})


@click.command()
@click.argument("ids", nargs=-1, metavar="ID…")
@click.option(
    "--answer",
    type=click.File(encoding="utf-8", errors="replace"),
    help="A text that cites: [<chunk id>]; - reads what is piped in.",
)
@project_option
@server_options
@json_option
@command
async def verify(
    ids: tuple[str, ...], answer: TextIO | None, project: str, server: Server | None, as_json: bool
) -> None:
    """Say of each chunk id, given or cited in an answer: valid, moved, changed, deleted or unknown.

    Exit code 0: the words of all of them are still there. 1: some are not.
    """
    text = answer.read() if answer else None
    if not ids and text is None:
        raise click.UsageError("say which chunk ids, or give an answer that cites some with --answer FILE")
    verdicts = await _verdicts(ids, text, Project.named(project), server)
    if as_json:
        told = [{"id": one, "status": status, "place": place or None} for one, status, place in verdicts]
        click.echo(json.dumps(told, ensure_ascii=False))
    else:
        for one, status, place in verdicts:
            click.echo(f"{status:8} {one}  {place}".rstrip())
    sys.exit(0 if all(status in _HOLDS for _, status, _ in verdicts) else 1)


async def _verdicts(
    ids: tuple[str, ...], text: str | None, project: Project, server: Server | None
) -> list[tuple[str, str, str]]:
    """Id, status and where it stands now."""
    from citewell import wiring
    from citewell.answer.reply import citation_status, cited_ids
    from citewell.settings import read_settings

    if server:
        async with server.client() as client:
            told = await client.verify(ids, answer=text, project=project.id)
        return [(one.id, one.status, f"{one.now.source}:{one.now.line}" if one.now else "") for one in told.citations]
    asked = list(dict.fromkeys([*ids, *cited_ids(text or "")]))
    async with wiring.open_for_answers(read_settings()) as reading:
        traces = await reading.library.trace(project.id, asked)
    found = [(one, traces.get(one, Trace())) for one in asked]
    return [(one, citation_status(trace), _place(trace)) for one, trace in found]


def _place(trace: Trace) -> str:
    now = trace.current or trace.moved_to or trace.successor
    return f"{now.source}:{now.first_line}" if now else ""
