"""Ask a running server from Python: a method per door, answers as the schemas of `citewell.schemas`.

    async with Client("http://127.0.0.1:8000", key="cw_…") as citewell:
        answer = await citewell.ask("Why do gyroscopes drift?")
        async for event in citewell.chat_stream("And how is that corrected?"):
            print(event.delta or "", end="")

Knows HTTP and nothing of what is behind it.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from time import monotonic
from types import TracebackType
from typing import TypeVar
from uuid import UUID, uuid4

from pydantic import BaseModel, ValidationError

from citewell.client.errors import NotCitewell, RequestFailed, ServerUnreachable
from citewell.client.transport import Call, Transport
from citewell.errors import BadRequest
from citewell.models import DEFAULT_PROJECT
from citewell.models import Project as Named
from citewell.schemas.ask import AskRequest, AskResponse, StreamChunk
from citewell.schemas.chat import ChatEvent, ChatRequest, ChatResponse, HistoryResponse, MetadataFilter
from citewell.schemas.errors import ErrorResponse
from citewell.schemas.health import Health, Ready
from citewell.schemas.query import QueryRequest, QueryResponse
from citewell.schemas.v1 import chat as v1
from citewell.schemas.v1.citations import CitationDetail, VerifyRequest, VerifyResponse
from citewell.schemas.v1.documents import Chunk, Document, DocumentDetail, DocumentList
from citewell.schemas.v1.feedback import FeedbackRequest, Vote
from citewell.schemas.v1.insights import EvaluationReport, FeedbackReport, Gap, GapList, Ingest, IngestList
from citewell.schemas.v1.projects import Project, ProjectList, ProjectRequest
from citewell.schemas.v1.search import SearchRequest, SearchResponse
from citewell.schemas.v1.welcome import Welcome

__all__ = ["Client", "NotCitewell", "RequestFailed", "ServerUnreachable"]

R = TypeVar("R", bound=BaseModel)

_LOOK_SECONDS = 0.3
_DEFAULT = Named.named(DEFAULT_PROJECT).id


class Client:
    """One server. What a door takes and answers is told at its `/docs`.

    Every method raises RequestFailed with the server's own answer where it refuses, ServerUnreachable where it does
    not answer, and BadRequest where what is asked could not even be sent. A project is named by its id; left out, it
    is the default one.
    """

    def __init__(self, url: str, *, key: str | None = None, timeout_seconds: float = 60.0, tries: int = 4) -> None:
        self._transport = Transport(url, key=key, timeout_seconds=timeout_seconds, tries=tries)

    async def __aenter__(self) -> "Client":
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.__aexit__(kind, error, trace)

    async def ask(self, question: str, *, top_k: int = 5) -> AskResponse:
        """Answer a question from the default project, whole."""
        body = _valid(AskRequest, question=question, top_k=top_k)
        return await self._transport.call(Call("POST", "/api/ask", body), AskResponse)

    async def ask_stream(self, question: str, *, top_k: int = 5) -> AsyncGenerator[StreamChunk]:
        """The same answer piece by piece; the last event has the citations. What fails on the way is raised."""
        body = _valid(AskRequest, question=question, top_k=top_k)
        async for event in self._transport.events(Call("POST", "/api/ask/stream", body), StreamChunk):
            if event.error is not None:  # this door tells no code
                problem = ErrorResponse(error_code="INTERNAL_ERROR", message=event.error, request_id="")
                raise RequestFailed(problem, status=200)
            yield event

    async def query(self, query: str, *, selected_text: str | None = None) -> QueryResponse:
        """Answer from the whole book; what the reader marked steers the search."""
        body = _valid(QueryRequest, query=query, selected_text=selected_text)
        return await self._transport.call(Call("POST", "/api/query", body), QueryResponse)

    async def chat(
        self,
        query: str,
        *,
        session_id: UUID | None = None,
        selected_text: str | None = None,
        filters: MetadataFilter | None = None,
        idempotency_key: str | None = None,
        project: UUID = _DEFAULT,
    ) -> ChatResponse:
        """Answer in a session. However often it has to be sent, the exchange is kept once."""
        call = _chat("/chat", query, session_id, selected_text, filters, idempotency_key, project)
        return await self._transport.call(call, ChatResponse)

    async def chat_stream(
        self,
        query: str,
        *,
        session_id: UUID | None = None,
        selected_text: str | None = None,
        filters: MetadataFilter | None = None,
        idempotency_key: str | None = None,
        project: UUID = _DEFAULT,
    ) -> AsyncGenerator[ChatEvent]:
        """The same as events: stages, pieces of text, then the whole response. What fails on the way is raised."""
        call = _chat("/chat/stream", query, session_id, selected_text, filters, idempotency_key, project)
        async for event in self._transport.events(call, ChatEvent):
            if event.error is not None:
                raise RequestFailed(event.error, status=200)
            yield event

    async def history(
        self, session_id: UUID, *, limit: int = 100, offset: int = 0, project: UUID = _DEFAULT
    ) -> HistoryResponse:
        """What was said in a session, oldest first; each citation says whether it still holds."""
        query = {"limit": limit, "offset": offset, **_in(project)}
        return await self._transport.call(Call("GET", f"/history/{session_id}", query=query), HistoryResponse)

    async def feedback(
        self, session_id: UUID, request_id: UUID, vote: Vote | None, *, project: UUID = _DEFAULT
    ) -> None:
        """Vote for or against an answer, by the `request_id` of its metadata; None takes the vote back."""
        body = _valid(FeedbackRequest, session_id=session_id, request_id=request_id, vote=vote, project_id=project)
        await self._transport.done(Call("POST", "/api/v1/feedback", body))

    async def forget(self, session_id: UUID, *, project: UUID = _DEFAULT) -> None:
        """Forget a session and all that was said in it."""
        await self._transport.done(Call("DELETE", f"/history/{session_id}", query=_in(project)))

    async def project_chat(
        self, message: str, *, project: UUID = _DEFAULT, history: Sequence[v1.Message] = ()
    ) -> v1.ChatResponse:
        """Answer from any project, the conversation kept by the caller: pass back the `messages` of the last answer."""
        body = _valid(v1.ChatRequest, projectId=project, message=message, history=list(history))
        return await self._transport.call(Call("POST", "/api/v1/chat", body), v1.ChatResponse)

    async def project_chat_stream(
        self, message: str, *, project: UUID = _DEFAULT, history: Sequence[v1.Message] = ()
    ) -> AsyncGenerator[v1.ChatEvent]:
        """The same as events. What fails on the way is raised."""
        body = _valid(v1.ChatRequest, projectId=project, message=message, history=list(history))
        async for event in self._transport.events(Call("POST", "/api/v1/chat/stream", body), v1.ChatEvent):
            if event.error is not None:
                raise RequestFailed(event.error, status=200)
            yield event

    async def search(
        self, query: str, *, project: UUID = _DEFAULT, top_k: int = 5, filters: MetadataFilter | None = None
    ) -> SearchResponse:
        """Where a project's documents speak of something, best first."""
        body = _valid(SearchRequest, projectId=project, query=query, top_k=top_k, filters=filters)
        return await self._transport.call(Call("POST", "/api/v1/search", body), SearchResponse)

    async def verify(
        self, ids: Sequence[str] = (), *, answer: str | None = None, project: UUID = _DEFAULT
    ) -> VerifyResponse:
        """Of each chunk id, given or cited in an answer: valid, moved, changed, deleted or unknown."""
        body = _valid(VerifyRequest, projectId=project, ids=list(ids), answer=answer)
        return await self._transport.call(Call("POST", "/api/v1/citations/verify", body), VerifyResponse)

    async def welcome(self, *, project: UUID | None = None) -> Welcome:
        """What a chat page shows before the first question; without a project, of the one the key is for."""
        query = {} if project is None else {"project_id": str(project)}
        return await self._transport.call(Call("GET", "/api/v1/welcome", query=query), Welcome)

    async def citation(self, chunk: str, *, project: UUID = _DEFAULT) -> CitationDetail:
        """What stands behind a citation: the chunk, where it stands, and what stands around it."""
        if not (chunk.isascii() and chunk.isalnum()):
            raise BadRequest("chunk: should be a chunk's id, as `chunk_id` of a citation has it")
        return await self._transport.call(Call("GET", f"/api/v1/citations/{chunk}", query=_in(project)), CitationDetail)

    async def projects(self) -> list[Project]:
        """Every project that the key opens, by name."""
        return (await self._transport.call(Call("GET", "/api/v1/projects"), ProjectList)).projects

    async def create_project(self, name: str) -> Project:
        """Make a project; one that is there already is given as it is."""
        body = _valid(ProjectRequest, name=name)
        return await self._transport.call(Call("POST", "/api/v1/projects", body), Project)

    async def project(self, project: UUID) -> Project:
        return await self._transport.call(Call("GET", f"/api/v1/projects/{project}"), Project)

    async def delete_project(self, project: UUID) -> bool:
        """Delete a project with all it holds; whether that is done, or waits for another ingest."""
        return await self._transport.done(Call("DELETE", f"/api/v1/projects/{project}")) == 204

    async def upload(
        self, name: str, content: bytes, *, project: UUID = _DEFAULT, wait_seconds: float | None = 600.0
    ) -> Document:
        """Send in a document and wait until it is COMPLETED or FAILED; its `error` then says why.

        `wait_seconds=None` does not wait. After so many seconds it is given as it is then, PENDING or PROCESSING.
        """
        call = Call("POST", f"/api/v1/projects/{project}/documents", file=(name, content), again=False)
        sent = await self._transport.call(call, Document)
        until = monotonic() + (wait_seconds or 0)
        while sent.status not in ("COMPLETED", "FAILED") and monotonic() < until:
            await asyncio.sleep(_LOOK_SECONDS)
            sent = await self.document(sent.documentId)
        return sent

    async def documents(self, *, project: UUID = _DEFAULT) -> list[Document]:
        """Every document by its path; also those on their way in, and those that failed."""
        call = Call("GET", f"/api/v1/projects/{project}/documents")
        return (await self._transport.call(call, DocumentList)).documents

    async def document(self, document: UUID, *, text: bool = False) -> DocumentDetail:
        """One document and where its chunks stand in it; with `text`, also all it says."""
        call = Call("GET", f"/api/v1/documents/{document}", query={"text": True} if text else {})
        return await self._transport.call(call, DocumentDetail)

    async def chunk(self, document: UUID, index: int) -> Chunk:
        """One chunk: its text, its place, and its neighbours."""
        return await self._transport.call(Call("GET", f"/api/v1/documents/{document}/chunks/{index}"), Chunk)

    async def delete_document(self, document: UUID, *, project: UUID = _DEFAULT) -> bool:
        """Remove a document; whether that is done, or waits for another ingest."""
        call = Call("DELETE", f"/api/v1/projects/{project}/documents/{document}")
        return await self._transport.done(call) == 204

    async def gaps(self, *, project: UUID = _DEFAULT, limit: int = 50) -> list[Gap]:
        """Questions that a project's documents did not answer, newest first."""
        call = Call("GET", f"/api/v1/projects/{project}/gaps", query={"limit": limit})
        return (await self._transport.call(call, GapList)).gaps

    async def forget_gaps(self, *, project: UUID = _DEFAULT) -> None:
        await self._transport.done(Call("DELETE", f"/api/v1/projects/{project}/gaps"))

    async def project_feedback(
        self, *, project: UUID = _DEFAULT, limit: int = 50, vote: Vote | None = None
    ) -> FeedbackReport:
        """How readers of a project voted, and the last answers that they voted on."""
        only = {"vote": vote} if vote else {}
        call = Call("GET", f"/api/v1/projects/{project}/feedback", query={"limit": limit, **only})
        return await self._transport.call(call, FeedbackReport)

    async def evaluation(self, *, project: UUID = _DEFAULT) -> EvaluationReport:
        """The scores of the last `citewell eval` of a project."""
        return await self._transport.call(Call("GET", f"/api/v1/projects/{project}/evaluation"), EvaluationReport)

    async def ingests(self, *, project: UUID = _DEFAULT) -> list[Ingest]:
        """How the last ingests went, newest first."""
        return (await self._transport.call(Call("GET", f"/api/v1/projects/{project}/ingests"), IngestList)).ingests

    async def health(self) -> Health:
        """How each service feels; no error where one is unavailable, for this is the question."""
        return await self._transport.call(Call("GET", "/health"), Health, also=(503,))

    async def ready(self) -> bool:
        return (await self._transport.call(Call("GET", "/ready"), Ready, also=(503,))).ready

    async def metrics(self) -> str:
        """In Prometheus' text format."""
        return await self._transport.text(Call("GET", "/metrics"))


def _valid(schema: type[R], **fields: object) -> R:
    """A request as the door takes it; what it would refuse is refused before it is sent."""
    try:
        return schema.model_validate(fields)
    except ValidationError as error:
        wrong = error.errors()[0]
        place = ".".join(str(part) for part in wrong["loc"])
        raise BadRequest(f"{place}: {wrong['msg'].removeprefix('Input ')}") from error


def _chat(
    path: str,
    query: str,
    session_id: UUID | None,
    selected_text: str | None,
    filters: MetadataFilter | None,
    idempotency_key: str | None,
    project: UUID,
) -> Call:
    body = _valid(ChatRequest, query=query, session_id=session_id, selected_text=selected_text, filters=filters)
    once = str(uuid4()) if idempotency_key is None else idempotency_key
    if not (once.isascii() and once.isprintable() and 0 < len(once.strip()) <= 255):
        raise BadRequest("idempotency_key: should be 1 to 255 plain characters")
    return Call("POST", path, body, query=_in(project), headers={"Idempotency-Key": once})


def _in(project: UUID) -> dict[str, str | int]:
    """How a door without a place for it in the body is told of a project; the default one needs no word."""
    return {} if project == _DEFAULT else {"project_id": str(project)}
