"""Unanswered questions of every endpoint are recorded and listed for authors."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from citewell.settings import Settings
from tests.conftest import Citewell, settings_for
from tests.http.conftest import COVERED, DEFAULT, ingest_folder, problem, running

pytestmark = pytest.mark.anyio

GAPS = f"/api/v1/projects/{DEFAULT.id}/gaps"
ENDPOINTS: dict[str, dict[str, Any]] = {
    "/api/ask": {"question": "{}"},
    "/api/ask/stream": {"question": "{}"},
    "/api/query": {"query": "{}"},
    "/chat": {"query": "{}"},
    "/chat/stream": {"query": "{}"},
    "/api/v1/chat": {"message": "{}", "projectId": str(DEFAULT.id)},
    "/api/v1/chat/stream": {"message": "{}", "projectId": str(DEFAULT.id)},
}


@pytest.fixture
async def clear(http: httpx2.AsyncClient) -> httpx2.AsyncClient:
    """The book's server, with no gaps yet."""
    assert (await http.delete(GAPS)).status_code == 204
    return http


async def noted(http: httpx2.AsyncClient, question: str) -> list[tuple[str, int]]:
    """Every gap, once this one is among them: they are recorded after the answer."""
    async with asyncio.timeout(30):
        while True:
            gaps = (await http.get(GAPS)).json()["gaps"]
            if any(gap["question"] == question for gap in gaps):
                return [(one["question"], one["times"]) for one in gaps]
            await asyncio.sleep(0.01)


async def ask(http: httpx2.AsyncClient, endpoint: str, question: str, **more: object) -> None:
    body = {name: value.replace("{}", question) for name, value in ENDPOINTS[endpoint].items()}
    assert (await http.post(endpoint, json={**body, **more})).status_code == 200


async def test_every_endpoint_notes_what_it_could_not_answer(clear: httpx2.AsyncClient) -> None:
    for number, endpoint in enumerate(ENDPOINTS):
        await ask(clear, endpoint, f"How long does a chicken roast in oven number {number}?")
    last = f"How long does a chicken roast in oven number {len(ENDPOINTS) - 1}?"
    told = await noted(clear, last)
    assert told == [
        (last.replace(str(len(ENDPOINTS) - 1), str(number)), 1) for number in reversed(range(len(ENDPOINTS)))
    ]


async def test_a_gap_says_how_often_it_was_asked_and_when_last(clear: httpx2.AsyncClient) -> None:
    for question in ("How long does a chicken roast?", "Who composed the opera Aida?", "how long does a chicken ROAST"):
        await ask(clear, "/api/ask", question)
    assert await noted(clear, "how long does a chicken ROAST") == [
        ("how long does a chicken ROAST", 2),
        ("Who composed the opera Aida?", 1),
    ]
    (first,) = (await clear.get(GAPS, params={"limit": 1})).json()["gaps"]
    assert set(first) == {"question", "times", "lastAskedAt"}
    assert (await clear.delete(GAPS)).status_code == 204
    assert (await clear.get(GAPS)).json() == {"gaps": []}


async def test_a_follow_up_is_noted_as_it_was_understood(clear: httpx2.AsyncClient) -> None:
    session = str(uuid4())
    await ask(clear, "/chat", "Who composed the opera Aida?", session_id=session)
    await ask(clear, "/chat", "When was it performed?", session_id=session)
    understood = "When was it performed (composed the opera Aida)?"
    assert await noted(clear, understood) == [(understood, 1), ("Who composed the opera Aida?", 1)]


async def test_what_is_covered_narrowed_selected_courteous_or_repeated_is_no_gap(clear: httpx2.AsyncClient) -> None:
    await ask(clear, "/chat", COVERED)
    await ask(clear, "/chat", "Why is the sky blue?", selected_text="A valve stops the flow.")
    await ask(clear, "/chat", COVERED, filters={"section": "Nowhere"})
    for said in ("Thank you!", "Hello", "Tell me more"):
        await ask(clear, "/chat", said)
    word = {"Idempotency-Key": str(uuid4())}
    for _ in range(2):
        assert (await clear.post("/chat", json={"query": "Who painted Guernica?"}, headers=word)).status_code == 200
    await ask(clear, "/api/ask", "How long does a chicken roast?")
    assert await noted(clear, "How long does a chicken roast?") == [
        ("How long does a chicken roast?", 1),
        ("Who painted Guernica?", 1),
    ]


async def test_what_was_asked_last_is_kept_when_the_server_goes(home: Path, docs: Path, citewell: Citewell) -> None:
    settings = await pumps(home, docs)
    empty = await asyncio.to_thread(citewell, "gaps")
    assert (empty.returncode, empty.stdout.count("\n")) == (0, 1)
    async with running(settings) as http:
        await ask(http, "/api/ask", "Who feeds the octopus?")
    shown = await asyncio.to_thread(citewell, "gaps")
    assert shown.stdout.strip().endswith("1×  Who feeds the octopus?")
    (told,) = json.loads((await asyncio.to_thread(citewell, "gaps", "--json")).stdout)["gaps"]
    assert (told["question"], told["times"]) == ("Who feeds the octopus?", 1)
    wrong = await asyncio.to_thread(citewell, "gaps", "--project", "nosuch")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "there is no project 'nosuch'; there are default" in wrong.stderr


async def test_a_database_that_takes_nothing_delays_no_answer_and_fails_none(home: Path, docs: Path) -> None:
    settings = await pumps(home, docs)
    async with running(settings) as http:
        with closing(sqlite3.connect(home / "citewell.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # it would wait for five seconds before it gave up
            for number in range(20):
                answered = await http.post("/api/ask", json={"question": f"Who feeds octopus number {number}?"})
                assert answered.json()["confidence"] == 0
            assert (await http.get(GAPS)).json() == {"gaps": []}, "all were answered before any could be kept"
            other.execute("ROLLBACK")
        await ask(http, "/api/ask", "Who feeds the whale?")
        assert (await noted(http, "Who feeds the whale?"))[0] == ("Who feeds the whale?", 1)


async def pumps(home: Path, docs: Path) -> Settings:
    settings = settings_for(home, embedder="hashing")
    await asyncio.to_thread(ingest_folder, settings, docs)
    return settings


@pytest.mark.parametrize("limit", ["0", "1001", "many"])
async def test_a_limit_that_makes_no_sense_is_refused(http: httpx2.AsyncClient, limit: str) -> None:
    assert problem(await http.get(GAPS, params={"limit": limit})) == (400, "VALIDATION_ERROR")
