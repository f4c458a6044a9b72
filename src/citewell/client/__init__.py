"""Python client for a running server: one method for each endpoint, with the schemas of `citewell.schemas`.

async with Client("http://127.0.0.1:8000", key="cw_…") as citewell:
    answer = await citewell.ask("Why do gyroscopes drift?")
    async for event in citewell.chat_stream("And how is that corrected?"):
        print(event.delta or "", end="")

"""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from time import monotonic
from types import TracebackType
from typing import TypedDict, TypeVar, Unpack
from uuid import UUID, uuid4

from pydantic import BaseModel, ValidationError

from citewell.client.errors import NotCitewell, RequestFailed, ServerUnreachable
from citewell.client.transport import Call, Transport
from citewell.errors import BadRequest
from citewell.models import CITATION_ID, DEFAULT_PROJECT
from citewell.models import Project as Named
from citewell.schemas.ask import AskRequest, AskResponse, StreamChunk
from citewell.schemas.chat import ChatEvent, ChatRequest, ChatResponse, HistoryResponse, MetadataFilter
from citewell.schemas.errors import ErrorResponse
from citewell.schemas.health import Health, Ready
from citewell.schemas.query import QueryRequest, QueryResponse
from citewell.schemas.request import explain
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

_POLL_SECONDS = 0.3
_DEFAULT = Named.named(DEFAULT_PROJECT).id


class ChatOptions(TypedDict, total=False):
    """The optional arguments of `Client.chat` and `Client.chat_stream`."""

    session_id: UUID | None
    selected_text: str | None
    filters: MetadataFilter | None
    idempotency_key: str | None
    """The client's name for this request; by default a new one."""
    project: UUID


