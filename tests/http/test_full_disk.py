"""A full disk and a folder that cannot be written to are named, kill nothing, and lose nothing."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from citewell.adapters.qdrant_edge.sparse_files import copy_sparse
from tests.conftest import PROJECT, Citewell, serving

QUESTION = "What moves water uphill?"
HASHING = {"CITEWELL_EMBEDDER": "hashing"}


@contextmanager
def mounted(disk: Path, *, megabytes: int) -> Iterator[Path]:
    """A file system of this size. Only root may mount one."""
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("needs root, to mount a small file system")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", megabytes=4) as disk:
        yield disk


@pytest.fixture
def disk_with_index(tmp_path: Path, citewell: Citewell, docs: Path) -> Iterator[Path]:
    """Room for an index, and for the next one."""
    with mounted(tmp_path / "disk", megabytes=400) as disk:
        assert citewell("ingest", str(docs), home=disk / "home", **HASHING).returncode == 0
        yield disk


def test_an_ingest_without_room_for_the_index_says_so_and_changes_nothing(
    citewell: Citewell, docs: Path, small_disk: Path
) -> None:
    result = citewell("ingest", str(docs), home=small_disk / "home", **HASHING)
    assert result.returncode == 1
    assert "not enough free space" in result.stderr
    assert "MB are free" in result.stderr
    assert "Traceback" not in result.stderr
    assert not list((small_disk / "home" / "index").glob("[0-9]*"))


def test_a_copy_of_an_index_of_which_a_part_fits_is_an_error(tmp_path: Path, small_disk: Path) -> None:
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "vectors.dat").write_bytes(b"v" * 3 * 65_536)
    (small_disk / "filler").write_bytes(bytes(shutil.disk_usage(small_disk).free - 160_000))
    with pytest.raises(OSError, match="No space left on device"):
        copy_sparse(tmp_path / "index", small_disk / "copy")


def test_a_database_on_a_full_disk_says_that_it_is_full(citewell: Citewell, docs: Path, small_disk: Path) -> None:
    home = small_disk / "home"
    assert citewell("keys", "create", "first", home=home).returncode == 0
    free = shutil.disk_usage(small_disk).free
    (small_disk / "filler").write_bytes(bytes(free))
    full = citewell("keys", "create", "second", home=home)
    assert full.returncode == 1
    assert "the disk is full; free some space" in full.stderr
    (small_disk / "filler").unlink()
    listed = citewell("keys", "list", home=home)
    assert "first" in listed.stdout
    assert "second" not in listed.stdout


def test_a_server_on_a_full_disk_keeps_nothing_says_so_and_goes_on_once_there_is_room(disk_with_index: Path) -> None:
    filler = disk_with_index / "filler"
    with serving(disk_with_index / "home", **HASHING) as address, httpx2.Client(base_url=address, timeout=60) as http:

        def chat() -> httpx2.Response:
            return http.post("/chat", json={"query": QUESTION})

        def upload() -> httpx2.Response:
            files = {"file": ("wells.md", b"# Wells\n\nA well is dug until it reaches the ground water.\n")}
            return http.post(f"/api/v1/projects/{PROJECT.id}/documents", files=files)

        assert chat().status_code == 200
        filler.write_bytes(bytes(shutil.disk_usage(disk_with_index).free))
        for refused in (chat(), upload()):
            assert (refused.status_code, refused.json()["error_code"]) == (503, "SERVICE_UNAVAILABLE")
            assert "the disk is full; free some space" in refused.json()["message"]
        assert http.post("/api/ask", json={"question": QUESTION}).json()["confidence"] > 0
        assert "the disk is almost full" in http.get("/health").json()["services"]["database"]["error"]
        filler.unlink()
        assert chat().status_code == 200
        assert upload().status_code == 202
        wait_until_indexed(http, "wells.md")
        answer = http.post("/api/ask", json={"question": "How deep is a well dug?"}).json()["answer"]
        assert "until it reaches the ground water" in answer


def wait_until_indexed(http: httpx2.Client, path: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        documents = http.get(f"/api/v1/projects/{PROJECT.id}/documents").json()["documents"]
        if any((row["filename"], row["status"]) == (path, "COMPLETED") for row in documents):
            return
        time.sleep(0.2)
    raise AssertionError(f"{path} was not indexed within a minute")


def test_a_home_that_cannot_be_written_to_is_named(citewell: Citewell, docs: Path, small_disk: Path) -> None:
    home = small_disk / "home"
    assert citewell("keys", "create", "first", home=home).returncode == 0
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    result = citewell("ask", QUESTION, home=home)
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert result.returncode == 1
    assert "its folder cannot be written to" in result.stderr
