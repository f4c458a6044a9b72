"""The page on which an author sees what is held, what failed and what readers missed."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import Locator, Page, expect

from citewell.models import IngestRun, Project
from tests import commands
from tests.browser.conftest import Opens, Watched, ask, at, take_in
from tests.conftest import copied, made_once
from tests.http.conftest import DEFAULT, made_key
from tests.http.live import Live, live

pytestmark = pytest.mark.xdist_group("browser-library")

PAGES = {
    "pumps.md": "# Pumps\n\nA pump moves water uphill.\n\n## Priming\n\nFill the casing with water.\n",
    "valves.md": "# Valves\n\nA valve stops the flow.\n\n## Leaks\n\nReplace the gasket yearly.\n",
}
COVERED = "What moves water uphill?"
UNCOVERED = "Who won the football world cup in 1998?"


@pytest.fixture(scope="session")
def waterworks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with two pages in one project and one in another."""

    def make(home: Path) -> None:
        docs, other = home / "docs", home / "other"
        for folder in (docs, other):
            folder.mkdir(parents=True)
        for name, text in PAGES.items():
            (docs / name).write_text(text)
        (other / "pipes.md").write_text("# Pipes\n\nCopper pipes carry hot water.\n")
        take_in(home, docs)
        take_in(home, other, project="plumbing")

    return made_once(tmp_path_factory, "waterworks", make)


@pytest.fixture
def home(waterworks: Path, tmp_path: Path) -> Path:
    return copied(waterworks, tmp_path / "home")


@pytest.fixture
def server(home: Path) -> Iterator[Live]:
    with live(at(home)) as server:
        yield server


@pytest.fixture
def library(server: Live, opened: Opens) -> Iterator[Page]:
    page = opened(f"{server.address}/library")
    yield page
    page.close()  # before the server goes, at which it looks again and again


def test_documents_are_listed_counted_and_found(library: Page) -> None:
    documents = _part(library, "Documents")
    expect(documents.get_by_role("row")).to_have_count(3)
    expect(documents.get_by_role("row", name="Pumps pumps.md 2 completed")).to_be_visible()
    expect(library.locator(".counts")).to_contain_text("2 documents")
    expect(library.locator(".counts")).to_contain_text("4 chunks")
    expect(_part(library, "Ingests")).to_contain_text("done 2 files, 4 chunks")
    documents.get_by_role("button", name="2").first.click()
    documents.locator("summary", has_text="Priming").click()
    expect(documents.locator(".chunks")).to_contain_text("Fill the casing")
    library.get_by_label("Find a document").fill("VALV")
    expect(documents.get_by_role("row")).to_have_count(2)
    expect(documents.get_by_role("row", name="Valves")).to_be_visible()
    library.get_by_label("Find a document").fill("nothing of the kind")
    expect(documents).to_contain_text("No document matches.")


def test_a_document_that_is_stored_whole_is_shown_and_cited(tmp_path: Path, docs: Path, opened: Opens) -> None:
    take_in(tmp_path / "whole", docs, whole_documents=True)
    with live(at(tmp_path / "whole")) as server:
        page = opened(f"{server.address}/library")
        documents = _part(page, "Documents")
        documents.get_by_role("row", name="Pumps").get_by_role("button", name="1").click()
        expect(documents.locator("summary")).to_have_text("Pumps lines 1–7")
        documents.locator("summary").click()
        expect(documents.locator(".chunks")).to_contain_text("Fill the casing")
        page.goto(f"{server.address}/chat")
        ask(page, COVERED).locator("button.mark").first.click()
        expect(page.locator("dialog.panel mark.cited")).to_contain_text("A pump moves water uphill")
        expect(page.locator("dialog.panel .facts")).to_contain_text("line 3")
        expect(page.locator("dialog.panel .facts")).not_to_contain_text("part")
        page.reload()
        page.locator(".message.assistant button.mark").first.click()
        expect(page.locator("dialog.panel mark.cited")).to_contain_text("A pump moves water uphill")
        page.close()


