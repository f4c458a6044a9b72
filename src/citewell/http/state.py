"""What the application holds while it runs: the only place that reads and writes FastAPI's untyped `app.state`."""

from dataclasses import dataclass

from fastapi import FastAPI, Request

from citewell.http.auth import Admission
from citewell.http.background import Suggestions, UploadWorker
from citewell.http.metrics import Metrics
from citewell.settings import Settings
from citewell.tracing import Tracer
from citewell.wiring import AnswerResources, Stores


@dataclass(frozen=True, slots=True)
class AppState:
    """Opened when the application starts, closed when it stops."""

    settings: Settings
    answers: AnswerResources
    stores: Stores
    admission: Admission
    metrics: Metrics
    tracer: Tracer
    upload_worker: UploadWorker
    suggestions: Suggestions


def state_of(request: Request) -> AppState:
    """The state of the application that handles a request."""
    return get_state(request.app)


def get_state(app: FastAPI) -> AppState:
    state: AppState = app.state.citewell
    return state


def set_state(app: FastAPI, state: AppState) -> None:
    app.state.citewell = state
