"""Everything works through PgBouncer in transaction mode, where each transaction may have another connection."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import text

from citewell.adapters.sql import Database, sole_writer
from citewell.errors import IngestRunning
from tests.conftest import Citewell, ready, serving
from tests.fakes.pgbouncer import CONNECTIONS, PgBouncer
from tests.fakes.postgres import CannotStart, PostgresServer

CLIENTS, TRANSACTIONS = 4 * CONNECTIONS, 20


@pytest.fixture(scope="module")
def bouncer(postgres_server: PostgresServer) -> Iterator[PgBouncer]:
    try:
        bouncer = PgBouncer(postgres_server)
    except CannotStart as error:
        pytest.skip(str(error))
    yield bouncer
    bouncer.remove()


@pytest.fixture
def url(bouncer: PgBouncer, postgres_server: PostgresServer) -> str:
    return bouncer.url(ready(postgres_server))


@pytest.mark.anyio
async def test_many_clients_share_few_connections_and_none_gets_another_s_answer(url: str) -> None:
    databases = [await Database.open(url) for _ in range(CLIENTS)]
    served = set[int]()

    async def work(number: int, database: Database) -> None:
        for turn in range(TRANSACTIONS):
            async with database.writing() as connection:
                # Each client its own statement, and the same ones with other values.
                own = await connection.scalar(text(f"SELECT {number} + cast(:turn AS integer)"), {"turn": turn})
                assert own == number + turn
                facts = [{"name": f"{number} {turn} {one}", "value": "x"} for one in range(3)]
                await connection.execute(text("INSERT INTO facts VALUES (:name, :value)"), facts)
                served.add(await connection.scalar(text("SELECT pg_backend_pid()")) or 0)

    await asyncio.gather(*(work(number, database) for number, database in enumerate(databases)))
    async with databases[0].reading() as connection:
        assert await connection.scalar(text("SELECT count(*) FROM facts")) == CLIENTS * TRANSACTIONS * 3
        named = await connection.scalar(text("SELECT count(*) FROM pg_prepared_statements"))
    assert 1 < len(served) <= CONNECTIONS
    assert named == 0, "nothing piles up in the server"
    for database in databases:
        await database.close()


@pytest.mark.anyio
async def test_the_right_to_write_is_its_holder_s_whatever_connection_it_gets(url: str) -> None:
    one, other = await Database.open(url), await Database.open(url)

    async def nothing(_: object) -> None:
        pass

    async with sole_writer(one, None, wait=False, on_wait=lambda: None, last_out=nothing):
        for _ in range(3 * CONNECTIONS):
            with pytest.raises(IngestRunning):
                async with sole_writer(other, None, wait=False, on_wait=lambda: None, last_out=nothing):
                    pass
            async with one.writing() as connection:
                await connection.execute(text("SELECT 1"))
    async with sole_writer(other, None, wait=False, on_wait=lambda: None, last_out=nothing):
        pass
    await one.close()
    await other.close()


def test_files_uploads_and_conversations_go_through_it(
    bouncer: PgBouncer, postgres_server: PostgresServer, citewell: Citewell, home: Path, docs: Path
) -> None:
    environment = {"DATABASE_URL": bouncer.url(postgres_server.create()), "CITEWELL_EMBEDDER": "hashing"}
    assert citewell("ingest", str(docs), **environment).returncode == 0  # into a database that is empty
    assert "Fill the casing with water" in citewell("ask", "How is a pump primed?", **environment).stdout
    (docs / "04-taps.md").write_text("# Taps\n\nA tap drips when its washer is worn.\n")
    with serving(home, **environment) as address:
        sent = citewell("documents", "upload", str(docs / "04-taps.md"), "--server", address, **environment)
        assert sent.returncode == 0, sent.stderr
        with httpx2.Client(base_url=address, timeout=60) as client:
            for _ in range(2):
                asked = {"query": "When does a tap drip?", "session_id": "7b1a6b0e-6a5c-4b0f-8d0e-2f6f3c1f2a10"}
                answer = client.post("/chat", json=asked, headers={"Idempotency-Key": "once"})
                assert "washer is worn" in answer.json()["answer"]
            assert client.get(f"/history/{asked['session_id']}").json()["total_entries"] == 1
            assert client.get("/health").json()["services"]["database"]["status"] == "healthy"
    # The server had the first generation open when the second one was published.
    assert set(citewell("doctor", "--fix", **environment).stdout.splitlines()) <= {
        "index: 1 is left over",
        "Repaired.",
        "All is well.",
    }
    assert citewell("doctor", **environment).stdout.strip() == "All is well."
