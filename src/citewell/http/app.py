"""The application: its doors, what surrounds every request, and what it opens for its lifetime."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from time import perf_counter
from uuid import UUID, uuid4

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from citewell import __version__, wiring
from citewell.http.auth import Admission, declared_length
from citewell.http.background import GapRecorder, UploadWorker
from citewell.http.errors import install, problem_response
from citewell.http.reference import describe
from citewell.http.reference import router as reference_router
from citewell.http.routes import ask, chat, health, metrics, pages, query
from citewell.http.routes.metrics import Metrics
from citewell.http.routes.v1 import chat as project_chat
from citewell.http.routes.v1 import citations, documents, feedback, insights, projects, search, welcome
from citewell.http.routes.v1.welcome import Suggestions
from citewell.logs import request_id
from citewell.settings import Settings

_log = logging.getLogger("citewell.http")

_ROUTERS = (
    ask.router,
    query.router,
    chat.router,
    feedback.router,
    project_chat.router,
    search.router,
    citations.router,
    welcome.router,
    projects.router,
    insights.router,
    documents.uploading,
    documents.router,
    health.router,
    metrics.router,
    pages.router,
    reference_router,
)
# For every response that does not say otherwise: it loads nothing, is framed by nobody and is what it says it is.
_SAFE = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_SMALL_BYTES = 65_536


def create_app(settings: Settings) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with wiring.open_for_answers(settings) as reading, wiring.open_stores(settings) as keeping:
            await reading.engines.embedder.warm()  # before the first reader waits for it
            noting = GapRecorder(keeping.gaps)
            app.state.settings, app.state.keeping = settings, keeping
            app.state.reading = replace(reading, engines=replace(reading.engines, on_unanswered=noting))
            app.state.gate = Admission(settings, keeping.keys)
            app.state.metrics = Metrics(app.state.gate)
            app.state.worker = UploadWorker(settings, keeping.uploads)
            app.state.suggestions = Suggestions()
            try:
                yield
            finally:
                await app.state.gate.emptied()
                await app.state.suggestions.close()
                await app.state.worker.close()
                await noting.close()

    app = FastAPI(
        title="Citewell",
        version=__version__,
        description="Answers from your documents, every sentence with its source.",
        lifespan=lifespan,
        # The usual pages at these addresses load their scripts from elsewhere; ours works without a network.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    app.openapi = partial(describe, app)  # type: ignore[method-assign]
    for router in _ROUTERS:
        app.include_router(router)
    install(app)
    app.add_middleware(_LastResort)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "X-API-Key", "X-Request-ID"],
            expose_headers=["X-Request-ID", "Retry-After"],
        )
    app.add_middleware(_Surround)  # last, so that it is around all others
    return app


class _LastResort:
    """Nothing unforeseen reaches a client; inside what is said across origins, so that a page there can read it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception as error:  # noqa: BLE001 (this is the place)
            response = problem_response(error)
            if not begun:
                await response(scope, receive, send)


class _Surround:
    """Around every request: its id, its line in the log, safe headers, and its place in the count."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = Headers(scope=scope)
        identity = _request_id(asked.get("x-request-id"))
        token = request_id.set(identity)
        began = perf_counter()
        status = 0
        state = scope.setdefault("state", {})
        unread = declared_length(asked) > _SMALL_BYTES or "transfer-encoding" in asked

        async def reading() -> Message:
            nonlocal unread
            message = await receive()
            unread = unread and bool(message.get("more_body"))
            return message

        async def tagged(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = identity
                if unread:  # or the server would take all the rest, to find the next request behind it
                    headers["Connection"] = "close"
                for name, value in _SAFE.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, reading, tagged)
        finally:
            scope["app"].state.gate.leave(state)
            seconds = perf_counter() - began
            door = str(state.get("door", "none"))
            scope["app"].state.metrics.count(method=scope["method"], door=door, status=status, seconds=seconds)
            facts = {
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "latency_ms": round(seconds * 1000, 1),
            } | ({"error": state["error"]} if "error" in state else {})
            _log.info("request", extra=facts)
            request_id.reset(token)


def _request_id(given: str | None) -> str:
    """The client's own id where it is a UUID of version 4, else a new one."""
    try:
        own = UUID(given) if given else None
    except ValueError:
        own = None
    return str(own if own and own.version == 4 else uuid4())
