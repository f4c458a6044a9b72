"""`/api/v1/projects` and the documents in them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest

from tests.conftest import ready, settings_for
from tests.http.conftest import DEFAULT, problem, running

pytestmark = pytest.mark.anyio

PUMPS = b"# Pumps\n\nA pump moves water uphill.\n\n## Priming\n\nFill the casing with water before the first start.\n"
QUESTION = "What should I do before the first start?"


@pytest.fixture
async def http(home: Path, database_url: str | None) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of an empty server."""
    async with running(settings_for(home, database_url=database_url)) as client:
        yield client


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
async def busy(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of a server that tests share, each with its own projects: one worker indexes all uploads."""
    url = ready(request.getfixturevalue("postgres_server")) if request.param == "postgresql" else None
    async with running(settings_for(tmp_path_factory.mktemp("busy"), database_url=url)) as client:
        yield client


async def make(http: httpx2.AsyncClient, name: str) -> str:
    response = await http.post("/api/v1/projects", json={"name": name})
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


async def upload(http: httpx2.AsyncClient, project: str, name: str, content: bytes) -> dict[str, Any]:
    response = await http.post(f"/api/v1/projects/{project}/documents", files={"file": (name, content)})
    assert response.status_code == 202, response.text
    body: dict[str, Any] = response.json()
    return body


async def settled(http: httpx2.AsyncClient, project: str) -> list[dict[str, Any]]:
    """The project's documents once all uploads are done."""
    while True:
        documents: list[dict[str, Any]] = (await http.get(f"/api/v1/projects/{project}/documents")).json()["documents"]
        if not {"PENDING", "PROCESSING"} & {document["status"] for document in documents}:
            return documents
        await asyncio.sleep(0.1)


async def test_a_project_is_made_listed_and_got(http: httpx2.AsyncClient) -> None:
    project = await make(http, "Handbook")
    again = await http.post("/api/v1/projects", json={"name": "Handbook"})
    assert (again.status_code, again.json()["id"]) == (200, project), "the same name is the same project"
    listed = (await http.get("/api/v1/projects")).json()["projects"]
    assert [one["name"] for one in listed] == ["Handbook", "default"]
    got = (await http.get(f"/api/v1/projects/{project}")).json()
    assert got == listed[0]
    assert set(got) == {"id", "name", "createdAt", "documents", "chunks"}
    assert (got["documents"], got["chunks"]) == (0, 0)


@pytest.mark.parametrize("name", ["", " ", " x", "x\n", "a\x00b", "x" * 101, None, 5])
async def test_a_name_that_is_none_is_refused(http: httpx2.AsyncClient, name: object) -> None:
    assert problem(await http.post("/api/v1/projects", json={"name": name})) == (400, "VALIDATION_ERROR")


async def test_a_project_that_is_not_there_is_not_found(http: httpx2.AsyncClient) -> None:
    nobody = uuid4()
    for method, path in [
        ("GET", f"/api/v1/projects/{nobody}"),
        ("DELETE", f"/api/v1/projects/{nobody}"),
        ("GET", f"/api/v1/projects/{nobody}/documents"),
        ("GET", f"/api/v1/documents/{nobody}"),
        ("GET", f"/api/v1/documents/{nobody}/chunks/0"),
        ("DELETE", f"/api/v1/projects/{DEFAULT.id}/documents/{nobody}"),
    ]:
        assert problem(await http.request(method, path)) == (404, "NOT_FOUND"), path
    sent = await http.post(f"/api/v1/projects/{nobody}/documents", files={"file": ("a.md", b"# A")})
    assert problem(sent) == (404, "NOT_FOUND")


async def test_the_default_project_stays(http: httpx2.AsyncClient) -> None:
    assert problem(await http.delete(f"/api/v1/projects/{DEFAULT.id}")) == (400, "VALIDATION_ERROR")


@pytest.mark.xdist_group("projects")
async def test_a_document_s_life(busy: httpx2.AsyncClient) -> None:
    """Uploaded, indexed, cited, replaced and deleted; then no answer uses it."""
    project = await make(busy, "Handbook")
    sent = await upload(busy, project, "guide/pumps.md", PUMPS)
    assert (sent["status"], sent["filename"], sent["error"]) == ("PENDING", "guide/pumps.md", None)
    assert (await busy.get(f"/api/v1/documents/{sent['documentId']}")).json()["filename"] == "guide/pumps.md"
    (held,) = await settled(busy, project)
    assert (held["status"], held["documentId"], held["title"]) == ("COMPLETED", sent["documentId"], "Pumps")
    assert held["chunkCount"] >= 1

    ask = {"projectId": project, "message": QUESTION}
    answered = (await busy.post("/api/v1/chat", json=ask)).json()
    assert "Fill the casing" in answered["response"]
    assert {source["documentId"] for source in answered["sources"]} == {sent["documentId"]}

    replaced = await upload(busy, project, "guide/pumps.md", PUMPS.replace(b"Fill the casing", b"Drain the casing"))
    assert replaced["documentId"] == sent["documentId"]
    assert len(await settled(busy, project)) == 1
    assert "Drain the casing" in (await busy.post("/api/v1/chat", json=ask)).json()["response"]

    other = await make(busy, "Other")
    wrong = await busy.delete(f"/api/v1/projects/{other}/documents/{sent['documentId']}")
    assert problem(wrong) == (404, "NOT_FOUND"), "a document belongs to the project in the path"
    assert (await busy.delete(f"/api/v1/projects/{project}/documents/{sent['documentId']}")).status_code == 204
    assert await settled(busy, project) == []
    assert problem(await busy.get(f"/api/v1/documents/{sent['documentId']}")) == (404, "NOT_FOUND")
    assert problem(await busy.post("/api/v1/chat", json=ask)) == (503, "EMPTY_KNOWLEDGE_BASE")


@pytest.mark.xdist_group("projects")
async def test_a_deleted_project_takes_its_documents_along(busy: httpx2.AsyncClient) -> None:
    keep, go = await make(busy, "Keep"), await make(busy, "Go")
    await upload(busy, keep, "pumps.md", PUMPS)
    await upload(busy, go, "pumps.md", PUMPS)
    (gone,) = await settled(busy, go)
    assert (await busy.delete(f"/api/v1/projects/{go}")).status_code == 204
    assert problem(await busy.get(f"/api/v1/projects/{go}")) == (404, "NOT_FOUND")
    assert problem(await busy.get(f"/api/v1/documents/{gone['documentId']}")) == (404, "NOT_FOUND")
    assert problem(await busy.post("/api/v1/chat", json={"projectId": go, "message": QUESTION})) == (404, "NOT_FOUND")
    body = (await busy.post("/api/v1/chat", json={"projectId": keep, "message": QUESTION})).json()
    assert "Fill the casing" in body["response"]
    await make(busy, "Go")
    assert await settled(busy, go) == [], "a project made again begins empty"


@pytest.mark.xdist_group("projects")
async def test_what_cannot_be_read_fails_with_its_reason_and_can_be_removed(busy: httpx2.AsyncClient) -> None:
    project = await make(busy, "Broken")
    for name, content in [("lie.pdf", b"<html>no pdf</html>"), ("picture.md", b"\x89PNG\r\n\x1a\n\x00\x00")]:
        await upload(busy, project, name, content)
    failed = await settled(busy, project)
    assert [one["status"] for one in failed] == ["FAILED", "FAILED"]
    for one in failed:
        assert one["error"]
        assert "/" not in one["error"], "no path of the server's"
        assert (await busy.delete(f"/api/v1/projects/{project}/documents/{one['documentId']}")).status_code == 204
    assert await settled(busy, project) == []


@pytest.mark.xdist_group("projects")
async def test_a_chunk_has_its_text_its_place_and_its_neighbours(busy: httpx2.AsyncClient) -> None:
    project = await make(busy, "Long")
    sections = "".join(f"## Part {n}\n\n" + f"Pump number {n} turns steadily all day. " * 60 + "\n\n" for n in range(3))
    sent = await upload(busy, project, "long.md", f"# Long\n\n{sections}".encode())
    await settled(busy, project)
    document = (await busy.get(f"/api/v1/documents/{sent['documentId']}?text=true")).json()
    assert document["chunkCount"] == len(document["chunks"]) >= 3
    last = len(document["chunks"]) - 1
    for index in (0, 1, last):
        chunk = (await busy.get(f"/api/v1/documents/{sent['documentId']}/chunks/{index}")).json()
        assert chunk["chunkIndex"] == index
        assert document["text"][chunk["start"] : chunk["end"]] == chunk["chunkText"]
        assert UUID(chunk["documentId"]) == UUID(sent["documentId"])
        assert (chunk["previous"] is None) == (index == 0)
        assert (chunk["next"] is None) == (index == last)
        if chunk["next"]:
            assert chunk["next"]["id"] == document["chunks"][index + 1]["id"]
    beyond = await busy.get(f"/api/v1/documents/{sent['documentId']}/chunks/{last + 1}")
    assert problem(beyond) == (404, "NOT_FOUND")
    assert (await busy.get(f"/api/v1/documents/{sent['documentId']}")).json()["text"] is None


@pytest.mark.xdist_group("projects")
async def test_search_finds_passages_in_one_project_only(busy: httpx2.AsyncClient) -> None:
    mine, other = await make(busy, "Mine"), await make(busy, "Theirs")
    await upload(busy, mine, "pumps.md", PUMPS)
    await upload(busy, other, "valves.md", b"# Valves\n\nA valve stops the flow before the first start.\n")
    await settled(busy, mine)
    await settled(busy, other)
    results = (await busy.post("/api/v1/search", json={"projectId": mine, "query": "first start"})).json()["results"]
    assert {hit["source"] for hit in results} == {"pumps.md"}
    assert all(0 <= hit["distance"] <= 1 and hit["chunkText"] and hit["chapter"] for hit in results)
    none = await busy.post(
        "/api/v1/search", json={"projectId": mine, "query": "first start", "filters": {"section": "No such"}}
    )
    assert none.json() == {"results": []}
