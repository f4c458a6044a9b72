"""`GET /health`: how each service feels, within two seconds even when one hangs."""

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime
from time import perf_counter
from typing import Literal
from uuid import UUID

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from citewell import __version__
from citewell.errors import CitewellError, EmptyKnowledgeBase
from citewell.models import DEFAULT_PROJECT, Project
from citewell.ports import Index

router = APIRouter(tags=["health"])

_TIMEOUT_SECONDS = 1.5

Status = Literal["healthy", "degraded", "unavailable"]


class ServiceHealth(BaseModel):
    name: str
    status: Status
    latency_ms: float | None = None
    error: str | None = None


class Health(BaseModel):
    status: Status
    timestamp: datetime
    services: dict[str, ServiceHealth]
    version: str


@router.get("/health")
async def health(request: Request, response: Response) -> Health:
    """Healthy, degraded (it answers, but something is missing) or unavailable."""
    reading = request.app.state.reading
    project = Project.named(DEFAULT_PROJECT).id
    services = await asyncio.gather(
        _probe("vector_store", _any_chunks(reading.engines.index, project)),
        _probe("database", reading.library.generation()),
        _probe("embedder", reading.engines.embedder.embed_query("health")),
    )
    # No LLM is configured: answers are quotations, and nothing is wrong with that.
    everything = [*services, ServiceHealth(name="llm", status="healthy")]
    ranked: list[Status] = ["healthy", "degraded", "unavailable"]
    worst = max((one.status for one in everything), key=ranked.index)
    response.status_code = 503 if worst == "unavailable" else 200
    return Health(
        status=worst,
        timestamp=datetime.now(UTC),
        services={one.name: one for one in everything},
        version=__version__,
    )


async def _any_chunks(index: Index, project: UUID) -> None:
    total, _ = await index.frequencies(project, [])
    if not total:
        raise EmptyKnowledgeBase("nothing has been ingested yet; run `citewell ingest PATH`")


async def _probe(name: str, call: Awaitable[object]) -> ServiceHealth:
    began = perf_counter()
    status: Status = "healthy"
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
