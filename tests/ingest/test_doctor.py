"""What was deleted is gone, what is planned is what happens, and the doctor proves it."""

import json
import os
import select
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from citewell.ingest.walk import FileRules
from tests.conftest import Citewell, ask, chunk_ids, find, take_in

SECRET = "The vault opens with the word xylophone."


def test_a_plan_says_exactly_what_an_ingest_then_does(citewell: Citewell, home: Path, docs: Path) -> None:
    first = json.loads(citewell("ingest", str(docs), "--plan", "--json").stdout)
    assert (len(first["added"]), first["chunks_added"], first["embeddings_needed"]) == (3, 5, 5)
    assert not home.exists(), "a plan leaves no trace"
    assert citewell("ingest", str(docs)).returncode == 0
    (docs / "01-pumps.md").write_text((docs / "01-pumps.md").read_text() + "\n## Oil\n\nOil it monthly.\n")
    (docs / "02-valves.md").unlink()
    (docs / "04-taps.md").write_text("# Taps\n\nA tap drips.\n")
    before = chunk_ids(home)
    planned = json.loads(citewell("ingest", str(docs), "--plan", "--prune", "--json").stdout)
    assert chunk_ids(home) == before
    assert planned["added"] == ["04-taps.md"]
    assert planned["changed"] == ["01-pumps.md"]
    assert planned["unchanged"] == ["03-pipes.mdx"]
    assert planned["removed"] == ["02-valves.md"]
    done = json.loads(citewell("ingest", str(docs), "--prune", "--json").stdout)
    after = chunk_ids(home)
    assert planned["embeddings_needed"] == done["chunks_embedded"] == 2
    assert planned["chunks_added"] == len(set(after) - set(before))
    assert planned["chunks_removed"] == len(set(before) - set(after))
    shown = citewell("ingest", str(docs), "--plan", "--prune").stdout
    assert "0 added, 0 changed, 3 unchanged, 0 removed" in shown
    assert "Nothing was changed." in shown


def test_a_deleted_file_leaves_no_byte_behind(citewell: Citewell, home: Path, docs: Path) -> None:
    (docs / "secret.md").write_text(f"# Vault\n\n{SECRET}\n")
    take_in(home, docs)
    assert "xylophone" in ask(home, "What word opens the vault?")[0]
    (docs / "secret.md").unlink()
    take_in(home, docs, prune=True)
    assert citewell("doctor").stdout.strip() == "All is well."
    assert not any("xylophone" in passage.chunk.text for passage in find(home, "vault xylophone word"))
    assert citewell("doctor", "--fix", "--vacuum").returncode == 0
    for file in home.rglob("*"):
        assert not file.is_file() or b"xylophone" not in file.read_bytes(), file


def test_documents_are_listed_shown_and_deleted(citewell: Citewell, home: Path, docs: Path) -> None:
    take_in(home, docs)
    listed = json.loads(citewell("documents", "list", "--json").stdout)
    assert [document["path"] for document in listed] == ["01-pumps.md", "02-valves.md", "03-pipes.mdx"]
    assert "3 documents, 5 chunks" in citewell("documents", "list").stdout
    shown = json.loads(citewell("documents", "show", "02-valves.md", "--json").stdout)
    assert shown["title"] == "Valves"
    assert [chunk["section"] for chunk in shown["chunks"]] == ["Valves", "Leaks"]
    assert shown["chunks"][0]["id"] in citewell("documents", "show", shown["id"]).stdout
    assert "deleted 02-valves.md (2 chunks)" in citewell("documents", "delete", "02-valves.md").stdout
    assert not any(passage.chunk.source == "02-valves.md" for passage in find(home, "gasket valve leaks"))
    assert citewell("doctor").returncode == 0
    missing = citewell("documents", "delete", "02-valves.md")
    assert missing.returncode == 1
    assert "no document '02-valves.md'" in missing.stderr
    assert take_in(home, docs).chunks_created == 2, "the file is still there, so it comes back"


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        ("DELETE FROM chunks WHERE chunk_index = 1", "chunks in it are not in the library"),
        ("DELETE FROM documents WHERE path = '02-valves.md'", "2 chunks of documents that are gone"),
        ("INSERT INTO texts VALUES ('h', 'an orphan')", "1 texts that no document has"),
        ("INSERT INTO embeddings VALUES ('k', 'm', '[]', x'00')", "1 embeddings that no chunk uses"),
        ("UPDATE facts SET value = '99' WHERE name = 'index_generation'", "generation 99 is missing"),
    ],
)
def test_the_doctor_names_what_is_wrong_and_mends_it(
    citewell: Citewell, home: Path, docs: Path, harm: str, says: str
) -> None:
    take_in(home, docs)
    with sqlite3.connect(home / "citewell.db") as database:
        database.execute(harm)
    database.close()
    found = citewell("doctor")
    assert found.returncode == 1
    assert says in found.stdout
    mended = citewell("doctor", "--fix")
    assert mended.returncode == 3, mended.stdout
    assert citewell("doctor").stdout.strip() == "All is well."
    assert chunk_ids(home)


