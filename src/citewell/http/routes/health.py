"""`GET /health` and `/ready`: the status of each service, within two seconds even when one hangs."""

import asyncio
import shutil
from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from uuid import UUID

from fastapi import APIRouter, Request, Response

from citewell import __version__
from citewell.errors import CitewellError, EmptyKnowledgeBase
from citewell.http.route import OPEN, GuardedRoute
from citewell.http.state import state_of
from citewell.models import DEFAULT_PROJECT, Project
from citewell.ports import Index, Library, ReportsDetails, Writer
from citewell.schemas.health import Condition, Health, Ready, ServiceHealth

router = APIRouter(tags=["operating"], route_class=GuardedRoute)

TIMEOUT_SECONDS = 1.5
"""For each service; all are asked at the same time."""

_MIN_FREE_BYTES = 20_000_000  # what the next ingest needs at least


@router.get(
    "/health", openapi_extra=OPEN, responses={503: {"model": Health, "description": "Something is unavailable."}}
)
async def health(request: Request, response: Response) -> Health:
    """Healthy, degraded (it answers, but something is missing) or unavailable, with each service's status."""
    services = await _services(request)
    ranked: list[Condition] = ["healthy", "degraded", "unavailable"]
    worst = max((service.status for service in services), key=ranked.index)
    response.status_code = 503 if worst == "unavailable" else 200
    return Health(
        status=worst,
        timestamp=datetime.now(UTC),
        services={service.name: service for service in services},
        version=__version__,
    )


@router.get("/ready", openapi_extra=OPEN, responses={503: {"model": Ready, "description": "Not now."}})
async def ready(request: Request, response: Response) -> Ready:
    """Whether the server can answer requests: for load balancers."""
    is_ready = all(service.status != "unavailable" for service in await _services(request))
    response.status_code = 200 if is_ready else 503
    return Ready(ready=is_ready)


async def _services(request: Request) -> list[ServiceHealth]:
    state = state_of(request)
    answers = state.answers
    engines, project = answers.engines, Project.named(DEFAULT_PROJECT).id
    llm = asyncio.create_task(_probe_llm(engines.writer))
    services = await asyncio.gather(
        _probe("vector_store", _check_index(engines.index, project)),
        _probe("database", _check_database((answers.library, state.stores.library), state.settings.home)),
        _probe("embedder", engines.embedder.embed_query("health")),
    )
    return [*services, await llm]


async def _probe_llm(writer: Writer | None) -> ServiceHealth:
    """Never unavailable: without an LLM, or where it fails, answers are quotations."""
    if writer is None:
        return ServiceHealth(name="llm", status="healthy")
    health = await _probe("llm", writer.reach())
    return health if health.status == "healthy" else health.model_copy(update={"status": "degraded"})


class _Degraded(Exception):
    """A service answers, but not as well as it should."""


async def _check_index(index: Index, project: UUID) -> dict[str, str | int] | None:
    """What the engine reports of itself."""
    total, _ = await index.frequencies(project, [])
    if problem := index.problem():
        raise _Degraded(f"an older version of the index answers: {problem}")
    if not total:
        raise EmptyKnowledgeBase("nothing has been ingested yet; run `citewell ingest PATH`")
    return dict(await index.details()) if isinstance(index, ReportsDetails) else None


async def _check_database(libraries: Sequence[Library], home: Path) -> None:
    """Each of them has connections of its own, and may have run out of them."""
    await asyncio.gather(*(library.generation() for library in libraries))
    try:
        free_bytes = (await asyncio.to_thread(shutil.disk_usage, home)).free
    except FileNotFoundError:
        return  # nothing was ingested yet, and the database is elsewhere
    if free_bytes < _MIN_FREE_BYTES:
        raise _Degraded(f"the disk is almost full: {free_bytes / 1e6:.0f} MB are free; free some space")


async def _probe(name: str, call: Awaitable[object]) -> ServiceHealth:
    """The health of a service; if its check gives a dictionary, those are its details."""
    started_at = perf_counter()
    details: dict[str, str | int] | None = None
    status: Condition = "healthy"
    error_message: str | None = None
    try:
        result = await asyncio.wait_for(call, TIMEOUT_SECONDS)
        details = result if isinstance(result, dict) else None
    except (EmptyKnowledgeBase, _Degraded) as error:
        status, error_message = "degraded", str(error)
    except TimeoutError:
        status, error_message = "unavailable", f"no answer within {TIMEOUT_SECONDS} s"
    except CitewellError as error:
        status, error_message = "unavailable", str(error)
    latency_ms = round((perf_counter() - started_at) * 1000, 1)
    return ServiceHealth(name=name, status=status, latency_ms=latency_ms, error=error_message, details=details)
