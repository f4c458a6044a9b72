"""Requests that are sent again where that helps and doubles nothing, and answers as the schemas of `citewell.schemas`.

Knows no door.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
from pydantic import BaseModel, ValidationError

from citewell.client.errors import NotCitewell, RequestFailed, ServerUnreachable
from citewell.client.sse import EventReader
from citewell.errors import SettingsError
from citewell.schemas.errors import ErrorResponse

M = TypeVar("M", bound=BaseModel)

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_FIRST_WAIT_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 30.0
_CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked of a door. `again`: whether it may be sent twice where nobody knows what became of the first."""

    method: str
    path: str
    body: BaseModel | None = None
    query: Mapping[str, str | int | bool] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    file: tuple[str, bytes] | None = None
    again: bool = True


class Transport:
    """One server. Too busy (429) is tried again after `Retry-After`; what it needs being down (503) and a connection
    that broke, too, where the call allows; each at most `tries` times in all."""

    def __init__(self, url: str, *, key: str | None, timeout_seconds: float, tries: int) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(f"{url!r} is no address of a server; write it like http://127.0.0.1:8000")
        if key is not None and not (key.isascii() and key.isprintable() and key.strip()):
            raise SettingsError("the key has marks in it that no key has; `citewell keys create NAME` prints one")
        self._url = url.rstrip("/")
        self._tries = tries
        self._timeout_seconds = timeout_seconds
        self._http = httpx2.AsyncClient(
            base_url=self._url,
            headers={"Authorization": f"Bearer {key.strip()}"} if key else {},
            timeout=httpx2.Timeout(timeout_seconds, connect=min(_CONNECT_SECONDS, timeout_seconds)),
            trust_env=parts.hostname not in _LOOPBACK,  # a proxy cannot reach this machine
        )

    async def __aenter__(self) -> "Transport":
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.__aexit__(kind, error, trace)

    async def call(self, call: Call, answer: type[M], *, also: tuple[int, ...] = ()) -> M:
        """What the door answers; `also` are statuses that are answers here and errors elsewhere."""
        async with self._answered(call, also=also) as response:
            return self._read(await response.aread(), answer)

    async def done(self, call: Call) -> int:
        """For doors that answer nothing: the status."""
        async with self._answered(call) as response:
            return response.status_code

    async def text(self, call: Call) -> str:
        async with self._answered(call) as response:
            await response.aread()
            return response.text

    async def events(self, call: Call, event: type[M]) -> AsyncGenerator[M]:
        """Events as they come, up to the one that is done."""
        async with self._answered(call) as response:
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise NotCitewell(f"what answers at {self._url} sends no events; is it another program?")
            reader = EventReader()
            async for content in response.aiter_bytes():
                for data in reader.feed(content):
                    told = self._read(data.encode(), event)
                    if not told.model_fields_set:
                        continue  # of a newer server, perhaps
                    yield told
                    if getattr(told, "done", False):
                        return
        raise ServerUnreachable(f"{self._url} ended the answer half-way; ask again")

    @asynccontextmanager
    async def _answered(self, call: Call, *, also: tuple[int, ...] = ()) -> AsyncIterator[httpx2.Response]:
        """A response that is no error, its body still to be read."""
        attempt = 1
        while True:
            try:
                response = await self._http.send(self._request(call), stream=True)
            except httpx2.ConnectError as error:
                raise ServerUnreachable(
                    f"nothing answers at {self._url}; is `citewell serve` running there?"
                ) from error
            except httpx2.TimeoutException as error:
                raise self._too_slow() from error
            except httpx2.TransportError as error:
                if not call.again or attempt >= self._tries:
                    raise ServerUnreachable(f"the connection to {self._url} broke: {error}") from error
                wait = _backoff(attempt)
            else:
                if response.is_success or response.status_code in also:
                    break
                problem = await self._problem(response)
                told = self._wait(response, problem, call, attempt)
                if told is None:
                    raise RequestFailed(problem, status=response.status_code)
                wait = told
            attempt += 1
            await asyncio.sleep(wait)
        try:
            yield response
        except httpx2.TimeoutException as error:
            raise self._too_slow() from error
        except httpx2.TransportError as error:
            raise ServerUnreachable(f"{self._url} ended the answer half-way; ask again") from error
        finally:
            await response.aclose()

    def _request(self, call: Call) -> httpx2.Request:
        body: Any = None if call.body is None else call.body.model_dump(mode="json", exclude_none=True)
        return self._http.build_request(
            call.method,
            call.path,
            json=body,
            params={name: str(value).lower() for name, value in call.query.items()} or None,
            headers=dict(call.headers),
            files=None if call.file is None else {"file": call.file},
        )

    def _wait(self, response: httpx2.Response, problem: ErrorResponse, call: Call, attempt: int) -> float | None:
        """Seconds after which to try again; none where that would not help, or not soon."""
        busy = response.status_code == 429
        down = response.status_code == 503 and call.again and problem.error_code != "EMPTY_KNOWLEDGE_BASE"
        if attempt >= self._tries or not (busy or down):
            return None
        told = response.headers.get("retry-after", "")
        wait = float(told) if told.isdecimal() else _backoff(attempt)
        return wait if wait <= _LONGEST_WAIT_SECONDS else None

    async def _problem(self, response: httpx2.Response) -> ErrorResponse:
        try:
            content = await response.aread()
            return ErrorResponse.model_validate_json(content)
        except ValidationError as error:
            told = f"{response.status_code} {response.reason_phrase}"
            raise NotCitewell(
                f"what answers at {self._url} does not answer as Citewell does, but with {told}"
            ) from error
        finally:
            await response.aclose()

    def _read(self, content: bytes, answer: type[M]) -> M:
        try:
            return answer.model_validate_json(content)
        except ValidationError as error:
            wrong = error.errors()[0]
            place = ".".join(str(part) for part in wrong["loc"])
            raise NotCitewell(
                f"what answers at {self._url} does not speak as this version of Citewell does: "
                f"{place or 'the answer'}: {wrong['msg']}"
            ) from error

    def _too_slow(self) -> ServerUnreachable:
        return ServerUnreachable(f"no answer from {self._url} within {self._timeout_seconds:g} seconds")


def _backoff(attempt: int) -> float:
    return _FIRST_WAIT_SECONDS * 2.0 ** (attempt - 1)
