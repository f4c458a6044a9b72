"""`citewell chat`: questions one after another, each understood in the light of the last few."""

import asyncio
import signal
import sys
from collections import deque
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import click

from citewell.cli.options import command, filter_options, project_option, top_k_option
from citewell.cli.output import AnswerPrinter
from citewell.cli.remote import Conversation, Server, server_options
from citewell.models import Exchange, Filters, Project

if TYPE_CHECKING:
    from citewell.answer.engines import AnswerEngines


@click.command()
@project_option
@top_k_option
@filter_options
@server_options
@command
async def chat(project: str, top_k: int, where: Filters, server: Server | None) -> None:
    """Ask one question after another; "why?", "tell me more" and "what about the second one?" are understood.

    An empty line or Ctrl-D ends it; Ctrl-C stops an answer. Questions may also be piped in, one a line.
    """
    from citewell import wiring
    from citewell.answer.question import CONTEXT_EXCHANGES
    from citewell.settings import read_settings

    if server:
        async with server.client() as client:
            conversation = Conversation(client, project, where, top_k=top_k)
            while question := _read_question():
                await _unless_interrupted(conversation.answer(question))
        return
    history: deque[Exchange] = deque(maxlen=CONTEXT_EXCHANGES)
    async with wiring.open_for_answers(read_settings()) as reading:
        while question := _read_question():
            answered = _answer(question, Project.named(project), reading.engines, top_k, history, where)
            text = await _unless_interrupted(answered)
            if text is not None:
                history.append(Exchange(question, text))


def _read_question() -> str:
    """The next line; empty when there is none. Waiting for a person may block: nothing else runs here."""
    # The event loop would only take note of Ctrl-C; a prompt has to end at once.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not sys.stdin.isatty():
        line = sys.stdin.buffer.readline().decode("utf-8", "replace").strip()
        if line:
            click.echo(f"> {line}")
        return line
    import readline  # noqa: F401 (its import gives `input` a memory and the arrow keys)

    try:
        return input("> ").strip()
    except (EOFError, KeyboardInterrupt):
        click.echo()
        return ""


async def _answer(
    question: str, project: Project, engines: "AnswerEngines", top_k: int, history: deque[Exchange], where: Filters
) -> str:
    """Show an answer and give back its text."""
    from citewell.answer import flow

    shown = AnswerPrinter()
    pieces = flow.answer(question, project=project, engines=engines, top_k=top_k, history=list(history), filters=where)
    text, answer = await flow.collect(pieces, shown.render)
    shown.end()
    if answer.question.casefold() != question.casefold():
        click.echo(f"\n\nUnderstood as: {answer.question}", nl=False)
    click.echo(f"{shown.sources(answer)}\n")
    return text


async def _unless_interrupted(answered: Coroutine[Any, Any, str]) -> str | None:
    """The answer's text, or nothing if Ctrl-C stopped it."""
    task = asyncio.create_task(answered)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        click.echo("\nStopped.\n")
        return None
    finally:
        loop.remove_signal_handler(signal.SIGINT)
