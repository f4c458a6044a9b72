"""Editing a real book costs what was edited, and nothing else changes its id."""

import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import BOOK, Citewell, chunk_ids, find, take_in

CHAPTER = "03-motion/03-balance-and-walking.mdx"


@pytest.fixture
def copy(tmp_path: Path, own_book_home: Path) -> tuple[Path, Path]:
    """The example book and a home that holds it, to be changed at will."""
    book = tmp_path / "book"
    shutil.copytree(BOOK, book)
    take_in(own_book_home, book)  # the folder moved; nothing is embedded for that
    return own_book_home, book


def test_a_moved_book_keeps_every_id(book_home: Path, copy: tuple[Path, Path]) -> None:
    assert chunk_ids(copy[0]) == chunk_ids(book_home)


def test_a_paragraph_inserted_in_a_section_re_embeds_that_section_alone(copy: tuple[Path, Path]) -> None:
    home, book = copy
    before = set(chunk_ids(home))
    page = book / CHAPTER
    text = page.read_text(encoding="utf-8")
    second = [match.end() for match in re.finditer(r"^## .*\n", text, re.MULTILINE)][1]
    page.write_text(f"{text[:second]}\nA penguin balances by waddling.\n{text[second:]}", encoding="utf-8")
    result = take_in(home, book)
    after = set(chunk_ids(home))
    assert result.chunks_embedded == len(after - before) == 1
    assert len(before - after) == 1
    assert any("penguin" in passage.chunk.text for passage in find(home, "penguin waddling"))


def test_renaming_a_chapter_embeds_nothing(copy: tuple[Path, Path]) -> None:
    home, book = copy
    (book / CHAPTER).rename(book / "03-motion" / "09-walking.mdx")
    result = take_in(home, book, prune=True)
    assert (result.chunks_embedded, result.files_removed) == (0, 1)
    assert any(passage.chunk.source.endswith("09-walking.mdx") for passage in find(home, "capture point"))


def test_deleting_a_chapter_leaves_nothing_to_find(copy: tuple[Path, Path], citewell: Citewell) -> None:
    home, book = copy
    (book / CHAPTER).unlink()
    assert take_in(home, book, prune=True).files_removed == 1
    assert citewell("doctor", home=home).stdout.strip() == "All is well."
    assert not any(passage.chunk.source == CHAPTER for passage in find(home, "capture point of a pendulum"))
    assert citewell("doctor", "--vacuum", home=home).returncode == 0
    for file in home.rglob("*"):
        assert not file.is_file() or b"capture point answers" not in file.read_bytes(), file
