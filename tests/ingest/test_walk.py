"""A walk finds what an author would publish: git-ignored files are skipped, by git's own rules."""

import subprocess
from pathlib import Path

import pytest

from citewell.ingest.walk import walk


def make_files(folder: Path, *paths: str, root: str, **subfolders: str) -> None:
    """Pages, with the `.gitignore` of the root and of subfolders."""
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("# Page\n\nText.\n")
    (folder / ".gitignore").write_text(root)
    for name, patterns in subfolders.items():
        (folder / name / ".gitignore").write_text(patterns)


def walked(root: Path) -> list[str]:
    found = walk([root])
    assert found.errors == []
    return [file.path for file in found.files]


def test_a_negated_pattern_includes_a_file_again(tmp_path: Path) -> None:
    make_files(tmp_path, "keep.md", "drop.md", "deep/keep.md", root="*.md\n!keep.md\n")
    assert walked(tmp_path) == ["deep/keep.md", "keep.md"]


def test_the_last_matching_pattern_of_a_file_decides(tmp_path: Path) -> None:
    make_files(tmp_path, "keep.md", "page.md", root="!keep.md\nkeep.md\n")
    assert walked(tmp_path) == ["page.md"]


def test_the_nearest_gitignore_decides(tmp_path: Path) -> None:
    make_files(
        tmp_path,
        *("page.tmp.md", "notes/page.tmp.md", "notes/deep/page.tmp.md", "notes/closed/page.tmp.md", "index.md"),
        root="*.tmp.md\n",
        notes="!*.tmp.md\nclosed/\n",
    )
    assert walked(tmp_path) == ["index.md", "notes/deep/page.tmp.md", "notes/page.tmp.md"]


def test_nothing_in_an_ignored_folder_is_included_again(tmp_path: Path) -> None:
    make_files(tmp_path, "drafts/keep.md", "index.md", root="drafts/\n!drafts/keep.md\n", drafts="!keep.md\n")
    assert walked(tmp_path) == ["index.md"]


def test_a_pattern_with_a_slash_is_anchored_to_its_folder(tmp_path: Path) -> None:
    make_files(
        tmp_path,
        *("todo.md", "notes/todo.md", "notes/old/a.md", "notes/new/old/a.md", "guide/b/c.md", "guide/c.md"),
        root="/todo.md\nguide/**/c.md\n!guide/c.md\n",
        notes="/old/\n",
    )
    assert walked(tmp_path) == ["guide/c.md", "notes/new/old/a.md", "notes/todo.md"]


def test_a_pattern_for_folders_leaves_files_alone(tmp_path: Path) -> None:
    make_files(tmp_path, "notes.md/page.md", "other/notes.md", root="notes.md/\n")
    assert walked(tmp_path) == ["other/notes.md"]


def test_comments_blank_lines_and_invalid_patterns_are_passed_over(tmp_path: Path) -> None:
    make_files(tmp_path, "a.md", "b.md", root="# a.md\n\n!\n\\\nb.md\r\n")
    assert walked(tmp_path) == ["a.md"]


@pytest.mark.parametrize(
    "patterns",
    [
        "*.md\n!keep.md\n",
        "/a/\n!/a/keep.md\n",
        "a/*\n!a/keep.md\n",
        "**/b/\n",
        "a/**/keep.md\n",
        "a/**\n!a/b/\n",
        "a/**\n!a/keep.md\n",
        "*\n!a/\n",
        "*.md\n!a/\n",
        "a/\n!a/\n",
        "b/ \n",
        "a/**/\n",
        "ke[a-e]p.md\n",
        "\\!odd.md\n",
        "*\n!*/\n!keep.md\n",
    ],
)
def test_the_walk_agrees_with_git(tmp_path: Path, patterns: str) -> None:
    make_files(tmp_path, "keep.md", "a/keep.md", "a/b/keep.md", "a/b/c.md", "b/c.md", "!odd.md", root=patterns)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-per-directory=.gitignore", "*.md"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert [file.path for file in walk([tmp_path]).files] == sorted(filter(None, listed.split("\0")))
