"""Ingesting costs only what changed, loses nothing, and never disturbs a reader."""

import fcntl
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.commands import Command
from tests.conftest import ask, chunk_ids, document, find, serving, take_in


def test_ingesting_twice_embeds_nothing_and_changes_nothing(home: Path, docs: Path) -> None:
    first = take_in(home, docs)
    ids = chunk_ids(home)
    generation = (home / "index" / "CURRENT").read_text()
    second = take_in(home, docs)
    assert (first.files_processed, first.chunks_created, first.chunks_embedded) == (3, 5, 5)
    assert (second.files_processed, second.chunks_created, second.chunks_embedded) == (3, 0, 0)
    assert chunk_ids(home) == ids
    assert (home / "index" / "CURRENT").read_text() == generation


def test_another_machine_gives_the_same_ids(tmp_path: Path, docs: Path) -> None:
    elsewhere = tmp_path / "a" / "very" / "different" / "place"
    elsewhere.parent.mkdir(parents=True)
    docs_there = docs.rename(elsewhere)
    take_in(tmp_path / "here", docs_there)
    for page in docs_there.iterdir():  # as a checkout on Windows would have it
        page.write_bytes(page.read_bytes().replace(b"\n", b"\r\n"))
    take_in(tmp_path / "there", docs_there)
    assert chunk_ids(tmp_path / "here") == chunk_ids(tmp_path / "there")


def test_a_changed_file_replaces_exactly_its_own_chunks(home: Path, docs: Path) -> None:
    take_in(home, docs)
    before = set(chunk_ids(home))
    page = docs / "02-valves.md"
    page.write_text(page.read_text().replace("gasket yearly", "gasket every month"))
    result = take_in(home, docs)
    after = set(chunk_ids(home))
    assert result.chunks_embedded == 1
    assert (len(before - after), len(after - before)) == (1, 1)
    assert not any("yearly" in passage.chunk.text for passage in find(home, "gasket yearly"))
    assert any("every month" in passage.chunk.text for passage in find(home, "gasket"))


def test_a_vanished_file_stays_until_it_is_pruned(home: Path, docs: Path) -> None:
    take_in(home, docs)
    (docs / "03-pipes.mdx").unlink()
    assert take_in(home, docs).files_removed == 0
    assert any(passage.chunk.source == "03-pipes.mdx" for passage in find(home, "copper pipes"))
    assert take_in(home, docs, prune=True).files_removed == 1
    assert not any(passage.chunk.source == "03-pipes.mdx" for passage in find(home, "copper pipes"))


def test_a_moved_page_costs_no_embedding(home: Path, docs: Path) -> None:
    take_in(home, docs)
    (docs / "moved").mkdir()
    (docs / "02-valves.md").rename(docs / "moved" / "07-valves.md")
    result = take_in(home, docs, prune=True)
    assert (result.chunks_created, result.chunks_embedded, result.files_removed) == (2, 0, 1)


def test_a_broken_file_is_named_and_the_rest_goes_in(home: Path, docs: Path) -> None:
    (docs / "latin.md").write_bytes("# Größe\n".encode("latin-1"))
    (docs / "binary.md").write_bytes(b"\x00\x01\x02")
    (docs / "empty.md").write_text(" \n")
    (docs / "bare.mdx").write_text("---\ntitle: Bare\n---\n\nimport All from './_all.mdx';\n\n<All />\n")
    (docs / "loop").symlink_to(docs)
    (docs / "gone.md").symlink_to(docs / "nowhere.md")
    result = take_in(home, docs)
    assert result.exit_code == 1
    assert sorted(error.split(":")[0] for error in result.errors) == ["binary.md", "empty.md", "gone.md", "latin.md"]
    assert result.files_processed == 4
    assert result.warnings == ("bare.mdx: nothing to read in it",)
    assert len(chunk_ids(home)) == 5


def test_a_file_that_breaks_keeps_what_was_readable_before(home: Path, docs: Path) -> None:
    take_in(home, docs)
    before = chunk_ids(home)
    (docs / "02-valves.md").write_bytes(b"\xff\xfe broken")
    assert take_in(home, docs).exit_code == 1
    assert chunk_ids(home) == before


