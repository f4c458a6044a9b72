"""Two processes ingest two projects of one PostgreSQL at the same time, and neither deletes what the other needs."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from citewell.adapters.sql import Database
from citewell.ingest.doctor import examine
from citewell.models import Project
from tests.conftest import ready
from tests.fakes.postgres import PostgresServer
from tests.ingest.own_indexes import opener

ROOT = Path(__file__).parents[2]
PUMPS = "# Pumps\n\nA pump moves water.\n"
SHARED = "# Valves\n\nA valve stops the flow, and both projects say so.\n"


class Ingest:
    """A process that ingests a folder into a project of the folder's name, step by step."""

    def __init__(self, url: str, home: Path, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.ingest.own_indexes", url, str(home), folder.name, str(folder)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._waits = False

    def until(self, step: str) -> None:
        """Let it go on until it is about to take this step."""
        assert self._process.stdin
        assert self._process.stdout
        line = ""
        while line != step:
            if self._waits:
                self._process.stdin.write("\n")
                self._process.stdin.flush()
            line = self._process.stdout.readline().strip()
            assert line, "it ended"
            self._waits = True

    def finish(self) -> None:
        self.until("left")
        assert self._process.communicate(timeout=60)
        assert self._process.returncode == 0

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=60)


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    return ready(postgres_server)


def folder(place: Path, **pages: str) -> Path:
    place.mkdir(exist_ok=True)
    for old in place.iterdir():
        old.unlink()
    for name, text in pages.items():
        (place / f"{name}.md").write_text(text)
    return place


def ingest(url: str, home: Path, source: Path) -> None:
    process = Ingest(url, home, source)
    process.finish()


def problems(url: str, home: Path, *names: str) -> list[str]:
    async def run() -> list[str]:
        database, found = await Database.open(url), list[str]()
        for name in names:
            async with opener(database, home)(Project.named(name).id) as engines:
                found += await examine(engines)
        await database.close()
        return found

    return asyncio.run(run())


def without_embedding(server: PostgresServer, url: str, name: str) -> str:
    """How many chunks of a project would have to be embedded again."""
    return server.run(
        "SELECT count(*) FROM chunks JOIN documents ON documents.id = chunks.document_id "
        "WHERE embedding_key NOT IN (SELECT text_hash FROM embeddings) "
        f"AND documents.project_id = '{Project.named(name).id}'",
        database=url.rpartition("/")[2],
    )


def test_a_commit_leaves_what_a_parallel_ingest_has_stored_or_read(
    url: str, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    """One commits, and cleans up, between each two steps of the other."""
    home, ours = tmp_path / "home", tmp_path / "ours"
    shared = {stop: f"# Valves\n\nA valve at the {stop} stops the flow.\n" for stop in ("stage", "commit")}
    ingest(url, home, folder(ours, pumps=PUMPS, **shared))
    for stop, page in shared.items():
        # It finds the text and the embedding of the shared page in the database, and stores another page.
        slow = Ingest(url, home, folder(tmp_path / stop, valves=page, taps=f"# Taps\n\nA tap drips at the {stop}.\n"))
        slow.until(stop)
        (ours / f"{stop}.md").unlink()
        ingest(url, home, ours)
        slow.finish()
        assert problems(url, home, "ours", stop) == []
        assert without_embedding(postgres_server, url, stop) == "0"


def test_two_ingests_of_one_project_exclude_each_other_and_two_projects_do_not(url: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    ours = Ingest(url, home, folder(tmp_path / "ours", valves=SHARED))
    ours.until("commit")
    theirs = Ingest(url, home, folder(tmp_path / "theirs", valves=SHARED))
    theirs.until("commit")  # both are in the middle
    again = Ingest(url, home, tmp_path / "ours")
    with pytest.raises(AssertionError, match="it ended"):
        again.until("stage")
    again.kill()
    for process in (theirs, ours):
        process.finish()
    assert problems(url, home, "ours", "theirs") == []


def test_what_a_killed_ingest_left_is_cleaned_up_by_the_next_of_its_project_and_by_no_other(
    url: str, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    home, database = tmp_path / "home", url.rpartition("/")[2]
    killed = Ingest(url, home, folder(tmp_path / "ours", valves=SHARED))
    killed.until("commit")
    killed.kill()
    ingest(url, home, folder(tmp_path / "theirs", taps="# Taps\n\nA tap drips.\n"))
    assert postgres_server.run("SELECT count(*) FROM staged_documents", database=database) == "1"
    postgres_server.run("UPDATE leases SET expires_at = clock_timestamp()", database=database)
    ingest(url, home, tmp_path / "ours")
    assert problems(url, home, "ours", "theirs") == []
