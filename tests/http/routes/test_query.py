"""`/api/query` keeps its contract."""

from typing import Any

import httpx2
import pytest

from tests.http.conftest import COVERED, UNCOVERED, problem

pytestmark = pytest.mark.anyio

SEED = {"chapter", "section", "filename", "score"}


async def query(http: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await http.post("/api/query", json=body)
    assert response.status_code == 200, response.text
    told: dict[str, Any] = response.json()
    return told


async def test_an_answer_names_one_to_five_sources(http: httpx2.AsyncClient) -> None:
    body = await query(http, query=COVERED)
    assert set(body) == {"answer", "sources"}
    assert "[1]" in body["answer"]
    assert 1 <= len(body["sources"]) <= 5
    for source in body["sources"]:
        assert set(source) > SEED
        assert all(source[name] for name in ("chapter", "section", "filename"))
        assert 0 <= source["score"] <= 1


async def test_what_is_not_covered_says_so_and_names_the_nearest_topics(http: httpx2.AsyncClient) -> None:
    body = await query(http, query=UNCOVERED)
    assert "not covered" in body["answer"]
    assert 1 <= len(body["sources"]) <= 5
    assert body["sources"][0]["chapter"] in body["answer"]


@pytest.mark.parametrize("symbol", ["0", "What is x?"])
async def test_a_symbol_that_nothing_defines_is_not_covered(http: httpx2.AsyncClient, symbol: str) -> None:
    body = await query(http, query=symbol)
    assert "not covered" in body["answer"]
    assert 1 <= len(body["sources"]) <= 5


async def test_what_the_reader_marked_steers_the_search(http: httpx2.AsyncClient) -> None:
    marked = "Integrating a bias makes the result drift."
    body = await query(http, query="What does this mean?", selected_text=marked)
    assert "proprioception" in body["sources"][0]["filename"]


async def test_the_whole_book_may_be_used_beside_the_selection(http: httpx2.AsyncClient) -> None:
    alone = await query(http, query=COVERED)
    marked = await query(http, query=COVERED, selected_text="Print or buy a flat checkerboard.")
    assert marked["sources"][0]["filename"] == alone["sources"][0]["filename"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"query": " "}, "EMPTY_QUERY"),
        ({"query": "word " * 501}, "QUERY_TOO_LONG"),
        ({"query": "x" * 8001}, "QUERY_TOO_LONG"),
        ({"query": COVERED, "selected_text": "word " * 201}, "SELECTION_TOO_LONG"),
        ({"query": COVERED, "selected_text": "x" * 4001}, "SELECTION_TOO_LONG"),
        ({"query": COVERED, "selected_text": 5}, "VALIDATION_ERROR"),
        ({"query": COVERED, "selected_text": " \n"}, "VALIDATION_ERROR"),
        ({}, "EMPTY_QUERY"),
    ],
)
async def test_a_wrong_request_is_told_what_is_wrong(http: httpx2.AsyncClient, body: object, code: str) -> None:
    assert problem(await http.post("/api/query", json=body)) == (400, code)


@pytest.mark.parametrize(("query", "has"), [("word " * 501, "501 words"), ("x" * 100_000, "100,000 characters")])
async def test_an_error_names_both_limits(http: httpx2.AsyncClient, query: str, has: str) -> None:
    message = (await http.post("/api/query", json={"query": query})).json()["message"]
    assert message == f"query: should have at most 500 words and 8,000 characters, has {has}"


async def test_500_words_and_200_marked_ones_are_taken(http: httpx2.AsyncClient) -> None:
    await query(http, query="drift " * 500, selected_text="gyroscope " * 200)
    await query(http, query=COVERED, selected_text=None)
