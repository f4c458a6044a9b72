"""The class of every route: it checks access and limits before the body is read, and knows caller and project.

A route that does not say who may call it does not start.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from citewell.errors import CitewellError, NotFound
from citewell.http.auth import Access, Caller
from citewell.http.limits import LimitedBody, declared_length
from citewell.http.state import state_of
from citewell.models import DEFAULT_PROJECT, Project
from citewell.schemas.fields import Uuid
from citewell.settings import Settings

_SECURITY: dict[str, Any] = {"security": [{"bearer": []}, {"key": []}]}
OPEN: dict[str, Any] = {"x-scope": "open", "security": []}
ASK: dict[str, Any] = {"x-scope": "ask", **_SECURITY}
ADMIN: dict[str, Any] = {"x-scope": "admin", **_SECURITY}

InProject = Annotated[Uuid | None, Query(description="The default project, if left out.")]
"""For endpoints whose body has no field for a project."""

_MAX_JSON_BYTES = 2_000_000  # the longest question and selection, every character escaped, fit in
_FORM_BYTES = 100_000  # what a multipart form puts around its file
_CLIENT_CLOSED_REQUEST = 499


def caller_of(request: Request) -> Caller:
    """Who sent the request, as the route found out."""
    caller: Caller = request.state.caller
    return caller


async def project_of(request: Request, project_id: UUID | None = None) -> Project:
    """The project with this id, or the default project; raises NotFound unless the caller may see it."""
    default = Project.named(DEFAULT_PROJECT)
    caller_of(request).must_see(project_id or default.id)
    if project_id is None or project_id == default.id:
        return default
    row = await state_of(request).stores.projects.project(project_id)
    if row is None:
        raise NotFound("there is no such project")
    return row[0]


class GuardedRoute(APIRoute):
    """A route that checks who calls, and how much, before it reads."""

    media_type = "application/json"

    def __init__(self, path: str, endpoint: Callable[..., Any], **kwargs: Any) -> None:
        super().__init__(path, endpoint, **kwargs)
        if "x-scope" not in (self.openapi_extra or {}):
            raise RuntimeError(f"{path} has no access rule; give it OPEN, ASK or ADMIN as openapi_extra")

    def max_bytes(self, settings: Settings) -> int:  # noqa: ARG002
        """The largest body that is read."""
        return _MAX_JSON_BYTES

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        access: Access = (self.openapi_extra or {})["x-scope"]

        async def handle_guarded(request: Request) -> Response:
            state = state_of(request)
            request.scope.setdefault("state", {})["endpoint"] = self.path
            request.state.caller = await state.admission.admit(request, access)
            if request.method not in ("POST", "PUT"):
                return await handle(request)
            self._check_media_type(request)
            body = LimitedBody(
                request.receive,
                max_bytes=self.max_bytes(state.settings),
                declared_bytes=declared_length(request.headers),
                timeout_seconds=state.settings.client_timeout_seconds,
            )
            try:
                return await _cancel_on_disconnect(handle(Request(request.scope, body.receive, request._send)), body)
            except (HTTPException, RequestValidationError, CitewellError):
                await body.drain()
                raise

        return handle_guarded

    def _check_media_type(self, request: Request) -> None:
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
        if media_type != self.media_type:
            raise HTTPException(415, f"send {self.media_type}, not {media_type or 'nothing'}")


class UploadRoute(GuardedRoute):
    """A route that takes a file."""

    media_type = "multipart/form-data"

    def max_bytes(self, settings: Settings) -> int:
        return settings.max_upload_bytes + _FORM_BYTES


async def _cancel_on_disconnect(work: Coroutine[Any, Any, Response], body: LimitedBody) -> Response:
    """The response; once the client has gone, the work is cancelled."""
    working = asyncio.ensure_future(work)
    disconnect = asyncio.ensure_future(body.wait_for_disconnect())
    try:
        await asyncio.wait({working, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        return Response(status_code=_CLIENT_CLOSED_REQUEST)
    finally:
        for task in (working, disconnect):
            task.cancel()
        await asyncio.gather(working, disconnect, return_exceptions=True)
