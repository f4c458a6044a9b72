"""`GET /api/v1/projects/{id}/ingests`: past ingests, and whether a running one is still alive."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from citewell import wiring
from citewell.adapters.writer_lock import writer_lock
from citewell.models import IngestRun
from citewell.settings import Settings
from tests.conftest import settings_for
from tests.http.conftest import DEFAULT, ingest_folder, running

pytestmark = pytest.mark.anyio

PATH = f"/api/v1/projects/{DEFAULT.id}/ingests"


@pytest.fixture
async def settings(home: Path, docs: Path, database_url: str | None) -> Settings:
    settings = settings_for(home, database_url=database_url, embedder="hashing")
    await asyncio.to_thread(ingest_folder, settings, docs)
    return settings


@pytest.fixture
async def http(settings: Settings) -> AsyncIterator[httpx2.AsyncClient]:
    async with running(settings) as http:
        yield http


async def listed(http: httpx2.AsyncClient) -> list[dict[str, Any]]:
    response = await http.get(PATH)
    assert response.status_code == 200, response.text
    told: list[dict[str, Any]] = response.json()["ingests"]
    return told


async def begun(settings: Settings, *, ago: float) -> None:
    """A run whose last heartbeat is this many seconds old."""
    at = datetime.now(UTC) - timedelta(seconds=ago)
    async with wiring.open_stores(settings) as kept:
        await kept.ingests.begin(IngestRun(uuid4(), DEFAULT.id, started_at=datetime.now(UTC), updated_at=at))


async def test_an_ingest_is_told_with_all_there_is_to_know(http: httpx2.AsyncClient) -> None:
    (one,) = await listed(http)
    assert set(one) == {
        "id", "startedAt", "updatedAt", "finishedAt", "state", "stage", "done", "total", "filesProcessed",
        "chunksCreated", "errors",
    }  # fmt: skip
    assert (one["state"], one["stage"], one["done"], one["total"]) == ("done", "publishing", 3, 3)
    assert (one["filesProcessed"], one["chunksCreated"], one["errors"]) == (3, 5, [])
    assert one["startedAt"] < one["finishedAt"] == one["updatedAt"]


async def test_a_run_that_gives_signs_of_life_is_running(http: httpx2.AsyncClient, settings: Settings) -> None:
    await begun(settings, ago=5)
    assert [one["state"] for one in await listed(http)] == ["running", "done"]


async def test_a_silent_run_is_interrupted_unless_somebody_holds_the_lock(
    http: httpx2.AsyncClient, settings: Settings
) -> None:
    await begun(settings, ago=60)
    async with writer_lock(settings.home, wait=False, on_wait=lambda: None):
        assert (await listed(http))[0]["state"] == "running", "it may be in one long transaction"
    assert (await listed(http))[0]["state"] == "interrupted"
    async with writer_lock(settings.home, wait=False, on_wait=lambda: None):
        pass  # to look is not to take


async def test_a_run_that_died_is_interrupted_as_soon_as_the_next_begins(
    http: httpx2.AsyncClient, settings: Settings, docs: Path
) -> None:
    await begun(settings, ago=0)
    await asyncio.to_thread(ingest_folder, settings, docs)
    assert [one["state"] for one in await listed(http)] == ["done", "interrupted", "done"]
