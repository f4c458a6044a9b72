"""`citewell worker`: indexes uploaded documents; `citewell serve` starts it."""

import asyncio
import signal
from contextlib import aclosing
from time import monotonic
from typing import TYPE_CHECKING

import click

from citewell.cli.options import command
from citewell.errors import CitewellError, SettingsError

if TYPE_CHECKING:
    from citewell.settings import Settings
    from citewell.wiring import UploadResources

_POLL_SECONDS = 0.2
_IDLE_POLL_SECONDS = 1.0
_MAX_RETRY_SECONDS = 30.0


@click.command()
@click.option("--linger", type=click.FloatRange(0), default=0.0, help="Seconds to wait for more uploads before ending.")
@click.option("--forever", is_flag=True, help="Run until stopped, also while the database or a vendor fails.")
@command
async def worker(linger: float, forever: bool) -> None:
    """Index uploaded documents, and end when none is waiting. `citewell serve` starts this by itself.

    Several workers may run at the same time. SIGTERM ends one: it puts the current upload back.

    The exit code is 0 even if a document cannot be read: the error is shown to its uploader.
    """
    from citewell import wiring
    from citewell.settings import read_settings

    settings = read_settings()
    stop = _stop_on_sigterm(forever=forever)
    try:
        async with wiring.open_for_uploads(settings) as resources:
            if forever:
                click.echo("Waiting for uploads.", err=True)
                await _work_forever(settings, resources)
            elif not await _work_until_done(settings, resources, linger=linger):
                click.echo("No upload is waiting.")
    except asyncio.CancelledError:
        if not stop.is_set():
            raise


def _stop_on_sigterm(*, forever: bool) -> asyncio.Event:
    """SIGTERM ends the worker as Ctrl-C does; where it is the usual end, with exit code 0. The event tells of it."""
    stopped, task, loop = asyncio.Event(), asyncio.current_task(), asyncio.get_running_loop()

    def stop() -> None:
        stopped.set()
        if task:
            task.cancel()

    if forever:
        loop.add_signal_handler(signal.SIGTERM, stop)
    else:
        loop.add_signal_handler(signal.SIGTERM, signal.raise_signal, signal.SIGINT)
    return stopped


async def _work_forever(settings: "Settings", resources: "UploadResources") -> None:
    pause = _IDLE_POLL_SECONDS
    while True:
        try:
            await _process_uploads(settings, resources)
            pause = _IDLE_POLL_SECONDS
        except SettingsError:
            raise
        except CitewellError as error:
            click.echo(f"{error}; trying again in {pause:.0f} s", err=True)
            pause = min(2 * pause, _MAX_RETRY_SECONDS)
        await asyncio.sleep(pause)


async def _work_until_done(settings: "Settings", resources: "UploadResources", *, linger: float) -> int:
    """Process uploads until none has been waiting for `linger` seconds; returns their number."""
    done, idle_since = 0, monotonic()
    while True:
        done += await _process_uploads(settings, resources)
        if await resources.stores.uploads.waiting():  # another worker has them, or an ingest is running
            idle_since = monotonic()
        elif monotonic() - idle_since >= linger:
            return done
        await asyncio.sleep(_POLL_SECONDS)


async def _process_uploads(settings: "Settings", resources: "UploadResources") -> int:
    """Process every upload that is waiting and that no other worker has; returns their number."""
    from citewell import wiring
    from citewell.ingest.uploads import work

    done, stores = 0, resources.stores
    working = work(
        stores.uploads,
        stores.projects,
        open_engines=resources.open_engines,
        recipe=wiring.ingest_recipe(settings),
        folder=settings.home / "uploads",
    )
    async with aclosing(working) as outcomes:
        async for upload, error in outcomes:
            done += 1
            path = upload.path or "everything"
            outcome = f"failed: {error}" if error else "indexed" if upload.kind == "ingest" else "removed"
            click.echo(f"{upload.project.name}: {path} {outcome}")
    return done
