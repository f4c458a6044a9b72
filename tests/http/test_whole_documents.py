"""A document that is stored whole, without chunks, from `ingest --no-chunking` to every endpoint."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from citewell.models import document_id
from tests.conftest import PROJECT, Citewell, serving

QUESTION = "What moves water uphill?"
MARKER = re.compile(r"\[([0-9a-f]{8}-[0-9a-f-]{27})\]")
PUMPS = document_id(PROJECT, "01-pumps.md")


def ingest(citewell: Citewell, *arguments: object) -> dict[str, Any]:
    shown = citewell("ingest", *map(str, arguments), "--json")
    body: dict[str, Any] = json.loads(shown.stdout)
    assert shown.returncode == 0, body
    return body


def shown_chunks(citewell: Citewell, path: str) -> list[dict[str, Any]]:
    chunks: list[dict[str, Any]] = json.loads(citewell("documents", "show", path, "--json").stdout)["chunks"]
    return chunks


@pytest.fixture
def http(home: Path, docs: Path, citewell: Citewell) -> Iterator[httpx2.Client]:
    """A server over the three pages, each stored whole."""
    assert ingest(citewell, docs, "--no-chunking")["chunks_created"] == 3
    with serving(home) as address, httpx2.Client(base_url=address, timeout=30) as client:
        yield client


def post(http: httpx2.Client, path: str, **body: object) -> dict[str, Any]:
    response = http.post(path, json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_an_answer_cites_the_document_and_its_source_has_no_chunk(http: httpx2.Client, docs: Path) -> None:
    body = post(http, "/api/v1/chat", projectId=str(PROJECT.id), message=QUESTION)
    assert "A pump moves water uphill" in body["response"]
    assert set(MARKER.findall(body["response"])) == {str(PUMPS)}
    assert not re.search(r"\[[0-9a-f]{64}\]", body["response"])
    (source,) = body["sources"]
    assert (source["id"], source["chunkIndex"], source["documentId"]) == (None, None, str(PUMPS))
    assert source["chunkText"] == (docs / "01-pumps.md").read_text().strip()
    assert 0 <= source["distance"] <= 1
    history = body["messages"]
    more = post(http, "/api/v1/chat", projectId=str(PROJECT.id), message="Tell me more about it", history=history)
    assert set(MARKER.findall(more["response"])) == {source["documentId"] for source in more["sources"]}
    lines = http.post("/api/v1/chat/stream", json={"projectId": str(PROJECT.id), "message": QUESTION}).text.split("\n")
    last = json.loads([line for line in lines if line.startswith("data:")][-1].removeprefix("data:"))
    assert last["response"]["sources"] == body["sources"]


def test_every_other_endpoint_shows_it(http: httpx2.Client) -> None:
    (first, *_) = post(http, "/api/v1/search", projectId=str(PROJECT.id), query=QUESTION)["results"]
    assert (first["id"], first["chunkIndex"], first["documentId"]) == (None, None, str(PUMPS))
    cited = post(http, "/api/ask", question=QUESTION)["citations"][0]
    assert (cited["source_file"], cited["document_id"]) == ("01-pumps.md", str(PUMPS))
    assert post(http, "/api/query", query=QUESTION)["sources"][0]["filename"] == "01-pumps.md"
    detail = http.get(f"/api/v1/documents/{PUMPS}?text=true").json()
    (place,) = detail["chunks"]
    assert (place["id"], place["chunkIndex"]) == (None, None)
    assert detail["text"][place["start"] : place["end"]].endswith("before the first start.")
    chunk = http.get(f"/api/v1/documents/{PUMPS}/chunks/0").json()
    assert (chunk["id"], chunk["chunkIndex"], chunk["previous"], chunk["next"]) == (None, None, None, None)


def test_its_citation_can_be_opened_and_verified(http: httpx2.Client, docs: Path, citewell: Citewell) -> None:
    session = str(uuid4())
    talked = post(http, "/chat", query=QUESTION, session_id=session)
    (source,) = talked["sources"]
    assert (source["chunk_position"], source["document_id"]) == (0, str(PUMPS))
    answer = post(http, "/api/v1/chat", projectId=str(PROJECT.id), message=QUESTION)["response"]

    def statuses() -> tuple[str, str, str]:
        (verdict,) = post(http, "/api/v1/citations/verify", answer=answer)["citations"]
        assert verdict["id"] == str(PUMPS)
        assert http.get(f"/api/v1/citations/{PUMPS}").json()["status"] == verdict["status"]
        (entry,) = http.get(f"/history/{session}").json()["entries"]
        opened = http.get(f"/api/v1/citations/{source['chunk_id']}").json()["status"]
        return verdict["status"], entry["sources"][0]["status"], opened

    assert statuses() == ("valid", "valid", "valid")
    detail = http.get(f"/api/v1/citations/{PUMPS}").json()
    assert (detail["documentId"], detail["chunkIndex"], detail["source"]) == (str(PUMPS), None, "01-pumps.md")
    assert citewell("verify", str(PUMPS)).stdout == f"valid    {PUMPS}  01-pumps.md:1\n"
    assert "or of a document stored whole" in citewell("verify", "nope").stderr

    (docs / "01-pumps.md").write_text("# Pumps\n\nA pump lifts water. Prime it first.\n")
    ingest(citewell, docs, "--no-chunking")
    assert statuses() == ("valid", "changed", "changed"), "the document is there, the words that were quoted are not"
    (docs / "01-pumps.md").unlink()
    ingest(citewell, docs, "--no-chunking", "--prune")
    assert statuses() == ("deleted", "deleted", "deleted")
    unknown = post(http, "/api/v1/citations/verify", ids=[str(uuid4())])["citations"][0]
    assert (unknown["status"], unknown["now"]) == ("unknown", None)
    assert http.get(f"/api/v1/citations/{uuid4()}").status_code == 404


def test_commands_show_it_at_home_and_over_a_server(http: httpx2.Client, citewell: Citewell, tmp_path: Path) -> None:
    there = {"home": tmp_path / "nothing", "CITEWELL_SERVER": str(http.base_url)}
    for where in ({}, there):
        assert "stored whole  line 1  Pumps" in citewell("documents", "show", "01-pumps.md", **where).stdout
        assert "[1] 01-pumps.md:" in citewell("ask", QUESTION, **where).stdout
        assert "01-pumps.md" in citewell("search", QUESTION, **where).stdout
        (found, *_) = json.loads(citewell("search", QUESTION, "--json", **where).stdout)
        assert (found["id"], found["chunkIndex"], found["documentId"]) == (None, None, str(PUMPS))
    assert "All is well." in citewell("doctor").stdout


def test_another_project_s_whole_document_is_numbered_in_the_terminal(
    home: Path, docs: Path, citewell: Citewell, tmp_path: Path
) -> None:
    ingest(citewell, docs, "--no-chunking", "--project", "handbook")
    with serving(home) as address:
        there = {"home": tmp_path / "nothing", "CITEWELL_SERVER": address}
        shown = citewell("ask", QUESTION, "--project", "handbook", **there).stdout
    assert re.search(r"uphill\.? \[1\]", shown), shown
    assert "[1] 01-pumps.md:3" in shown


def test_without_the_option_it_is_chunked_again_and_ids_are_what_they_were(
    home: Path, docs: Path, citewell: Citewell
) -> None:
    ingest(citewell, docs)
    before = shown_chunks(citewell, "01-pumps.md")
    assert [chunk["index"] for chunk in before] == [0, 1]
    plan = ingest(citewell, docs, "--no-chunking", "--plan")
    assert len(plan["changed"]) == 3
    ingest(citewell, docs, "--no-chunking")
    (piece,) = shown_chunks(citewell, "01-pumps.md")
    assert (piece["id"], piece["index"]) == (None, None)
    assert ingest(citewell, docs, "--no-chunking")["files_unchanged"] == 3
    assert len(ingest(citewell, docs, "--plan")["changed"]) == 3
    assert ingest(citewell, docs)["files_unchanged"] == 0
    assert shown_chunks(citewell, "01-pumps.md") == before
    assert "All is well." in citewell("doctor").stdout


def test_a_document_as_large_as_a_chunk_is_chunked_with_a_warning(docs: Path, citewell: Citewell) -> None:
    (docs / "long.md").write_text("# Long\n\n" + "Water flows downhill all day. " * 100)
    done = ingest(citewell, docs, "--no-chunking")
    assert done["warnings"] == ["long.md: chunked, because only a document of less than 500 tokens is stored whole"]
    (chunk,) = shown_chunks(citewell, "long.md")
    assert (chunk["index"], len(chunk["id"])) == (0, 64)
