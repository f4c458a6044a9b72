"""What surrounds every request: its id, log line, safe headers and count, and the handler of last resort."""

import logging
from abc import ABC, abstractmethod
from time import perf_counter
from typing import Any
from uuid import uuid4

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from citewell.http.errors import error_response
from citewell.http.limits import declared_length
from citewell.http.state import state_of
from citewell.logs import request_id
from citewell.schemas.fields import parse_uuid4
from citewell.tracing import NO_SPAN, Span, within

_log = logging.getLogger("citewell.http")

# For every response that does not say otherwise: it loads nothing, nobody frames it, and its type is what it says.
_SAFE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_SMALL_BYTES = 65_536
_UNTRACED = frozenset({"/health", "/ready", "/metrics"})  # machines ask these every few seconds


class _HttpMiddleware(ABC):
    """Handles HTTP requests; other events, such as the start of the application, pass through."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handle = self._handle if scope["type"] == "http" else self._app
        await handle(scope, receive, send)

    @abstractmethod
    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class LastResort(_HttpMiddleware):
    """Turns an unforeseen exception into a plain 500. Inside the CORS middleware, so that other sites can read it."""

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def send_and_note(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except Exception as error:  # noqa: BLE001 (this is the place)
            response = error_response(error)
            if not started:
                await response(scope, receive, send)


class HeadAsGet(_HttpMiddleware):
    """Answers HEAD as GET, without the body: the same status and headers. FastAPI's routes know no HEAD."""

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        is_head = scope["method"] == "HEAD"
        await self._app(
            {**scope, "method": "GET"} if is_head else scope, receive, send_without_body if is_head else send
        )


class RequestContext(_HttpMiddleware):
    """Gives a request its id, its span and safe headers, and afterwards logs and counts it."""

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        own_id = _request_id(headers.get("x-request-id"))
        token = request_id.set(own_id)
        started_at = perf_counter()
        status = 0
        state = scope.setdefault("state", {})
        unread = declared_length(headers) > _SMALL_BYTES or "transfer-encoding" in headers

        async def receive_and_note() -> Message:
            nonlocal unread
            message = await receive()
            unread = unread and bool(message.get("more_body"))
            return message

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _add_headers(message, own_id, close=unread)
            await send(message)

        with within(_start_span(scope, headers, own_id)) as span:
            try:
                await self._app(scope, receive_and_note, send_with_headers)
            finally:
                _finish(scope, state, span, status=status, seconds=perf_counter() - started_at)
                request_id.reset(token)


def _start_span(scope: Scope, headers: Headers, own_id: str) -> Span:
    if scope["path"] in _UNTRACED:
        return NO_SPAN
    return state_of(Request(scope)).tracer.start(scope["method"], request_id=own_id, headers=headers)


def _add_headers(message: Message, own_id: str, *, close: bool) -> None:
    headers = MutableHeaders(scope=message)
    headers["X-Request-ID"] = own_id
    if close:  # or the server would read all the rest, to find the next request behind it
        headers["Connection"] = "close"
    for name, value in _SAFE_HEADERS.items():
        headers.setdefault(name, value)


def _finish(scope: Scope, state: dict[str, Any], span: Span, *, status: int, seconds: float) -> None:
    """Uncount, count, describe and log a request that ended."""
    app_state = state_of(Request(scope))
    app_state.admission.leave(state)
    endpoint = str(state.get("endpoint", "none"))
    app_state.metrics.count(method=scope["method"], endpoint=endpoint, status=status, seconds=seconds)
    span.rename(f"{scope['method']} {endpoint}")
    span.set({"http.request.method": scope["method"], "http.route": endpoint, "http.response.status_code": status})
    if error := state.get("error") or (str(status) if status >= 400 else ""):
        span.set({"error.type": error})
        if not 400 <= status < 500:  # a client's mistake is no failure of the server
            span.fail(error)
    facts = {
        "method": scope["method"],
        "path": scope["path"],
        "status": status,
        "latency_ms": round(seconds * 1000, 1),
    } | ({"error": state["error"]} if "error" in state else {})
    _log.info("request", extra=facts)


def _request_id(header: str | None) -> str:
    """The client's own id where it is a UUID of version 4, else a new one."""
    return str(parse_uuid4(header) or uuid4())
