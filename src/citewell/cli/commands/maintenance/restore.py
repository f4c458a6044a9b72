"""`citewell restore`: makes a backup the content of the home folder, and builds the index for it."""

import sys
from pathlib import Path

import click

from citewell.cli.options import command


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace what is in the home folder; the old database is kept beside it.")
@click.option("--no-wait", is_flag=True, help="Exit at once if an ingest is running.")
@command
async def restore(file: Path, force: bool, no_wait: bool) -> None:
    """Restore what `citewell backup` wrote to FILE, and build the index for it.

    Nothing is embedded again. Servers may run: they use the restored documents from their next request on, without a
    restart. What was written to the database while this runs is in the copy of the old one.

    Exit code 0: all is well afterwards. 1: nothing was changed, or `citewell doctor` would find a problem.
    """
    from citewell import wiring
    from citewell.ingest.doctor import examine
    from citewell.ingest.flow import build_index
    from citewell.settings import read_settings

    settings = read_settings()
    async with wiring.open_for_restore(settings, file, overwrite=force, wait=not no_wait, on_wait=_print_waiting) as (
        staged,
        open_copy,
    ):
        click.echo(f"{file}: {staged.contents}; checked.")
        async with open_copy() as engines:
            generation = await build_index(engines)
        kept = staged.put_in_place()
        await engines.index_builder.publish(generation)
    click.echo(f"Restored to {settings.home}.")
    if kept:
        click.echo(f"The old database is kept as {kept}; delete it when you no longer need it.")
    async with wiring.open_for_ingest(settings, wait=True, on_wait=lambda: None) as engines:
        problems = await examine(engines)
    for problem in problems:
        click.echo(problem)
    click.echo("All is well." if not problems else "Run `citewell doctor --fix` to repair this.")
    sys.exit(1 if problems else 0)


def _print_waiting() -> None:
    click.echo("An ingest is running; waiting for it to finish.", err=True)
