"""The application: its doors, what surrounds every request, and the engines it opens for its lifetime."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import perf_counter
from uuid import UUID, uuid4

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from citewell import __version__, wiring
from citewell.http import ask, health, page
from citewell.http.errors import describe, error_response, install
from citewell.logs import request_id
from citewell.settings import Settings

_log = logging.getLogger("citewell.http")


def create_app(settings: Settings) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with wiring.reading(settings) as reading:
            await reading.engines.embedder.embed_query("ready")  # load the model before the first reader waits for it
            app.state.reading = reading
            yield

    app = FastAPI(
        title="Citewell",
        version=__version__,
        description="Answers from your documents, every sentence with its source.",
        lifespan=lifespan,
        # The usual pages at these addresses load their scripts from elsewhere; ours works without a network.
        docs_url=None,
        redoc_url=None,
    )
    for router in (ask.router, health.router, page.router):
        app.include_router(router)
    install(app)
    app.add_middleware(_Surround, limit=settings.max_concurrent_requests)
    return app


class _Surround:
    """Around every request: its id, its line in the log, the limit on questions at once, and the last resort."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        identity = _request_id(Headers(scope=scope).get("x-request-id"))
        token = request_id.set(identity)
        began = perf_counter()
        status = 0

        async def tagged(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = identity
            await send(message)

        question = scope["method"] == "POST"
        self._running += question
        try:
            if question and self._running > self._limit:
                message = f"{self._limit} questions are being answered already; try again in a second"
                busy = error_response(429, "RATE_LIMITED", message, headers={"Retry-After": "1"})
                await busy(scope, receive, tagged)
            else:
                await self._app(scope, receive, tagged)
        except Exception as error:  # noqa: BLE001 (the last resort: nothing unforeseen reaches a client)
            code, name, text = describe(error)
            if not status:
                await error_response(code, name, text)(scope, receive, tagged)
        finally:
            self._running -= question
            latency_ms = round((perf_counter() - began) * 1000, 1)
            facts = {
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "latency_ms": latency_ms,
            }
            _log.info("request", extra=facts)
            request_id.reset(token)


def _request_id(given: str | None) -> str:
    """The client's own id where it is a UUID, else a new one."""
    try:
        return str(UUID(given)) if given else str(uuid4())
    except ValueError:
        return str(uuid4())
