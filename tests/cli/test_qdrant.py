"""Commands and server on an index that is on a Qdrant server."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from time import monotonic, sleep

import httpx2
import pytest
from qdrant_client import models

from citewell.models import Project
from tests import commands
from tests.conftest import Citewell, serving
from tests.fakes.qdrant import KEY, Call, Fault, Qdrant
from tests.fakes.vendor import Reply

Run = Callable[..., "CompletedProcess[str]"]

QUESTION = "What does a valve stop?"


@pytest.fixture
def qdrant() -> Iterator[Qdrant]:
    with Qdrant(prefix="/vectors") as server:
        yield server


@pytest.fixture
def environment(qdrant: Qdrant) -> dict[str, str]:
    return {"QDRANT_URL": f"{qdrant.url}/", "QDRANT_API_KEY": KEY, "CITEWELL_EMBEDDER": "hashing"}


@pytest.fixture
def run(citewell: Citewell, environment: dict[str, str]) -> Run:
    return lambda *arguments, **more: citewell(*arguments, **environment | more)


def collection(server: Qdrant) -> str:
    (found,) = [one.name for one in server.local.get_collections().collections]
    return found


def texts(server: Qdrant) -> list[str]:
    """The text of every chunk on the server, whichever generation it is in."""
    records, _ = server.local.scroll(collection(server), limit=1000)
    return sorted(record.payload["text"] for record in records if record.payload and "text" in record.payload)


def test_documents_are_ingested_asked_searched_and_removed_on_a_server(
    run: Run, qdrant: Qdrant, docs: Path, home: Path
) -> None:
    first = run("ingest", str(docs))
    assert first.returncode == 0, first.stderr
    assert "A valve stops the flow" in run("ask", QUESTION).stdout
    assert not (home / "index").exists(), "nothing of the index is on this machine"
    assert run("doctor").stdout == "All is well.\n"
    (docs / "02-valves.md").unlink()
    assert run("ingest", str(docs), "--prune").returncode == 0
    assert not [text for text in texts(qdrant) if "valve" in text], "a removed document leaves nothing on the server"
    (docs / "01-pumps.md").write_text("# Pumps\n\nA pump moves oil downhill.\n")
    assert run("ingest", str(docs)).returncode == 0
    assert "downhill" in run("ask", "What does a pump move?").stdout
    assert run("doctor").stdout == "All is well.\n"
    assert {headers.get("api-key") for headers in qdrant.sent_headers} == {KEY}
    assert {call.path.split("/")[1] for call in qdrant.requests} == {"vectors"}


def test_a_second_ingest_of_the_same_files_embeds_and_uploads_nothing(run: Run, qdrant: Qdrant, docs: Path) -> None:
    run("ingest", str(docs))
    qdrant.requests.clear()
    assert json.loads(run("ingest", str(docs), "--json").stdout)["chunks_embedded"] == 0
    assert not [call for call in qdrant.requests if call.method == "PUT"]


def test_an_index_moves_to_a_server_by_an_ingest_that_embeds_nothing(citewell: Citewell, run: Run, docs: Path) -> None:
    assert citewell("ingest", str(docs), CITEWELL_EMBEDDER="hashing").returncode == 0
    done = json.loads(run("ingest", str(docs), "--json").stdout)
    assert (done["files_unchanged"], done["chunks_embedded"], done["errors"]) == (3, 0, [])
    assert "A valve stops the flow" in run("ask", QUESTION).stdout
    assert run("doctor").stdout == "All is well.\n"


def test_projects_share_a_server_and_no_chunk(run: Run, docs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "secret.md").write_text("# Vault\n\nThe vault opens with the word xylophone.\n")
    assert run("ingest", str(docs)).returncode == 0
    assert run("ingest", str(other), "--project", "vault").returncode == 0
    assert "xylophone" not in run("search", "vault word", "--json").stdout
    assert "xylophone" in run("search", "vault word", "--json", "--project", "vault").stdout
    assert run("doctor").stdout == "All is well.\n"


def test_health_reports_the_server_and_an_outage_is_an_error_without_its_url(
    run: Run, qdrant: Qdrant, docs: Path, home: Path, environment: dict[str, str]
) -> None:
    run("ingest", str(docs))
    with serving(home, **environment) as address:
        healthy = httpx2.get(f"{address}/health", timeout=30).json()
        assert healthy["services"]["vector_store"]["details"] == {"version": "1.19.2", "points": 6, "status": "green"}
        body = {"question": QUESTION}
        assert httpx2.post(f"{address}/api/ask", json=body, timeout=30).status_code == 200
        qdrant.faults.append(Fault("", Reply(500, b"{}")))
        refused = httpx2.post(f"{address}/api/ask", json=body, timeout=60)
        assert (refused.status_code, refused.json()["error_code"]) == (503, "QDRANT_UNAVAILABLE")
        unhealthy = httpx2.get(f"{address}/health", timeout=30)
        assert unhealthy.json()["services"]["vector_store"]["status"] == "unavailable"
        for shown in (refused.text, unhealthy.text):
            assert "127.0.0.1" not in shown
            assert KEY not in shown
        qdrant.faults.clear()
        assert httpx2.post(f"{address}/api/ask", json=body, timeout=30).status_code == 200, "it recovers by itself"


def test_an_upload_is_indexed_on_the_server_and_a_deleted_one_leaves_it(
    run: Run, qdrant: Qdrant, docs: Path, home: Path, environment: dict[str, str]
) -> None:
    run("ingest", str(docs))
    with serving(home, **environment) as address:
        documents = f"{address}/api/v1/projects/{Project.named('default').id}/documents"
        file = ("taps.md", b"# Taps\n\nA tap drips when its washer is worn.\n", "text/markdown")
        sent = httpx2.post(documents, files={"file": file}, timeout=30).json()
        body = {"question": "When does a tap drip?"}
        assert until(lambda: "washer" in httpx2.post(f"{address}/api/ask", json=body, timeout=60).text)
        assert httpx2.delete(f"{documents}/{sent['documentId']}", timeout=60).is_success
        assert until(lambda: not [text for text in texts(qdrant) if "washer" in text])


def until(happens: Callable[[], object], *, seconds: float = 60) -> bool:
    """Whether something happens in time."""
    end = monotonic() + seconds
    while not happens():
        if monotonic() > end:
            return False
        sleep(0.1)
    return True


def killed_at(
    server: Qdrant, wanted: Callable[[Call], bool], arguments: list[str], cwd: Path, env: dict[str, str]
) -> None:
    """Run a command, and kill it when it sends a certain request, which the server does not get to apply."""
    reached = threading.Event()
    hanging = Fault("never", Reply(hang=True))

    def watch(call: Call) -> None:
        if wanted(call):
            hanging.pattern = re_escape(call)
            reached.set()

    server.faults.append(hanging)
    server.on_call = watch
    command = commands.Command(*arguments, cwd=cwd, env=env)
    assert reached.wait(60)
    command.send_signal(signal.SIGKILL)
    assert command.wait(timeout=30) == -signal.SIGKILL
    server.on_call = lambda _: None
    server.faults.clear()


def re_escape(call: Call) -> str:
    return f"^{call.method} {call.path}$"


def is_switch(call: Call) -> bool:
    state = call.writes_state
    return bool(state and state["published"] and state["published"]["number"] == 2 and state["staged"] is None)


@pytest.mark.parametrize("repair", [["ingest"], ["doctor", "--fix"]], ids=" ".join)
def test_a_run_that_is_killed_before_the_switch_is_finished_by_the_next(
    run: Run,
    qdrant: Qdrant,
    docs: Path,
    home: Path,
    tmp_path: Path,
    environment: dict[str, str],
    repair: list[str],
) -> None:
    run("ingest", str(docs))
    (docs / "02-valves.md").write_text("# Valves\n\nA valve stops the steam.\n")
    env = {**os.environ, **environment, "CITEWELL_HOME": str(home)}
    killed_at(qdrant, is_switch, ["ingest", str(docs)], tmp_path, env)
    assert "stops the flow" in run("search", QUESTION, "--json").stdout, "readers have the old generation"
    examined = run("doctor")
    assert examined.returncode == 1
    assert "generation 2 matches the library, but 1 is published" in examined.stdout
    mended = run(*repair, *([str(docs)] if repair == ["ingest"] else []))
    assert mended.returncode in (0, 3), mended.stderr
    assert "stops the steam" in run("search", QUESTION, "--json").stdout
    assert "stops the flow" not in "".join(texts(qdrant))
    assert run("doctor").stdout == "All is well.\n"


def test_a_run_that_is_killed_while_it_uploads_leaves_readers_alone_and_the_next_starts_again(
    run: Run, qdrant: Qdrant, docs: Path, home: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    run("ingest", str(docs))
    (docs / "02-valves.md").write_text("# Valves\n\nA valve stops the steam.\n")
    env = {**os.environ, **environment, "CITEWELL_HOME": str(home)}
    killed_at(qdrant, lambda call: call.path.endswith("/points/count"), ["ingest", str(docs)], tmp_path, env)
    killed_at(
        qdrant,
        lambda call: call.method == "PUT" and call.writes_state is not None,
        ["ingest", str(docs)],
        tmp_path,
        env,
    )
    assert "stops the flow" in run("search", QUESTION, "--json").stdout
    assert "2.partial is left over" in run("doctor").stdout
    assert run("doctor", "--fix").returncode == 3
    assert run("doctor").stdout == "All is well.\n"
    assert run("ingest", str(docs)).returncode == 0
    assert "stops the steam" in run("search", QUESTION, "--json").stdout


def test_chunks_that_the_server_lost_are_found_and_restored(run: Run, qdrant: Qdrant, docs: Path) -> None:
    run("ingest", str(docs))
    name = collection(qdrant)
    some = [record.id for record in qdrant.local.scroll(name)[0] if record.payload and "text" in record.payload][:2]
    qdrant.local.delete(name, models.PointIdsList(points=some))
    assert "generation 1 is damaged: it has 3 of its 5 chunks" in run("doctor").stdout
    assert run("doctor", "--fix").returncode == 3
    assert run("doctor").stdout == "All is well.\n"
    assert len(texts(qdrant)) == 5
    qdrant.local.delete_collection(name)
    assert "the index is missing on the vector store" in run("ask", QUESTION).stderr
    assert run("ingest", str(docs)).returncode == 0
    assert "A valve stops the flow" in run("ask", QUESTION).stdout


def test_another_embedding_model_gets_a_collection_of_its_own_and_disturbs_no_reader_of_the_old(
    run: Run, qdrant: Qdrant, docs: Path
) -> None:
    run("ingest", str(docs))
    old = collection(qdrant)
    assert "run `citewell ingest --reembed`" in run("ingest", str(docs), CITEWELL_EMBEDDER="minilm").stderr
    assert run("ingest", str(docs), "--reembed", CITEWELL_EMBEDDER="minilm").returncode == 0
    (alias,) = qdrant.local.get_aliases().aliases
    assert alias.alias_name == "citewell"
    assert alias.collection_name != old
    assert "A valve stops the flow" in run("ask", QUESTION, CITEWELL_EMBEDDER="minilm").stdout
    assert "A valve stops the flow" in run("ask", QUESTION).stdout, "a server with the old model still answers"
    (docs / "02-valves.md").unlink()
    assert run("ingest", str(docs), "--prune", CITEWELL_EMBEDDER="minilm").returncode == 0
    assert qdrant.local.count(old).count == 0, "the next ingest removes what the old model made"
    project = Project.named("default").id
    assert qdrant.local.count(alias.collection_name, models.Filter(must=[
        models.FieldCondition(key="project_id", match=models.MatchValue(value=str(project)))
    ])).count == 3  # fmt: skip