def test_the_doctor_rebuilds_a_lost_index_and_sweeps_leftovers(citewell: Citewell, home: Path, docs: Path) -> None:
    take_in(home, docs)
    before = chunk_ids(home)
    (home / "index" / "77.partial").mkdir()
    assert "77.partial is left over" in citewell("doctor").stdout
    assert citewell("doctor", "--fix").returncode == 3
    shutil.rmtree(home / "index")
    assert citewell("doctor").returncode == 1
    assert citewell("doctor", "--fix").returncode == 3
    assert chunk_ids(home) == before


@pytest.mark.parametrize("remedy", ["ingest", "doctor"])
def test_an_index_of_an_older_version_is_built_anew_without_embedding(
    citewell: Citewell, home: Path, docs: Path, remedy: str
) -> None:
    take_in(home, docs)
    before = chunk_ids(home)
    (made,) = home.glob("index/*/made.json")
    made.write_text(json.dumps({"format": 1, "model": json.loads(made.read_text())["model"], "dimensions": 384}))
    asked = citewell("ask", "What does a pump do?")
    assert asked.returncode == 1
    assert "made by another version of Citewell; run `citewell doctor --fix`" in asked.stderr
    if remedy == "ingest":
        done = json.loads(citewell("ingest", str(docs), "--json").stdout)
        assert (done["files_unchanged"], done["chunks_embedded"]) == (3, 0)
    else:
        assert citewell("doctor", "--fix").returncode == 3
    assert chunk_ids(home) == before
    assert "uphill" in citewell("ask", "What does a pump do?").stdout


def test_hidden_built_and_ignored_files_are_left_out_unless_asked_for(home: Path, docs: Path, tmp_path: Path) -> None:
    for name in (
        ".hidden/a.md",
        "node_modules/b.md",
        "build/c.md",
        "drafts/d.md",
        "notes/e.tmp.md",
        "notes/kept.tmp.md",
    ):
        (docs / name).parent.mkdir(exist_ok=True)
        (docs / name).write_text(f"# {name}\n\nText.\n")
    (docs / ".gitignore").write_text("drafts/\n")
    (docs / "notes" / ".gitignore").write_text("*.tmp.md\n!kept.tmp.md\n")
    assert take_in(home, docs).files_processed == 4
    assert take_in(tmp_path / "all", docs, rules=FileRules(everything=True)).files_processed == 9


def test_a_watched_folder_is_ingested_again_on_change(home: Path, docs: Path) -> None:
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("citewell")), "ingest", str(docs), "--watch", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "CITEWELL_HOME": str(home)},
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["chunks_created"] == 5
        assert "Watching" in process.stderr.readline()
        deadline = time.monotonic() + 300
        while not select.select([process.stdout], [], [], 0.5)[0]:  # it begins to watch a moment after it says so
            assert time.monotonic() < deadline, "the new page was not indexed"
            (docs / "04-taps.md").write_text("# Taps\n\nA tap drips.\n")
        assert json.loads(process.stdout.readline())["chunks_created"] == 1
    finally:
        process.terminate()
        process.communicate(timeout=300)
    assert any(passage.chunk.source == "04-taps.md" for passage in find(home, "tap drips"))


