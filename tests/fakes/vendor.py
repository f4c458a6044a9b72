"""A vendor on loopback: what it answers it is told, what it was asked it remembers. Knows no protocol."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Any, ClassVar, Self
from zlib import crc32

import numpy as np


@dataclass(frozen=True, slots=True)
class Reply:
    """What one call gets. `hang` sends nothing until the vendor closes, `cut` stops in the middle of the body."""

    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    cut: bool = False


WELL = Reply()
"""As the protocol has it."""

Rows = Callable[[list[str], int], list[list[float]]]
"""A vector of so many numbers for each text."""


def sent(body: object, status: int = 200, **headers: str) -> Reply:
    """JSON; a header `Retry_After` is `Retry-After`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps(body).encode(), named)


class Loopback:
    """A server of this process: `with` it, it answers under `url` as its handler does."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        raise NotImplementedError


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that leaves is no event."""


class Vendor(Loopback):
    """`with Vendor() as vendor:` then `vendor.url`. Each call gets the next of `replies`, then the last for ever.

    For `shut_seconds` after the first call it refuses, and says how long.
    """

    doors: ClassVar[Mapping[str, str]] = {}
    """The method that answers each path, given a request and its headers."""

    def __init__(self, *replies: Reply, shut_seconds: int = 0) -> None:
        super().__init__()
        self.replies = list(replies) or [WELL]
        self._shut_seconds = shut_seconds
        self._opens: float | None = None

    def refuses(self, status: int, message: str, **headers: str) -> Reply:
        """An error as this vendor says it."""
        raise NotImplementedError

    def reply(self, path: str, request: dict[str, Any], headers: dict[str, str]) -> Reply:
        if path not in self.doors:
            return self.refuses(404, f"no such path: {path}")
        with self._lock:
            self.calls.append(request)
            self.headers.append(headers)
            told = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
            self._opens = self._opens or monotonic() + self._shut_seconds
            if monotonic() < self._opens:
                return self.refuses(429, "too early", Retry_After=str(self._shut_seconds))
        if told != WELL:
            return told
        answered: Reply = getattr(self, self.doors[path])(request, headers)
        return answered

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        vendor = self

        class Handler(BaseHTTPRequestHandler):
            disable_nagle_algorithm = True
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                told = vendor.reply(self.path, request, {name.lower(): value for name, value in self.headers.items()})
                self.close_connection = told.hang or told.cut
                if told.hang:
                    vendor._closing.wait(20)
                    return
                body = told.body or b""
                self.send_response(told.status)
                for name, value in told.headers.items():
                    self.send_header(name, value)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body) + told.cut))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def hashed(texts: list[str], dimensions: int) -> list[list[float]]:
    """Texts that share words are near each other. Not of unit length: that is nothing a vendor promises."""
    rows = np.zeros((len(texts), dimensions))
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().split() or [""]:
            row[crc32(word.strip(".,?!:").encode()) % dimensions] += 0.5
    given: list[list[float]] = rows.tolist()
    return given
