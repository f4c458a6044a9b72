"""`citewell projects` lists, creates and deletes projects, at home and on a server."""

import json
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from citewell.models import Project
from tests.conftest import Citewell, chunk_ids, serving, take_in

HANDBOOK = Project.named("handbook")


def test_projects_are_created_listed_and_deleted(citewell: Citewell, home: Path, docs: Path) -> None:
    created = citewell("projects", "create", "handbook")
    assert (created.returncode, created.stdout) == (0, f"{HANDBOOK.id}  handbook\n")
    assert citewell("projects", "create", "handbook").stdout == f"{HANDBOOK.id}  handbook existed already\n"
    take_in(home, docs, project="handbook")
    take_in(home, docs / "01-pumps.md")
    kept = set(chunk_ids_of(citewell, "default"))
    listed = json.loads(citewell("projects", "list", "--json").stdout)
    assert [(row["name"], row["documents"], row["chunks"]) for row in listed] == [("default", 1, 2), ("handbook", 3, 5)]
    assert "    3 documents       5 chunks  handbook" in citewell("projects", "list").stdout

    shown = citewell("projects", "delete", str(HANDBOOK.id), typed="y\n")
    assert shown.stderr.startswith("Delete the project handbook: 3 documents (5 chunks), all its conversations")
    assert shown.stdout.startswith("deleted the project handbook: 3 documents (5 chunks), its conversations")
    assert [row["name"] for row in json.loads(citewell("projects", "list", "--json").stdout)] == ["default"]
    assert set(chunk_ids(home)) == kept, "nothing of it is left in the library or in the index"
    assert "All is well." in citewell("doctor").stdout


def chunk_ids_of(citewell: Citewell, project: str) -> list[str]:
    shown = citewell("documents", "show", "01-pumps.md", "--project", project, "--json")
    return [chunk["id"] for chunk in json.loads(shown.stdout)["chunks"]]


def test_nothing_is_deleted_without_a_confirmation(citewell: Citewell, home: Path, docs: Path) -> None:
    take_in(home, docs, project="handbook")
    for typed in ("", "n\n"):
        shown = citewell("projects", "delete", "handbook", typed=typed)
        assert shown.returncode == 1
        assert "nothing was deleted; answer y, or use --yes" in shown.stderr
    assert len(json.loads(citewell("projects", "list", "--json").stdout)) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["delete", "default", "--yes"], "the default project cannot be deleted; `citewell documents delete`"),
        (["delete", "nowhere", "--yes"], "no project 'nowhere'; `citewell projects list` shows what there is"),
        (["create", " "], "NAME ' ' should be one line of 1 to 100 characters"),
        (["create", "x" * 101], "should be one line of 1 to 100 characters"),
    ],
)
def test_a_project_that_cannot_be_is_named(citewell: Citewell, arguments: list[str], says: str) -> None:
    shown = citewell("projects", *arguments)
    assert shown.returncode in (1, 2)
    assert says in shown.stderr


def test_a_server_s_projects_are_managed_alike(citewell: Citewell, home: Path, docs: Path, tmp_path: Path) -> None:
    take_in(home, docs, project="handbook")
    session = str(uuid4())
    with serving(home) as address:
        there = {"CITEWELL_SERVER": address, "home": tmp_path / "nothing"}
        chat = {"query": "What does a pump do?", "session_id": session}
        asked = httpx2.post(f"{address}/chat?project_id={HANDBOOK.id}", json=chat, timeout=30)
        assert asked.status_code == 200
        assert citewell("projects", "create", "press", **there).stdout.endswith("press\n")
        names = [row["name"] for row in json.loads(citewell("projects", "list", "--json", **there).stdout)]
        assert names == ["default", "handbook", "press"]
        refused = citewell("projects", "delete", "default", "--yes", **there)
        assert "the default project cannot be deleted" in refused.stderr
        done = json.loads(citewell("projects", "delete", "handbook", "--yes", "--json", **there).stdout)
        assert (done["name"], done["documents"], done["chunks"], done["deleted"]) == ("handbook", 3, 5, True)
        assert len(json.loads(citewell("projects", "list", "--json", **there).stdout)) == 2
    assert not (tmp_path / "nothing").exists()
    assert chunk_ids(home) == []


@pytest.mark.parametrize(
    ("url", "commands"),
    [
        (
            "https://github.com/org/handbook",
            ["git clone --depth 1 https://github.com/org/handbook handbook", "citewell ingest handbook --base-url "],
        ),
        (
            "https://github.com/org/handbook/tree/main/website/docs/",
            ["git clone --depth 1 https://github.com/org/handbook handbook", "citewell ingest handbook/website/docs -"],
        ),
        (
            "git+https://example.org/a/b.git",
            ["git clone --depth 1 https://example.org/a/b.git b", "citewell ingest b "],
        ),
        ("git@example.org:a/b.git", ["git clone --depth 1 git@example.org:a/b.git b", "citewell ingest b "]),
        ("s3://bucket/docs", ["aws s3 sync s3://bucket/docs downloaded", "citewell ingest downloaded --base-url "]),
        ("https://docs.example.org/guide/", ["wget --recursive", "--base-url https://docs.example.org", "git clone"]),
        ("https://example.org/a/b.pdf", ["curl --location --remote-name", "citewell ingest b.pdf"]),
        ("file:///tmp/docs", ["citewell ingest /tmp/docs"]),
        ("ftp://example.org/docs", ["citewell ingest FOLDER"]),
        ("https://[", ["citewell ingest FOLDER"]),
        (
            "https://x.org/a?b=1&c=2",
            ["downloaded 'https://x.org/a?b=1&c=2'\n", "--base-url 'https://x.org/a?b=1&c=2'\n"],
        ),
        (
            "https://x.org/it's a.pdf",
            ["""--remote-name 'https://x.org/it'"'"'s a.pdf'""", """ingest 'it'"'"'s a.pdf'"""],
        ),
        ("file:///tmp/my%20docs", ["citewell ingest '/tmp/my docs'"]),
    ],
)
def test_a_url_is_refused_with_the_commands_that_download_it(
    citewell: Citewell, home: Path, docs: Path, url: str, commands: list[str]
) -> None:
    shown = citewell("ingest", str(docs), url)
    assert shown.returncode == 1
    assert f"{url} is a URL, and citewell reads only files and folders on this machine" in shown.stderr
    for command in commands:
        assert command in shown.stderr
    assert shown.stdout == ""
    assert not home.exists()