def test_a_document_that_failed_says_why(library: Page, server: Live) -> None:
    broken = {"name": "broken.pdf", "mimeType": "application/pdf", "buffer": b"no such thing"}
    sent = library.request.post(
        f"{server.address}/api/v1/projects/{DEFAULT.id}/documents",
        multipart={"file": broken},  # type: ignore[dict-item]
    )
    assert sent.status == 202, sent.text()
    row = _part(library, "Documents").get_by_role("row", name="broken.pdf")
    expect(row).to_contain_text("failed", timeout=20_000)
    expect(row.locator(".bad")).to_contain_text("PDF")
    expect(library.locator(".counts")).to_contain_text("1 failed")


def test_an_ingest_is_followed_as_it_runs(library: Page, server: Live) -> None:
    keeping, now = server.state.stores, datetime.now(UTC)
    run = IngestRun(uuid4(), DEFAULT.id, started_at=now, updated_at=now, stage="embedding", done=3, total=12)
    server.run(keeping.ingests.begin(run))
    ingest = _part(library, "Ingests").locator(".ingest").first
    expect(ingest).to_contain_text("running embedding, 3 of 12")
    expect(ingest.get_by_role("progressbar")).to_have_attribute("value", "3")
    server.run(keeping.ingests.update(replace(run, done=9)))
    expect(ingest.get_by_role("progressbar")).to_have_attribute("value", "9")
    ended = {"finished_at": now, "outcome": "failed", "files_processed": 1, "chunks_created": 12}
    server.run(keeping.ingests.update(replace(run, errors=("taps.md: no text in it",), **ended)))  # type: ignore[arg-type]
    expect(ingest).to_contain_text("failed 1 files, 12 chunks")
    expect(ingest).to_contain_text("taps.md: no text in it")
    expect(ingest.get_by_role("progressbar")).to_have_count(0)


def test_what_is_typed_and_read_stays_while_the_page_goes_on(library: Page, server: Live) -> None:
    field = library.get_by_label("Find a document")
    field.fill("pum")
    row = _part(library, "Documents").get_by_role("row", name="Pumps")
    row.evaluate("(one) => one.dataset.same = 'yes'")
    _ask(library, server, UNCOVERED)
    expect(_part(library, "Unanswered questions")).to_contain_text(UNCOVERED)
    expect(field).to_be_focused()
    expect(field).to_have_value("pum")
    expect(row).to_have_attribute("data-same", "yes")


def test_what_readers_missed_and_thought_is_there_without_a_reload(library: Page, server: Live) -> None:
    gaps, votes = _part(library, "Unanswered questions"), _part(library, "Votes")
    expect(gaps).to_contain_text("No unanswered questions yet.")
    expect(votes).to_contain_text("No votes yet.")
    _ask(library, server, UNCOVERED)
    _ask(library, server, UNCOVERED)
    expect(gaps.get_by_role("row", name=f"{UNCOVERED} 2")).to_be_visible()
    expect(library.locator(".counts")).to_contain_text("1 unanswered question")
    _ask(library, server, COVERED, vote="down")
    expect(votes.get_by_role("row", name=f"did not help {COVERED}")).to_contain_text("A pump moves water uphill")
    expect(library.locator(".counts")).to_contain_text("1 did not help")


def test_the_last_evaluation_is_shown(library: Page, home: Path, tmp_path: Path) -> None:
    shown = _part(library, "Evaluation")
    expect(shown).to_contain_text("No evaluation yet")
    questions = tmp_path / "questions.jsonl"
    questions.write_text(json.dumps({"text": COVERED, "relevant": ["pumps.md"], "answers": ["pump"]}) + "\n")
    where = {**os.environ, "CITEWELL_HOME": str(home)}
    told = commands.run("eval", str(questions), "--json", cwd=tmp_path, env=where, timeout=60)
    scores = json.loads(told.stdout)["scores"]
    expect(shown).to_contain_text("1 questions")
    expect(shown.get_by_role("row")).to_have_count(1 + len(scores))


