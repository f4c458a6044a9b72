"""What the documents say is true: their commands run, their settings exist, their links lead somewhere."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from citewell.evaluate.questions import read_questions
from citewell.ingest.parse import parse, read_bytes
from citewell.ingest.walk import walk
from citewell.settings import Settings, as_markdown
from tests.conftest import BOOK, Citewell, settings_for
from tests.http.conftest import borrow_embeddings

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def test_every_setting_is_documented() -> None:
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == as_markdown(), "run `make docs`"


def test_settings_come_from_the_environment_and_keep_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITEWELL_PORT", "9001")
    monkeypatch.setenv("QDRANT_API_KEY", "very-secret")
    settings = Settings()
    assert settings.port == 9001
    assert settings.unused() == ["QDRANT_API_KEY"]
    assert "very-secret" not in repr(settings)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_in_the_docs_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_prose_has_lines_of_at_most_100_characters(page: Path) -> None:
    """Code, tables and lines with a link may be longer."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    long = [line for line in text.splitlines() if len(line) > 100 and not line.startswith(("|", "    "))]
    assert [line for line in long if "](" not in line] == []


def test_the_glossary_has_at_most_40_words() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    glossary = page.split("## Glossary")[1].split("\n## ")[0]
    words = [row.split("|")[1].strip() for row in glossary.splitlines() if row.startswith("| ")][2:]
    assert 20 < len(words) <= 40
    assert len(set(words)) == len(words)


def test_the_readme_s_commands_do_what_it_shows(citewell: Citewell, home: Path, book_home: Path) -> None:
    """On the first and the last line that each prints; an ingest embeds less where embeddings are known already."""
    asyncio.run(borrow_embeddings(settings_for(book_home), settings_for(home)))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\$ citewell (\w+) (?:\"(.+)\"|(\S+))$", readme, re.MULTILINE)
    assert [command for command, *_ in shown] == ["ingest", "ask", "ask"]
    for command, question, path in shown:
        done = citewell(command, question or str(ROOT / path))
        assert done.returncode == 0
        printed = done.stdout.strip().splitlines()
        assert f"\n{printed[0]}\n" in readme
        assert f"\n{printed[-1]}\n" in readme


def test_the_example_book_is_what_the_readme_promises() -> None:
    found = walk([BOOK])
    files, errors = found.files, found.errors
    chapters = [file for file in files if "/" in file.path]
    words = sum(len(parse(file.path, read_bytes(file.location)).text.split()) for file in files)
    assert errors == []
    assert len(chapters) >= 16
    assert len({file.path.split("/")[0] for file in chapters}) >= 4
    assert words >= 16_000


def test_golden_questions_name_headings_and_words_that_are_there() -> None:
    questions = read_questions(BOOK / "golden.jsonl")
    assert sum(not question.unanswerable for question in questions) == 60
    assert sum(question.unanswerable for question in questions) == 15
    headings: set[str] = set()
    for question in questions:
        for place in question.relevant_sections:
            path, heading = place.split("#", 1)
            text = (BOOK / path).read_text(encoding="utf-8")
            found = [
                re.sub(r"\s*\{#.*\}$|`", "", line.lstrip("# ")) for line in text.splitlines() if line.startswith("#")
            ]
            title = re.search(r"^title: (.+)$", text, re.MULTILINE)
            assert heading in found or (title and heading == title[1].strip("\"'")), place
            headings.add(heading.casefold())
    assert not headings & {question.text.casefold().rstrip("?") for question in questions}
    assert all(json.loads(line) for line in (BOOK / "golden.jsonl").read_text(encoding="utf-8").splitlines())
