"""`GET /health` and `/ready`: how each service feels, within two seconds even when one hangs."""

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime
from time import perf_counter
from uuid import UUID

from fastapi import APIRouter, Request, Response

from citewell import __version__
from citewell.errors import CitewellError, EmptyKnowledgeBase
from citewell.http.auth import OPEN, GuardedRoute
from citewell.models import DEFAULT_PROJECT, Project
from citewell.ports import Index, Writer
from citewell.schemas.health import Condition, Health, Ready, ServiceHealth

router = APIRouter(tags=["operating"], route_class=GuardedRoute)

_TIMEOUT_SECONDS = 1.5


@router.get(
    "/health", openapi_extra=OPEN, responses={503: {"model": Health, "description": "Something is unavailable."}}
)
async def health(request: Request, response: Response) -> Health:
    """Healthy, degraded (it answers, but something is missing) or unavailable."""
    services = await _services(request)
    ranked: list[Condition] = ["healthy", "degraded", "unavailable"]
    worst = max((one.status for one in services), key=ranked.index)
    response.status_code = 503 if worst == "unavailable" else 200
    return Health(
        status=worst,
        timestamp=datetime.now(UTC),
        services={one.name: one for one in services},
        version=__version__,
    )


@router.get("/ready", openapi_extra=OPEN, responses={503: {"model": Ready, "description": "Not now."}})
async def ready(request: Request, response: Response) -> Ready:
    """Whether requests may be sent here: for whoever spreads the load."""
    able = all(one.status != "unavailable" for one in await _services(request))
    response.status_code = 200 if able else 503
    return Ready(ready=able)


async def _services(request: Request) -> list[ServiceHealth]:
    reading = request.app.state.reading
    project = Project.named(DEFAULT_PROJECT).id
    llm = asyncio.create_task(_llm(reading.engines.writer))
    probed = await asyncio.gather(
        _probe("vector_store", _any_chunks(reading.engines.index, project)),
        _probe("database", reading.library.generation()),
        _probe("embedder", reading.engines.embedder.embed_query("health")),
    )
    return [*probed, await llm]


async def _llm(writer: Writer | None) -> ServiceHealth:
    """Without one answers are quotations, and nothing is wrong with that; where it fails they are, too."""
    if writer is None:
        return ServiceHealth(name="llm", status="healthy")
    probed = await _probe("llm", writer.reach())
    return probed if probed.status == "healthy" else probed.model_copy(update={"status": "degraded"})


async def _any_chunks(index: Index, project: UUID) -> None:
    total, _ = await index.frequencies(project, [])
    if not total:
        raise EmptyKnowledgeBase("nothing has been ingested yet; run `citewell ingest PATH`")


async def _probe(name: str, call: Awaitable[object]) -> ServiceHealth:
    began = perf_counter()
    status: Condition = "healthy"
    problem: str | None = None
    try:
        await asyncio.wait_for(call, _TIMEOUT_SECONDS)
    except EmptyKnowledgeBase as error:
        status, problem = "degraded", str(error)
    except TimeoutError:
        status, problem = "unavailable", f"no answer within {_TIMEOUT_SECONDS} s"
    except CitewellError as error:
        status, problem = "unavailable", str(error)
    latency_ms = round((perf_counter() - began) * 1000, 1)
    return ServiceHealth(name=name, status=status, latency_ms=latency_ms, error=problem)