def test_one_project_at_a_time_is_looked_at(library: Page) -> None:
    picker = library.get_by_label("Project")
    expect(picker.locator("option")).to_have_text(["default (2)", "plumbing (1)"])
    picker.select_option("plumbing (1)")
    expect(_part(library, "Documents").get_by_role("row", name="Pipes")).to_be_visible()
    expect(library.locator(".counts")).to_contain_text("1 document")
    expect(_part(library, "Documents").get_by_role("row", name="Pumps")).to_have_count(0)


def test_an_admin_key_is_asked_for_and_kept_by_the_tab_alone(server: Live, opened: Opens, watched: Watched) -> None:
    watched.expected.append("401")
    keeping = server.state.stores
    reader, author = server.run(made_key(keeping)), server.run(made_key(keeping, scope="admin"))
    page = opened(f"{server.address}/library")
    for key, says in (("", "this server asks for a key"), ("cw_wrong", "not known"), (reader, "this key may only ask")):
        if key:
            page.get_by_label("Admin key").fill(key)
            page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text(says)
        assert not page.get_by_role("heading", name="Documents").is_visible()
    page.get_by_label("Admin key").fill(author)
    page.get_by_role("button", name="Use this key").click()
    expect(_part(page, "Documents").get_by_role("row", name="Pumps")).to_be_visible()
    expect(page.get_by_label("Admin key")).to_have_count(0)
    page.reload()
    expect(_part(page, "Documents").get_by_role("row", name="Pumps")).to_be_visible()
    assert page.evaluate("localStorage.length + document.cookie.length") == 0
    other = opened(f"{server.address}/library", beside=page)
    expect(other.get_by_label("Admin key")).to_be_visible()
    server.run(keeping.keys.revoke(author.removeprefix("cw_").split("_")[0]))
    expect(page.get_by_label("Admin key")).to_be_visible()
    assert not page.get_by_role("heading", name="Documents").is_visible()


def test_an_author_of_one_project_sees_that_one(server: Live, opened: Opens, watched: Watched) -> None:
    watched.expected.append("401")
    key = server.run(made_key(server.state.stores, scope="admin", project=Project.named("plumbing")))
    page = opened(f"{server.address}/library")
    page.get_by_label("Admin key").fill(key)
    page.keyboard.press("Enter")
    expect(_part(page, "Documents").get_by_role("row", name="Pipes")).to_be_visible()
    expect(page.get_by_label("Project")).to_be_hidden()
    page.close()


def test_an_empty_library_says_how_to_begin_and_fills_by_itself(
    tmp_path: Path, opened: Opens, watched: Watched
) -> None:
    home, docs = tmp_path / "home", tmp_path / "docs"
    docs.mkdir()
    (docs / "pumps.md").write_text(PAGES["pumps.md"])
    with live(at(home)) as server:
        page = opened(f"{server.address}/library")
        expect(_part(page, "Documents")).to_contain_text("citewell ingest PATH")
        expect(page.locator(".counts")).to_contain_text("0 documents")
        expect(page.get_by_label("Find a document")).to_be_hidden()
        take_in(home, docs)
        expect(_part(page, "Documents").get_by_role("row", name="Pumps")).to_be_visible()
        expect(page.get_by_label("Find a document")).to_be_visible()
        watched.expected.append("ERR_CONNECTION_REFUSED")
    expect(page.get_by_role("alert")).to_contain_text("Cannot reach the server.")
    expect(_part(page, "Documents").get_by_role("row", name="Pumps")).to_be_visible()


def _part(page: Page, title: str) -> Locator:
    return page.locator("section").filter(has=page.get_by_role("heading", name=title))


def _ask(page: Page, server: Live, question: str, *, vote: str | None = None) -> None:
    """As a reader elsewhere does."""
    session = str(uuid4())
    told = page.request.post(f"{server.address}/chat", data={"query": question, "session_id": session}).json()
    assert (told["metadata"]["mode"] == "no_results") == (question == UNCOVERED), told
    if vote:
        voted = {"session_id": session, "request_id": told["metadata"]["request_id"], "vote": vote}
        assert page.request.post(f"{server.address}/api/v1/feedback", data=voted).status == 204
