"""A small Cohere on loopback: it speaks `POST /v2/rerank`, well or badly, as it is told."""

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Any

KEY = "co-very-secret-key"


@dataclass(frozen=True, slots=True)
class Reply:
    """What one call gets. `hang` sends nothing until the vendor closes, `cut` stops in the middle of the body."""

    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    cut: bool = False


def problem(status: int, message: str = "it broke", **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps({"id": "x", "message": message}).encode(), named)


def answer(results: object) -> Reply:
    return Reply(body=json.dumps({"id": "x", "results": results, "meta": {}}).encode())


WELL = Reply()


class Vendor:
    """`with Vendor() as cohere:` then `cohere.url`. Each call gets the next of `replies`, then the last for ever.

    It likes long texts. For `shut_seconds` after the first call it refuses, and says how long.
    """

    def __init__(self, *replies: Reply, shut_seconds: int = 0) -> None:
        self.replies = list(replies) or [WELL]
        self._shut_seconds = shut_seconds
        self._opens: float | None = None
        self.calls: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "Vendor":
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def reply(self, request: dict[str, Any], headers: dict[str, str]) -> Reply:
        with self._lock:
            self.calls.append(request)
            self.headers.append(headers)
            told = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
            self._opens = self._opens or monotonic() + self._shut_seconds
            if monotonic() < self._opens:
                return problem(429, "too early", Retry_After=str(self._shut_seconds))
        if told != WELL:
            return told
        if headers.get("authorization") != f"Bearer {KEY}":
            return problem(401, "invalid api token")
        documents = request.get("documents")
        sound = isinstance(documents, list) and documents and all(isinstance(one, str) and one for one in documents)
        if not sound or not request.get("query") or not request.get("model"):
            return problem(400, "invalid request: model, query and documents are required")
        rows = [{"index": n, "relevance_score": len(one) / 1e6} for n, one in enumerate(documents or [])]
        return answer(sorted(rows, key=lambda row: -row["relevance_score"])[: request.get("top_n")])

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        vendor = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                known = self.path == "/v2/rerank"
                headers = {name.lower(): value for name, value in self.headers.items()}
                told = vendor.reply(request, headers) if known else problem(404, f"no such path: {self.path}")
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
