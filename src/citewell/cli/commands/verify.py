"""`citewell verify`: whether cited chunks still exist."""

import json
import re
import sys
from typing import TextIO

import click

from citewell.cli.options import Server, command, json_option, project_option, server_options
from citewell.errors import BadRequest
from citewell.models import CITATION_ID, Project, Trace

_TEXT_STILL_EXISTS = frozenset({"valid", "moved"})


@click.command()
@click.argument("ids", nargs=-1, metavar="ID…")
@click.option(
    "--answer",
    type=click.File(encoding="utf-8", errors="replace"),
    help="A text with citations like [<chunk id>]; - reads standard input.",
)
@project_option
@server_options
@json_option
@command
async def verify(
    ids: tuple[str, ...], answer: TextIO | None, project: str, server: Server | None, as_json: bool
) -> None:
    """Verify chunk ids, given or cited in an answer: each is valid, moved, changed, deleted or unknown.

    Exit code 0: the text of all of them still exists. 1: the text of some does not.
    """
    text = answer.read() if answer else None
    if not ids and text is None:
        raise click.UsageError("name chunk ids, or give an answer that cites some with --answer FILE")
    verdicts = await _verify(ids, text, Project.named(project), server)
    if as_json:
        rows = [{"id": chunk, "status": status, "place": place or None} for chunk, status, place in verdicts]
        click.echo(json.dumps(rows, ensure_ascii=False))
    else:
        for chunk, status, place in verdicts:
            click.echo(f"{status:8} {chunk}  {place}".rstrip())
    sys.exit(0 if all(status in _TEXT_STILL_EXISTS for _, status, _ in verdicts) else 1)


async def _verify(
    ids: tuple[str, ...], text: str | None, project: Project, server: Server | None
) -> list[tuple[str, str, str]]:
    """The id of each chunk, its status, and its path and line now."""
    from citewell import wiring
    from citewell.answer.reply import citation_status, cited_ids
    from citewell.settings import read_settings

    if server:
        async with server.client() as client:
            response = await client.verify(ids, answer=text, project=project.id)
        return [
            (citation.id, citation.status, f"{citation.now.source}:{citation.now.line}" if citation.now else "")
            for citation in response.citations
        ]
    if malformed := next((chunk for chunk in ids if not re.fullmatch(CITATION_ID, chunk)), None):
        form = "of a chunk (64 characters, each 0 to 9 or a to f), or of a document stored whole"
        raise BadRequest(f"{malformed[:100]!r} is not the id {form}")
    chunk_ids = list(dict.fromkeys([*ids, *cited_ids(text or "")]))
    async with wiring.open_for_answers(read_settings()) as resources:
        known = await resources.library.trace(project.id, chunk_ids)
    traces = [(chunk_id, known.get(chunk_id, Trace())) for chunk_id in chunk_ids]
    return [(chunk_id, citation_status(trace), _place(trace)) for chunk_id, trace in traces]


def _place(trace: Trace) -> str:
    now = trace.current or trace.moved_to or trace.successor
    return f"{now.source}:{now.first_line}" if now else ""
