"""The whole application over the example book, on SQLite and on PostgreSQL, opened once for all tests."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from citewell import wiring
from citewell.api_keys import create_key
from citewell.http.app import create_app
from citewell.http.state import get_state, set_state
from citewell.ingest.flow import ingest
from citewell.models import DEFAULT_PROJECT, Key, Project, Scope
from citewell.settings import Settings
from tests.conftest import BOOK, copied, made_once, ready, settings_for

DEFAULT = Project.named(DEFAULT_PROJECT)
COVERED = "Why do gyroscopes drift?"
UNCOVERED = "How long does a chicken roast?"


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def book(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, book_home: Path) -> Settings:
    """Settings of a home with the example book and its base URL. Embeddings are copied from another home."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "sqlite":
        published = made_once(tmp_path_factory, "published-book", lambda home: _publish(book_home, settings_for(home)))
        copied(published, folder / "home")
        return settings_for(folder / "home")
    settings = settings_for(folder, database_url=ready(request.getfixturevalue("postgres_server")))
    _publish(book_home, settings)
    return settings


def _publish(book_home: Path, settings: Settings) -> None:
    asyncio.run(borrow_embeddings(settings_for(book_home), settings))
    ingest_folder(settings, BOOK, base_url="https://book.example.org")


async def borrow_embeddings(lender: Settings, borrower: Settings) -> None:
    async with (
        wiring.open_for_preview(lender) as source,
        wiring.open_for_ingest(borrower, wait=True, on_wait=lambda: None) as target,
    ):
        keys = [chunk.embedding_key async for batch in source.library.chunks() for _, chunk in batch]
        known = await source.cache.load(keys, model=source.embedder.model)
        await target.cache.save(known, model=target.embedder.model)


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with three short pages, indexed with the fast embedder (`embedder="hashing"`)."""
    folder = tmp_path_factory.mktemp("pages")
    docs = folder / "docs"
    docs.mkdir()
    (docs / "pumps.md").write_text(
        "# Pumps\n\nA pump moves water uphill — “naïve” 水泵 🤖.\n\n## Priming\n\n"
        "Fill the casing with water to prime it:\n\n```sh\nprime --casing full\n\tstart 泵\n```\n"
    )
    (docs / "rams.md").write_text("# Rams\n\nA ram moves water uphill without a motor.\n")
    (docs / "valves.md").write_text("# Valves\n\nA valve stops the flow.\n\n## Leaks\n\nReplace the gasket yearly.\n")
    ingest_folder(settings_for(folder, embedder="hashing"), docs)
    return folder


@pytest.fixture(scope="session")
async def http(book: Settings) -> AsyncIterator[httpx2.AsyncClient]:
    async with running(book) as client:
        yield client


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of a new application in this process."""
    app = create_app(settings)
    async with app.router.lifespan_context(app), client_of(app) as client:
        yield client


@asynccontextmanager
async def client_of(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
        client.app = app  # type: ignore[attr-defined]
        yield client


def break_answers(http: httpx2.AsyncClient) -> None:
    """Make every question fail with an unforeseen exception."""
    app = http.app  # type: ignore[attr-defined]
    set_state(app, replace(get_state(app), answers=None))  # type: ignore[arg-type]


def ingest_folder(
    settings: Settings, *paths: Path, project: str = DEFAULT_PROJECT, base_url: str | None = None
) -> None:
    async def run() -> None:
        async with wiring.open_for_ingest(settings, wait=True, on_wait=lambda: None) as engines:
            result = await ingest(
                paths,
                project=Project.named(project),
                engines=engines,
                recipe=wiring.ingest_recipe(settings, base_url=base_url),
                prune=True,
                progress=lambda *_: None,
            )
        assert result.errors == ()

    asyncio.run(run())


async def made_key(
    stores: wiring.Stores,
    *,
    scope: Scope = "ask",
    project: Project | None = None,
    per_minute: int | None = None,
    revoked: bool = False,
) -> str:
    """The text of a new key."""
    minted = create_key()
    key = Key(minted.id, "a test's", scope, datetime.now(UTC), project.id if project else None, per_minute)
    await stores.keys.add(key, digest=minted.digest)
    if revoked:
        await stores.keys.revoke(key.id)
    return minted.text


def events(body: str) -> list[dict[str, Any]]:
    """The `data:` of each event, without keep-alives."""
    assert body.endswith("\n\n")
    blocks = [block for block in body.strip().split("\n\n") if not block.startswith(":")]
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


def problem(response: httpx2.Response) -> tuple[int, str]:
    """Status and code of an error; the fields that every error has are checked."""
    body = response.json()
    assert set(body) <= {"error_code", "message", "request_id", "details"}, body
    assert body["message"]
    assert body["request_id"] == response.headers["x-request-id"]
    return response.status_code, body["error_code"]
