"""`citewell backup` and `citewell restore`: what is saved comes back whole, and a killed command breaks nothing."""

import fcntl
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import IO

import httpx2
import pytest

from tests.commands import Command
from tests.conftest import Citewell, serving, take_in

HASHING = {"CITEWELL_EMBEDDER": "hashing"}


@pytest.fixture
def saved(citewell: Citewell, home: Path, docs: Path, tmp_path: Path) -> Path:
    """A backup of a home with three pages."""
    take_in(home, docs, embedder="hashing")
    file = tmp_path / "saved.db"
    assert citewell("backup", str(file), **HASHING).returncode == 0
    return file


def test_a_backup_holds_everything_and_says_so(citewell: Citewell, home: Path, docs: Path, tmp_path: Path) -> None:
    take_in(home, docs, embedder="hashing")
    file = tmp_path / "copy.db"
    with serving(home, **HASHING) as address:
        session = httpx2.post(f"{address}/chat", json={"query": "What is a pump?"}, timeout=60).json()["session_id"]
        done = citewell("backup", str(file), **HASHING)
    assert re.fullmatch(rf"{file}: 3 documents, 5 chunks, 1 sessions \(0\.\d MB\); checked\.\n", done.stdout)
    assert file.stat().st_mode & 0o077 == 0, "it has conversations in it"
    assert {path.name for path in tmp_path.glob("copy*")} == {"copy.db"}, "one file"
    before = chunk_ids_of(home)
    other = tmp_path / "other"
    restored = citewell("restore", str(file), home=other, **HASHING)
    assert restored.returncode == 0
    assert restored.stdout.endswith(f"Restored to {other}.\nAll is well.\n")
    assert chunk_ids_of(other) == before
    with serving(other, **HASHING) as address:
        assert httpx2.get(f"{address}/history/{session}", timeout=60).json()["total_entries"] == 1
    assert citewell("ingest", str(docs), "--json", home=other, **HASHING).returncode == 0
    assert "moves water uphill" in citewell("ask", "What does a pump do?", home=other, **HASHING).stdout


def test_a_restore_embeds_nothing(citewell: Citewell, home: Path, docs: Path, tmp_path: Path) -> None:
    take_in(home, docs, embedder="hashing")
    file = tmp_path / "copy.db"
    with closing(sqlite3.connect(home / "citewell.db")) as connection:
        connection.execute("UPDATE embeddings SET vectors = zeroblob(length(vectors))")
        connection.commit()
    citewell("backup", str(file), **HASHING)
    assert citewell("restore", str(file), home=tmp_path / "other", **HASHING).returncode == 0
    with closing(sqlite3.connect(tmp_path / "other" / "citewell.db")) as connection:
        assert (
            connection.execute("SELECT count(*) FROM embeddings WHERE vectors <> zeroblob(length(vectors))").fetchone()[
                0
            ]
            == 0
        )


def test_a_backup_overwrites_nothing_unless_told_to(citewell: Citewell, saved: Path, home: Path, docs: Path) -> None:
    before = saved.read_bytes()
    refused = citewell("backup", str(saved), **HASHING)
    assert (refused.returncode, saved.read_bytes()) == (1, before)
    assert f"{saved} exists already; name another file, or overwrite it with --force" in refused.stderr
    (docs / "04-taps.md").write_text("# Taps\n\nA tap drips.\n")
    take_in(home, docs, embedder="hashing")
    forced = json.loads(citewell("backup", str(saved), "--force", "--json", **HASHING).stdout)
    assert (forced["documents"], forced["embedding_models"]) == (4, ["hashing-64"])
    for target, says in (
        (home / "citewell.db", "is the database itself"),
        (home, "is not a file"),
        (home / "no" / "such.db", "there is no folder"),
    ):
        assert says in citewell("backup", str(target), "--force", **HASHING).stderr
    (home / "link.db").symlink_to(saved)
    assert "is a symbolic link" in citewell("backup", str(home / "link.db"), "--force", **HASHING).stderr


