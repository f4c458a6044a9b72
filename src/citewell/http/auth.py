"""Who comes in: keys, origins, how many at once, how much. All of it before a byte of the body is read.

Every route is a `Door` with a rule of its own; one without a rule does not start.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

from fastapi import Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from citewell import api_keys
from citewell.errors import CitewellError, NotFound, Refused, StoreUnavailable, TooBusy
from citewell.models import DEFAULT_PROJECT, Key, Owner, Project
from citewell.ports import Keys
from citewell.settings import Settings

Rule = Literal["open", "ask", "admin"]

_SECURITY: dict[str, Any] = {"security": [{"bearer": []}, {"key": []}]}
OPEN: dict[str, Any] = {"x-scope": "open", "security": []}
ASK: dict[str, Any] = {"x-scope": "ask", **_SECURITY}
ADMIN: dict[str, Any] = {"x-scope": "admin", **_SECURITY}

InProject = Annotated[UUID | None, Query(description="The default project, if left out.")]
"""For doors whose body has no place for a project."""

_JSON_BYTES = 2_000_000  # the longest question and selection, every character escaped, fit in
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_REMEMBER_OPEN_SECONDS = 1.0
_LOOK_SECONDS = 1.0
_LEAVE_SECONDS = 5.0
_MOMENT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever asks: the holder of a key, or anybody where none is needed."""

    key: Key | None = None

    def owner(self, project: Project) -> Owner:
        admin = self.key is None or self.key.scope == "admin"
        return Owner(project.id, self.key.id if self.key else "", admin=admin)

    def must_see(self, project: UUID) -> None:
        if self.key and self.key.project not in (None, project):
            raise NotFound("there is no such project")

    def must_see_all(self) -> None:
        if self.key and self.key.project is not None:
            raise Refused("this key is for one project; this takes an admin key for all of them")


