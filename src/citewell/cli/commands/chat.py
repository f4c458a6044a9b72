"""`citewell chat`: a conversation, in which follow-up questions are resolved."""

import asyncio
import signal
import sys
from collections import deque
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import click

from citewell.cli.options import Server, command, search_options
from citewell.cli.output import AnswerPrinter
from citewell.cli.remote import Conversation
from citewell.models import Exchange, Filters, Project

if TYPE_CHECKING:
    from citewell.answer.engines import AnswerEngines


@click.command()
@search_options
@command
async def chat(project: str, top_k: int, filters: Filters, server: Server | None) -> None:
    """Ask questions in a conversation. Follow-ups like "why?" and "what about the second one?" work.

    An empty line or Ctrl-D ends the conversation; Ctrl-C stops an answer. You can also pipe in questions, one per line.
    """
    from citewell import wiring
    from citewell.answer.question import CONTEXT_EXCHANGES
    from citewell.settings import read_settings

    if server:
        async with server.client() as client:
            conversation = Conversation(client, project, filters, top_k=top_k)
            while question := _read_question():
                await _run_until_interrupted(conversation.answer(question))
        return
    history: deque[Exchange] = deque(maxlen=CONTEXT_EXCHANGES)
    async with wiring.open_for_answers(read_settings()) as resources:
        while question := _read_question():
            answering = _answer(question, Project.named(project), resources.engines, top_k, history, filters)
            text = await _run_until_interrupted(answering)
            if text is not None:
                history.append(Exchange(question, text))


def _read_question() -> str:
    """The next line of input; empty at its end. It may block: nothing else runs in this process."""
    # The event loop would only record Ctrl-C; a prompt has to end at once.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not sys.stdin.isatty():
        line = sys.stdin.buffer.readline().decode("utf-8", "replace").strip()
        if line:
            click.echo(f"> {line}")
        return line
    import readline  # noqa: F401 (importing it gives `input` a history and arrow keys)

    try:
        return input("> ").strip()
    except (EOFError, KeyboardInterrupt):
        click.echo()
        return ""


async def _answer(
    question: str, project: Project, engines: "AnswerEngines", top_k: int, history: deque[Exchange], filters: Filters
) -> str:
    """Print an answer and return its text."""
    from citewell.answer import flow

    printer = AnswerPrinter()
    pieces = flow.answer(
        question, project=project, engines=engines, top_k=top_k, history=list(history), filters=filters
    )
    text, answer = await flow.collect(pieces, printer.render)
    printer.end()
    if answer.question.casefold() != question.casefold():
        click.echo(f"\n\nUnderstood as: {answer.question}", nl=False)
    click.echo(f"{printer.sources(answer)}\n")
    return text


async def _run_until_interrupted(answering: Coroutine[Any, Any, str]) -> str | None:
    """The text of the answer; None if Ctrl-C stopped it."""
    task = asyncio.create_task(answering)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        click.echo("\nStopped.\n")
        return None
    finally:
        loop.remove_signal_handler(signal.SIGINT)
