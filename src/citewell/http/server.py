"""Run the application: one process, since the embedded index has one owner."""

import logging
import socket

import uvicorn

from citewell import logs, wiring
from citewell.errors import SettingsError
from citewell.http.app import create_app
from citewell.settings import Settings

_log = logging.getLogger("citewell.http")


def run(settings: Settings, *, host: str, port: int) -> None:
    """Serve until interrupted; the address in use is printed once the page can be opened."""
    logs.configure(level=settings.log_level, as_json=settings.log_format == "json")
    wiring.check(settings)
    for name in settings.unused():
        _log.warning("%s is set, but nothing that is configured uses it", name)
    if host not in ("127.0.0.1", "::1", "localhost"):
        _log.warning("listening on %s: whoever can reach this address can ask", host)
    config = uvicorn.Config(create_app(settings), log_config=None, access_log=False, timeout_graceful_shutdown=10)
    listener = _listen(host, port)
    _Server(config, host=host, port=listener.getsockname()[1]).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Says where the page is once it can be opened."""

    def __init__(self, config: uvicorn.Config, *, host: str, port: int) -> None:
        super().__init__(config)
        self._page = f"http://{f'[{host}]' if ':' in host else host}:{port}/chat"

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            _log.info("ready: open %s", self._page)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another with --port or CITEWELL_PORT"
        ) from error
    return listener
