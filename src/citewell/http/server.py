"""Run the application: one process, since the embedded index allows only one."""

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
    """Serve until interrupted; the address is logged once the page can be opened."""
    logs.configure(level=settings.log_level, as_json=settings.log_format == "json")
    wiring.check_settings(settings)
    for name in settings.unused():
        _log.warning("%s is set, but nothing that is configured uses it", name)
    if settings.writes != "none":
        _log.info("answers are written by a language model: %s", settings.writes)
    asyncio.run(_check_key_exists(settings, host))
    _keep_temporary_files_in_home(settings)
    config = uvicorn.Config(create_app(settings), log_config=None, access_log=False, timeout_graceful_shutdown=10)
    listener = _listen(host, port, client_timeout_seconds=settings.client_timeout_seconds)
    _Server(config, host=host, port=listener.getsockname()[1]).run(sockets=[listener])


async def _check_key_exists(settings: Settings, host: str) -> None:
    """Raise SettingsError for an address that others can reach while there is no key."""
    async with wiring.open_stores(settings) as stores:
        has_key = any(not key.revoked_at for key in await stores.keys.keys())
    if not has_key and host not in LOOPBACK:
        raise SettingsError(
            f"refusing to listen on {host}: whoever can reach it could ask, upload and delete. "
            "Make a key first with `citewell keys create NAME`, or listen on 127.0.0.1"
        )


def _keep_temporary_files_in_home(settings: Settings) -> None:
    """Temporary files (an upload as it arrives, a copy of the index) stay in the home folder."""
    spool = settings.home / "spool" / str(os.getpid())
    shutil.rmtree(spool, ignore_errors=True)
    spool.mkdir(parents=True)
    atexit.register(shutil.rmtree, spool, ignore_errors=True)
    tempfile.tempdir = str(spool.resolve())
    # SQLite writes large transactions and sorts to temporary files, and the upload worker inherits the variables.
    os.environ["TMPDIR"] = os.environ["SQLITE_TMPDIR"] = tempfile.tempdir


class _Server(uvicorn.Server):
    """Logs the address once it can be opened. The first signal waits for open streams, the second ends them."""

    def __init__(self, config: uvicorn.Config, *, host: str, port: int) -> None:
        super().__init__(config)
        self._page = f"http://{f'[{host}]' if ':' in host else host}:{port}/chat"

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        # uvicorn raises the signal again at the end: then the exit handlers would not run.
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
    # With TCP named, asyncio sets TCP_NODELAY; without, each response on a kept-alive connection takes 40 ms more.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Closing a connection waits until everything is sent: for ever, to a client that receives nothing.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(client_timeout_seconds * 1000))
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another with --port or CITEWELL_PORT"
        ) from error
    return listener
