"""`POST /api/v1/citations/verify`: whether what was cited still stands."""

import re

from fastapi import APIRouter, Request

from citewell.answer.receipts import cited_ids, status
from citewell.http.errors import DOCUMENTED
from citewell.http.gate import ASK, Door, project_of
from citewell.http.sources import source
from citewell.models import Trace
from citewell.wire.citations import Verdict, VerifyRequest, VerifyResponse

_ID = re.compile("[0-9a-f]{64}")

router = APIRouter(prefix="/api/v1", tags=["citations"], route_class=Door, responses=DOCUMENTED)


@router.post("/citations/verify", openapi_extra=ASK)
async def verify(body: VerifyRequest, request: Request) -> VerifyResponse:
    """Of each chunk id, given or found in an answer's text: valid, moved, changed, deleted or unknown."""
    project = await project_of(request, body.projectId)
    ids = list(dict.fromkeys([*body.ids, *cited_ids(body.answer or "")]))
    traces = await request.app.state.reading.library.trace(project.id, [one for one in ids if _ID.fullmatch(one)])
    return VerifyResponse(citations=[_verdict(one, traces.get(one, Trace())) for one in ids])


def _verdict(identity: str, trace: Trace) -> Verdict:
    now = trace.here or trace.twin or trace.successor
    return Verdict(id=identity, status=status(trace), now=source(now) if now else None)
