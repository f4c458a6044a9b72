"""Run the application: one process, since the embedded index has one owner."""

import asyncio
import atexit
import logging
import os
import shutil
import socket
import tempfile
from types import FrameType

import uvicorn

from citewell import logs, wiring
from citewell.errors import SettingsError
from citewell.http.app import create_app
from citewell.http.auth import LOOPBACK
from citewell.settings import Settings

_log = logging.getLogger("citewell.http")


def run(settings: Settings, *, host: str, port: int) -> None:
    """Serve until interrupted; the address in use is printed once the page can be opened."""
    logs.configure(level=settings.log_level, as_json=settings.log_format == "json")
    wiring.check_settings(settings)
    for name in settings.unused():
        _log.warning("%s is set, but nothing that is configured uses it", name)
    if settings.writes != "none":
        _log.info("answers are written by a language model: %s", settings.writes)
    asyncio.run(_check_open(settings, host))
    _spool_at_home(settings)
    config = uvicorn.Config(create_app(settings), log_config=None, access_log=False, timeout_graceful_shutdown=10)
    listener = _listen(host, port, client_timeout_seconds=settings.client_timeout_seconds)
    _Server(config, host=host, port=listener.getsockname()[1]).run(sockets=[listener])


async def _check_open(settings: Settings, host: str) -> None:
    """Raise SettingsError where anybody who reaches the address could ask: that takes a key."""
    async with wiring.open_stores(settings) as keeping:
        guarded = any(not key.revoked_at for key in await keeping.keys.keys())
    if not guarded and host not in LOOPBACK:
        raise SettingsError(
            f"refusing to listen on {host}: whoever can reach it could ask, upload and delete. "
            "Make a key first with `citewell keys create NAME`, or listen on 127.0.0.1"
        )


def _spool_at_home(settings: Settings) -> None:
    """What is put aside for a moment (an upload as it arrives, a copy of the index) lies in the home folder only."""
    spool = settings.home / "spool" / str(os.getpid())
    shutil.rmtree(spool, ignore_errors=True)
    spool.mkdir(parents=True)
    atexit.register(shutil.rmtree, spool, ignore_errors=True)
    tempfile.tempdir = str(spool.resolve())
    # SQLite puts large transactions and sorts aside by itself, and the upload worker inherits where.
    os.environ["TMPDIR"] = os.environ["SQLITE_TMPDIR"] = tempfile.tempdir


class _Server(uvicorn.Server):
    """Says where the page is once it can be opened; told to stop, it lets streams end, and told again, it ends them."""

    def __init__(self, config: uvicorn.Config, *, host: str, port: int) -> None:
        super().__init__(config)
        self._page = f"http://{f'[{host}]' if ':' in host else host}:{port}/chat"

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        # Not raised again at the end, as uvicorn does: what is left to do at exit would not be done.
        if self.should_exit:
            asyncio.get_running_loop().call_soon_threadsafe(self._end_streams)
        self.should_exit = True

    def _end_streams(self) -> None:
        for task in self.server_state.tasks:
            task.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            _log.info("ready: open %s", self._page)


def _listen(host: str, port: int, *, client_timeout_seconds: float) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio lets small pieces wait for each other: 40 ms for each answer on a kept connection.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Closing a connection waits until all was sent; to a client that takes nothing, that would be for ever.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(client_timeout_seconds * 1000))
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another with --port or CITEWELL_PORT"
        ) from error
    return listener
