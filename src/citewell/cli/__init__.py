"""The command line. Commands import engines themselves, so that `citewell --help` starts fast."""

import click

from citewell import __version__
from citewell.cli.commands.ask import ask
from citewell.cli.commands.chat import chat
from citewell.cli.commands.eval import evaluate
from citewell.cli.commands.gaps import gaps
from citewell.cli.commands.ingest import ingest
from citewell.cli.commands.keys import keys
from citewell.cli.commands.library.documents import documents
from citewell.cli.commands.library.projects import projects
from citewell.cli.commands.maintenance.backup import backup
from citewell.cli.commands.maintenance.doctor import doctor
from citewell.cli.commands.maintenance.migrate import migrate
from citewell.cli.commands.maintenance.restore import restore
from citewell.cli.commands.search import search
from citewell.cli.commands.serve import serve
from citewell.cli.commands.verify import verify
from citewell.cli.commands.worker import worker


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="citewell")
def main() -> None:
    """Ask your documents and trust the answer: every sentence cites its source.

    \b
    citewell ingest docs/          index a folder of documents
    citewell ask "How do I …?"     answer from it, with sources
    citewell chat                  ask follow-up questions
    citewell serve                 start the chat page and the HTTP API

    Most commands can use a running server instead: --server URL.

    Settings come from environment variables and .env; docs/settings.md lists them.
    """


for subcommand in (
    *(ingest, ask, chat, search, serve, documents, projects, verify, keys, worker, evaluate, gaps),
    *(doctor, backup, restore, migrate),
):
    main.add_command(subcommand)
