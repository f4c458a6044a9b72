"""What clients send in becomes answers through the one ingest flow; what cannot be read says why and harms nothing."""

import asyncio
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import UUID, uuid4

import pytest
from click.testing import CliRunner, Result

from citewell import wiring
from citewell.adapters.sql import SqlUploads
from citewell.cli import main
from citewell.ingest.plan import KEPT_VERSION
from citewell.ingest.uploads import drain
from citewell.models import DEFAULT_PROJECT, Document, IngestRun, Project, Upload, document_id
from tests.commands import Command
from tests.conftest import PROJECT, ask, chunk_ids, settings_for, take_in
from tests.ingest.readers.docx_files import package, paragraph, run
from tests.ingest.readers.pdf_files import body, make_pdf


@pytest.fixture(autouse=True)
def quick_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are enough to find these pages."""
    monkeypatch.setenv("CITEWELL_EMBEDDER", "hashing")


@pytest.fixture
def either_database(database_url: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if database_url is not None:
        monkeypatch.setenv("DATABASE_URL", database_url)


def citewell(home: Path, *arguments: str) -> Result:
    return CliRunner(env={"CITEWELL_HOME": str(home)}).invoke(main, arguments)


PUMPS = b"# Pumps\n\nA pump moves water uphill.\n\n## Priming\n\nFill the casing with water before the first start.\n"


def send(
    home: Path,
    path: str,
    content: bytes = b"",
    *,
    kind: Literal["ingest", "delete"] = "ingest",
    project: str = DEFAULT_PROJECT,
) -> Upload:
    upload = Upload(uuid4(), Project.named(project), path, kind, "PENDING", len(content), datetime.now(UTC))

    async def add() -> None:
        async with wiring.open_stores(settings_for(home)) as stores:
            await stores.uploads.add(upload, content=content)

    asyncio.run(add())
    return upload


async def working(home: Path) -> dict[str, str | None]:
    """Work as `citewell worker` does; why each upload failed, by its path."""
    settings = settings_for(home)
    async with (
        wiring.open_for_ingest(settings, wait=True, on_wait=lambda: None) as engines,
        wiring.open_stores(settings) as stores,
    ):
        recipe, folder = wiring.ingest_recipe(settings), home / "uploads"
        done = drain(stores.uploads, stores.projects, engines=engines, recipe=recipe, folder=folder)
        return {upload.path: error async for upload, error in done}


def work(home: Path) -> dict[str, str | None]:
    return asyncio.run(working(home))


def waiting(home: Path, *, project: Project = PROJECT) -> list[Upload]:
    async def run() -> list[Upload]:
        async with wiring.open_stores(settings_for(home)) as stores:
            return await stores.uploads.uploads(project.id)

    return asyncio.run(run())


def held(home: Path, path: str, *, project: Project = PROJECT) -> Document | None:
    async def run() -> Document | None:
        async with wiring.open_for_answers(settings_for(home)) as reading:
            return await reading.library.document(document_id(project, path))

    return asyncio.run(run())


def project_names(home: Path) -> list[str]:
    async def run() -> list[str]:
        async with wiring.open_stores(settings_for(home)) as stores:
            return [project.name for project, _ in await stores.projects.projects()]

    return asyncio.run(run())


@pytest.mark.usefixtures("either_database")
def test_uploads_of_every_kind_become_answers(home: Path) -> None:
    word = paragraph(run("A valve stops the flow of oil in the pipeline."))
    page = "<html><head><title>Taps</title></head><body><main><h1>Taps</h1><p>A tap drips when its washer is worn."
    send(home, "guide/pumps.md", PUMPS)
    send(home, "taps.html", page.encode())
    send(home, "valves.docx", package(word))
    send(home, "boilers.pdf", make_pdf([body("A boiler heats water to ninety degrees.", "It hums quietly at night.")]))
    assert work(home) == dict.fromkeys(["guide/pumps.md", "taps.html", "valves.docx", "boilers.pdf"])
    assert waiting(home) == []
    for question, words, source in (
        ("What does a pump do?", "moves water uphill", "guide/pumps.md"),
        ("When does a tap drip?", "washer is worn", "taps.html"),
        ("What stops the flow of oil?", "A valve stops the flow of oil", "valves.docx"),
        ("How hot does a boiler heat water?", "ninety degrees", "boilers.pdf"),
    ):
        text, answer = ask(home, question)
        assert words in text
        assert answer.cited[0].chunk.source == source
    assert list((home / "uploads").iterdir()) == []
    assert citewell(home, "doctor").stdout.strip() == "All is well."


def test_the_base_url_of_the_settings_is_the_uploads_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITEWELL_BASE_URL", "https://example.org/docs")
    send(home, "guide/pumps.md", PUMPS)
    work(home)
    document = held(home, "guide/pumps.md")
    assert document is not None
    assert document.url == "https://example.org/docs/guide/pumps"


@pytest.mark.parametrize(
    ("path", "content", "says"),
    [
        ("a.pdf", b"this is no PDF at all, but quite long enough to be looked at", "not a PDF"),
        ("b.md", b"\0\1\2\xff" * 100, "a binary file, not text"),
        ("c.md", "Größe".encode("latin-1"), "save it as UTF-8"),
        ("d.docx", b"PK\3\4 nothing", "not a Word document"),
        ("e.exe", b"MZ", "cannot read .exe; readable are .md"),
        ("noextension", b"hello", "cannot read a file without a suffix"),
        ("f.md", b" \n", "an empty file"),
    ],
)
def test_what_cannot_be_read_fails_with_the_reason_and_no_path_of_ours(
    home: Path, path: str, content: bytes, says: str
) -> None:
    upload = send(home, path, content)
    work(home)
    [failed] = waiting(home)
    assert (failed.id, failed.status, failed.attempts) == (upload.id, "FAILED", 1)
    assert failed.error is not None
    assert says in failed.error
    assert str(home) not in failed.error
    assert str(upload.id) not in failed.error
    assert list((home / "uploads").iterdir()) == []


def test_one_that_fails_stops_no_other_and_keeps_what_was_readable_before(home: Path) -> None:
    send(home, "pumps.md", PUMPS)
    work(home)
    send(home, "pumps.md", b"\0\1\2")
    send(home, "taps.md", b"# Taps\n\nA tap drips.\n")
    assert work(home) == {"pumps.md": f"a binary file, not text{KEPT_VERSION}", "taps.md": None}
    assert "uphill" in ask(home, "What does a pump do?")[0]
    assert "drips" in ask(home, "What does a tap do?")[0]


def test_what_comes_in_one_after_another_is_one_ingest_of_its_project(home: Path) -> None:
    for number in range(3):
        send(home, f"{number}.md", PUMPS)
    send(home, "broken.pdf", b"not a PDF")
    send(home, "2.md", kind="delete")
    send(home, "other.md", PUMPS, project="other")
    work(home)

    async def look() -> list[list[IngestRun]]:
        async with wiring.open_stores(settings_for(home)) as stores:
            return [await stores.ingests.ingests(Project.named(name).id) for name in (DEFAULT_PROJECT, "other")]

    (ours,), (theirs,) = asyncio.run(look())
    assert (ours.outcome, ours.done, ours.total, ours.files_processed) == ("done", 3, 3, 2)
    assert [error.partition(":")[0] for error in ours.errors] == ["broken.pdf"]
    assert (theirs.outcome, theirs.done, theirs.files_processed, theirs.chunks_created) == ("done", 1, 1, 2)


def test_uploads_that_wait_together_are_published_together_and_never_past_a_deletion(home: Path) -> None:
    send(home, "old.md", PUMPS)
    work(home)
    for number in range(3):
        send(home, f"{number}.md", PUMPS)
    send(home, "old.md", kind="delete")
    send(home, "last.md", PUMPS)
    assert list(work(home)) == ["0.md", "1.md", "2.md", "old.md", "last.md"]
    assert (home / "index" / "CURRENT").read_text().strip() == "4", "old, three, its removal, last"


def test_what_a_dead_worker_had_taken_together_is_tried_one_by_one(home: Path) -> None:
    async def die() -> None:
        async with wiring.open_stores(settings_for(home)) as stores:
            assert all([await stores.uploads.claim() for _ in range(3)])

    for number in range(3):
        send(home, f"{number}.md", PUMPS)
    asyncio.run(die())
    assert list(work(home)) == ["0.md", "1.md", "2.md"]
    assert (home / "index" / "CURRENT").read_text().strip() == "3", "one on which it died stops no other"


def test_the_same_path_again_replaces_what_it_said(home: Path) -> None:
    send(home, "pumps.md", PUMPS)
    work(home)
    send(home, "pumps.md", b"# Pumps\n\nA pump moves oil downhill.\n")
    work(home)
    text, answer = ask(home, "What does a pump move?")
    assert "oil downhill" in text
    assert not any("uphill" in passage.chunk.text for passage in answer.retrieved)
    assert len(chunk_ids(home)) == 1
    assert citewell(home, "doctor").exit_code == 0


def test_the_same_bytes_again_cost_no_new_index(home: Path) -> None:
    send(home, "pumps.md", PUMPS)
    work(home)
    before = (home / "index" / "CURRENT").read_text()
    send(home, "pumps.md", PUMPS)
    assert work(home) == {"pumps.md": None}
    assert (home / "index" / "CURRENT").read_text() == before


def test_a_deleted_document_is_gone_from_answers_library_and_index(home: Path) -> None:
    send(home, "pumps.md", PUMPS)
    send(home, "vault.md", b"# Vault\n\nThe vault opens with the word xylophone.\n")
    work(home)
    assert "xylophone" in ask(home, "What word opens the vault?")[0]
    send(home, "vault.md", kind="delete")
    send(home, "never-was.md", kind="delete")
    assert work(home) == {"vault.md": None, "never-was.md": None}
    assert waiting(home) == []
    assert held(home, "vault.md") is None
    text, answer = ask(home, "What word opens the vault?")
    assert "xylophone" not in text
    assert not any("xylophone" in passage.chunk.text for passage in answer.retrieved)
    assert citewell(home, "doctor").stdout.strip() == "All is well."
    assert citewell(home, "doctor", "--vacuum").exit_code == 0
    for file in home.rglob("*"):
        assert not file.is_file() or b"xylophone" not in file.read_bytes(), file


@pytest.mark.usefixtures("either_database")
def test_a_deleted_project_takes_its_documents_and_nobody_else_s(home: Path) -> None:
    for project in ("ours", "theirs"):
        send(home, "pumps.md", PUMPS, project=project)
        send(home, "taps.md", b"# Taps\n\nA tap drips.\n", project=project)
    work(home)
    send(home, "", kind="delete", project="ours")
    assert work(home) == {"": None}
    assert project_names(home) == ["default", "theirs"]
    assert held(home, "pumps.md", project=Project.named("ours")) is None
    assert held(home, "taps.md", project=Project.named("ours")) is None
    assert "uphill" in ask(home, "What does a pump do?", project="theirs")[0]
    assert citewell(home, "doctor").stdout.strip() == "All is well."


def test_an_upload_into_an_index_of_another_model_fails_with_what_to_do(home: Path, docs: Path) -> None:
    take_in(home, docs, embedder="minilm")
    send(home, "taps.md", PUMPS)
    assert "`citewell ingest --reembed`" in str(work(home)["taps.md"])
    assert held(home, "taps.md") is None


def test_pruning_a_folder_leaves_what_was_uploaded(home: Path, docs: Path) -> None:
    take_in(home, docs, embedder="hashing")
    send(home, "01-uploaded.md", PUMPS)
    work(home)
    (docs / "02-valves.md").unlink()
    assert take_in(home, docs, embedder="hashing", prune=True).files_removed == 1
    assert held(home, "01-uploaded.md") is not None


@pytest.mark.parametrize("changed", [b"", b"\nIt hums.\n"])
def test_of_an_upload_and_a_file_of_the_same_path_the_newer_stands(home: Path, docs: Path, changed: bytes) -> None:
    take_in(home, docs, embedder="hashing")
    content = (docs / "01-pumps.md").read_bytes() + changed
    send(home, "01-pumps.md", content)
    assert work(home) == {"01-pumps.md": None}
    uploaded = held(home, "01-pumps.md")
    assert uploaded is not None
    assert (uploaded.text.encode(), uploaded.root) == (content, "")
    assert take_in(home, docs, embedder="hashing").errors == ()
    again = held(home, "01-pumps.md")
    assert again is not None
    assert (again.text, again.root) == ((docs / "01-pumps.md").read_text(), str(docs))
    (docs / "01-pumps.md").unlink()
    take_in(home, docs, embedder="hashing", prune=True)
    assert held(home, "01-pumps.md") is None


@pytest.mark.parametrize("path", ["../../evil.md", "/etc/evil.md", "C:\\evil.md", "part/evil.md", "x" * 3000 + ".md"])
def test_a_client_s_path_is_never_a_path_on_this_machine(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "_category_.json").write_text('{"label": "a secret of this machine"}')
    monkeypatch.chdir(tmp_path)
    send(home, path, PUMPS)
    assert work(home) == {path: None}
    document = held(home, path)
    assert document is not None
    assert "secret" not in document.part
    assert not [file for file in tmp_path.rglob("*") if "evil" in file.name]


def test_three_workers_that_died_on_it_are_enough(home: Path) -> None:
    async def die() -> None:
        async with wiring.open_stores(settings_for(home)) as stores:
            await stores.uploads.resume()
            assert all([await stores.uploads.claim() for _ in ("pumps.md", "taps.md")])

    send(home, "taps.md", b"# Taps\n\nA tap drips.\n")
    work(home)
    send(home, "pumps.md", PUMPS)
    send(home, "taps.md", PUMPS)
    send(home, "gone.md", kind="delete")
    for _ in range(3):
        asyncio.run(die())
    done = work(home)
    assert done["gone.md"] is None
    crashed = "its reader crashed on it; the file is probably broken"
    assert (done["pumps.md"], done["taps.md"]) == (crashed, crashed + KEPT_VERSION)
    assert [upload.status for upload in waiting(home)] == ["FAILED", "FAILED"]


@pytest.mark.parametrize("blocked", ["uploads", "index/1.partial"])
def test_an_upload_waits_as_long_as_its_disk_cannot_be_written_to(home: Path, blocked: str) -> None:
    """However often it is tried: the disk is at fault, not the file."""
    send(home, "pumps.md", PUMPS)
    (home / blocked).parent.mkdir(exist_ok=True)
    (home / blocked).write_text("a file where a folder has to be")
    for _ in range(4):
        tried = citewell(home, "worker")
        assert tried.exit_code == 1
        assert "cannot be written" in tried.stderr
        assert isinstance(tried.exception, SystemExit), "no traceback"
    assert [upload.status for upload in waiting(home)] == ["PENDING"]
    (home / blocked).unlink()
    assert work(home) == {"pumps.md": None}


def test_a_third_attempt_that_lives_is_as_good_as_the_first(home: Path) -> None:
    async def die() -> None:
        async with wiring.open_stores(settings_for(home)) as stores:
            await stores.uploads.resume()
            assert await stores.uploads.claim()

    send(home, "pumps.md", PUMPS)
    for _ in range(2):
        asyncio.run(die())
    assert work(home) == {"pumps.md": None}


def test_killed_in_the_middle_a_second_run_ends_as_if_undisturbed(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "undisturbed"
    for place in (home, other):
        send(place, "old.md", PUMPS)
        work(place)
        for number in range(2):
            send(place, f"{number}.md", _long_page(number))
        send(place, "old.md", kind="delete")
    work(other)
    for path in ("0.md", "1.md"):
        process = _worker(home)
        _wait_until_processing(path, home)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=300)
        assert waiting(home), "it was in the middle"
    assert citewell(home, "worker").exit_code == 0
    assert waiting(home) == []
    assert chunk_ids(home) == chunk_ids(other)
    assert list((home / "uploads").iterdir()) == []
    assert citewell(home, "doctor").stdout.strip() == "All is well."


def test_a_worker_that_is_asked_to_go_puts_its_upload_back(home: Path) -> None:
    upload = send(home, "long.md", _long_page(0, parts=1000))
    process = _worker(home)
    _wait_until_processing("long.md", home)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=300) == 130
    assert waiting(home) == [upload], "no attempt is used up"


def test_a_worker_that_is_asked_to_go_while_it_takes_an_upload_puts_it_back(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload, claimed, claim = send(home, "pumps.md", PUMPS), asyncio.Event(), SqlUploads.claim

    async def slowly(
        uploads: SqlUploads, project: UUID | None = None, *, only_new: bool = False
    ) -> tuple[Upload, bytes] | None:
        answer = await claim(uploads, project, only_new=only_new)
        claimed.set()
        await asyncio.sleep(0.1)  # the database has claimed it, and the worker does not know yet
        return answer

    async def asked_to_go() -> None:
        worker = asyncio.create_task(working(home))
        await claimed.wait()
        worker.cancel()
        with pytest.raises(asyncio.CancelledError):
            await worker

    monkeypatch.setattr(SqlUploads, "claim", slowly)
    asyncio.run(asked_to_go())
    assert waiting(home) == [upload], "no attempt is used up"


def test_a_worker_says_what_it_did(home: Path) -> None:
    send(home, "pumps.md", PUMPS)
    send(home, "a.exe", b"MZ", project="ours")
    done = citewell(home, "worker")
    assert done.exit_code == 0
    assert "default: pumps.md indexed" in done.stdout
    assert "ours: a.exe failed: cannot read .exe" in done.stdout
    assert citewell(home, "worker").stdout == "No upload is waiting.\n"


def _long_page(number: int, *, parts: int = 300) -> bytes:
    sections = (f"## Part {part}\n\n" + f"Pump {number} moves water to tank {part}. " * 80 for part in range(parts))
    return "\n\n".join((f"# Page {number}", *sections)).encode()


def _worker(home: Path) -> Command:
    return Command("worker", cwd=home, env={**os.environ, "CITEWELL_HOME": str(home)})


def _wait_until_processing(path: str, home: Path) -> None:
    for _ in range(6000):
        if any(upload.status == "PROCESSING" and upload.path == path for upload in waiting(home)):
            return
        time.sleep(0.05)
    raise AssertionError(f"no worker processed {path} within five minutes")
