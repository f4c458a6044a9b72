"""A full disk and a folder that cannot be written to are named, kill nothing, and lose nothing."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Citewell

QUESTION = "What moves water uphill?"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes. Only root may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("needs root, to mount a small file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_an_ingest_without_room_for_the_index_says_so_and_changes_nothing(
    citewell: Citewell, docs: Path, small_disk: Path
) -> None:
    result = citewell("ingest", str(docs), home=small_disk / "home", CITEWELL_EMBEDDER="hashing")
    assert result.returncode == 1
    assert "not enough free space" in result.stderr
    assert "MB are free" in result.stderr
    assert "Traceback" not in result.stderr
    assert not list((small_disk / "home" / "index").glob("[0-9]*"))


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


def test_a_home_that_cannot_be_written_to_is_named(citewell: Citewell, docs: Path, small_disk: Path) -> None:
    home = small_disk / "home"
    assert citewell("keys", "create", "first", home=home).returncode == 0
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    result = citewell("ask", QUESTION, home=home)
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert result.returncode == 1
    assert "its folder cannot be written to" in result.stderr