def test_nothing_to_read_is_an_error_that_says_so(home: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no file here that can be read" in take_in(home, empty).errors[0]
    assert "no such file" in take_in(home, tmp_path / "missing").errors[0]
    assert "cannot read .exe" in take_in(home, _file(tmp_path / "tool.exe")).errors[0]


def test_two_files_of_the_same_path_are_not_mixed_up(home: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.md").write_text(f"# {name}\n\nText {name}.\n")
    result = take_in(home, tmp_path / "a", tmp_path / "b")
    assert "has the same path" in result.errors[0]
    assert result.files_processed == 1


def test_projects_do_not_see_each_other(home: Path, docs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "01-pumps.md").write_text("# Heart\n\nThe heart is a pump made of muscle.\n")
    take_in(home, docs)
    take_in(home, other, project="anatomy")
    assert {passage.chunk.chapter for passage in find(home, "pump muscle", project="anatomy")} == {"Heart"}
    assert "Heart" not in {passage.chunk.chapter for passage in find(home, "pump muscle")}
    take_in(home, tmp_path / "other", prune=True, project="anatomy")
    assert find(home, "priming the pump")[0].chunk.chapter == "Pumps"


def test_a_lost_index_is_rebuilt_without_embedding_anything(home: Path, docs: Path) -> None:
    take_in(home, docs)
    before = chunk_ids(home)
    subprocess.run(["rm", "-r", str(home / "index")], check=True)
    result = take_in(home, docs)
    assert result.chunks_embedded == 0
    assert chunk_ids(home) == before


def test_every_passage_resolves_to_the_words_of_its_document(book_home: Path) -> None:
    for passage in find(book_home, "torque, balance, cameras and learning"):
        stored = document(book_home, passage)
        assert stored is not None
        chunk = passage.chunk
        assert stored.text[chunk.start : chunk.end] == chunk.text
        assert stored.text.split("\n")[chunk.first_line - 1].strip() == chunk.text.split("\n")[0].strip()


def test_a_second_ingest_waits_or_leaves(home: Path, docs: Path) -> None:
    with _writer_at_work(home):
        refused = _citewell(home, "ingest", str(docs), "--no-wait")
        assert "ingestion already in progress" in _stderr(refused)
        assert refused.returncode == 1
        waiting = _citewell(home, "ingest", str(docs))
        assert waiting.stderr is not None
        assert "waiting" in waiting.stderr.readline()
    _finished(waiting)
    assert len(chunk_ids(home)) == 5


def test_an_ingest_that_waits_leaves_when_asked(home: Path, docs: Path) -> None:
    with _writer_at_work(home):
        waiting = _citewell(home, "ingest", str(docs))
        assert waiting.stderr is not None
        assert "waiting" in waiting.stderr.readline()
        waiting.send_signal(signal.SIGINT)
        assert "nothing was changed" in _stderr(waiting)
    assert waiting.returncode == 130


def test_an_interrupted_ingest_publishes_nothing_and_says_so(home: Path, tmp_path: Path) -> None:
    many = _many_pages(tmp_path / "many", 200)
    process = _citewell(home, "ingest", str(many))
    assert process.stderr is not None
    process.stderr.readline()  # it has begun
    process.send_signal(signal.SIGINT)
    assert "nothing was changed" in _stderr(process)
    assert process.returncode == 130
    assert not (home / "index" / "CURRENT").exists()


def test_killed_at_any_moment_readers_are_served_and_a_rerun_ends_as_if_undisturbed(
    tmp_path: Path, docs: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEWELL_EMBEDDER", "hashing")  # nothing here depends on what words mean
    take_in(home, docs, embedder="hashing")
    later = _many_pages(docs / "more", 12)
    (docs / "02-valves.md").write_text("# Valves\n\nA valve was rewritten.\n")
    undisturbed = tmp_path / "undisturbed"
    take_in(undisturbed, docs, embedder="hashing")
    duration = _seconds(lambda: _ingesting(tmp_path / "timing", docs).wait(timeout=300))
    moments = random.Random(20)
    with serving(home) as address:
        for _ in range(20):
            process = _ingesting(home, docs)
            time.sleep(moments.uniform(0.0, duration))
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=300)
            assert _asks(address, "What does a pump do?")["confidence"] > 0
        assert _ingesting(home, docs).wait(timeout=300) == 0
        assert _asks(address, "What was rewritten?")["citations"][0]["source_file"] == "02-valves.md"
    assert later.is_dir()
    assert chunk_ids(home) == chunk_ids(undisturbed)
    assert not list((home / "index").glob("*.partial"))


def test_a_run_that_died_between_commit_and_switch_is_finished_by_the_next(home: Path, docs: Path) -> None:
    take_in(home, docs)
    old = (home / "index" / "CURRENT").read_text()
    copy = home / "index" / "kept"
    subprocess.run(["cp", "-r", str(home / "index" / old.strip()), str(copy)], check=True)
    (docs / "02-valves.md").write_text("# Valves\n\nA valve was rewritten.\n")
    take_in(home, docs)
    new = (home / "index" / "CURRENT").read_text()
    copy.rename(home / "index" / old.strip())
    (home / "index" / "CURRENT").write_text(old)  # as it was a moment before the switch
    take_in(home, docs)
    assert (home / "index" / "CURRENT").read_text() == new
    assert "rewritten" in ask(home, "What was rewritten about the valve?")[0]


def test_an_open_reader_follows_to_the_next_generation_and_old_ones_go(home: Path, docs: Path) -> None:
    take_in(home, docs)
    with serving(home) as address:
        assert _asks(address, "Who feeds the octopus?")["confidence"] == 0
        (docs / "04-octopus.md").write_text("# Octopus\n\nThe night keeper feeds the octopus.\n")
        take_in(home, docs)
        assert "night keeper" in _asks(address, "Who feeds the octopus?")["answer"]
        assert "night keeper" in ask(home, "Who feeds the octopus?")[0], "a second process reads beside the server"
    take_in(home, docs)


def _asks(address: str, question: str) -> dict[str, Any]:
    response = httpx2.post(f"{address}/api/ask", json={"question": question}, timeout=300)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def _ingesting(home: Path, docs: Path) -> Command:
    return Command("ingest", str(docs), cwd=docs, env={**os.environ, "CITEWELL_HOME": str(home)})


def _citewell(home: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [str(Path(sys.executable).with_name("citewell")), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "CITEWELL_HOME": str(home)},
    )


def _finished(process: "subprocess.Popen[str]") -> None:
    errors = _stderr(process)
    assert process.returncode == 0, errors


def _stderr(process: "subprocess.Popen[str]") -> str:
    return process.communicate(timeout=300)[1]


def _seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _file(path: Path) -> Path:
    path.write_text("x")
    return path


@contextmanager
def _writer_at_work(home: Path) -> Iterator[None]:
    home.mkdir()
    with (home / "ingest.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _many_pages(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:03d}.md").write_text(
            f"# Page {number}\n\n" + f"Engine {number} turns wheel {number}. " * 20
        )
    return folder
