"""Run the application: one process, since the embedded index allows only one."""

import asyncio
import atexit
import logging
import os
import resource
import shutil
import socket
import tempfile
from time import monotonic
from types import FrameType
from typing import Any

import uvicorn

from citewell import logs, wiring
from citewell.errors import DatabaseUnusable, SettingsError
from citewell.http.app import create_app
from citewell.http.auth import LOOPBACK
from citewell.settings import Settings

_log = logging.getLogger("citewell.http")

_MAX_OPEN_FILES = 65_536
# asyncio tries to accept this many connections at once, and reports an error for each while no file can be opened.
_BACKLOG = 128
_SECONDS_BETWEEN_ACCEPT_ERRORS = 60.0


def run(settings: Settings, *, host: str, port: int) -> None:
    """Serve until interrupted; the address is logged once the page can be opened."""
    logs.configure(level=settings.log_level, as_json=settings.log_format == "json")
    wiring.check_settings(settings)
    for name in settings.unused():
        _log.warning("%s is set, but nothing that is configured uses it", name)
    if settings.writes != "none":
        _log.info("answers are written by a language model: %s", settings.writes)
    settings = settings.model_copy(update={"host": host, "port": port})
    asyncio.run(_check_key_exists(settings))
    _keep_temporary_files_in_home(settings)
    _raise_open_files_limit()
    config = uvicorn.Config(
        create_app(settings), log_config=None, access_log=False, timeout_graceful_shutdown=10, backlog=_BACKLOG
    )
    listener = _listen(host, port, client_timeout_seconds=settings.client_timeout_seconds)
    _Server(config, host=host, port=listener.getsockname()[1]).run(sockets=[listener])


async def _check_key_exists(settings: Settings) -> None:
    """Raise SettingsError for an address that others can reach while there is no key.

    Raises StoreUnavailable for a database that does not answer. One that cannot be used is no reason to end: /health
    says what is wrong with it.
    """
    try:
        async with wiring.open_stores(settings) as stores:
            has_key = any(not key.revoked_at for key in await stores.keys.keys())
    except DatabaseUnusable as error:
        _log.error("%s. Until then requests that need it get 503, and /health says why", error)
        return  # nobody is admitted to such an address before a key is found
    if not has_key and settings.host not in LOOPBACK:
        raise SettingsError(
            f"refusing to listen on {settings.host}: whoever can reach it could ask, upload and delete. "
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


def _raise_open_files_limit() -> None:
    """Allow as many open files as this process may have: each connection is one, and shells often allow 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class _Server(uvicorn.Server):
    """Logs the address once it can be opened. The first signal waits for open streams, the second ends them."""

    def __init__(self, config: uvicorn.Config, *, host: str, port: int) -> None:
        super().__init__(config)
        self._page = f"http://{f'[{host}]' if ':' in host else host}:{port}/chat"
        self._next_accept_error = 0.0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        # uvicorn raises the signal again at the end: then the exit handlers would not run.
        if self.should_exit:
            asyncio.get_running_loop().call_soon_threadsafe(self._end_streams)
        self.should_exit = True

    def _end_streams(self) -> None:
        for task in self.server_state.tasks:
            task.cancel()

    def _handle_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log once a minute that no connection can be accepted; asyncio would log a traceback for each attempt."""
        if not str(context.get("message")).startswith("socket.accept()"):
            loop.default_exception_handler(context)
        elif monotonic() >= self._next_accept_error:
            self._next_accept_error = monotonic() + _SECONDS_BETWEEN_ACCEPT_ERRORS
            _log.error("cannot accept connections: %s; raise `ulimit -n`", context.get("exception"))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(self._handle_loop_error)
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
