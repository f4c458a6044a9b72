"""The application behind a real socket, in a thread of this process, and clients that misbehave on the wire."""

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar
from uuid import UUID

import uvicorn

from citewell.http.app import create_app
from citewell.http.state import AppState, get_state, set_state
from citewell.models import NO_FILTERS, Filters, Matrix, Passage, Vector
from citewell.ports import Embeddable, Embedder, Embedding, Index
from citewell.settings import Settings
from citewell.similarity_scale import SimilarityScale
from citewell.wiring import AnswerResources

T = TypeVar("T")
Before = Callable[[], Awaitable[None]]


class Live:
    """A server on loopback; tests may look at its `app` and `loop`."""

    def __init__(self, settings: Settings, *, send_buffer: int | None = None) -> None:
        self.app = create_app(settings)
        self._listener = socket.socket(proto=socket.IPPROTO_TCP)
        if send_buffer:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        self._listener.bind(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._server = uvicorn.Server(uvicorn.Config(self.app, log_config=None, access_log=False))
        self._ended: Future[None] = Future()
        self.loop = asyncio.new_event_loop()

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()
        until(lambda: self._server.started or self._ended.done(), "it starts")
        self.well: AnswerResources = self.state.answers

    def stop(self) -> None:
        self._answer_with(self.well)
        self._server.should_exit = True
        self._ended.result(timeout=30)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
                runner.run(self._server.serve(sockets=[self._listener]))
            self._ended.set_result(None)
        except BaseException as error:  # noqa: BLE001 (it is raised again where the server is stopped)
            self._ended.set_exception(error)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine that runs in the server's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout=30)

    @property
    def running(self) -> int:
        return self.state.admission.running

    @property
    def state(self) -> AppState:
        return get_state(self.app)

    def _answer_with(self, resources: AnswerResources) -> None:
        set_state(self.app, replace(self.state, answers=resources))

    def use(self, *, index: Index | None = None, embedder: Embedder | None = None, patience: float = 10.0) -> None:
        """Answer questions with these engines from now on; without any, with the server's own."""
        own = self.well.engines
        engines = replace(
            own,
            index=index or own.index,
            embedder=embedder or own.embedder,
            index_timeout_seconds=patience,
            embedder_timeout_seconds=patience,
        )
        self._answer_with(replace(self.well, engines=engines))


@contextmanager
def live(settings: Settings, *, send_buffer: int | None = None) -> Iterator[Live]:
    server = Live(settings, send_buffer=send_buffer)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class WaitingIndex:
    """The index, which awaits `before` first; `change` may alter the passages that it returns.

    How many chunks it has, which is asked before a stream begins, it says at once unless `even_count`.
    """

    def __init__(
        self,
        index: Index,
        before: Before,
        *,
        change: Callable[[Passage], Passage] = lambda passage: passage,
        even_count: bool = False,
    ) -> None:
        self._index = index
        self._before = before
        self._change = change
        self._even_count = even_count

    async def search(
        self, project: UUID, *, vector: Vector, words: str, limit: int, filters: Filters = NO_FILTERS
    ) -> tuple[Passage, ...]:
        await self._before()
        passages = await self._index.search(project, vector=vector, words=words, limit=limit, filters=filters)
        return tuple(self._change(passage) for passage in passages)

    async def frequencies(
        self, project: UUID, stems: Sequence[str], *, filters: Filters = NO_FILTERS
    ) -> tuple[int, list[int]]:
        if stems or self._even_count:
            await self._before()
        return await self._index.frequencies(project, stems, filters=filters)

    async def scale(self) -> SimilarityScale:
        return await self._index.scale()

    def problem(self) -> str | None:
        return self._index.problem()

    async def close(self) -> None:
        await self._index.close()


class WaitingEmbedder:
    """The embedder, which awaits `before` first."""

    fitted = True

    def __init__(self, embedder: Embedder, before: Before) -> None:
        self.model, self.dimensions = embedder.model, embedder.dimensions
        self._embedder = embedder
        self._before = before

    async def embed_passages(self, passages: Sequence[Embeddable]) -> list[Embedding]:
        await self._before()
        return await self._embedder.embed_passages(passages)

    async def embed_query(self, text: str) -> Vector:
        await self._before()
        return await self._embedder.embed_query(text)

    async def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return await self._embedder.embed_queries(texts)

    async def warm(self) -> None:
        pass

    async def close(self) -> None:
        await self._embedder.close()


class Held:
    """Blocks callers until `release()`, and counts those that wait and those cancelled while waiting."""

    def __init__(self) -> None:
        self._released = threading.Event()  # of no loop: tests release it from another thread
        self.waiting = 0
        self.cancelled = 0

    async def __call__(self) -> None:
        self.waiting += 1
        try:
            while not self._released.is_set():  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.waiting -= 1

    def release(self) -> None:
        self._released.set()


class Wire:
    """One request on a raw socket: the client can read late, in part or not at all, and disconnect as it likes."""

    def __init__(self, port: int, *, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(30)
        self.socket.connect(("127.0.0.1", port))
        self._buffer = b""

    def post(self, path: str, body: object, **headers: str) -> "Wire":
        self.socket.sendall(request_bytes(path, body, **headers))
        return self

    def read_until(self, mark: bytes) -> bytes:
        """Everything received since the last call, up to and with `mark`."""
        while mark not in self._buffer:
            received = self.socket.recv(65536)
            assert received, f"the connection ended before {mark!r}: {self._buffer[-300:]!r}"
            self._buffer += received
        before, _, self._buffer = self._buffer.partition(mark)
        return before + mark

    def __del__(self) -> None:
        self.socket.close()

    def leave(self) -> None:
        """Close with a reset: data on its way is refused."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def request_bytes(path: str, body: object, **headers: str) -> bytes:
    content = json.dumps(body).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


def until(condition: Callable[[], bool], hope: str, *, seconds: float = 120.0) -> None:
    """Wait until the condition holds; fails after a timeout."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{hope}: not within {seconds} s"
        time.sleep(0.01)
