"""Server-sent events that proxies pass on as they come, that beat while nothing is said, and that always end well."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

from fastapi import Request
from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from citewell.errors import Refused, StoreUnavailable
from citewell.http.errors import problem
from citewell.schemas.errors import ErrorResponse
from citewell.settings import Settings

_HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
_BEAT = b": still here\n\n"
_LAST_WORD_SECONDS = 1.0


class EventStream(Response):
    """Sends events; an error becomes the last of them. Once the client is gone, the events' source is closed.

    `first` was taken from the events already. `failed` puts an error into the door's own shape. `allowed` is asked at
    every beat and raises to end the stream. A client that takes nothing for `send_seconds` is gone.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncGenerator[BaseModel],
        *,
        first: BaseModel | None,
        failed: Callable[[ErrorResponse], BaseModel],
        allowed: Callable[[], Awaitable[None]],
        beat_seconds: float,
        send_seconds: float,
    ) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._events = events
        self._first = first
        self._failed = failed
        self._allowed = allowed
        self._beat_seconds = beat_seconds
        self._send_seconds = send_seconds
        self._asked = monotonic()
        self._state: dict[str, Any] = {}
        self._left = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._state = scope["state"]
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        telling = asyncio.create_task(self._tell(send, start))
        leaving = asyncio.create_task(self._wait_for_leaving(receive))
        try:
            await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:  # the server will wait no longer
            await _end(telling, leaving)
            with suppress(TimeoutError, RuntimeError):  # uvicorn raises it where nothing was begun, or all is said
                async with asyncio.timeout(_LAST_WORD_SECONDS):
                    stopped = self._problem(StoreUnavailable("the server was stopped; ask again in a moment"))
                    await send({"type": "http.response.body", "body": line(stopped), "more_body": False})
            raise
        finally:
            await _end(telling, leaving)
            await self._events.aclose()  # for a source whose task was ended before it began

    async def _wait_for_leaving(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._left = True

    async def _tell(self, send: Send, start: dict[str, object]) -> None:
        async def send_body(content: bytes, *, more: bool = True) -> None:
            async with asyncio.timeout(self._send_seconds):
                await send({"type": "http.response.body", "body": content, "more_body": more})
            await asyncio.sleep(0)  # uvicorn takes what it can send to nobody: hear first whether anybody is there
            if self._left:
                raise ClientDisconnect

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
                    said.task_done()
                if refusal := await self._refusal():
                    await send_body(line(refusal))
                    break
            await send_body(b"", more=False)
        finally:
            await _end(source)

    async def _refusal(self) -> BaseModel | None:
        """The last event, where whoever listens may not listen any more. Asked once a beat."""
        if monotonic() - self._asked < self._beat_seconds:
            return None
        self._asked = monotonic()
        try:
            await self._allowed()
        except Refused as error:
            return self._problem(error)
        except StoreUnavailable:
            pass  # what cannot be looked up is not taken away
        return None

    async def _collect(self, said: "asyncio.Queue[BaseModel | None]") -> None:
        """The whole source runs in this task, so that cancelling it reaches whatever it waits for."""
        try:
            if self._first:
                await said.put(self._first)
                await said.join()
            async for event in self._events:
                await said.put(event)
                await said.join()  # no further than the client is: what it was not sent was not said
        except Exception as error:  # noqa: BLE001 (after the first byte, an error can only be an event)
            failed = self._problem(error)
            if (task := asyncio.current_task()) and task.cancelling():
                return  # nobody listens, and nobody makes room in the queue
            await said.put(failed)
        finally:
            await self._events.aclose()
        await said.put(None)

    def _problem(self, error: Exception) -> BaseModel:
        told = problem(error)[1]
        self._state["error"] = told.error_code
        return self._failed(told)


def line(event: BaseModel) -> bytes:
    return b"data: " + event.model_dump_json().encode() + b"\n\n"


async def _end(*tasks: "asyncio.Task[None]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def stream_response(
    request: Request,
    events: AsyncGenerator[BaseModel],
    *,
    failed: Callable[[ErrorResponse], BaseModel],
    first: BaseModel | None = None,
) -> EventStream:
    """The events of a door, for as long as whoever asked may listen; `first` is one that was taken from them."""
    settings: Settings = request.app.state.settings
    return EventStream(
        events,
        first=first,
        failed=failed,
        allowed=partial(request.app.state.gate.still_admitted, request.state.caller),
        beat_seconds=settings.heartbeat_seconds,
        send_seconds=settings.client_timeout_seconds,
    )


def events_of(event: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """How a stream is described: the schema of one event's `data`."""
    return {200: {"model": event, "description": "Server-sent events; each `data:` line is one of these."}}
