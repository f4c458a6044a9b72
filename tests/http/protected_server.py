"""A server with a key, for tests of who comes in; and a way to make it take its time."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx2

from citewell import wiring
from citewell.models import Matrix, Vector
from citewell.ports import Embeddable, Embedder, Embedding
from citewell.settings import Settings
from tests.http.conftest import made_key, running, take_in

QUESTION = {"question": "What should I do before the first start?"}
SITE = "https://docs.example.org"


def headers(key: str, header: str = "bearer") -> dict[str, str]:
    """A key as it is sent."""
    return {"Authorization": f"Bearer {key}"} if header == "bearer" else {"X-API-Key": key}


@dataclass
class Guarded:
    """A server with a key."""

    http: httpx2.AsyncClient
    keeping: wiring.Stores
    key: str

    async def ask(self, key: str | None = None, **sent: str) -> httpx2.Response:
        return await self.http.post("/api/ask", json=QUESTION, headers=headers(key or self.key) | sent)


@asynccontextmanager
async def guarding(settings: Settings, docs: Path) -> AsyncIterator[Guarded]:
    await asyncio.to_thread(take_in, settings, docs)
    async with wiring.open_stores(settings) as keeping:
        key = await made_key(keeping, scope="admin")
        async with running(settings) as http:
            yield Guarded(http, keeping, key)


@dataclass
class Patient:
    """An embedder that takes as long as it is told to."""

    inner: Embedder
    fitted: bool = True
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def model(self) -> str:
        return self.inner.model

    @property
    def dimensions(self) -> int:
        return self.inner.dimensions

    async def embed_passages(self, passages: "list[Embeddable]") -> list[Embedding]:
        return await self.inner.embed_passages(passages)

    async def embed_query(self, text: str) -> Vector:
        await self.go_on.wait()
        return await self.inner.embed_query(text)

    async def embed_queries(self, texts: "Sequence[str]") -> Matrix:
        return await self.inner.embed_queries(texts)

    async def warm(self) -> None:
        pass

    async def close(self) -> None:
        await self.inner.close()


def slowed(http: httpx2.AsyncClient) -> Patient:
    """Make the server's embedder wait for us."""
    state = http.app.state  # type: ignore[attr-defined]
    patient = Patient(state.reading.engines.embedder)
    state.reading = replace(state.reading, engines=replace(state.reading.engines, embedder=patient))
    return patient


async def inside(http: httpx2.AsyncClient, number: int) -> None:
    """Wait until so many requests are being answered."""
    gate = http.app.state.gate  # type: ignore[attr-defined]
    while gate.running != number:  # noqa: ASYNC110 (the gate has no event for this)
        await asyncio.sleep(0.01)