def caller_of(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


async def project_of(request: Request, identity: UUID | None = None) -> Project:
    """The project that is meant, the default one if none is named; raises NotFound unless the caller may see it."""
    default = Project.named(DEFAULT_PROJECT)
    caller_of(request).must_see(identity or default.id)
    if identity in (None, default.id):
        return default
    found = await request.app.state.keeping.projects.project(identity)
    if found is None:
        raise NotFound("there is no such project")
    project: Project = found[0]
    return project


@dataclass(slots=True)
class _Bucket:
    """Requests a key has left, refilled by the second."""

    left: float
    since: float = field(default_factory=monotonic)

    def take(self, per_minute: int) -> float:
        """Seconds to wait; 0 when one was taken."""
        now = monotonic()
        self.left = min(float(per_minute), self.left + (now - self.since) * per_minute / 60)
        self.since = now
        if self.left < 1:
            return (1 - self.left) * 60 / per_minute
        self.left -= 1
        return 0.0


class Admission:
    """Counts who is inside and knows who may come in."""

    def __init__(self, settings: Settings, known: Keys) -> None:
        self._settings = settings
        self._keys = known
        self._buckets: dict[str, _Bucket] = {}
        self._open = False
        self._looked = float("-inf")
        self._empty = asyncio.Event()
        self._empty.set()
        self.running = 0

    async def admit(self, request: Request, rule: Rule) -> Caller:
        self._same_origin(request)
        if rule == "open":
            return Caller()
        self._enter(request)
        caller = await self._caller(request)
        if caller.key and rule == "admin" and caller.key.scope != "admin":
            raise Refused("this key may only ask")
        if caller.key:
            self._within_rate(caller.key)
        return caller

    async def still_admitted(self, caller: Caller) -> None:
        """Raises Refused once the key was revoked, so that an open stream ends with it."""
        if caller.key and (found := await self._keys.find(caller.key.id)) and found[0].revoked_at:
            raise Refused("this key was revoked")

    def leave(self, scope_state: dict[str, Any]) -> None:
        """Called when the response is through, however it ended."""
        self.running -= bool(scope_state.pop("inside", False))
        if not self.running:
            self._empty.set()

    async def emptied(self) -> None:
        """Wait a moment for those who were told to go, before what they use is closed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self._empty.wait()

    def _enter(self, request: Request) -> None:
        limit = self._settings.max_concurrent_requests
        if self.running >= limit:
            message = f"{limit} requests are being answered already; try again in a second"
            raise TooBusy(message, retry_after_seconds=1)
        self.running += 1
        self._empty.clear()
        request.scope["state"]["inside"] = True

    async def _caller(self, request: Request) -> Caller:
        if await self._is_open():
            if _host(f"//{request.headers.get('host', '')}") not in LOOPBACK:
                # Another site's name that was made to point here must not read what only this machine may.
                raise Refused("without a key this server answers to localhost only; see `citewell keys create`")
            return Caller()
        given = {token for token in _tokens(request) if token}
        if not given:
            raise Refused("this server asks for a key: send it as `Authorization: Bearer <key>` or `X-API-Key: <key>`")
        if len(given) > 1 or not (key := await self._verified(given.pop())):
            raise Refused("this key is not known, or was revoked")
        return Caller(key)

    async def _verified(self, token: str) -> Key | None:
        identity = api_keys.key_id(token)
        found = await self._keys.find(identity) if identity else None
        return found[0] if found and api_keys.key_matches(token, found[1]) and not found[0].revoked_at else None

    async def _is_open(self) -> bool:
        """Whether no key was ever made; then anybody on this machine may ask.

        What was so a second ago is so while one request looks, and while the database does not answer.
        """
        if self._looked < 0:
            self._open = not await self._keys.keys()
            self._looked = monotonic()
        elif monotonic() - self._looked > _REMEMBER_OPEN_SECONDS:
            self._looked = monotonic()
            with suppress(StoreUnavailable, TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    self._open = not await self._keys.keys()
            self._looked = monotonic()
        return self._open

    def _within_rate(self, key: Key) -> None:
        per_minute = key.per_minute or self._settings.requests_per_minute
        bucket = self._buckets.setdefault(key.id, _Bucket(float(per_minute)))
        if wait := bucket.take(per_minute):
            message = f"this key may ask {per_minute} times a minute"
            raise TooBusy(message, retry_after_seconds=max(1, round(wait + 0.5)))

    def _same_origin(self, request: Request) -> None:
        """A page of another site can make a browser send things here; only sites on the list may."""
        origin = request.headers.get("origin")
        if request.method in ("GET", "HEAD", "OPTIONS") or not origin or origin in self._settings.cors_origins:
            return
        if origin.partition("://")[2] != request.headers.get("host"):
            raise Refused(f"requests from {origin[:200]} are not allowed; see CITEWELL_CORS_ORIGINS")


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").casefold()
    except ValueError:  # half an IPv6 address
        return ""


def _tokens(request: Request) -> list[str]:
    """Every key that is sent; also the second of two headers of one name."""
    split = [value.partition(" ") for value in request.headers.getlist("authorization")]
    bearers = [token.strip() for scheme, _, token in split if scheme.casefold() == "bearer"]
    return bearers + [value.strip() for value in request.headers.getlist("x-api-key")]


class GuardedRoute(APIRoute):
    """A route that admits before it reads."""

    media = "application/json"

    def __init__(self, path: str, endpoint: Callable[..., Any], **kwargs: Any) -> None:
        super().__init__(path, endpoint, **kwargs)
        if "x-scope" not in (self.openapi_extra or {}):
            raise RuntimeError(f"{path} has no rule; give it OPEN, ASK or ADMIN as openapi_extra")

    def most_bytes(self, settings: Settings) -> int:  # noqa: ARG002
        return _JSON_BYTES

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        rule: Rule = (self.openapi_extra or {})["x-scope"]

        async def admitted(request: Request) -> Response:
            app = request.app
            request.scope.setdefault("state", {})["door"] = self.path
            request.state.caller = await app.state.gate.admit(request, rule)
            if request.method not in ("POST", "PUT"):
                return await handle(request)
            self._readable(request)
            settings: Settings = app.state.settings
            most, patience = self.most_bytes(settings), settings.client_timeout_seconds
            body = _Body(request.receive, most=most, told=declared_length(request.headers), seconds=patience)
            try:
                return await _unless_gone(handle(Request(request.scope, body.receive, request._send)), body)
            except (HTTPException, RequestValidationError, CitewellError):
                await body.rest()
                raise

        return admitted

    def _readable(self, request: Request) -> None:
        sent = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
        if sent != self.media:
            raise HTTPException(415, f"send {self.media}, not {sent or 'nothing'}")


class UploadRoute(GuardedRoute):
    """A door for files."""

    media = "multipart/form-data"

    def most_bytes(self, settings: Settings) -> int:
        return settings.max_upload_bytes + 100_000  # and what a form puts around it


def declared_length(headers: Headers) -> int:
    """How many bytes a request says it has; 0 where it does not say."""
    told = headers.get("content-length", "")
    return int(told[:20]) if told.isdecimal() else 0  # Python refuses numbers of more than 4,300 digits


class _Body:
    """A body as it arrives: no more of it, and no slower, than allowed. Then: whether the client is still there."""

    def __init__(self, receive: Receive, *, most: int, told: int, seconds: float) -> None:
        self._receive = receive
        self._most = most
        self._seconds = seconds
        self._whole = asyncio.Event()
        self._check(told)
        self._had = 0

    def _check(self, size: int) -> None:
        if size > self._most:
            raise HTTPException(413, f"the body is larger than {self._most} bytes, which is the most this door takes")

    async def receive(self) -> Message:
        try:
            async with asyncio.timeout(self._seconds):
                message = await self._receive()
        except TimeoutError as error:
            raise HTTPException(408, f"nothing more of the body came for {self._seconds:.0f} seconds") from error
        if message["type"] == "http.request":
            self._had += len(message.get("body", b""))
            self._check(self._had)
            if not message.get("more_body"):
                self._whole.set()
        return message

    async def rest(self) -> None:
        """Read on what may be sent, for a moment: a connection closed on unread bytes may take the refusal with it."""
        if self._had > self._most:
            return
        with suppress(TimeoutError, HTTPException):
            async with asyncio.timeout(_MOMENT_SECONDS):
                while not self._whole.is_set() and (await self.receive())["type"] == "http.request":
                    pass

    async def gone(self) -> None:
        await self._whole.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


async def _unless_gone(work: Coroutine[Any, Any, Response], body: _Body) -> Response:
    """The response, or nothing once the client went away: nobody should work for nobody."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(body.gone())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        return Response(status_code=499)
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)