def test_a_home_with_documents_is_replaced_only_with_force_and_kept_aside(
    citewell: Citewell, saved: Path, home: Path, docs: Path
) -> None:
    (docs / "04-taps.md").write_text("# Taps\n\nA tap drips.\n")
    take_in(home, docs, embedder="hashing")
    refused = citewell("restore", str(saved), **HASHING)
    assert refused.returncode == 1
    assert f"{home} has documents or conversations already; replace them with --force" in refused.stderr
    assert len(documents(citewell, home)) == 4
    forced = citewell("restore", str(saved), "--force", **HASHING)
    assert forced.returncode == 0
    assert len(documents(citewell, home)) == 3
    (kept,) = home.glob("citewell.db.replaced-*")
    assert str(kept) in forced.stdout
    assert citewell("restore", str(kept), "--force", **HASHING).returncode == 0, "what was replaced is a backup, too"
    assert len(documents(citewell, home)) == 4


def test_what_is_no_backup_is_refused_and_changes_nothing(
    citewell: Citewell, saved: Path, home: Path, tmp_path: Path
) -> None:
    wrong = {name: tmp_path / f"{name}.db" for name in ("link", "cut", "half", "flipped", "other", "text", "empty")}
    wrong["link"].symlink_to(saved)
    content = saved.read_bytes()
    wrong["cut"].write_bytes(content[:-100])
    wrong["half"].write_bytes(content[: len(content) // 2])
    wrong["flipped"].write_bytes(content[:8192] + bytes(byte ^ 0xFF for byte in content[8192:16384]) + content[16384:])
    with closing(sqlite3.connect(wrong["other"])) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    wrong["text"].write_text("hello")
    wrong["empty"].touch()
    database = (home / "citewell.db").read_bytes()
    says = {
        "link": "it is a symbolic link; name the file itself",
        "cut": "it is damaged (",
        "half": "it is damaged (database disk image is malformed)",
        "flipped": "it is damaged (",
        "other": "it is a SQLite file, but no backup of Citewell: it has no table chunks",
        "text": "it is not a SQLite database",
        "empty": "it is empty",
    }
    for name, file in wrong.items():
        done = citewell("restore", str(file), "--force", **HASHING)
        assert done.returncode == 1
        assert f"{file} cannot be restored: {says[name]}" in done.stderr, name
    assert "there is no such file" in citewell("restore", str(tmp_path / "nowhere"), **HASHING).stderr
    assert "it is not a file" in citewell("restore", str(tmp_path), **HASHING).stderr
    assert "is the database itself" in citewell("restore", str(home / "citewell.db"), "--force", **HASHING).stderr
    assert "configure that model" in citewell("restore", str(saved), "--force").stderr
    assert (home / "citewell.db").read_bytes() == database
    assert citewell("doctor", **HASHING).stdout.strip() == "All is well."


def test_a_damaged_database_is_not_backed_up(citewell: Citewell, saved: Path, home: Path, tmp_path: Path) -> None:
    content = (home / "citewell.db").read_bytes()
    (home / "citewell.db").write_bytes(content.replace(b"A valve stops the flow", b"A valve halts the flow"))
    done = citewell("backup", str(tmp_path / "new.db"), **HASHING)
    assert done.returncode == 1
    assert "no backup was written, because the database cannot be used: it is damaged" in done.stderr
    assert not list(tmp_path.glob("new.db*"))
    assert citewell("restore", str(saved), **HASHING).returncode == 0, "a damaged database needs no --force"
    assert len(list(home.glob("citewell.db.damaged-*"))) == 1


def test_a_restore_waits_for_an_ingest_or_refuses(citewell: Citewell, saved: Path, home: Path) -> None:
    with (home / "ingest.lock").open("ab") as lock:  # as an ingest holds it
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = citewell("restore", str(saved), "--force", "--no-wait", **HASHING)
        assert (refused.returncode, "ingestion already in progress" in refused.stderr) == (1, True)
        process, errors = start("restore", str(saved), "--force", home=home)
        assert errors.readline() == b"An ingest is running; waiting for it to finish.\n"
    with errors:
        assert process.wait(timeout=120) == 0
    assert len(list(home.glob("citewell.db.replaced-*"))) == 1


def test_a_running_server_has_the_restored_documents_at_its_next_question(
    citewell: Citewell, saved: Path, home: Path, docs: Path
) -> None:
    (docs / "01-pumps.md").write_text("# Pumps\n\nA pump pushes gravel downhill.\n")
    take_in(home, docs, embedder="hashing")
    question = {"question": "What does a pump do?"}
    with serving(home, **HASHING) as address, httpx2.Client(base_url=address, timeout=60) as http:
        assert "gravel" in http.post("/api/ask", json=question).json()["answer"]
        new = http.post("/chat", json={"query": "What does a pump do?"}).json()["session_id"]
        assert citewell("restore", str(saved), "--force", **HASHING).returncode == 0
        assert "water uphill" in http.post("/api/ask", json=question).json()["answer"]
        assert http.get(f"/history/{new}").json()["total_entries"] == 0, "it is in the database that was replaced"
        again = http.post("/chat", json={"query": "What does a pump do?"}).json()["session_id"]
        assert http.get(f"/history/{again}").json()["total_entries"] == 1


def test_with_postgresql_its_own_tools_are_named(citewell: Citewell, tmp_path: Path) -> None:
    url = "postgresql://u:hunter2@db/book"
    for command, tool in (("backup", "pg_dump"), ("restore", "pg_restore")):
        done = citewell(command, str(tmp_path / "x.db"), DATABASE_URL=url)
        assert done.returncode == 1
        assert tool in done.stderr
        assert "hunter2" not in done.stderr


def test_killed_at_any_moment_the_old_state_stands_and_a_second_run_works(
    citewell: Citewell, home: Path, docs: Path, tmp_path: Path
) -> None:
    old, new, file = home, tmp_path / "new", tmp_path / "saved.db"
    for number in range(30):
        (docs / f"page-{number}.md").write_text(f"# Page {number}\n\n" + f"Valve {number} opens at noon. " * 300)
    take_in(new, docs, embedder="hashing")
    for page in docs.glob("page-*"):
        page.unlink()
    take_in(old, docs, embedder="hashing")
    assert citewell("backup", str(file), home=new, **HASHING).returncode == 0
    whole = file.read_bytes()
    moments = random.Random(7)
    for _ in range(5):
        kill_after(moments.uniform(0.05, 0.6), "backup", str(file), "--force", home=new)
        assert file.read_bytes() == whole or citewell("restore", str(file), home=tmp_path / "x", **HASHING).stdout
        shutil.rmtree(tmp_path / "x", ignore_errors=True)
    assert citewell("backup", str(file), "--force", home=new, **HASHING).returncode == 0
    assert {path.name for path in tmp_path.glob("saved*")} == {"saved.db"}
    for _ in range(6):
        kill_after(moments.uniform(0.2, 2.0), "restore", str(file), "--force", home=old)
        assert len(documents(citewell, old)) in (3, 33), "all of the old, or all of the new"
        assert citewell("ask", "What does a pump do?", home=old, **HASHING).returncode == 0
    assert citewell("restore", str(file), "--force", home=old, **HASHING).returncode == 0
    assert not (old / "restoring").exists()
    assert chunk_ids_of(old) == chunk_ids_of(new)


def start(*arguments: str, home: Path) -> tuple[Command, IO[bytes]]:
    """A command that runs, and what it prints as errors."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as stderr:
        environment = {**os.environ, **HASHING, "CITEWELL_HOME": str(home)}
        return Command(*arguments, cwd=home.parent, env=environment, stderr=stderr), os.fdopen(reading, "rb")


def kill_after(seconds: float, *arguments: str, home: Path) -> None:
    process, errors = start(*arguments, home=home)
    with errors:
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=20)


def documents(citewell: Citewell, home: Path) -> list[str]:
    listed = json.loads(citewell("documents", "list", "--json", home=home, **HASHING).stdout)
    return [document["path"] for document in listed]


def chunk_ids_of(home: Path) -> list[str]:
    with closing(sqlite3.connect(home / "citewell.db")) as connection:
        return sorted(row[0] for row in connection.execute("SELECT id FROM chunks"))
