"""Who may call: API keys, their scope and project, the origin of a browser's request.

Everything is checked before a byte of the body is read.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

from fastapi import Request

from citewell import api_keys
from citewell.errors import NotFound, Refused, StoreUnavailable
from citewell.http.limits import ConcurrencyLimit, RateLimit
from citewell.models import Key, Owner, Project
from citewell.ports import Keys
from citewell.settings import Settings

Access = Literal["open", "ask", "admin"]
"""Who may call an endpoint: anybody, any key, or admin keys."""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_OPEN_CACHE_SECONDS = 1.0
_LOOKUP_TIMEOUT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request: the owner of a key, or anybody where no key is needed."""

    key: Key | None = None

    def owner(self, project: Project) -> Owner:
        """Whose sessions this caller may use in a project."""
        admin = self.key is None or self.key.scope == "admin"
        return Owner(project.id, self.key.id if self.key else "", admin=admin)

    def must_see(self, project: UUID) -> None:
        """Raise NotFound for a project that the key is not for."""
        if self.key and self.key.project not in (None, project):
            raise NotFound("there is no such project")

    def must_see_all(self) -> None:
        """Raise Refused for a key that is for one project only."""
        if self.key and self.key.project is not None:
            raise Refused("this key is for one project; this takes an admin key for all of them")


class Admission:
    """Decides who may call an endpoint, and counts the requests being answered."""

    def __init__(self, settings: Settings, keys: Keys) -> None:
        self._keys = keys
        self._allowed_origins = settings.cors_origins
        self._is_local = settings.host in LOOPBACK
        self._rate = RateLimit(settings.requests_per_minute)
        self._concurrency = ConcurrencyLimit(settings.max_concurrent_requests)
        self._open = False
        self._open_checked_at = float("-inf")

    @property
    def running(self) -> int:
        """How many requests are being answered now."""
        return self._concurrency.running

    async def admit(self, request: Request, access: Access) -> Caller:
        """The caller; raises Refused or TooBusy for one who may not call this endpoint now."""
        self._check_origin(request)
        if access == "open":
            return Caller()
        self._concurrency.acquire()
        request.scope["state"]["counted"] = True
        caller = await self._authenticate(request)
        if caller.key and access == "admin" and caller.key.scope != "admin":
            raise Refused("this key may only ask")
        if caller.key:
            self._rate.take(caller.key)
        return caller

    async def check_still_admitted(self, caller: Caller) -> None:
        """Raise Refused once the key was revoked, so that an open stream ends with it."""
        if caller.key and (row := await self._keys.find(caller.key.id)) and row[0].revoked_at:
            raise Refused("this key was revoked")

    def leave(self, scope_state: dict[str, Any]) -> None:
        """Uncount a request when its response is sent, however it ended."""
        if scope_state.pop("counted", False):
            self._concurrency.release()

    async def wait_until_idle(self) -> None:
        """Wait a few seconds for the last requests, before what they use is closed."""
        await self._concurrency.wait_until_idle()

    async def _authenticate(self, request: Request) -> Caller:
        if await self._is_open():
            if not self._is_local or _host(f"//{request.headers.get('host', '')}") not in LOOPBACK:
                # DNS rebinding: another site's name that points here must not read what only this machine may.
                raise Refused("without a key this server answers to localhost only; see `citewell keys create`")
            return Caller()
        tokens = {token for token in _tokens(request) if token}
        if not tokens:
            raise Refused("this server asks for a key: send it as `Authorization: Bearer <key>` or `X-API-Key: <key>`")
        if len(tokens) > 1 or not (key := await self._find_valid_key(tokens.pop())):
            raise Refused("this key is not known, or was revoked")
        return Caller(key)

    async def _find_valid_key(self, token: str) -> Key | None:
        key_id = api_keys.key_id(token)
        row = await self._keys.find(key_id) if key_id else None
        if row is None:
            return None
        key, digest = row
        return key if api_keys.key_matches(token, digest) and not key.revoked_at else None

    async def _is_open(self) -> bool:
        """Whether no key was ever created: then anybody on this machine may call.

        The answer is cached for a second, while one request looks it up, and while the database does not answer.
        """
        if self._open_checked_at < 0:
            self._open = not await self._keys.keys()
            self._open_checked_at = monotonic()
        elif monotonic() - self._open_checked_at > _OPEN_CACHE_SECONDS:
            self._open_checked_at = monotonic()
            with suppress(StoreUnavailable, TimeoutError):
                async with asyncio.timeout(_LOOKUP_TIMEOUT_SECONDS):
                    self._open = not await self._keys.keys()
            self._open_checked_at = monotonic()
        return self._open

    def _check_origin(self, request: Request) -> None:
        """Refuse what a page of another site makes a browser send, unless the site is in CITEWELL_CORS_ORIGINS."""
        origin = request.headers.get("origin")
        if request.method in ("GET", "HEAD", "OPTIONS") or not origin or origin in self._allowed_origins:
            return
        if origin.partition("://")[2] != request.headers.get("host"):
            raise Refused(f"requests from {origin[:200]} are not allowed; see CITEWELL_CORS_ORIGINS")


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").casefold()
    except ValueError:  # half an IPv6 address
        return ""


def _tokens(request: Request) -> list[str]:
    """Every key in the headers; also the second of two headers of one name."""
    split = [value.partition(" ") for value in request.headers.getlist("authorization")]
    bearers = [token.strip() for scheme, _, token in split if scheme.casefold() == "bearer"]
    return bearers + [value.strip() for value in request.headers.getlist("x-api-key")]
