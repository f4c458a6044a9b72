"""Everything that runs on SQLite runs on PostgreSQL: the whole way from a file to an answer."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from citewell import wiring
from citewell.errors import IngestRunning, SettingsError
from tests.conftest import Citewell, settings_for
from tests.fakes.postgres import PostgresServer


def test_files_are_planned_ingested_asked_and_proven_on_postgresql(
    citewell: Citewell, home: Path, docs: Path, postgres_server: PostgresServer
) -> None:
    url = postgres_server.create(name="book")

    def run(*arguments: str) -> tuple[str, str]:
        done = citewell(*arguments, DATABASE_URL=url.replace("postgresql://", "postgres://"))
        assert done.returncode in (0, 3), done.stderr
        return done.stdout, done.stderr

    planned = json.loads(run("ingest", str(docs), "--plan", "--json")[0])
    assert planned["chunks_added"] == 5
    assert not home.exists()
    assert postgres_server.run("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", database="book") == "0"
    assert json.loads(run("ingest", str(docs), "--json")[0])["chunks_created"] == 5
    assert not (home / "citewell.db").exists()
    assert "Fill the casing with water" in run("ask", "How is a pump primed?")[0]
    (docs / "02-valves.md").unlink()
    run("ingest", str(docs), "--prune")
    assert postgres_server.run("SELECT count(*) FROM past_chunks", database="book") == "2"
    postgres_server.run("INSERT INTO texts VALUES ('h', 'an orphan')", database="book")
    assert "1 texts that no document has" in run("doctor", "--fix", "--vacuum")[0]
    assert run("doctor")[0].strip() == "All is well."


def test_ingests_from_two_home_folders_into_one_database_exclude_each_other(tmp_path: Path, postgres_url: str) -> None:
    here, there = (settings_for(tmp_path / name, database_url=postgres_url) for name in ("here", "there"))

    async def both() -> None:
        async with (
            wiring.open_for_ingest(here, wait=False, on_wait=lambda: None),
            wiring.open_for_ingest(there, wait=False, on_wait=lambda: None),
        ):
            raise AssertionError("both may write")

    async def one_after_the_other() -> list[str]:
        told: list[str] = []
        waits = asyncio.Event()

        async def second() -> None:
            async with wiring.open_for_ingest(there, wait=True, on_wait=waits.set):
                told.append("second")

        async with wiring.open_for_ingest(here, wait=True, on_wait=lambda: None):
            task = asyncio.create_task(second())
            await waits.wait()
            told.append("first")
        await task
        return told

    with pytest.raises(IngestRunning, match="already in progress"):
        asyncio.run(both())
    assert asyncio.run(one_after_the_other()) == ["first", "second"]


def test_a_wrong_url_is_told_before_anything_starts(citewell: Citewell) -> None:
    for command in (["ask", "What is a pump?"], ["serve", "--port", "0"]):
        done = citewell(*command, DATABASE_URL="mysql://root:hunter2@db/book")
        assert done.returncode == 1
        assert "'mysql'; it must look like postgresql://" in done.stderr
        assert "hunter2" not in done.stderr


def test_a_database_that_is_not_there_is_named(citewell: Citewell, postgres_server: PostgresServer) -> None:
    done = citewell("ask", "What is a pump?", DATABASE_URL=postgres_server.url("nowhere"))
    assert done.returncode == 1
    assert "the database 'nowhere' at 127.0.0.1 cannot be opened" in done.stderr
    assert "secret" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_its_driver_the_package_to_install_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)  # as if it were not installed
    with pytest.raises(SettingsError, match=r"pip install 'citewell\[postgres\]'"):
        wiring.check_settings(settings_for(home, database_url="postgresql://u:p@db/book"))
