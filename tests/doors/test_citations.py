"""A citation can go missing, but never come to mean other words; and whoever kept it can find out."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from citewell.settings import Settings
from tests.conftest import settings_for
from tests.doors.conftest import problem, running, take_in

pytestmark = pytest.mark.anyio

QUESTION = "What should I do before the first start?"


@pytest.fixture
def settings(home: Path, docs: Path, database_url: str | None) -> Settings:
    settings = settings_for(home, database_url=database_url)
    take_in(settings, docs)
    return settings


async def ingest_again(settings: Settings, docs: Path) -> None:
    await asyncio.to_thread(take_in, settings, docs)


async def asked(http: httpx2.AsyncClient) -> dict[str, Any]:
    body: dict[str, Any] = (await http.post("/chat", json={"query": QUESTION})).json()
    assert body["sources"]
    return body


async def verdict(http: httpx2.AsyncClient, chunk: str) -> dict[str, Any]:
    (one,) = (await http.post("/api/v1/citations/verify", json={"ids": [chunk]})).json()["citations"]
    assert one["id"] == chunk
    return dict(one)


async def history_status(http: httpx2.AsyncClient, session: str) -> str:
    (entry,) = (await http.get(f"/history/{session}")).json()["entries"]
    return str(entry["sources"][0]["status"])


async def test_a_fresh_citation_is_valid(settings: Settings) -> None:
    async with running(settings) as http:
        told = await asked(http)
        one = await verdict(http, told["sources"][0]["chunk_id"])
        assert one["status"] == "valid"
        assert one["now"]["id"] == told["sources"][0]["chunk_id"]
        assert await history_status(http, told["session_id"]) == "valid"


async def test_words_that_moved_down_the_page_are_still_cited(settings: Settings, docs: Path) -> None:
    page = docs / "01-pumps.md"
    async with running(settings) as http:
        told = await asked(http)
        chunk = told["sources"][0]["chunk_id"]
        page.write_text(page.read_text().replace("## Priming", "## Safety\n\nWear gloves.\n\n## Priming"))
        await ingest_again(settings, docs)
        one = await verdict(http, chunk)
        assert one["status"] == "valid", "the id names the words, not the place"
        assert "casing" in one["now"]["chunkText"]
        assert await history_status(http, told["session_id"]) == "moved"


async def test_a_renamed_file_has_moved(settings: Settings, docs: Path) -> None:
    async with running(settings) as http:
        told = await asked(http)
        (docs / "01-pumps.md").rename(docs / "09-all-about-pumps.md")
        await ingest_again(settings, docs)
        one = await verdict(http, told["sources"][0]["chunk_id"])
        assert one["status"] == "moved"
        assert one["now"]["source"] == "09-all-about-pumps.md"
        assert one["now"]["chunkText"].startswith(told["sources"][0]["snippet"][:40])
        assert await history_status(http, told["session_id"]) == "moved"


async def test_changed_words_are_said_to_have_changed(settings: Settings, docs: Path) -> None:
    page = docs / "01-pumps.md"
    async with running(settings) as http:
        told = await asked(http)
        page.write_text(page.read_text().replace("Fill the casing with water", "Drain the casing"))
        await ingest_again(settings, docs)
        one = await verdict(http, told["sources"][0]["chunk_id"])
        assert one["status"] == "changed"
        assert "Drain the casing" in one["now"]["chunkText"]
        assert await history_status(http, told["session_id"]) == "changed"


async def test_a_deleted_document_is_said_to_be_deleted(settings: Settings, docs: Path) -> None:
    async with running(settings) as http:
        told = await asked(http)
        (docs / "01-pumps.md").unlink()
        await ingest_again(settings, docs)
        assert await verdict(http, told["sources"][0]["chunk_id"]) == {
            "id": told["sources"][0]["chunk_id"],
            "status": "deleted",
            "now": None,
        }
        assert await history_status(http, told["session_id"]) == "deleted"


async def test_what_comes_back_is_valid_again(settings: Settings, docs: Path) -> None:
    page = docs / "01-pumps.md"
    before = page.read_text()
    async with running(settings) as http:
        chunk = (await asked(http))["sources"][0]["chunk_id"]
        page.unlink()
        await ingest_again(settings, docs)
        page.write_text(before)
        await ingest_again(settings, docs)
        assert (await verdict(http, chunk))["status"] == "valid"


async def test_an_answer_with_inline_citations_is_verified_whole(settings: Settings) -> None:
    async with running(settings) as http:
        chunk = (await asked(http))["sources"][0]["chunk_id"]
        made_up = "f" * 64
        text = f"Fill it [{chunk}]. Twice [{chunk}]. See [1] and [2024], arr[0], [{made_up}]."
        found = (await http.post("/api/v1/citations/verify", json={"answer": text})).json()["citations"]
        assert [(one["id"], one["status"]) for one in found] == [(chunk, "valid"), (made_up, "unknown")]


async def test_what_is_no_id_is_unknown_and_nothing_to_verify_is_an_error(settings: Settings) -> None:
    async with running(settings) as http:
        for odd in ("", "nope", "\x00", "' OR 1=1 --", "x" * 10_000):
            assert (await verdict(http, odd))["status"] == "unknown"
        assert problem(await http.post("/api/v1/citations/verify", json={})) == (400, "VALIDATION_ERROR")
        nothing = await http.post("/api/v1/citations/verify", json={"answer": "No citation here."})
        assert nothing.json() == {"citations": []}


async def test_another_project_s_chunk_is_unknown(settings: Settings) -> None:
    async with running(settings) as http:
        chunk = (await asked(http))["sources"][0]["chunk_id"]
        other = (await http.post("/api/v1/projects", json={"name": "other"})).json()["id"]
        response = await http.post("/api/v1/citations/verify", json={"projectId": other, "ids": [chunk]})
        assert response.json()["citations"][0]["status"] == "unknown"
