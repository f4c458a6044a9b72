"""What is said of a database that is missing, empty or damaged: by every command, by the doctor and by a server."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from tests.conftest import Citewell, serving, take_in

HASHING = {"CITEWELL_EMBEDDER": "hashing"}
WAYS_OUT = (
    "restore a backup with `citewell restore FILE`, or index the source folders again with "
    "`citewell ingest --rebuild PATH…`"
)
PAGE = 4096


@pytest.fixture
def filled(home: Path, docs: Path) -> Path:
    """The database of a home with three pages and their index."""
    for number in range(40):
        (docs / f"page-{number}.md").write_text(f"# Page {number}\n\n" + f"Valve {number} opens at noon. " * 200)
    take_in(home, docs, embedder="hashing")
    return home / "citewell.db"


def empty(database: Path) -> None:
    database.write_bytes(b"")


def remove(database: Path) -> None:
    database.unlink()


def cut(database: Path) -> None:
    os.truncate(database, int(database.stat().st_size * 0.999))


def halve(database: Path) -> None:
    os.truncate(database, database.stat().st_size // PAGE // 2 * PAGE)


def flip_pages(database: Path) -> None:
    pages = database.stat().st_size // PAGE
    with database.open("r+b") as file:
        for page in range(2, pages, pages // 5):
            file.seek(page * PAGE)
            flipped = bytes(byte ^ 0xFF for byte in file.read(PAGE))
            file.seek(page * PAGE)
            file.write(flipped)


def overwrite(database: Path) -> None:
    database.write_text("This is not a database. " * 1000)


def take_tables_away(database: Path) -> None:
    database.unlink()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("VACUUM")  # a database without a table


def make_newer(database: Path) -> None:
    change(database, "UPDATE alembic_version SET version_num = '0999'")


def change(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(statement)
        connection.commit()


DAMAGE: list[tuple[Callable[[Path], None], str]] = [
    (empty, f"it is empty, although there is an index of its documents; {WAYS_OUT}"),
    (remove, f"it is missing, although there is an index of its documents; {WAYS_OUT}"),
    (take_tables_away, f"it is empty, although there is an index of its documents; {WAYS_OUT}"),
    (cut, f"it is damaged (its end is missing); {WAYS_OUT}"),
    (halve, f"it is damaged (database disk image is malformed); {WAYS_OUT}"),
    (overwrite, f"it is not a SQLite database; {WAYS_OUT}"),
    (make_newer, "it was made by a newer version of Citewell"),
]


def name_of(value: object) -> str:
    return getattr(value, "__name__", "")


@pytest.mark.parametrize(("harm", "says"), DAMAGE, ids=name_of)
def test_every_command_says_what_is_wrong_and_creates_nothing(
    citewell: Citewell, filled: Path, docs: Path, harm: Callable[[Path], None], says: str
) -> None:
    harm(filled)
    before = filled.read_bytes() if filled.exists() else None
    doctor = citewell("doctor", **HASHING)
    assert doctor.returncode == 1
    assert doctor.stdout.startswith(f"database: {says}")
    assert "All is well." not in doctor.stdout
    for command in (["ask", "What opens?"], ["ingest", str(docs)], ["ingest", str(docs), "--plan"], ["keys", "list"]):
        done = citewell(*command, **HASHING)
        assert done.returncode == 1, command
        assert f"the database {filled} cannot be used: {says}" in done.stderr
        assert "Traceback" not in done.stderr
    assert citewell("doctor", "--fix", **HASHING).returncode == 1
    assert (filled.read_bytes() if filled.exists() else None) == before, "nothing was created or changed"


def test_flipped_pages_are_found_by_the_doctor(citewell: Citewell, filled: Path) -> None:
    flip_pages(filled)
    doctor = citewell("doctor", **HASHING)
    assert doctor.returncode == 1
    assert doctor.stdout.startswith("database: it is damaged (")
    assert WAYS_OUT in doctor.stdout
    assert "Traceback" not in doctor.stderr


def test_a_changed_letter_of_a_document_is_found_by_the_doctor(citewell: Citewell, filled: Path) -> None:
    content = filled.read_bytes()
    assert b"Copper pipes carry hot water" in content
    filled.write_bytes(content.replace(b"Copper pipes carry hot water", b"Copper pipes carry cold water"[:28]))
    doctor = citewell("doctor", **HASHING)
    assert doctor.returncode == 1
    assert "it is damaged (the texts of 1 documents are not what was indexed)" in doctor.stdout


@pytest.mark.parametrize("harm", [remove, empty, cut, halve, flip_pages, overwrite], ids=name_of)
def test_a_rebuild_starts_from_the_folders_and_keeps_the_damaged_file(
    citewell: Citewell, filled: Path, docs: Path, harm: Callable[[Path], None]
) -> None:
    intact = citewell("ingest", str(docs), "--rebuild", **HASHING)
    assert intact.returncode == 1
    assert "--rebuild is for a database that is missing or damaged" in intact.stderr
    harm(filled)
    damaged = filled.read_bytes() if harm in (cut, halve, flip_pages, overwrite) else None
    planned = json.loads(citewell("ingest", str(docs), "--rebuild", "--plan", "--json", **HASHING).stdout)
    assert len(planned["added"]) == 43
    rebuilt = citewell("ingest", str(docs), "--rebuild", "--json", **HASHING)
    assert json.loads(rebuilt.stdout)["files_processed"] == 43
    if damaged is not None:
        (kept,) = filled.parent.glob("citewell.db.damaged-*")
        assert kept.read_bytes() == damaged
        assert str(kept) in rebuilt.stderr
    assert citewell("doctor", **HASHING).stdout.strip() == "All is well."
    assert "moves water uphill" in citewell("ask", "What does a pump do?", **HASHING).stdout


def test_a_server_without_its_database_starts_says_why_and_recovers(
    citewell: Citewell, filled: Path, tmp_path: Path
) -> None:
    backup = tmp_path / "backup.db"
    assert citewell("backup", str(backup), **HASHING).returncode == 0
    remove(filled)
    server = serving(filled.parent, **HASHING)
    with server as address, httpx2.Client(base_url=address, timeout=60) as http:
        assert f"the database {filled} cannot be used: it is missing" in server.log
        assert _database_health(http) == ("unavailable", DAMAGE[1][1])
        assert _asks(http) == (503, "SERVICE_UNAVAILABLE"), "whether it takes a key is not known yet"
        assert citewell("restore", str(backup), **HASHING).returncode == 0
        assert _database_health(http) == ("healthy", "")
        assert _asks(http) == (200, "")


@pytest.mark.parametrize(("harm", "says"), [DAMAGE[0], DAMAGE[1], DAMAGE[4], DAMAGE[5]], ids=name_of)
def test_a_running_server_notices_damage_and_a_restored_database(
    citewell: Citewell, filled: Path, tmp_path: Path, harm: Callable[[Path], None], says: str
) -> None:
    backup = tmp_path / "backup.db"
    with serving(filled.parent, **HASHING) as address, httpx2.Client(base_url=address, timeout=60) as http:
        session = http.post("/chat", json={"query": "What does a pump do?"}).json()["session_id"]
        assert citewell("backup", str(backup), **HASHING).returncode == 0
        with closing(sqlite3.connect(filled)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        harm(filled)
        history = http.get(f"/history/{session}")
        assert (history.status_code, history.json()["message"]) == (503, f"the database cannot be used: {says}")
        assert _database_health(http) == ("unavailable", says)
        assert citewell("restore", str(backup), **HASHING).stdout.endswith("All is well.\n")
        assert http.get(f"/history/{session}").json()["total_entries"] == 1
        assert _database_health(http) == ("healthy", "")
    assert citewell("doctor", "--fix", **HASHING).returncode in (0, 3), "the generation that the server had is left"


def test_an_empty_home_is_new_and_a_file_of_another_program_is_left_alone(citewell: Citewell, home: Path) -> None:
    assert citewell("doctor", **HASHING).stdout.strip() == "All is well."
    shutil.rmtree(home)
    home.mkdir()
    with closing(sqlite3.connect(home / "citewell.db")) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    before = (home / "citewell.db").read_bytes()
    done = citewell("keys", "list", **HASHING)
    assert done.returncode == 1
    assert "it is not Citewell's: it has a table 'bookmarks' of another program" in done.stderr
    assert (home / "citewell.db").read_bytes() == before


def _database_health(http: httpx2.Client) -> tuple[str, str]:
    database = http.get("/health").json()["services"]["database"]
    return database["status"], (database["error"] or "").removeprefix("the database cannot be used: ")


def _asks(http: httpx2.Client) -> tuple[int, str]:
    response = http.post("/api/ask", json={"question": "What does a pump do?"})
    return response.status_code, response.json().get("error_code", "")
