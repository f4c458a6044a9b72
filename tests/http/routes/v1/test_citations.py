"""A citation may become invalid, but never means another text; and its status can be looked up."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from citewell.settings import Settings
from tests.conftest import settings_for
from tests.http.conftest import DEFAULT, ingest_folder, problem, running

pytestmark = pytest.mark.anyio

QUESTION = "What should I do before the first start?"
SHOWN = {
    "id", "status", "documentId", "source", "title", "section", "headings", "chunkIndex", "chunkCount", "line",
    "lastLine", "page", "chunkText", "before", "after", "source_url",
}  # fmt: skip


@pytest.fixture
def settings(home: Path, docs: Path, database_url: str | None) -> Settings:
    settings = settings_for(home, database_url=database_url)
    ingest_folder(settings, docs)
    return settings


async def ingest_again(settings: Settings, docs: Path) -> None:
    await asyncio.to_thread(ingest_folder, settings, docs)


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


async def behind(http: httpx2.AsyncClient, chunk: str) -> dict[str, Any]:
    response = await http.get(f"/api/v1/citations/{chunk}")
    assert response.status_code == 200, response.text
    shown: dict[str, Any] = response.json()
    assert shown["id"] == chunk
    assert set(shown) == SHOWN, "the same fields, whatever became of it"
    return shown


async def test_a_citation_is_shown_in_its_place(settings: Settings) -> None:
    async with running(settings) as http:
        (source, *_) = (await asked(http))["sources"]
        shown = await behind(http, source["chunk_id"])
        document = (await http.get(f"/api/v1/documents/{source['document_id']}?text=true")).json()
    place = document["chunks"][shown["chunkIndex"]]
    assert place["id"] == source["chunk_id"]
    assert (shown["status"], shown["documentId"], shown["source"]) == ("valid", source["document_id"], "01-pumps.md")
    assert (shown["title"], shown["section"], shown["chunkCount"]) == ("Pumps", "Priming", len(document["chunks"]))
    assert shown["headings"][-1] == "Priming"
    assert (shown["line"], shown["lastLine"]) == (place["line"], place["lastLine"])
    assert all(quote in shown["chunkText"] for quote in source["quotes"])
    assert f"{shown['before']}{shown['chunkText']}{shown['after']}" in document["text"]
    assert shown["before"], "there is something before it"


async def test_a_key_that_may_only_ask_cannot_walk_through_a_document(home: Path, docs: Path) -> None:
    words = [f"Sentence {number} tells of quixel valves and of nothing else." for number in range(600)]
    (docs / "long.md").write_text("# Valves\n\n" + "\n\n".join(" ".join(words[i : i + 5]) for i in range(0, 600, 5)))
    settings = settings_for(home, embedder="hashing")
    await asyncio.to_thread(ingest_folder, settings, docs)
    async with running(settings) as http:
        listed = (await http.get(f"/api/v1/projects/{DEFAULT.id}/documents")).json()["documents"]
        document = next(one for one in listed if one["filename"] == "long.md")
        detail = (await http.get(f"/api/v1/documents/{document['documentId']}?text=true")).json()
        ids = [chunk["id"] for chunk in detail["chunks"]]
        assert len(ids) > 3
        for place, one in enumerate(ids):
            response = await http.get(f"/api/v1/citations/{one}")
            body = response.json()
            assert f"{body['before']}{body['chunkText']}{body['after']}" in detail["text"]
            assert len(body["before"]) <= 600 >= len(body["after"])
            assert (body["before"] == "") == (place == 0)
            assert (body["after"] == "") == (place == len(ids) - 1)
            assert not any(other in response.text for other in ids if other != one)


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
        shown = await behind(http, chunk)
        assert (shown["status"], shown["line"]) == ("valid", one["now"]["line"])
        assert "Wear gloves." in shown["before"]


async def test_a_renamed_file_has_moved(settings: Settings, docs: Path) -> None:
    async with running(settings) as http:
        told = await asked(http)
        (docs / "01-pumps.md").rename(docs / "09-all-about-pumps.md")
        await ingest_again(settings, docs)
        one = await verdict(http, told["sources"][0]["chunk_id"])
        assert one["status"] == "moved"
        assert one["now"]["source"] == "09-all-about-pumps.md"
        assert one["now"]["chunkText"].startswith(told["sources"][0]["snippet"][:40])
        shown = await behind(http, told["sources"][0]["chunk_id"])
        assert (shown["status"], shown["source"]) == ("moved", "09-all-about-pumps.md")
        assert shown["chunkText"] == one["now"]["chunkText"]
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
        shown = await behind(http, told["sources"][0]["chunk_id"])
        assert (shown["status"], shown["chunkText"]) == ("changed", one["now"]["chunkText"])
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
        shown = await behind(http, told["sources"][0]["chunk_id"])
        said = {name: value for name, value in shown.items() if value}
        assert said == {"id": told["sources"][0]["chunk_id"], "status": "deleted"}
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
        citations = (await http.post("/api/v1/citations/verify", json={"answer": text})).json()["citations"]
        assert [(citation["id"], citation["status"]) for citation in citations] == [
            (chunk, "valid"),
            (made_up, "unknown"),
        ]


async def test_what_is_no_id_is_an_error_and_so_is_nothing_to_verify(settings: Settings) -> None:
    async with running(settings) as http:
        for odd in ("", "nope", "\x00", "' OR 1=1 --", "x" * 10_000, "A" * 64, "0" * 63, "0" * 65):
            response = await http.post("/api/v1/citations/verify", json={"ids": ["0" * 64, odd]})
            assert problem(response) == (400, "VALIDATION_ERROR"), odd
            assert response.json()["message"].startswith("ids.1: should be the id of a chunk")
        assert problem(await http.post("/api/v1/citations/verify", json={})) == (400, "VALIDATION_ERROR")
        nothing = await http.post("/api/v1/citations/verify", json={"answer": "No citation here."})
        assert nothing.json() == {"citations": []}


async def test_behind_what_was_never_cited_there_is_nothing(settings: Settings) -> None:
    async with running(settings) as http:
        assert problem(await http.get(f"/api/v1/citations/{'0' * 64}")) == (404, "NOT_FOUND")
        for odd in ("nope", "A" * 64, "0" * 63, "0" * 65, "%00", "0" * 64 + "%0a"):
            response = await http.get(f"/api/v1/citations/{odd}")
            assert problem(response) == (400, "VALIDATION_ERROR"), odd
            assert response.json()["details"] == {"field": "chunk_id"}
        assert problem(await http.get("/api/v1/citations/verify")) == (405, "METHOD_NOT_ALLOWED")


async def test_another_project_s_chunk_is_unknown(settings: Settings) -> None:
    async with running(settings) as http:
        chunk = (await asked(http))["sources"][0]["chunk_id"]
        other = (await http.post("/api/v1/projects", json={"name": "other"})).json()["id"]
        response = await http.post("/api/v1/citations/verify", json={"projectId": other, "ids": [chunk]})
        assert response.json()["citations"][0]["status"] == "unknown"
        shown = await http.get(f"/api/v1/citations/{chunk}", params={"project_id": other})
        assert problem(shown) == (404, "NOT_FOUND")
        assert problem(await http.get(f"/api/v1/citations/{chunk}?project_id=x")) == (400, "VALIDATION_ERROR")
