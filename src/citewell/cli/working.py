"""`citewell worker`: what `citewell serve` starts for uploads."""

import asyncio
import signal

import click

from citewell.cli.running import command


@click.command()
@command
async def worker() -> None:
    """Take in what was uploaded, and end when nothing waits. `citewell serve` starts this by itself.

    Exit code 0 also where a document cannot be read: its uploader is told why.
    """
    from citewell import wiring
    from citewell.ingest.uploads import drain
    from citewell.settings import read_settings

    settings = read_settings()
    async with (
        wiring.writing(settings, wait=True, on_wait=lambda: None) as engines,
        wiring.keeping(settings) as kept,
    ):
        # Asked to go, it puts back what it holds, as with Ctrl-C. Before it has the lock there is nothing to put back.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, signal.raise_signal, signal.SIGINT)
        done = drain(
            kept.uploads,
            kept.projects,
            engines=engines,
            recipe=wiring.recipe(settings),
            folder=settings.home / "uploads",
        )
        nothing = True
        async for upload, error in done:
            nothing = False
            what = upload.path or "everything"
            outcome = f"failed: {error}" if error else "taken in" if upload.kind == "ingest" else "removed"
            click.echo(f"{upload.project.name}: {what} {outcome}")
    if nothing:
        click.echo("Nothing waits.")
