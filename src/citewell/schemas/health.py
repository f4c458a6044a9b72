"""`GET /health` and `/ready`."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

Condition = Literal["healthy", "degraded", "unavailable"]


class ServiceHealth(BaseModel):
    name: str
    status: Condition
    latency_ms: float | None = None
    error: str | None = None
    details: dict[str, str | int] | None = Field(None, exclude_if=lambda details: details is None)
    """What the service reports of itself: of a Qdrant server its version, points and status."""


class Health(BaseModel):
    status: Condition
    timestamp: datetime
    services: dict[str, ServiceHealth]
    version: str


class Ready(BaseModel):
    ready: bool
