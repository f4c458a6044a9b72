"""`citewell migrate`: moves the index to another engine, or the database to PostgreSQL and back."""

from typing import TYPE_CHECKING, cast

import click

from citewell.cli.options import command
from citewell.cli.output import Progress

if TYPE_CHECKING:
    from citewell.settings import IndexEngine

_ENGINES = click.Choice(["embedded", "qdrant", "postgres"])


@click.command()
@click.option("--to", "engine", type=_ENGINES, help="Move the index to this engine; nothing is embedded again.")
@click.option("--from", "source", type=_ENGINES, help="The engine to move it from [default: the one that holds it].")
@click.option("--remove-source", is_flag=True, help="With --to: delete the old index at the end.")
@click.option(
    "--database",
    metavar="URL|sqlite",
    help="Copy the database to PostgreSQL at this URL, or back to a SQLite file in the home folder.",
)
@click.option("--force", is_flag=True, help="With --database: replace what the target has.")
@click.option("--no-wait", is_flag=True, help="Exit at once if an ingest is running.")
@command
async def migrate(
    engine: str | None, source: str | None, remove_source: bool, database: str | None, force: bool, no_wait: bool
) -> None:
    """Move the index with --to, or the database with --database, and compare what arrived with what was there.

    Servers may run: they use the old index or database until you change the setting that is printed at the end and
    start them again. An ingest waits. A run that was killed is started again with the same command.

    Exit code 0: everything arrived as it was. 1: it did not, and the old index or database is in use as before.
    """
    if (engine is None) == (database is None):
        raise click.UsageError("Name either --to or --database.")
    if engine is not None:
        if force:
            raise click.UsageError("--force goes with --database; an index is always replaced.")
        await _move_index(
            cast("IndexEngine", engine),
            source=cast("IndexEngine | None", source),
            remove_source=remove_source,
            wait=not no_wait,
        )
    elif database is not None:
        if source or remove_source:
            raise click.UsageError("--from and --remove-source go with --to.")
        await _move_database(database, overwrite=force, wait=not no_wait)


async def _move_index(engine: "IndexEngine", *, source: "IndexEngine | None", remove_source: bool, wait: bool) -> None:
    from citewell import wiring
    from citewell.settings import read_settings

    settings = read_settings()
    with Progress("Moving", unit="chunks") as progress:
        moved = await wiring.move_index(
            settings,
            engine,
            source=source,
            remove_source=remove_source,
            wait=wait,
            on_wait=_print_waiting,
            progress=progress,
        )
    already = f", {moved.already_there} were there already" if moved.already_there else ""
    projects = "1 project" if moved.projects == 1 else f"{moved.projects} projects"
    click.echo(
        f"Moved from {moved.source} to {engine}: {moved.chunks} chunks of {projects}{already}.\n"
        f"Compared: every id and text with the database, and the scores of {moved.compared} searches in both."
    )
    if remove_source:
        click.echo(f"The index in {moved.source} is deleted.")
    else:
        click.echo(f"The index in {moved.source} is still there; --remove-source deletes it.")
    change = f"Now set CITEWELL_INDEX={engine}, and start" if settings.index_engine != engine else "Now start"
    click.echo(f"{change} servers again.")


async def _move_database(to: str, *, overwrite: bool, wait: bool) -> None:
    from citewell import wiring
    from citewell.settings import read_settings

    with Progress("Copying", unit="rows copied") as copying, Progress("Checking", unit="rows checked") as checking:
        moved = await wiring.move_database(
            read_settings(),
            to,
            overwrite=overwrite,
            wait=wait,
            on_wait=_print_waiting,
            copying=copying,
            checking=checking,
        )
    shown = ("documents", "chunks", "embeddings", "sessions", "conversations", "keys", "uploads")
    click.echo(f"Copied {', '.join(f'{moved.rows[table]} {table}' for table in shown)}; every row compared.")
    if moved.kept:
        click.echo(f"The database that was replaced is kept as {moved.kept}; delete it when you no longer need it.")
    setting = "Now unset DATABASE_URL" if to == "sqlite" else "Now set DATABASE_URL to this URL"
    click.echo(f"The old database is as it was. {setting}, and start servers again.")


def _print_waiting() -> None:
    click.echo("An ingest is running; waiting for it to finish.", err=True)
