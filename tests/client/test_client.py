"""The Python client asks a real server; where a server must misbehave, a small one on loopback does."""

import json
import random
import re
import socketserver
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citewell.client import Client, NotCitewell, RequestFailed, ServerUnreachable
from citewell.client.sse import EventReader
from citewell.errors import BadRequest, SettingsError
from citewell.models import Project
from citewell.schemas.chat import MetadataFilter, SourceCitation
from tests.conftest import Citewell, serving, take_in

pytestmark = pytest.mark.anyio

QUESTION = "How do I prime a pump?"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server over three small pages."""
    folder = tmp_path_factory.mktemp("client")
    pages = folder / "docs"
    pages.mkdir()
    (pages / "pumps.md").write_text(
        "# Pumps\n\nA pump moves water uphill.\n\n## Priming\n\nPrime a pump: fill its casing with water first.\n"
    )
    (pages / "valves.md").write_text("# Valves\n\nA valve stops the flow.\n\n## Leaks\n\nReplace the gasket yearly.\n")
    take_in(folder / "home", pages)
    with serving(folder / "home") as address:
        yield address


@pytest.fixture
async def client(address: str) -> AsyncIterator[Client]:
    async with Client(address) as client:
        yield client


async def test_an_answer_and_its_stream_are_the_same(client: Client) -> None:
    whole = await client.ask(QUESTION)
    assert whole.citations[0].source_file == "pumps.md"
    events = [event async for event in client.ask_stream(QUESTION)]
    assert "".join(event.content for event in events) == whole.answer
    assert events[-1].done
    assert events[-1].citations == whole.citations
    assert (await client.query(QUESTION, selected_text="a casing")).sources[0].filename == "pumps.md"


async def test_a_conversation_is_kept_read_back_and_forgotten(client: Client) -> None:
    first = await client.chat(QUESTION)
    events = [event async for event in client.chat_stream("Tell me more", session_id=first.session_id)]
    assert events[0].stage == "retrieving"
    last = events[-1].response
    assert last is not None
    assert "".join(event.delta or "" for event in events) == last.answer
    await client.feedback(first.session_id, first.metadata.request_id, "up")
    told = await client.history(first.session_id)
    assert [entry.feedback for entry in told.entries] == ["up", None]
    assert [entry.query for entry in told.entries] == [QUESTION, "Tell me more"]
    assert (await client.history(first.session_id, limit=1, offset=1)).entries == told.entries[1:]
    await client.forget(first.session_id)
    assert (await client.history(first.session_id)).total_entries == 0


async def test_the_same_idempotency_key_doubles_nothing(client: Client) -> None:
    session = uuid4()
    one = await client.chat(QUESTION, session_id=session, idempotency_key="first")
    two = await client.chat(QUESTION, session_id=session, idempotency_key="first")
    assert one == two
    assert (await client.history(session)).total_entries == 1
    await client.chat(QUESTION, session_id=session)
    await client.chat(QUESTION, session_id=session)
    assert (await client.history(session)).total_entries == 3, "asked again on purpose, it is kept again"
    with pytest.raises(RequestFailed, match="another request"):
        await client.chat("What is a valve?", session_id=session, idempotency_key="first")


async def test_a_chat_can_be_narrowed_and_can_be_about_a_selection(client: Client) -> None:
    narrowed = await client.chat(QUESTION, filters=MetadataFilter(section="Leaks"))
    assert {source.section for source in narrowed.sources if isinstance(source, SourceCitation)} <= {"Leaks"}
    selected = await client.chat("What stops the flow?", selected_text="A valve stops the flow.")
    assert selected.metadata.mode == "selected_text"


async def test_a_project_is_made_filled_asked_searched_and_deleted(client: Client) -> None:
    project = await client.create_project("handbook")
    assert await client.create_project("handbook") == project
    assert project.id == Project.named("handbook").id
    sent = await client.upload("turbines.md", b"# Turbines\n\nA turbine turns steam into motion.\n", project=project.id)
    assert (sent.status, sent.chunkCount) == ("COMPLETED", 1)
    assert [one.filename for one in await client.documents(project=project.id)] == ["turbines.md"]
    detail = await client.document(sent.documentId, text=True)
    chunk = await client.chunk(sent.documentId, 0)
    assert detail.text is not None
    assert chunk.id is not None
    assert detail.text[chunk.start : chunk.end] == chunk.chunkText
    answer = await client.project_chat("What does a turbine turn?", project=project.id)
    assert f"[{chunk.id}]" in answer.response
    events = [event async for event in client.project_chat_stream("What does a turbine turn?", project=project.id)]
    assert "".join(event.delta or "" for event in events) == answer.response
    more = await client.project_chat("Tell me more", project=project.id, history=answer.messages)
    assert len(more.messages) == 4
    talked = await client.chat("What does a turbine turn?", project=project.id)
    assert [one.chunk_id for one in talked.sources if isinstance(one, SourceCitation)] == [chunk.id]
    events_too = [event async for event in client.chat_stream("Why?", session_id=talked.session_id, project=project.id)]
    assert events_too[-1].done
    assert (await client.history(talked.session_id, project=project.id)).total_entries == 2
    assert (await client.history(talked.session_id)).total_entries == 0
    await client.forget(talked.session_id, project=project.id)
    assert (await client.history(talked.session_id, project=project.id)).total_entries == 0
    assert [one.id for one in (await client.search("turbine", project=project.id)).results] == [chunk.id]
    assert [one.name for one in await client.projects()] == ["default", "handbook"]
    verdicts = (await client.verify(["0" * 64], answer=answer.response, project=project.id)).citations
    assert {one.id: one.status for one in verdicts} == {chunk.id: "valid", "0" * 64: "unknown"}
    welcome = await client.welcome(project=project.id)
    assert (welcome.project.name, welcome.documents) == ("handbook", 1)
    assert [one.name for one in welcome.projects] == ["default", "handbook"]
    assert (await client.welcome()).project.name == "default"
    shown = await client.citation(chunk.id, project=project.id)
    assert (shown.status, shown.chunkText, shown.title) == ("valid", chunk.chunkText, "Turbines")
    with pytest.raises(RequestFailed, match="no such citation"):
        await client.citation(chunk.id)
    with pytest.raises(BadRequest, match="the id of a chunk"):
        await client.citation("../projects")
    assert await client.delete_document(sent.documentId, project=project.id)
    assert (await client.verify([chunk.id], project=project.id)).citations[0].status == "deleted"
    assert await client.delete_project(project.id)
    with pytest.raises(RequestFailed) as refused:
        await client.project(project.id)
    assert (refused.value.status, refused.value.problem.error_code) == (404, "NOT_FOUND")


async def test_an_upload_that_cannot_be_read_says_why(client: Client) -> None:
    failed = await client.upload("broken.pdf", b"not a PDF at all")
    assert failed.status == "FAILED"
    assert failed.error
    pending = await client.upload("later.md", b"# Later\n\nLater.\n", wait_seconds=None)
    assert pending.status == "PENDING"


async def test_a_server_tells_how_it_feels(client: Client) -> None:
    assert (await client.health()).status == "healthy"
    assert await client.ready()
    assert "citewell_requests_total" in await client.metrics()


async def test_what_no_door_would_take_is_not_sent(client: Client) -> None:
    with pytest.raises(BadRequest, match="question: should not be empty"):
        await client.ask("  ")
    with pytest.raises(BadRequest, match="top_k"):
        await client.ask(QUESTION, top_k=50)
    with pytest.raises(BadRequest, match="session_id: should be a UUID of version 4"):
        await client.chat(QUESTION, session_id=UUID(int=1))
    with pytest.raises(BadRequest, match="idempotency_key"):
        await client.chat(QUESTION, idempotency_key="é\n")


def test_what_is_no_address_or_no_key_is_said_at_once() -> None:
    for url in ("localhost:8000", "ftp://localhost", "http://", ""):
        with pytest.raises(SettingsError, match=re.escape("http://127.0.0.1:8000")):
            Client(url)
    with pytest.raises(SettingsError, match="keys create"):
        Client("http://localhost", key="naïve")


async def test_a_key_opens_and_without_one_a_guarded_server_does_not(home: Path, citewell: Citewell) -> None:
    key = citewell("keys", "create", "tests").stdout.strip()
    with serving(home) as address:
        async with Client(address, key=key) as client:
            assert (await client.history(uuid4())).entries == []
            with pytest.raises(RequestFailed, match="may only ask") as refused:
                await client.projects()
            assert refused.value.status == 401
        async with Client(address) as client:
            assert await client.ready()
            with pytest.raises(RequestFailed, match="asks for a key"):
                await client.history(uuid4())


# --- Servers that misbehave ---


class Scripted:
    """A server on loopback that gives each connection the next of its responses, and keeps what it was sent.

    A `|` in a response is where the network cuts it; past the last one, it hangs up.
    """

    def __init__(self, *responses: bytes, hangs: bool = False) -> None:
        self._responses = list(responses)
        self._left = threading.Event()
        self._hangs = hangs
        self.requests: list[str] = []

    def answer(self, connection: socketserver.StreamRequestHandler) -> None:
        head = b"".join(iter(connection.rfile.readline, b"\r\n")).decode()
        length = next((line for line in head.splitlines() if line.lower().startswith("content-length")), ": 0")
        self.requests.append(head + connection.rfile.read(int(length.partition(":")[2])).decode())
        if self._hangs:
            self._left.wait(30)
        for part in self._responses.pop(0).split(b"|") if self._responses else ():
            connection.wfile.write(part)
            time.sleep(0.01)

    @asynccontextmanager
    async def __call__(self, *, timeout_seconds: float = 10) -> AsyncIterator[Client]:
        scripted = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                scripted.answer(self)

        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                address = f"http://127.0.0.1:{server.server_address[1]}/"
                async with Client(address, timeout_seconds=timeout_seconds) as client:
                    yield client
            finally:
                self._left.set()
                server.shutdown()
                thread.join()


def response(status: str, body: object, *headers: str, kind: str = "application/json") -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(content)}", "Connection: close"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + content


def stream(body: bytes) -> bytes:
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    return head.encode() + body


def problem(code: str) -> dict[str, str]:
    return {"error_code": code, "message": f"it is {code}", "request_id": str(uuid4())}


ANSWER = {"answer": "Yes.", "citations": [], "confidence": 0.0}
BUSY = response("429 Too Many Requests", problem("RATE_LIMITED"), "Retry-After: 0")


async def test_a_busy_server_is_asked_again_but_not_for_ever() -> None:
    patient = Scripted(BUSY, BUSY, response("200 OK", ANSWER))
    async with patient() as client:
        assert (await client.ask(QUESTION)).answer == "Yes."
    assert len(patient.requests) == 3
    hopeless = Scripted(*[BUSY] * 9)
    async with hopeless() as client:
        with pytest.raises(RequestFailed, match="RATE_LIMITED"):
            await client.ask(QUESTION)
    assert len(hopeless.requests) == 4
    tomorrow = Scripted(response("429 Too Many Requests", problem("RATE_LIMITED"), "Retry-After: 86400"))
    async with tomorrow() as client:
        with pytest.raises(RequestFailed):
            await client.ask(QUESTION)


async def test_what_is_down_is_asked_again_where_that_doubles_nothing() -> None:
    down = response("503 Service Unavailable", problem("SERVICE_UNAVAILABLE"), "Retry-After: 0")
    chatting = Scripted(b"", down, down)
    async with chatting() as client:
        with pytest.raises(ServerUnreachable, match="connection"):
            await client.chat(QUESTION)
    sent = {next(line for line in one.splitlines() if "idempotency" in line.lower()) for one in chatting.requests}
    assert len(chatting.requests) == 4
    assert len(sent) == 1, "every try has the same Idempotency-Key"
    uploading = Scripted(down, down)
    async with uploading() as client:
        with pytest.raises(RequestFailed, match="SERVICE_UNAVAILABLE"):
            await client.upload("a.md", b"a")
    assert len(uploading.requests) == 1
    empty = Scripted(response("503 Service Unavailable", problem("EMPTY_KNOWLEDGE_BASE")))
    async with empty() as client:
        with pytest.raises(RequestFailed, match="EMPTY_KNOWLEDGE_BASE"):
            await client.ask(QUESTION)
    assert len(empty.requests) == 1, "nothing will be there in a second either"


async def test_a_server_that_is_not_there_or_not_ours_is_named() -> None:
    async with Client("http://127.0.0.1:9") as client:
        with pytest.raises(ServerUnreachable, match=r"nothing answers at http://127.0.0.1:9; is `citewell serve`"):
            await client.ask(QUESTION)
    for other in (
        response("404 Not Found", b"<h1>Apache</h1>", kind="text/html"),
        response("200 OK", b"<h1>Apache</h1>", kind="text/html"),
        response("200 OK", {"hello": "world"}),
    ):
        async with Scripted(other)() as client:
            with pytest.raises(NotCitewell, match="Citewell"):
                await client.ask(QUESTION)
    async with Scripted(response("200 OK", ANSWER))() as client:
        with pytest.raises(NotCitewell, match="no events"):
            _ = [event async for event in client.ask_stream(QUESTION)]


async def test_a_server_that_says_nothing_is_not_waited_for_for_ever() -> None:
    async with Scripted(hangs=True)(timeout_seconds=0.2) as client:
        with pytest.raises(ServerUnreachable, match=r"within 0.2 seconds"):
            await client.ask(QUESTION)


async def test_a_stream_is_read_however_it_is_cut_and_whatever_is_between() -> None:
    told = b'\xef\xbb\xbf: beat\n\ndata: {"content":"R\xc3|\xb6hre",|"done":false}\r|\n\r\n' \
        b'event: later\ndata: {"content":"no"}\n\nid: 7\nretry: 1\ndata: {"content":"n",\ndata:"done":false}\n\n' \
        b'data: {"content":"","done":true,"citations":[],"confidence":0}\n\n'  # fmt: skip
    async with Scripted(stream(told))() as client:
        events = [event async for event in client.ask_stream(QUESTION)]
    assert [event.content for event in events] == ["Röhre", "n", ""]
    unknown = b'data: {"mood":"sunny"}\n\ndata: {"delta":"a"}\n\ndata: {"done":true,"news":1}\n\n'
    async with Scripted(stream(unknown))() as client:
        assert [(one.delta, one.done) async for one in client.chat_stream(QUESTION)] == [("a", None), (None, True)]


async def test_a_stream_that_fails_or_ends_half_way_is_an_error() -> None:
    failed = {"done": True, "error": problem("SERVICE_UNAVAILABLE")}
    async with Scripted(stream(b'data: {"delta":"a"}\n\ndata: ' + json.dumps(failed).encode() + b"\n\n"))() as client:
        with pytest.raises(RequestFailed, match="SERVICE_UNAVAILABLE"):
            _ = [event async for event in client.chat_stream(QUESTION)]
    async with Scripted(stream(b'data: {"content":"","done":true,"error":"the index is gone"}\n\n'))() as client:
        with pytest.raises(RequestFailed, match="the index is gone"):
            _ = [event async for event in client.ask_stream(QUESTION)]
    async with Scripted(stream(b'data: {"content":"a","done":false}\n\ndata: {"cont'))() as client:
        with pytest.raises(ServerUnreachable, match="half-way"):
            _ = [event async for event in client.ask_stream(QUESTION)]
    async with Scripted(BUSY, stream(b'data: {"content":"","done":true}\n\n'))() as client:
        assert len([event async for event in client.ask_stream(QUESTION)]) == 1


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), min_size=1),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.randoms(use_true_random=False),
)
def test_events_are_the_same_wherever_they_are_cut(texts: list[str], end: str, chance: random.Random) -> None:
    content = "".join(f": beat{end}{end}data: {text}{end}{end}" for text in texts).encode()
    reader, told, start = EventReader(), list[str](), 0
    while start < len(content):
        size = chance.randint(1, 7)
        told += reader.feed(content[start : start + size])
        start += size
    told += reader.feed(b"\n")  # after a final CR, nobody knows yet whether its LF is to come
    assert told == texts
