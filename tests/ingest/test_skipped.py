"""Which files of a folder are documents: defaults, `--include`, `--exclude` and `.citewellignore`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from citewell.ingest.walk import FileRules, walk
from tests.conftest import Citewell


def make_files(folder: Path, *paths: str, ignore: str = "") -> Path:
    """A page at each path, and a `.citewellignore`."""
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"# {path}\n\nText of {path}.\n")
    if ignore:
        (folder / ".citewellignore").write_text(ignore)
    return folder


def walked(folder: Path, *, include: Sequence[str] = (), exclude: Sequence[str] = (), **rules: bool) -> list[str]:
    return [file.path for file in walk([folder], rules=FileRules(tuple(include), tuple(exclude), **rules)).files]


def skipped(folder: Path, *, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> dict[str, str]:
    found = walk([folder], rules=FileRules(tuple(include), tuple(exclude)))
    return {file.path.removeprefix(f"{folder}/"): file.reason for file in found.skipped}


def ingest(citewell: Citewell, *arguments: object) -> Any:
    return json.loads(citewell("ingest", *map(str, arguments), "--json").stdout)


def test_scripts_style_sheets_and_generated_files_are_not_documents(tmp_path: Path) -> None:
    folder = make_files(
        tmp_path,
        *("index.md", "code/tool.py", "theme.css", "app.js", "page.jsx", "app.js.map", "vendor.min.css", "x.min.html"),
        *("yarn.lock", "poetry.lock", "package-lock.json", "pnpm-lock.yaml", "docs/requirements.txt", "types.d.ts"),
        *("message_pb2.py", "llms-full.txt", "sitemap.xml", "robots.txt", "_sources/index.rst.txt"),
    )
    assert walked(folder) == ["code/tool.py", "index.md"]
    reasons = skipped(folder)
    assert len(reasons) == 17
    assert reasons["theme.css"] == reasons["app.js"] == reasons["page.jsx"] == "not documents"
    assert reasons["vendor.min.css"] == reasons["yarn.lock"] == reasons["message_pb2.py"] == "generated"
    assert reasons["_sources/"] == "build output"


def test_every_skipped_file_is_counted_by_reason_in_one_line(citewell: Citewell, tmp_path: Path) -> None:
    folder = make_files(
        tmp_path / "docs",
        *("index.md", "a.ipynb", "b.ipynb", "theme.css", "LICENSE", "node_modules/x/y.md", ".hidden.md"),
        *("drafts/one.md", "old-a.md", "old-b.md"),
        ignore="drafts/\nold-*.md\n",
    )
    (line,) = [line for line in citewell("ingest", str(folder)).stdout.splitlines() if line.startswith("skipped")]
    assert line.startswith("skipped: 2 .ipynb (not supported), 2 ignored by .citewellignore, ")
    assert set(line.removeprefix("skipped: ").split(", ")) == {
        "2 .ipynb (not supported)",
        "2 ignored by .citewellignore",
        "1 .css (not documents)",
        "1 without a suffix (not supported)",
        "1 hidden",
        "1 folder (build output: node_modules/)",
        "1 folder (ignored by .citewellignore: drafts/)",
    }
    listed = ingest(citewell, folder)["skipped"]
    assert {"path": f"{folder}/theme.css", "reason": "not documents"} in listed
    assert {"path": f"{folder}/node_modules/", "reason": "build output"} in listed
    assert len(listed) == 9


def test_a_run_that_skips_nothing_has_no_such_line(citewell: Citewell, docs: Path) -> None:
    assert "skipped" not in citewell("ingest", str(docs)).stdout


@pytest.mark.parametrize(
    ("include", "exclude", "left"),
    [
        ([], ["drafts/"], ["a.md", "guide/b.md", "guide/c.rst"]),
        ([], ["drafts"], ["a.md", "guide/b.md", "guide/c.rst"]),
        ([], ["/guide/*.md"], ["a.md", "drafts/guide/b.md", "guide/c.rst"]),
        ([], ["*.md", "!a.md"], ["a.md", "guide/c.rst"]),
        (["guide/"], [], ["drafts/guide/b.md", "guide/b.md", "guide/c.rst"]),
        (["/guide/**"], [], ["guide/b.md", "guide/c.rst"]),
        (["*.md"], ["drafts/"], ["a.md", "guide/b.md"]),
        (["a.md", "*.rst"], [], ["a.md", "guide/c.rst"]),
        (["*.md", "!b.md"], [], ["a.md"]),
        (["*.md"], ["*.md"], []),
    ],
)
def test_patterns_are_those_of_git_relative_to_the_folder(
    tmp_path: Path, include: list[str], exclude: list[str], left: list[str]
) -> None:
    folder = make_files(tmp_path, "a.md", "guide/b.md", "guide/c.rst", "drafts/guide/b.md")
    assert walked(folder, include=include, exclude=exclude) == left


def test_a_pattern_that_names_a_default_overrules_it_and_a_wide_one_does_not(tmp_path: Path) -> None:
    folder = make_files(tmp_path, "docs/a.md", "docs/app.js", "docs/app.min.js", "docs/.b.md", "site/c.md")
    assert walked(folder, include=["docs/**"]) == ["docs/a.md"]
    assert walked(folder, include=["*.md"]) == ["docs/a.md"]
    assert walked(folder, include=["docs/**", "*.js"]) == ["docs/a.md", "docs/app.js"]
    assert walked(folder, include=["*.js", "docs/**"]) == ["docs/a.md", "docs/app.js"]
    assert walked(folder, include=["*.min.js"]) == ["docs/app.min.js"]
    assert walked(folder, include=[".*.md"]) == ["docs/.b.md"]
    assert walked(folder, include=["site/"]) == ["site/c.md"]


def test_an_ignore_file_skips_and_brings_back(tmp_path: Path) -> None:
    folder = make_files(
        tmp_path,
        *("a.md", "b.md", "app.js", "site/c.md", "build/d.md", "notes/a.md", "notes/deep/b.md", "out.md"),
        ignore="b.md\n!app.js\n!site/\n!out.md\n",
    )
    (folder / ".gitignore").write_text("out.md\n")
    (folder / "notes" / ".citewellignore").write_text("*\n!b.md\n!*/\n")
    assert walked(folder) == ["a.md", "app.js", "notes/deep/b.md", "out.md", "site/c.md"]


def test_only_a_pattern_with_its_name_opens_a_built_or_git_ignored_folder(tmp_path: Path) -> None:
    folder = make_files(tmp_path, "a.md", "node_modules/b.md", "vendor/c.md", "x/d.md", ignore="*\n!*/\n!*.md\n")
    (folder / ".gitignore").write_text("vendor/\n")
    assert walked(folder) == ["a.md", "x/d.md"]
    (folder / ".citewellignore").write_text("!vendor/\n")
    assert walked(folder) == ["a.md", "vendor/c.md", "x/d.md"]


def test_all_takes_everything_but_what_citewell_is_told_to_ignore(tmp_path: Path) -> None:
    folder = make_files(tmp_path, "a.md", "app.js", "build/.b.md", "c.md", "d.md", ignore="c.md\n")
    (folder / ".gitignore").write_text("d.md\n")
    assert walked(folder, everything=True) == ["a.md", "app.js", "build/.b.md", "d.md"]
    assert walked(folder, everything=True, exclude=["build/"]) == ["a.md", "app.js", "d.md"]


def test_a_file_given_by_name_is_indexed_unless_it_is_excluded(citewell: Citewell, tmp_path: Path) -> None:
    folder = make_files(tmp_path / "docs", "a.md", "app.js", ignore="a.md\n")
    done = ingest(citewell, folder / "a.md", folder / "app.js", "--include", "*.rst")
    assert (done["files_processed"], done["skipped"]) == (2, [])
    done = ingest(citewell, folder / "a.md", folder / "app.js", "--exclude", "*.js")
    assert done["skipped"] == [{"path": f"{folder}/app.js", "reason": "excluded by --exclude"}]
    assert done["files_processed"] == 1


def test_a_document_that_is_skipped_now_counts_as_vanished(citewell: Citewell, docs: Path) -> None:
    ingest(citewell, docs)
    (docs / ".citewellignore").write_text("02-*\n")
    plan = ingest(citewell, docs, "--prune", "--dry-run")
    assert plan["removed"] == ["02-valves.md"]
    assert plan["skipped"] == [{"path": f"{docs}/02-valves.md", "reason": "ignored by .citewellignore"}]
    kept = ingest(citewell, docs)
    assert (kept["files_removed"], kept["files_not_pruned"]) == (0, 1)
    assert (
        "1 indexed document is gone from the folder, or skipped now; use --prune"
        in citewell("ingest", str(docs)).stdout
    )
    assert "gasket" in citewell("search", "gasket").stdout
    pruned = ingest(citewell, docs, "--prune")
    assert (pruned["files_removed"], pruned["files_not_pruned"]) == (1, 0)
    assert "gasket" not in citewell("search", "gasket").stdout


def test_a_chapter_ingested_alone_is_ignored_as_in_its_book(citewell: Citewell, tmp_path: Path) -> None:
    book = make_files(tmp_path / "book", "one/a.md", "one/draft.md", "two/b.md", ignore="draft.md\n/one/a.tmp.md\n")
    ingest(citewell, book)
    make_files(book, "one/a.tmp.md")
    done = ingest(citewell, book / "one", "--prune")
    assert (done["files_processed"], done["files_removed"], done["errors"]) == (1, 0, [])
    assert {Path(file["path"]).name for file in done["skipped"]} == {"draft.md", "a.tmp.md"}


def test_a_skipped_folder_is_one_entry_and_is_not_walked(tmp_path: Path) -> None:
    names = ("node_modules", "drafts", "old", "vendor", ".cache")
    pages = [f"{name}/{page}.md" for name in names for page in range(20)]
    folder = make_files(tmp_path, "a.md", *pages, ignore="drafts/\n")
    (folder / ".gitignore").write_text("vendor/\n")
    (folder / "linked").symlink_to(folder)
    assert skipped(folder, exclude=["old"]) == {
        "node_modules/": "build output",
        "drafts/": "ignored by .citewellignore",
        "old/": "excluded by --exclude",
        "vendor/": "ignored by .gitignore",
        ".cache/": "hidden",
        "linked/": "a link to a folder",
    }


@pytest.mark.parametrize("pattern", ["", "  ", "!", "# comment"])
def test_a_pattern_that_can_match_nothing_is_refused(citewell: Citewell, docs: Path, pattern: str) -> None:
    shown = citewell("ingest", str(docs), "--exclude", pattern)
    assert shown.returncode == 2
    assert "is not a pattern such as" in shown.stderr


def test_a_folder_of_which_every_file_is_skipped_is_an_error_that_prunes_nothing(
    citewell: Citewell, docs: Path
) -> None:
    ingest(citewell, docs)
    shown = citewell("ingest", str(docs), "--include", "*.rst", "--prune")
    assert shown.returncode == 1
    assert "no file here that can be read" in shown.stdout
    assert "nothing was pruned" in shown.stdout
    assert "skipped: 3 not matched by --include" in shown.stdout
    assert "gasket" in citewell("search", "gasket").stdout