class Client:
    """One server. Its `/docs` page describes every endpoint.

    Every method raises RequestFailed if the server responds with an error, ServerUnreachable if it does not respond,
    and BadRequest if an argument is invalid. A project is named by its id; the default is the default project.
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
        """Answer a question from the default project."""
        body = _validated(AskRequest, question=question, top_k=top_k)
        return await self._transport.fetch(Call("POST", "/api/ask", body), AskResponse)

    async def ask_stream(self, question: str, *, top_k: int = 5) -> AsyncGenerator[StreamChunk]:
        """Stream the same answer; the last event has the citations. Raises errors that occur on the way."""
        body = _validated(AskRequest, question=question, top_k=top_k)
        async for event in self._transport.stream_events(Call("POST", "/api/ask/stream", body), StreamChunk):
            if event.error is not None:  # this endpoint sends no error code
                problem = ErrorResponse(error_code="INTERNAL_ERROR", message=event.error, request_id="")
                raise RequestFailed(problem, status=200)
            yield event

    async def query(self, query: str, *, selected_text: str | None = None) -> QueryResponse:
        """Answer from all documents; `selected_text` guides the search."""
        body = _validated(QueryRequest, query=query, selected_text=selected_text)
        return await self._transport.fetch(Call("POST", "/api/query", body), QueryResponse)

    async def chat(self, query: str, **options: Unpack[ChatOptions]) -> ChatResponse:
        """Answer in a session. The exchange is stored once, also if the request is retried."""
        call = _chat_call("/chat", query, options)
        return await self._transport.fetch(call, ChatResponse)

    async def chat_stream(self, query: str, **options: Unpack[ChatOptions]) -> AsyncGenerator[ChatEvent]:
        """Stream the same: stages, text, then the whole response. Raises errors that occur on the way."""
        call = _chat_call("/chat/stream", query, options)
        async for event in self._transport.stream_events(call, ChatEvent):
            if event.error is not None:
                raise RequestFailed(event.error, status=200)
            yield event

    async def history(
        self, session_id: UUID, *, limit: int = 100, offset: int = 0, project: UUID = _DEFAULT
    ) -> HistoryResponse:
        """The exchanges of a session, oldest first; each citation says whether it is still valid."""
        query = {"limit": limit, "offset": offset, **_project_query(project)}
        return await self._transport.fetch(Call("GET", f"/history/{session_id}", query=query), HistoryResponse)

    async def feedback(
        self, session_id: UUID, request_id: UUID, vote: Vote | None, *, project: UUID = _DEFAULT
    ) -> None:
        """Vote for or against an answer, by the `request_id` of its metadata; None removes the vote."""
        body = _validated(FeedbackRequest, session_id=session_id, request_id=request_id, vote=vote, project_id=project)
        await self._transport.fetch_status(Call("POST", "/api/v1/feedback", body))

    async def forget(self, session_id: UUID, *, project: UUID = _DEFAULT) -> None:
        """Delete a session and all its exchanges."""
        await self._transport.fetch_status(Call("DELETE", f"/history/{session_id}", query=_project_query(project)))

    async def project_chat(
        self, message: str, *, project: UUID = _DEFAULT, history: Sequence[v1.Message] = ()
    ) -> v1.ChatResponse:
        """Answer from any project. The caller keeps the conversation: pass the `messages` of the last answer."""
        body = _validated(
            v1.ChatRequest, projectId=project, message=message, history=[message.model_dump() for message in history]
        )
        return await self._transport.fetch(Call("POST", "/api/v1/chat", body), v1.ChatResponse)

    async def project_chat_stream(
        self, message: str, *, project: UUID = _DEFAULT, history: Sequence[v1.Message] = ()
    ) -> AsyncGenerator[v1.ChatEvent]:
        """Stream the same. Raises errors that occur on the way."""
        body = _validated(
            v1.ChatRequest, projectId=project, message=message, history=[message.model_dump() for message in history]
        )
        async for event in self._transport.stream_events(Call("POST", "/api/v1/chat/stream", body), v1.ChatEvent):
            if event.error is not None:
                raise RequestFailed(event.error, status=200)
            yield event

    async def search(
        self, query: str, *, project: UUID = _DEFAULT, top_k: int = 5, filters: MetadataFilter | None = None
    ) -> SearchResponse:
        """Passages of a project's documents, best first."""
        body = _validated(SearchRequest, projectId=project, query=query, top_k=top_k, filters=filters)
        return await self._transport.fetch(Call("POST", "/api/v1/search", body), SearchResponse)

    async def verify(
        self, ids: Sequence[str] = (), *, answer: str | None = None, project: UUID = _DEFAULT
    ) -> VerifyResponse:
        """The status of each chunk id, given or cited in `answer`: valid, moved, changed, deleted or unknown."""
        body = _validated(VerifyRequest, projectId=project, ids=list(ids), answer=answer)
        return await self._transport.fetch(Call("POST", "/api/v1/citations/verify", body), VerifyResponse)

    async def welcome(self, *, project: UUID | None = None) -> Welcome:
        """What a chat page shows before the first question; by default of the project that the key is for."""
        query = {} if project is None else {"project_id": str(project)}
        return await self._transport.fetch(Call("GET", "/api/v1/welcome", query=query), Welcome)

    async def citation(self, chunk: str, *, project: UUID = _DEFAULT) -> CitationDetail:
        """The chunk behind a citation, its place in the document, and the text around it."""
        if not re.fullmatch(CITATION_ID, chunk):
            message = "chunk: should be the id of a chunk, or of a document that is stored whole"
            raise BadRequest(message, field="chunk")
        call = Call("GET", f"/api/v1/citations/{chunk}", query=_project_query(project))
        return await self._transport.fetch(call, CitationDetail)

    async def projects(self) -> list[Project]:
        """Every project that the key may use, by name."""
        return (await self._transport.fetch(Call("GET", "/api/v1/projects"), ProjectList)).projects

    async def create_project(self, name: str) -> Project:
        """Create a project; an existing one is returned as it is."""
        body = _validated(ProjectRequest, name=name)
        return await self._transport.fetch(Call("POST", "/api/v1/projects", body), Project)

    async def project(self, project: UUID) -> Project:
        return await self._transport.fetch(Call("GET", f"/api/v1/projects/{project}"), Project)

    async def delete_project(self, project: UUID) -> bool:
        """Delete a project and all it holds. False if that waits for an ingest that is running."""
        return await self._transport.fetch_status(Call("DELETE", f"/api/v1/projects/{project}")) == 204

    async def upload(
        self, name: str, content: bytes, *, project: UUID = _DEFAULT, wait_seconds: float | None = 600.0
    ) -> Document:
        """Upload a document and wait until it is COMPLETED, or FAILED; then its `error` says why.

        After `wait_seconds` it is returned as it is, PENDING or PROCESSING; `wait_seconds=None` does not wait.
        """
        call = Call("POST", f"/api/v1/projects/{project}/documents", file=(name, content), idempotent=False)
        document = await self._transport.fetch(call, Document)
        deadline = monotonic() + (wait_seconds or 0)
        while document.status not in ("COMPLETED", "FAILED") and monotonic() < deadline:
            await asyncio.sleep(_POLL_SECONDS)
            document = await self.document(document.documentId)
        return document

    async def documents(self, *, project: UUID = _DEFAULT) -> list[Document]:
        """Every document by its path, including uploads that wait or failed."""
        call = Call("GET", f"/api/v1/projects/{project}/documents")
        return (await self._transport.fetch(call, DocumentList)).documents

    async def document(self, document: UUID, *, text: bool = False) -> DocumentDetail:
        """One document and the places of its chunks; with `text`, also its full text."""
        call = Call("GET", f"/api/v1/documents/{document}", query={"text": True} if text else {})
        return await self._transport.fetch(call, DocumentDetail)

    async def chunk(self, document: UUID, index: int) -> Chunk:
        """One chunk: its text, its place in the document, and its neighbours."""
        return await self._transport.fetch(Call("GET", f"/api/v1/documents/{document}/chunks/{index}"), Chunk)

    async def delete_document(self, document: UUID, *, project: UUID = _DEFAULT) -> bool:
        """Delete a document. False if that waits for an ingest that is running."""
        call = Call("DELETE", f"/api/v1/projects/{project}/documents/{document}")
        return await self._transport.fetch_status(call) == 204

    async def gaps(self, *, project: UUID = _DEFAULT, limit: int = 50) -> list[Gap]:
        """Unanswered questions of a project, newest first."""
        call = Call("GET", f"/api/v1/projects/{project}/gaps", query={"limit": limit})
        return (await self._transport.fetch(call, GapList)).gaps

    async def forget_gaps(self, *, project: UUID = _DEFAULT) -> None:
        """Delete the unanswered questions of a project."""
        await self._transport.fetch_status(Call("DELETE", f"/api/v1/projects/{project}/gaps"))

    async def project_feedback(
        self, *, project: UUID = _DEFAULT, limit: int = 50, vote: Vote | None = None
    ) -> FeedbackReport:
        """How readers of a project voted, and the latest answers that they voted on."""
        only = {"vote": vote} if vote else {}
        call = Call("GET", f"/api/v1/projects/{project}/feedback", query={"limit": limit, **only})
        return await self._transport.fetch(call, FeedbackReport)

    async def evaluation(self, *, project: UUID = _DEFAULT) -> EvaluationReport:
        """The scores of the last `citewell eval` of a project."""
        return await self._transport.fetch(Call("GET", f"/api/v1/projects/{project}/evaluation"), EvaluationReport)

    async def ingests(self, *, project: UUID = _DEFAULT) -> list[Ingest]:
        """The last ingest runs of a project, newest first."""
        return (await self._transport.fetch(Call("GET", f"/api/v1/projects/{project}/ingests"), IngestList)).ingests

    async def health(self) -> Health:
        """The health of each service; raises no error if one is unavailable."""
        return await self._transport.fetch(Call("GET", "/health"), Health, also=(503,))

    async def ready(self) -> bool:
        """Whether the server can answer questions."""
        return (await self._transport.fetch(Call("GET", "/ready"), Ready, also=(503,))).ready

    async def metrics(self) -> str:
        """Metrics in Prometheus' text format."""
        return await self._transport.fetch_text(Call("GET", "/metrics"))


def _validated(schema: type[R], **fields: object) -> R:
    """A validated request body; raises BadRequest for what the endpoint would refuse."""
    try:
        return schema.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        field, message = explain(first, first["loc"])
        raise BadRequest(message, field=field) from error


def _chat_call(path: str, query: str, options: ChatOptions) -> Call:
    body = _validated(
        ChatRequest,
        query=query,
        session_id=options.get("session_id"),
        selected_text=options.get("selected_text"),
        filters=options.get("filters"),
    )
    key = options.get("idempotency_key")
    if key is None:
        key = str(uuid4())
    if not (key.isascii() and key.isprintable() and 0 < len(key.strip()) <= 255):
        raise BadRequest("idempotency_key: should be 1 to 255 plain characters", field="idempotency_key")
    return Call(
        "POST", path, body, query=_project_query(options.get("project", _DEFAULT)), headers={"Idempotency-Key": key}
    )


def _project_query(project: UUID) -> dict[str, str | int]:
    """The query parameter that names a project; none for the default project."""
    return {} if project == _DEFAULT else {"project_id": str(project)}
