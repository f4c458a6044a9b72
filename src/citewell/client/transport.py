"""Sends requests with retries, and parses responses into the schemas of `citewell.schemas`. Knows no endpoint."""

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
from citewell.retry import UNLIMITED, RetryPolicy, RetryRules, with_retries
from citewell.schemas.errors import ErrorResponse

M = TypeVar("M", bound=BaseModel)

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_CONNECT_SECONDS = 5.0
_RETRIES = RetryPolicy(
    attempt_seconds=UNLIMITED,  # httpx2 has timeouts of its own
    total_seconds=UNLIMITED,
    backoff_seconds=0.5,
    max_retry_after_seconds=30.0,
)


@dataclass(frozen=True, slots=True)
class Call:
    """A request. `idempotent`: whether it may be sent again if nobody knows what became of the first attempt."""

    method: str
    path: str
    body: BaseModel | None = None
    query: Mapping[str, str | int | bool] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    file: tuple[str, bytes] | None = None
    idempotent: bool = True


class _ErrorStatus(Exception):
    """A response with an error status."""

    def __init__(self, problem: ErrorResponse, response: httpx2.Response) -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.status = response.status_code
        self.headers = response.headers


class Transport:
    """One server. A busy server (429) is retried after `Retry-After`; an unavailable one (503) and a broken
    connection too, if the call is idempotent; at most `tries` attempts in all."""

    def __init__(self, url: str, *, key: str | None, timeout_seconds: float, tries: int) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(f"{url!r} is no address of a server; write it like http://127.0.0.1:8000")
        if key is not None and not (key.isascii() and key.isprintable() and key.strip()):
            raise SettingsError("the key has characters that no key has; `citewell keys create NAME` prints one")
        self._url = url.rstrip("/")
        self._max_attempts = tries
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

    async def fetch(self, call: Call, schema: type[M], *, also: tuple[int, ...] = ()) -> M:
        """The parsed response. `also` are error statuses that this endpoint answers with."""
        async with self._response(call, also=also) as response:
            return self._parse(await response.aread(), schema)

    async def fetch_status(self, call: Call) -> int:
        """The status of the response, for endpoints that answer nothing else."""
        async with self._response(call) as response:
            return response.status_code

    async def fetch_text(self, call: Call) -> str:
        async with self._response(call) as response:
            await response.aread()
            return response.text

    async def stream_events(self, call: Call, schema: type[M]) -> AsyncGenerator[M]:
        """Server-sent events as they arrive, up to the one that is done."""
        async with self._response(call) as response:
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise NotCitewell(f"what answers at {self._url} sends no events; is it another program?")
            reader = EventReader()
            async for content in response.aiter_bytes():
                for data in reader.feed(content):
                    event = self._parse(data.encode(), schema)
                    if not event.model_fields_set:
                        continue  # an event that only a newer version knows
                    yield event
                    if getattr(event, "done", False):
                        return
        raise ServerUnreachable(f"{self._url} ended the answer half-way; ask again")

    @asynccontextmanager
    async def _response(self, call: Call, *, also: tuple[int, ...] = ()) -> AsyncIterator[httpx2.Response]:
        """A response without an error; its body is still to be read."""
        rules = RetryRules(
            (httpx2.TransportError, _ErrorStatus), lambda error: _is_transient(error, call), headers=_headers
        )
        try:
            response = await with_retries(
                lambda: self._send(call, also), policy=_RETRIES, rules=rules, max_attempts=self._max_attempts
            )
        except _ErrorStatus as error:
            raise RequestFailed(error.problem, status=error.status) from error
        except httpx2.ConnectError as error:
            raise ServerUnreachable(f"nothing answers at {self._url}; is `citewell serve` running there?") from error
        except httpx2.TimeoutException as error:
            raise self._timed_out() from error
        except httpx2.TransportError as error:
            raise ServerUnreachable(f"the connection to {self._url} broke: {error}") from error
        try:
            yield response
        except httpx2.TimeoutException as error:
            raise self._timed_out() from error
        except httpx2.TransportError as error:
            raise ServerUnreachable(f"{self._url} ended the answer half-way; ask again") from error
        finally:
            await response.aclose()

    async def _send(self, call: Call, also: tuple[int, ...]) -> httpx2.Response:
        response = await self._http.send(self._request(call), stream=True)
        if response.is_success or response.status_code in also:
            return response
        raise _ErrorStatus(await self._problem(response), response)

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

    async def _problem(self, response: httpx2.Response) -> ErrorResponse:
        try:
            content = await response.aread()
            return ErrorResponse.model_validate_json(content)
        except ValidationError as error:
            status = f"{response.status_code} {response.reason_phrase}"
            raise NotCitewell(
                f"what answers at {self._url} does not answer as Citewell does, but with {status}"
            ) from error
        finally:
            await response.aclose()

    def _parse(self, content: bytes, schema: type[M]) -> M:
        try:
            return schema.model_validate_json(content)
        except ValidationError as error:
            first = error.errors()[0]
            field_path = ".".join(str(part) for part in first["loc"])
            raise NotCitewell(
                f"what answers at {self._url} does not speak as this version of Citewell does: "
                f"{field_path or 'the answer'}: {first['msg']}"
            ) from error

    def _timed_out(self) -> ServerUnreachable:
        return ServerUnreachable(f"no answer from {self._url} within {self._timeout_seconds:g} seconds")


def _is_transient(error: Exception, call: Call) -> bool:
    """Whether sending the request again may help and does nothing twice."""
    if isinstance(error, _ErrorStatus):
        busy = error.status == 429
        unavailable = error.status == 503 and error.problem.error_code != "EMPTY_KNOWLEDGE_BASE"
        return busy or (unavailable and call.idempotent)
    return call.idempotent and not isinstance(error, httpx2.ConnectError | httpx2.TimeoutException)


def _headers(error: Exception) -> Mapping[str, str]:
    return error.headers if isinstance(error, _ErrorStatus) else {}
