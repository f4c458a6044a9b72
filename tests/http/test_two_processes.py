"""Two API processes on one PostgreSQL: an exchange is stored once, whichever of them gets the retry."""

import asyncio
import random
from collections import Counter
from itertools import cycle
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from tests.conftest import ready, serving
from tests.fakes.postgres import PostgresServer

pytestmark = pytest.mark.anyio

WRITES = 1000
SESSIONS = 25
AT_ONCE = 12
RETRIED = 0.2
SELECTION = "A pump moves water uphill. A valve stops the flow."


@pytest.fixture
def database_url(postgres_server: PostgresServer) -> str:
    return ready(postgres_server)


async def test_a_thousand_interleaved_writes_are_neither_lost_nor_doubled(database_url: str, tmp_path: Path) -> None:
    environment = {
        "DATABASE_URL": database_url,
        "CITEWELL_EMBEDDER": "hashing",
        "CITEWELL_MAX_CONCURRENT_REQUESTS": str(4 * AT_ONCE),
    }
    one, other = serving(tmp_path / "one", **environment), serving(tmp_path / "other", **environment)
    chance = random.Random(5)
    sessions = [str(uuid4()) for _ in range(SESSIONS)]
    told: dict[str, set[str]] = {}

    with one as here, other as there:
        async with httpx2.AsyncClient(timeout=60) as client:
            work = iter([(number, sessions[number % SESSIONS], chance.random()) for number in range(WRITES)])
            turns = cycle([(here, there), (there, here)])

            async def post(address: str, session: str, query: str) -> None:
                body = {"query": query, "session_id": session, "selected_text": SELECTION}
                answer = await client.post(f"{address}/chat", json=body, headers={"Idempotency-Key": query})
                assert answer.status_code == 200, answer.text
                told.setdefault(query, set()).add(answer.json()["metadata"]["request_id"])

            async def write() -> None:
                for number, session, luck in work:
                    first, second = next(turns)
                    query = f"What moves water, {number}?"
                    if luck < RETRIED / 2:  # impatient: the retry overtakes, or the two meet
                        await asyncio.gather(post(first, session, query), post(second, session, query))
                        continue
                    await post(first, session, query)
                    if luck < RETRIED:
                        await post(second, session, query)

            await asyncio.gather(*(write() for _ in range(AT_ONCE)))
            kept = Counter[str]()
            for place, session in enumerate(sessions):
                history = (await client.get(f"{(here, there)[place % 2]}/history/{session}?limit=1000")).json()
                assert history["total_entries"] == WRITES // SESSIONS
                assert all(entry["complete"] for entry in history["entries"])
                kept.update(entry["query"] for entry in history["entries"])
    assert kept == Counter(f"What moves water, {number}?" for number in range(WRITES))
    assert all(len(ids) == 1 for ids in told.values()), "a retry is told what the first try was"
