"""Server-sent events that proxies pass on as they come, that beat while nothing is said, and that always end well."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from time import monotonic
from typing import Any

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from citewell.errors import Refused, StoreUnavailable
from citewell.http.errors import problem
from citewell.wire.errors import ErrorResponse

_HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
_BEAT = b": still here\n\n"
_SEND_SECONDS = 30.0  # a reader that takes nothing for so long is gone


class EventStream(Response):
    """Sends events; an error becomes the last of them. Once the client is gone, the events' source is closed.

    `failed` puts an error into the door's own shape. `allowed` is asked at every beat and raises to end the stream.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncGenerator[BaseModel],
        *,
        failed: Callable[[ErrorResponse], BaseModel],
        allowed: Callable[[], Awaitable[None]],
        beat_seconds: float,
    ) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._events = events
        self._failed = failed
        self._allowed = allowed
        self._beat_seconds = beat_seconds
        self._asked = monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        telling = asyncio.create_task(self._tell(send, start))
        leaving = asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (telling, leaving):
                task.cancel()
            await asyncio.gather(telling, leaving, return_exceptions=True)

    async def _tell(self, send: Send, start: dict[str, object]) -> None:
        async def send_body(content: bytes, *, more: bool = True) -> None:
            async with asyncio.timeout(_SEND_SECONDS):
                await send({"type": "http.response.body", "body": content, "more_body": more})

        said: asyncio.Queue[BaseModel | None] = asyncio.Queue(maxsize=1)
        source = asyncio.create_task(self._collect(said))
        try:
            await send(start)
            while True:
                try:
                    event = await asyncio.wait_for(said.get(), self._beat_seconds)
                except TimeoutError:
                    await send_body(_BEAT)
                else:
                    if event is None:
                        break
                    await send_body(line(event))
                if refusal := await self._refusal():
                    await send_body(line(refusal))
                    break
            await send_body(b"", more=False)
        finally:
            source.cancel()
            await asyncio.gather(source, return_exceptions=True)

    async def _refusal(self) -> BaseModel | None:
        """The last event, where whoever listens may not listen any more. Asked once a beat."""
        if monotonic() - self._asked < self._beat_seconds:
            return None
        self._asked = monotonic()
        try:
            await self._allowed()
        except Refused as error:
            return self._failed(problem(error)[1])
        except StoreUnavailable:
            pass  # what cannot be looked up is not taken away
        return None

    async def _collect(self, said: "asyncio.Queue[BaseModel | None]") -> None:
        """The whole source runs in this task, so that cancelling it reaches whatever it waits for."""
        try:
            async for event in self._events:
                await said.put(event)
        except Exception as error:  # noqa: BLE001 (after the first byte, an error can only be an event)
            await said.put(self._failed(problem(error)[1]))
        finally:
            await self._events.aclose()
        await said.put(None)


def line(event: BaseModel) -> bytes:
    return b"data: " + event.model_dump_json().encode() + b"\n\n"


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def stream_response(
    request: Request, events: AsyncGenerator[BaseModel], *, failed: Callable[[ErrorResponse], BaseModel]
) -> EventStream:
    """The events of a door, for as long as whoever asked may listen."""
    gate, caller = request.app.state.gate, request.state.caller
    beat_seconds: float = request.app.state.settings.heartbeat_seconds
    return EventStream(events, failed=failed, allowed=partial(gate.still_admitted, caller), beat_seconds=beat_seconds)


def events_of(event: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """How a stream is described: the schema of one event's `data`."""
    return {200: {"model": event, "description": "Server-sent events; each `data:` line is one of these."}}
