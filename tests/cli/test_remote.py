"""Commands do the same over a server as at home, as far as the server tells it."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from citewell.cli import main
from tests.conftest import serving, take_in

Run = Callable[..., Result]

QUESTION = "How do I prime a pump?"


@pytest.fixture(scope="module")
def waterworks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A home folder with two projects, and the address of a server over it."""
    folder = tmp_path_factory.mktemp("waterworks")
    pages = folder / "docs"
    pages.mkdir()
    (pages / "pumps.md").write_text(
        "# Pumps\n\nA pump moves water uphill.\n\n## Priming\n\nPrime a pump: fill its casing with water first.\n"
    )
    (pages / "valves.md").write_text("# Valves\n\nA valve stops the flow.\n\n## Leaks\n\nReplace the gasket yearly.\n")
    take_in(folder / "home", pages)
    take_in(folder / "home", pages / "pumps.md", project="pumps")
    with serving(folder / "home") as address:
        yield folder / "home", address


@pytest.fixture
def at_home(waterworks: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments, **more: CliRunner().invoke(
        main, arguments, env={"CITEWELL_HOME": str(waterworks[0])}, **more
    )


@pytest.fixture
def there(waterworks: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The same from a machine that has nothing but the address."""
    monkeypatch.chdir(tmp_path)
    environment = {"CITEWELL_HOME": str(tmp_path / "nothing"), "CITEWELL_SERVER": waterworks[1]}
    return lambda *arguments, **more: CliRunner().invoke(main, arguments, env=environment, **more)


def test_an_answer_reads_the_same(at_home: Run, there: Run) -> None:
    here, over = at_home("ask", QUESTION), there("ask", QUESTION)
    assert over.exit_code == 0, over.output
    text, sources = over.stdout.split("\n\nSources ")
    assert text == here.stdout.split("\n\nSources ")[0]
    assert "[1] pumps.md:" in sources
    mine, theirs = (json.loads(run("ask", QUESTION, "--json").stdout) for run in (at_home, there))
    assert theirs["answer"] == mine["answer"]
    assert theirs["confidence"] == mine["confidence"]
    assert set(theirs) <= set(mine)
    for key in ("id", "documentId", "source", "chapter", "start", "end", "line"):
        assert theirs["citations"][0][key] == mine["citations"][0][key]


def test_what_is_not_covered_names_the_nearest_topics(there: Run) -> None:
    told = there("ask", "How long does a chicken roast?")
    assert "not covered" in told.stdout
    assert "Nearest topics" in told.stdout


def test_another_project_is_asked_too(at_home: Run, there: Run) -> None:
    here, over = (run("ask", QUESTION, "--project", "pumps") for run in (at_home, there))
    assert over.exit_code == 0, over.output
    assert over.stdout.split("\n\nSources")[0] == here.stdout.split("\n\nSources")[0]
    assert "[1] pumps.md:" in over.stdout
    told = json.loads(there("ask", QUESTION, "--project", "pumps", "--json").stdout)
    assert told["citations"][0]["source"] == "pumps.md"
    assert told["answer"].endswith("[1]")


def test_a_search_finds_the_same(at_home: Run, there: Run) -> None:
    for narrowed in ([], ["--section", "Leaks"], ["--top-k", "1"], ["--section", "Nowhere"]):
        here, over = (run("search", "gasket", *narrowed) for run in (at_home, there))
        assert over.exit_code == 0, over.output
        assert over.stdout == here.stdout
    mine, theirs = (json.loads(run("search", "gasket", "--json").stdout) for run in (at_home, there))
    assert theirs == mine


def test_a_chat_remembers(there: Run) -> None:
    told = there("chat", input=f"{QUESTION}\nTell me more\n")
    assert told.exit_code == 0, told.output
    assert f"> {QUESTION}" in told.stdout
    assert told.stdout.count("[1] pumps.md:") == 2, "the second question is about the first"
    other = there("chat", "--project", "pumps", input=f"{QUESTION}\nTell me more\n")
    assert other.stdout.count("[1] pumps.md:") == 2


def test_documents_are_listed_shown_uploaded_verified_and_deleted(at_home: Run, there: Run, tmp_path: Path) -> None:
    assert there("documents", "list").stdout == at_home("documents", "list").stdout
    mine, theirs = (json.loads(run("documents", "show", "pumps.md", "--json").stdout) for run in (at_home, there))
    assert theirs["id"] == mine["id"]
    assert [chunk["id"] for chunk in theirs["chunks"]] == [chunk["id"] for chunk in mine["chunks"]]
    assert there("documents", "show", "pumps.md").stdout.count("\n") > len(theirs["chunks"])

    (tmp_path / "turbines.md").write_text("# Turbines\n\nA turbine turns steam into motion.\n")
    (tmp_path / "broken.pdf").write_text("no PDF")
    sent = there("documents", "upload", "turbines.md", "broken.pdf", "--project", "new")
    assert sent.exit_code == 1
    assert "1 chunks  turbines.md  Turbines\n" in sent.stdout
    assert "broken.pdf  FAILED: " in sent.stdout
    held = json.loads(there("documents", "show", "turbines.md", "--project", "new", "--json").stdout)
    chunk = held["chunks"][0]["id"]

    answer = tmp_path / "answer.txt"
    answer.write_text(f"Steam becomes motion. [{chunk}]")
    for run in (at_home, there):
        fine = run("verify", "--answer", str(answer), "--project", "new")
        assert (fine.exit_code, fine.stdout) == (0, f"valid    {chunk}  turbines.md:1\n")
    gone = there("documents", "delete", "turbines.md", "--project", "new")
    assert gone.stdout == "deleted turbines.md (1 chunks)\n"
    for run in (at_home, there):
        told = run("verify", chunk, "0" * 64, "--project", "new", "--json")
        assert told.exit_code == 1
        assert [one["status"] for one in json.loads(told.stdout)] == ["deleted", "unknown"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ask", QUESTION, "--server", "http://127.0.0.1:9"], "nothing answers at http://127.0.0.1:9"),
        (["ask", QUESTION, "--server", "localhost:8000"], "write it like http://127.0.0.1:8000"),
        (["ask", QUESTION, "--section", "Leaks"], "`ask --server` takes no filters"),
        (["ask", QUESTION, "--project", "nowhere"], "there is no such project"),
        (["search", "gasket", "--path", "docs/"], "--section and --url-prefix only"),
        (["chat", "--top-k", "3"], "the server decides"),
        (["documents", "show", "nothing.md"], "no document 'nothing.md'"),
        (["documents", "upload", __file__ + "x"], "does not exist"),
        (["verify"], "--answer FILE"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(there: Run, arguments: list[str], says: str) -> None:
    told = there(*arguments)
    assert told.exit_code in (1, 2)
    assert says in told.stderr
    assert "Traceback" not in told.stderr


def test_at_home_nothing_is_uploaded_and_no_key_is_shown(at_home: Run) -> None:
    assert "citewell ingest" in at_home("documents", "upload", __file__).stderr
    assert "name it with --server" in at_home("ask", QUESTION, "--key", "cw_1").stderr


def test_help_loads_no_http_client() -> None:
    loaded = "import sys, citewell.cli; print({'httpx2', 'pydantic', 'numpy', 'fastapi'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
