"""`GET /api/v1/welcome`: what a chat page shows before the first question."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.conftest import settings_for
from tests.http.conftest import DEFAULT, ingest_folder, problem, running
from tests.http.llm.server import writing
from tests.http.protected_server import block_embedder

pytestmark = pytest.mark.anyio


async def welcome(http: httpx2.AsyncClient) -> dict[str, Any]:
    response = await http.get("/api/v1/welcome")
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def questions(http: httpx2.AsyncClient) -> list[str]:
    """The suggested questions, once they are computed; before that there are none."""
    for _ in range(100):
        if found := (await welcome(http))["questions"]:
            return list(found)
        await asyncio.sleep(0.1)
    return []


async def test_a_page_is_told_where_it_is_and_what_could_be_asked(http: httpx2.AsyncClient) -> None:
    asked = await questions(http)
    body = await welcome(http)
    listed = (await http.get(f"/api/v1/projects/{DEFAULT.id}/documents")).json()["documents"]
    assert set(body) == {"project", "projects", "documents", "questions", "title", "welcome", "logo"}
    assert body["project"] == {"id": str(DEFAULT.id), "name": "default"}
    assert body["project"] in body["projects"]
    assert body["documents"] == len(listed)
    assert len(asked) == 4


async def test_every_question_that_is_offered_is_surely_answered(http: httpx2.AsyncClient) -> None:
    firsts = []
    for question in await questions(http):
        body = (await http.post("/chat", json={"query": question})).json()
        assert body["metadata"]["mode"] == "full", question
        assert body["metadata"]["low_confidence"] is False, question
        response = await http.post("/api/v1/search", json={"query": question, "top_k": 1})
        firsts.append(response.json()["results"][0]["source"])
    assert len(set(firsts)) == len(firsts), "one of a document"
    assert len({source.split("/")[0] for source in firsts}) >= 3, "from all over the book"


async def test_questions_are_made_once(http: httpx2.AsyncClient, book: Any) -> None:
    async with running(book) as other:
        asked = await questions(other)
        assert asked == await questions(http), "the same of the same book"
        block_embedder(other)  # nothing is embedded from now on
        assert (await welcome(other))["questions"] == asked


async def test_a_page_does_not_wait_for_questions_that_take_their_time(pages: Path) -> None:
    async with running(settings_for(pages, embedder="hashing")) as http:
        block_embedder(http)
        told = await asyncio.gather(*(welcome(http) for _ in range(5)))
        assert [one["questions"] for one in told] == [[]] * 5
        assert [one["documents"] for one in told] == [3] * 5


async def test_new_documents_bring_new_questions(home: Path, tmp_path: Path) -> None:
    docs = tmp_path / "pages"
    settings = settings_for(home)
    await asyncio.to_thread(
        _write, docs, "quixel", "A quixel is a small pump that lifts water. Every quixel has a motor."
    )
    await asyncio.to_thread(ingest_folder, settings, docs)
    async with running(settings) as http:
        before = await questions(http)
        await asyncio.to_thread(_write, docs, "zorble", "A zorble is a valve of brass. You close a zorble by hand.")
        await asyncio.to_thread(ingest_folder, settings, docs)
        after = await questions(http)
    assert before == ["What is a quixel?"]
    assert after == ["What is a quixel?", "What is a zorble?"]


def _write(docs: Path, name: str, text: str) -> None:
    docs.mkdir(exist_ok=True)
    (docs / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n")


async def test_no_language_model_is_asked(pages: Path) -> None:
    async with writing(pages) as (http, llm):
        assert await questions(http) == ["What is a pump?", "What is a ram?", "What is a valve?"]
        assert llm.calls == []


async def test_an_empty_server_welcomes_as_well(home: Path) -> None:
    async with running(settings_for(home)) as http:
        body = await welcome(http)
        assert (body["documents"], body["questions"]) == (0, [])
        assert body["projects"] == [body["project"]]
        project = (await http.post("/api/v1/projects", json={"name": "Handbook"})).json()["id"]
        there = (await http.get("/api/v1/welcome", params={"project_id": project})).json()
        assert [one["name"] for one in there["projects"]] == ["Handbook"], "those that hold nothing are left out"
        for odd, status in (("x", 400), ("6ba7b810-9dad-11d1-80b4-00c04fd430c8", 404)):
            assert problem(await http.get("/api/v1/welcome", params={"project_id": odd}))[0] == status
