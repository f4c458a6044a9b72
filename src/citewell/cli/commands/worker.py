"""`citewell worker`: indexes uploaded documents; `citewell serve` starts it."""

import asyncio
import signal
from typing import TYPE_CHECKING

import click

from citewell.cli.options import command

if TYPE_CHECKING:
    from citewell.settings import Settings
    from citewell.wiring import Stores

_POLL_SECONDS = 0.2


@click.command()
@click.option("--linger", type=click.FloatRange(0), default=0.0, help="Seconds to wait for more uploads before ending.")
@command
async def worker(linger: float) -> None:
    """Index uploaded documents, and end when none is waiting. `citewell serve` starts this by itself.

    The exit code is 0 even if a document cannot be read: the error is shown to its uploader.
    """
    from citewell import wiring
    from citewell.settings import read_settings

    settings = read_settings()
    # SIGTERM ends the worker like Ctrl-C: it puts the current upload back.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, signal.raise_signal, signal.SIGINT)
    async with wiring.open_stores(settings) as stores:
        done = await _process_uploads(settings, stores)
        while linger and await _wait_for_upload(stores, seconds=linger):
            done += await _process_uploads(settings, stores)
    if not done:
        click.echo("No upload is waiting.")


async def _process_uploads(settings: "Settings", stores: "Stores") -> int:
    """Process every upload that is waiting, under the writer's lock; returns their number."""
    from citewell import wiring
    from citewell.ingest.uploads import drain

    done = 0
    async with wiring.open_for_ingest(settings, wait=True, on_wait=lambda: None) as engines:
        recipe, folder = wiring.ingest_recipe(settings), settings.home / "uploads"
        async for upload, error in drain(
            stores.uploads, stores.projects, engines=engines, recipe=recipe, folder=folder
        ):
            done += 1
            path = upload.path or "everything"
            outcome = f"failed: {error}" if error else "indexed" if upload.kind == "ingest" else "removed"
            click.echo(f"{upload.project.name}: {path} {outcome}")
    return done


async def _wait_for_upload(stores: "Stores", *, seconds: float) -> bool:
    """Whether an upload arrives within this time: starting a new worker would take a second."""
    for _ in range(max(1, round(seconds / _POLL_SECONDS))):
        if any(upload.status != "FAILED" for upload in await stores.uploads.uploads()):
            return True
        await asyncio.sleep(_POLL_SECONDS)
    return False
