"""`POST /api/v1/feedback`: a vote is stored with its answer."""

from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.http.conftest import COVERED, DEFAULT, UNCOVERED, problem

pytestmark = pytest.mark.anyio


async def answered(http: httpx2.AsyncClient, query: str = COVERED, **more: str) -> dict[str, str]:
    """The ids of an answer, as a vote needs them."""
    body = (await http.post("/chat", json={"query": query, **more})).json()
    return {"session_id": body["session_id"], "request_id": body["metadata"]["request_id"]}


async def votes(http: httpx2.AsyncClient, session: str) -> list[Any]:
    return [entry.get("feedback") for entry in (await http.get(f"/history/{session}")).json()["entries"]]


async def test_a_vote_is_in_the_history_until_it_is_taken_back(http: httpx2.AsyncClient) -> None:
    first = await answered(http)
    second = await answered(http, UNCOVERED, session_id=first["session_id"])
    assert await votes(http, first["session_id"]) == [None, None]
    for vote in ("down", "up", None):
        voted = await http.post("/api/v1/feedback", json={**second, "vote": vote})
        assert (voted.status_code, voted.content) == (204, b"")
        assert await votes(http, first["session_id"]) == [None, vote]


async def test_a_vote_for_an_answer_that_is_not_there_is_not_found(http: httpx2.AsyncClient) -> None:
    given = await answered(http)
    for wrong in (
        {"request_id": str(uuid4())},
        {"session_id": str(uuid4())},
        {"project_id": str(uuid4())},
    ):
        assert problem(await http.post("/api/v1/feedback", json={**given, **wrong, "vote": "up"})) == (404, "NOT_FOUND")
    assert await votes(http, given["session_id"]) == [None]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"vote": "sideways"}, "VALIDATION_ERROR"),
        ({"vote": 1}, "VALIDATION_ERROR"),
        ({"session_id": "mine"}, "INVALID_SESSION_ID"),
        ({"request_id": "mine"}, "VALIDATION_ERROR"),
        ({"project_id": "mine"}, "VALIDATION_ERROR"),
    ],
)
async def test_what_is_no_vote_is_refused(http: httpx2.AsyncClient, wrong: dict[str, object], code: str) -> None:
    vote = {"session_id": str(uuid4()), "request_id": str(uuid4()), "vote": "up"}
    assert problem(await http.post("/api/v1/feedback", json={**vote, **wrong})) == (400, code)


async def test_a_vote_must_be_said(http: httpx2.AsyncClient) -> None:
    refused = await http.post("/api/v1/feedback", json=await answered(http))
    assert problem(refused) == (400, "VALIDATION_ERROR")


async def test_authors_are_told_how_readers_voted(http: httpx2.AsyncClient) -> None:
    path = f"/api/v1/projects/{DEFAULT.id}/feedback"
    before = (await http.get(path, params={"limit": 1000})).json()
    given = {vote: await answered(http, query) for vote, query in (("up", COVERED), ("down", UNCOVERED))}
    for vote, answer in given.items():
        await http.post("/api/v1/feedback", json={**answer, "vote": vote})
    body = (await http.get(path, params={"limit": 2})).json()
    assert (body["up"], body["down"]) == (before["up"] + 1, before["down"] + 1)
    assert [(one["question"], one["vote"]) for one in body["last"]] == [(UNCOVERED, "down"), (COVERED, "up")]
    for one, vote in zip(body["last"], ("down", "up"), strict=True):
        assert set(one) == {"question", "answer", "vote", "at"}
        (entry,) = (await http.get(f"/history/{given[vote]['session_id']}")).json()["entries"]
        assert one["at"] == entry["timestamp"]
        assert one["answer"] == entry["response"][:300]
    (worst,) = (await http.get(path, params={"limit": 1, "vote": "up"})).json()["last"]
    assert worst["question"] == COVERED


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 1001}, {"vote": "sideways"}])
async def test_what_makes_no_sense_to_ask_of_the_votes_is_refused(
    http: httpx2.AsyncClient, wrong: dict[str, str]
) -> None:
    refused = await http.get(f"/api/v1/projects/{DEFAULT.id}/feedback", params=wrong)
    assert problem(refused) == (400, "VALIDATION_ERROR")
