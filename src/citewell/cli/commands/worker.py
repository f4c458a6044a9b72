"""`citewell worker`: what `citewell serve` starts for uploads."""

import asyncio
import signal
from typing import TYPE_CHECKING

import click

from citewell.cli.options import command

if TYPE_CHECKING:
    from citewell.settings import Settings
    from citewell.wiring import Stores

_LOOK_SECONDS = 0.2


@click.command()
@click.option("--linger", type=click.FloatRange(0), default=0.0, help="Seconds to wait for more before it ends.")
@command
async def worker(linger: float) -> None:
    """Take in what was uploaded, and end when nothing waits. `citewell serve` starts this by itself.

    Exit code 0 also where a document cannot be read: its uploader is told why.
    """
    from citewell import wiring
    from citewell.settings import read_settings

    settings = read_settings()
    # Asked to go, it puts back what it holds, as with Ctrl-C.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, signal.raise_signal, signal.SIGINT)
    async with wiring.open_stores(settings) as kept:
        done = await _drain(settings, kept)
        while linger and await _more(kept, seconds=linger):
            done += await _drain(settings, kept)
    if not done:
        click.echo("Nothing waits.")


async def _drain(settings: "Settings", kept: "Stores") -> int:
    """Work off what waits, under the writer's lock; gives how much it was."""
    from citewell import wiring
    from citewell.ingest.uploads import drain

    done = 0
    async with wiring.open_for_ingest(settings, wait=True, on_wait=lambda: None) as engines:
        recipe, folder = wiring.ingest_recipe(settings), settings.home / "uploads"
        async for upload, error in drain(kept.uploads, kept.projects, engines=engines, recipe=recipe, folder=folder):
            done += 1
            what = upload.path or "everything"
            outcome = f"failed: {error}" if error else "taken in" if upload.kind == "ingest" else "removed"
            click.echo(f"{upload.project.name}: {what} {outcome}")
    return done


async def _more(kept: "Stores", *, seconds: float) -> bool:
    """Whether something comes in within so many seconds: to start anew would take it a second."""
    for _ in range(max(1, round(seconds / _LOOK_SECONDS))):
        if any(one.status != "FAILED" for one in await kept.uploads.uploads()):
            return True
        await asyncio.sleep(_LOOK_SECONDS)
    return False
