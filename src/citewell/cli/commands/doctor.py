"""`citewell doctor`: proves that what is kept is sound, and mends it."""

import sys

import click

from citewell.cli.options import command


@click.command()
@click.option("--fix", is_flag=True, help="Mend what is wrong; the documents in the library are the truth.")
@click.option("--vacuum", is_flag=True, help="Also leave no byte of deleted text on disk.")
@command
async def doctor(fix: bool, vacuum: bool) -> None:
    """Prove that library and index agree and that nothing is left of what was deleted.

    Exit code 0: all is well. 1: something is wrong. 3: something was wrong and has been mended.
    """
    from citewell import wiring
    from citewell.ingest.doctor import examine, mend
    from citewell.ingest.flow import rebuild_index
    from citewell.settings import read_settings

    async with wiring.open_for_ingest(read_settings(), wait=True, on_wait=lambda: None) as engines:
        faults = await examine(engines)
        for fault in faults:
            click.echo(fault)
        if faults and fix:
            await mend(engines)
            remaining = await examine(engines)
            for fault in remaining:
                click.echo(f"could not be mended: {fault}")
        if vacuum:
            await rebuild_index(engines)  # the engine marks points as deleted but keeps their bytes
            await engines.audit.vacuum()
    if not faults:
        click.echo("All is well.")
        sys.exit(0)
    if not fix:
        if not all("--reembed" in fault for fault in faults):
            click.echo("Run `citewell doctor --fix` to mend this.")
        sys.exit(1)
    click.echo("Mended." if not remaining else "Not everything could be mended.")
    sys.exit(1 if remaining else 3)
