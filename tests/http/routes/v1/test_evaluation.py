"""`GET /api/v1/projects/{id}/evaluation`: the scores of the last `citewell eval`."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner, Result

from citewell.cli import main
from citewell.settings import Settings
from tests.conftest import settings_for
from tests.http.conftest import DEFAULT, ingest_folder, running

PRIMING = {"text": "What should I do before the first start?", "relevant": ["01-pumps.md"], "answers": ["casing"]}
OFF_TOPIC = {"text": "How do I get red wine out of a carpet?", "unanswerable": True}


@pytest.fixture
def settings(home: Path, docs: Path, database_url: str | None, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A home with three pages, in the place where `citewell` looks for it."""
    monkeypatch.setenv("CITEWELL_HOME", str(home))
    monkeypatch.setenv("CITEWELL_EMBEDDER", "hashing")
    if database_url:
        monkeypatch.setenv("DATABASE_URL", database_url)
    settings = settings_for(home, database_url=database_url, embedder="hashing")
    ingest_folder(settings, docs)
    return settings


def evaluate(folder: Path, *questions: dict[str, Any], options: tuple[str, ...] = ("--json",)) -> Result:
    path = folder / "questions.jsonl"
    path.write_text("".join(f"{json.dumps(question)}\n" for question in questions), encoding="utf-8")
    return CliRunner().invoke(main, ["eval", str(path), *options])


def shown(settings: Settings) -> httpx2.Response:
    async def look() -> httpx2.Response:
        async with running(settings) as http:
            return await http.get(f"/api/v1/projects/{DEFAULT.id}/evaluation")

    return asyncio.run(look())


def test_the_last_scores_are_shown_as_they_were_printed(settings: Settings, tmp_path: Path) -> None:
    assert shown(settings).json() == {"at": None, "questions": 0, "scores": {}}
    evaluate(tmp_path, PRIMING)
    failed = evaluate(tmp_path, PRIMING, OFF_TOPIC, options=("--json", "--min", "mean_characters=9999"))
    assert failed.exit_code == 1, "what fails a build is shown as well"
    body = shown(settings).json()
    assert set(body) == {"at", "questions", "scores"}
    assert body["questions"] == 2
    assert body["scores"] == json.loads(failed.stdout)["scores"]
    assert body["scores"]["heading_hit@5"] == {"value": None, "low": None, "high": None, "n": 0}


def test_a_database_that_cannot_be_written_costs_a_warning_and_no_score(
    settings: Settings, tmp_path: Path, home: Path
) -> None:
    if settings.database_url:
        asyncio.run(_only_read(settings.database_url.get_secret_value()))
        done = evaluate(tmp_path, PRIMING)
    else:
        with closing(sqlite3.connect(home / "citewell.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            done = evaluate(tmp_path, PRIMING)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["scores"]["hit@5"]["value"] == 1.0
    assert "warning: the scores were not saved" in done.stderr


async def _only_read(url: str) -> None:
    import asyncpg

    connection = await asyncpg.connect(url)
    name = await connection.fetchval("SELECT quote_ident(current_database())")
    await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    await connection.close()
