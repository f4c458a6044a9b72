"""The application: its endpoints, its middleware, and what it opens for its lifetime."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from citewell import __version__, wiring
from citewell.http.auth import Admission
from citewell.http.background import GapRecorder, Suggestions, UploadWorker
from citewell.http.errors import install_error_handlers
from citewell.http.metrics import Metrics
from citewell.http.middleware import HeadAsGet, LastResort, RequestContext
from citewell.http.reference import describe
from citewell.http.reference import router as reference_router
from citewell.http.routes import ask, chat, health, metrics, pages, query
from citewell.http.routes.v1 import chat as v1_chat
from citewell.http.routes.v1 import citations, documents, feedback, insights, projects, search, welcome
from citewell.http.state import AppState, set_state
from citewell.settings import Settings
from citewell.tracing import Tracer

_ROUTERS = (
    ask.router,
    query.router,
    chat.router,
    feedback.router,
    v1_chat.router,
    search.router,
    citations.router,
    welcome.router,
    projects.router,
    insights.router,
    documents.upload_router,
    documents.router,
    health.router,
    metrics.router,
    pages.router,
    reference_router,
)


def create_app(settings: Settings) -> FastAPI:
    """The whole server as an ASGI application; raises SettingsError for a logo that cannot be shown, or for tracing."""
    if settings.logo:
        pages.read_logo(settings.logo)
    app = FastAPI(
        title="Citewell",
        version=__version__,
        description="Answers from your documents, every sentence with its source.",
        lifespan=partial(_lifespan, settings=settings, tracer=wiring.make_tracer(settings)),
        # The usual pages at these addresses load their scripts from elsewhere; ours works without a network.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    app.openapi = partial(describe, app)  # type: ignore[method-assign]
    for router in _ROUTERS:
        app.include_router(router)
    install_error_handlers(app)
    app.add_middleware(LastResort)
    app.add_middleware(HeadAsGet)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "HEAD", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "X-API-Key", "X-Request-ID"],
            expose_headers=["X-Request-ID", "Retry-After"],
        )
    app.add_middleware(RequestContext)  # last, so that it is around all others
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI, settings: Settings, tracer: Tracer) -> AsyncIterator[None]:
    # A server without its database answers what needs none, and /health says what is wrong.
    async with (
        wiring.open_for_answers(settings, database_may_fail=True) as answers,
        wiring.open_stores(settings, database_may_fail=True) as stores,
    ):
        await answers.engines.warm()  # before the first request waits for it
        gap_recorder = GapRecorder(stores.gaps)
        admission = Admission(settings, stores.keys)
        state = AppState(
            settings=settings,
            answers=replace(answers, engines=replace(answers.engines, on_unanswered=gap_recorder)),
            stores=stores,
            admission=admission,
            metrics=Metrics(lambda: admission.running),
            tracer=tracer,
            upload_worker=UploadWorker(settings, stores.uploads),
            suggestions=Suggestions(),
        )
        set_state(app, state)
        try:
            yield
        finally:
            await admission.wait_until_idle()
            await state.suggestions.close()
            await state.upload_worker.close()
            await gap_recorder.close()
            await tracer.close()
