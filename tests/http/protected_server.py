"""A server with a key, for tests of authentication; and an embedder that can be held up."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx2

from citewell import wiring
from citewell.http.state import get_state, set_state
from citewell.models import Matrix, Vector
from citewell.ports import Embeddable, Embedder, Embedding
from citewell.settings import Settings
from tests.http.conftest import ingest_folder, made_key, running

QUESTION = {"question": "What should I do before the first start?"}
SITE = "https://docs.example.org"


def headers(key: str, header: str = "bearer") -> dict[str, str]:
    """The header that sends a key."""
    return {"Authorization": f"Bearer {key}"} if header == "bearer" else {"X-API-Key": key}


@dataclass
class ProtectedServer:
    """A server with a key."""

    http: httpx2.AsyncClient
    stores: wiring.Stores
    key: str

    async def ask(self, key: str | None = None, **sent: str) -> httpx2.Response:
        return await self.http.post("/api/ask", json=QUESTION, headers=headers(key or self.key) | sent)


@asynccontextmanager
async def open_protected_server(settings: Settings, docs: Path) -> AsyncIterator[ProtectedServer]:
    await asyncio.to_thread(ingest_folder, settings, docs)
    async with wiring.open_stores(settings) as stores:
        key = await made_key(stores, scope="admin")
        async with running(settings) as http:
            yield ProtectedServer(http, stores, key)


@dataclass
class BlockedEmbedder:
    """An embedder that embeds no question before `go_on` is set."""

    inner: Embedder
    fitted: bool = True
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.model = self.inner.model
        self.dimensions = self.inner.dimensions

    async def embed_passages(self, passages: Sequence[Embeddable]) -> list[Embedding]:
        return await self.inner.embed_passages(passages)

    async def embed_query(self, text: str) -> Vector:
        await self.go_on.wait()
        return await self.inner.embed_query(text)

    async def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return await self.inner.embed_queries(texts)

    async def warm(self) -> None:
        pass

    async def close(self) -> None:
        await self.inner.close()


def block_embedder(http: httpx2.AsyncClient) -> BlockedEmbedder:
    """Hold up the server's embedder; set `go_on` of the result to continue."""
    app = http.app  # type: ignore[attr-defined]
    state = get_state(app)
    patient = BlockedEmbedder(state.answers.engines.embedder)
    engines = replace(state.answers.engines, embedder=patient)
    set_state(app, replace(state, answers=replace(state.answers, engines=engines)))
    return patient


async def wait_until_running(http: httpx2.AsyncClient, number: int) -> None:
    """Wait until this number of requests is running."""
    admission = get_state(http.app).admission  # type: ignore[attr-defined]
    while admission.running != number:  # noqa: ASYNC110 (there is no event for this)
        await asyncio.sleep(0.01)
