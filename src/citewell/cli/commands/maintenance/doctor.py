"""`citewell doctor`: checks the database, the library in it and the index, and repairs what can be repaired."""

import sys
from typing import TYPE_CHECKING

import click

from citewell.cli.options import command

if TYPE_CHECKING:
    from citewell.ingest.flow import IngestEngines


@click.command()
@click.option("--fix", is_flag=True, help="Repair what is wrong; the documents in the library are right.")
@click.option("--vacuum", is_flag=True, help="Also erase every byte of deleted text from disk.")
@command
async def doctor(fix: bool, vacuum: bool) -> None:
    """Check that the database is intact, that the library and the index agree, and that nothing is left of deleted
    documents.

    Exit code 0: no problem. 1: there are problems. 3: there were problems, and all are repaired.
    """
    from citewell import home, wiring
    from citewell.settings import read_settings

    settings = read_settings()
    if problem := await home.examine_database(settings):
        click.echo(f"database: {problem}")
        sys.exit(1)
    faults, remaining = [], []
    for project in await wiring.indexed_projects(settings):
        async with wiring.open_for_ingest(
            settings, project=project, alone=True, wait=True, on_wait=lambda: None
        ) as engines:
            found, left = await _examine(engines, fix=fix, vacuum=vacuum)
        faults += found
        remaining += left
    if not faults:
        click.echo("All is well.")
        sys.exit(0)
    if not fix:
        if not all("--reembed" in fault for fault in faults):
            click.echo("Run `citewell doctor --fix` to repair this.")
        sys.exit(1)
    click.echo("Repaired." if not remaining else "Some problems could not be repaired.")
    sys.exit(1 if remaining else 3)


async def _examine(engines: "IngestEngines", *, fix: bool, vacuum: bool) -> tuple[list[str], list[str]]:
    """Print the problems of a library and its index; returns them, and those that are left after a repair."""
    from citewell.ingest.doctor import examine, mend
    from citewell.ingest.flow import rebuild_index

    remaining: list[str] = []
    faults = await examine(engines)
    for fault in faults:
        click.echo(fault)
    if faults and fix:
        await mend(engines)
        remaining = await examine(engines)
        for fault in remaining:
            click.echo(f"not repaired: {fault}")
    if vacuum:
        await rebuild_index(engines)  # the engine marks points as deleted but keeps their bytes
        await engines.audit.vacuum()
    return faults, remaining