def test_citations_link_to_the_live_page_and_heading(home: Path, docs: Path) -> None:
    (docs / "01-part").mkdir()
    (docs / "01-part" / "_category_.json").write_text('{"label": "The first part"}')
    (docs / "01-part" / "02-seals.mdx").write_text("# Seals\n\nIntro.\n\n## How they *age*\n\nRubber ages in ozone.\n")
    take_in(home, docs, base_url="https://docs.example.org/book/")
    passage = next(passage for passage in find(home, "rubber ozone ages") if "ozone" in passage.chunk.text)
    assert passage.chunk.url == "https://docs.example.org/book/part/seals#how-they-age"
    assert take_in(home, docs, base_url="https://docs.example.org/book/").chunks_created == 0
    again = take_in(home, docs, base_url="https://new.example.org")
    assert again.chunks_embedded == 0
    assert find(home, "rubber ozone ages")[0].chunk.url == "https://new.example.org/part/seals#how-they-age"


def test_unreadable_files_are_one_line_each(home: Path, docs: Path) -> None:
    (docs / "huge.txt").write_bytes(b"x" * 50_000_001)
    (docs / "fake.pdf").write_bytes(b"%PDF-1.7 not really")
    (docs / "fake.docx").write_bytes(b"not a zip")
    (docs / "zero.html").write_bytes(b"")
    result = take_in(home, docs)
    assert sorted(error.split(":")[0] for error in result.errors) == ["fake.docx", "fake.pdf", "huge.txt", "zero.html"]
    assert all("\n" not in error and "Traceback" not in error for error in result.errors)
    assert result.files_processed == 3


@pytest.mark.parametrize("wrong", ["no-such-folder", "empty"])
def test_a_typo_prunes_nothing(home: Path, docs: Path, tmp_path: Path, wrong: str) -> None:
    (tmp_path / "empty").mkdir()
    take_in(home, docs)
    before = chunk_ids(home)
    result = take_in(home, tmp_path / wrong, prune=True)
    assert result.files_removed == 0
    assert result.exit_code == 1
    assert chunk_ids(home) == before


def test_pruning_one_folder_leaves_what_came_from_another(home: Path, docs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "tea.md").write_text("# Tea\n\nSteep it for three minutes.\n")
    take_in(home, docs)
    take_in(home, other)
    (docs / "01-pumps.md").unlink()
    assert take_in(home, other, prune=True).files_removed == 1, "a file that is gone is gone"
    (docs / "01-pumps.md").write_text("# Pumps\n\nBack again.\n")
    take_in(home, docs)
    assert take_in(home, other, prune=True).files_removed == 0
    assert take_in(home, docs, prune=True).files_removed == 0


def test_another_folder_cannot_overwrite_a_page_of_the_same_name(home: Path, docs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "01-pumps.md").write_text("# Hearts\n\nThe heart is a pump.\n")
    take_in(home, docs)
    result = take_in(home, other)
    assert "has the same path in this project" in result.errors[0]
    assert find(home, "priming the pump casing")[0].chunk.chapter == "Pumps"
    shutil.rmtree(docs)
    assert take_in(home, other).exit_code == 0, "a folder that moved is not another one"


def test_a_chapter_ingested_on_its_own_stays_the_chapter_it_was(home: Path, docs: Path) -> None:
    (docs / "part").mkdir()
    (docs / "part" / "seals.md").write_text("# Seals\n\nRubber.\n")
    take_in(home, docs)
    before = chunk_ids(home)
    assert take_in(home, docs / "part").chunks_created == 0
    assert take_in(home, docs / "part" / "seals.md", prune=True).files_removed == 0
    assert chunk_ids(home) == before


def test_a_project_without_documents_says_so(citewell: Citewell, home: Path, docs: Path) -> None:
    take_in(home, docs)
    shown = citewell("ask", "What is a pump?", "--project", "nosuch")
    assert shown.returncode == 1
    assert "nothing has been ingested into this project" in shown.stderr


def test_killed_across_commands_nothing_is_lost_or_doubled() -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "speed" / "scale.py"
    done = subprocess.run(
        [sys.executable, str(script), "kill", "--rounds", "4"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "0 searches unserved; ends as if undisturbed" in done.stdout
