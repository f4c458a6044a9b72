"""Server-sent events: unbuffered by proxies, with keep-alives, and with an error as the last event where one occurs."""

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
from citewell.http.errors import describe_error
from citewell.http.route import caller_of
from citewell.http.state import state_of
from citewell.schemas.errors import ErrorResponse

_HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
_KEEP_ALIVE = b": still here\n\n"
_LAST_EVENT_SECONDS = 1.0


class EventStream(Response):
    """Sends events; an error becomes the last of them. Once the client disconnects, the source is closed.

    `first` was taken from the events already. `render_error` turns an error into the endpoint's own event.
    `check_admitted` is called at every keep-alive and raises Refused to end the stream. A client that receives
    nothing for `send_timeout_seconds` counts as disconnected.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncGenerator[BaseModel],
        *,
        first: BaseModel,
        render_error: Callable[[ErrorResponse], BaseModel],
        check_admitted: Callable[[], Awaitable[None]],
        keep_alive_seconds: float,
        send_timeout_seconds: float,
    ) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._events = events
        self._first = first
        self._render_error = render_error
        self._check_admitted = check_admitted
        self._keep_alive_seconds = keep_alive_seconds
        self._send_timeout_seconds = send_timeout_seconds
        self._checked_at = monotonic()
        self._scope_state: dict[str, Any] = {}
        self._disconnected = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope_state = scope["state"]
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        sending = asyncio.create_task(self._send_events(send, start))
        disconnect = asyncio.create_task(self._wait_for_disconnect(receive))
        try:
            await asyncio.wait({sending, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:  # the server will wait no longer
            await _cancel(sending, disconnect)
            with suppress(TimeoutError, RuntimeError):  # uvicorn raises it before the first byte and after the last
                async with asyncio.timeout(_LAST_EVENT_SECONDS):
                    stopped = self._error_event(StoreUnavailable("the server was stopped; ask again in a moment"))
                    await send({"type": "http.response.body", "body": _encode(stopped), "more_body": False})
            raise
        finally:
            await _cancel(sending, disconnect)
            await self._events.aclose()  # for a source whose task was cancelled before it started

    async def _wait_for_disconnect(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._disconnected = True

    async def _send_events(self, send: Send, start: dict[str, object]) -> None:
        async def send_body(content: bytes, *, more: bool = True) -> None:
            async with asyncio.timeout(self._send_timeout_seconds):
                await send({"type": "http.response.body", "body": content, "more_body": more})
            await asyncio.sleep(0)  # uvicorn accepts data after a disconnect: see first whether there was one
            if self._disconnected:
                raise ClientDisconnect

        queue: asyncio.Queue[BaseModel | None] = asyncio.Queue(maxsize=1)
        source = asyncio.create_task(self._read_source(queue))
        try:
            await send(start)
            while True:
                try:
                    event = await asyncio.wait_for(queue.get(), self._keep_alive_seconds)
                except TimeoutError:
                    await send_body(_KEEP_ALIVE)
                else:
                    if event is None:
                        break
                    await send_body(_encode(event))
                    queue.task_done()
                if refusal := await self._refusal_event():
                    await send_body(_encode(refusal))
                    break
            await send_body(b"", more=False)
        finally:
            await _cancel(source)

    async def _refusal_event(self) -> BaseModel | None:
        """The last event, once the caller's key was revoked. Checked once in a keep-alive interval."""
        if monotonic() - self._checked_at < self._keep_alive_seconds:
            return None
        self._checked_at = monotonic()
        try:
            await self._check_admitted()
        except Refused as error:
            return self._error_event(error)
        except StoreUnavailable:
            pass  # while the database does not answer, the stream goes on
        return None

    async def _read_source(self, queue: "asyncio.Queue[BaseModel | None]") -> None:
        """The whole source runs in this task, so that cancelling it cancels whatever it awaits."""
        try:
            await queue.put(self._first)
            await queue.join()
            async for event in self._events:
                await queue.put(event)
                await queue.join()  # never ahead of the client: what was not sent is not stored as shown
        except Exception as error:  # noqa: BLE001 (after the first byte, an error can only be an event)
            event = self._error_event(error)
            if (task := asyncio.current_task()) and task.cancelling():
                return  # nobody reads the queue any more
            await queue.put(event)
        finally:
            await self._events.aclose()
        await queue.put(None)

    def _error_event(self, error: Exception) -> BaseModel:
        response = describe_error(error)[1]
        self._scope_state["error"] = response.error_code
        return self._render_error(response)


def _encode(event: BaseModel) -> bytes:
    return b"data: " + event.model_dump_json().encode() + b"\n\n"


async def _cancel(*tasks: "asyncio.Task[None]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def stream_response(
    request: Request, events: AsyncGenerator[BaseModel], *, render_error: Callable[[ErrorResponse], BaseModel]
) -> EventStream:
    """The events of an endpoint, for as long as the caller's key is valid.

    Waits for the first of them: what fails before it is an HTTP error, not an event.
    """
    state = state_of(request)
    return EventStream(
        events,
        first=await anext(events),
        render_error=render_error,
        check_admitted=partial(state.admission.check_still_admitted, caller_of(request)),
        keep_alive_seconds=state.settings.heartbeat_seconds,
        send_timeout_seconds=state.settings.client_timeout_seconds,
    )


def describe_events(event: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """How OpenAPI describes a stream: the schema of one event's `data`."""
    return {200: {"model": event, "description": "Server-sent events; each `data:` line is one of these."}}
