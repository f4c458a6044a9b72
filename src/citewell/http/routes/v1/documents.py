"""`/api/v1/projects/{id}/documents`, `/api/v1/documents/{id}` and its chunks: what is held, and what is coming in."""

from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Annotated
from unicodedata import normalize
from uuid import UUID, uuid4

from fastapi import APIRouter, File, Path, Query, Request, Response, UploadFile
from starlette.exceptions import HTTPException

from citewell import models
from citewell.errors import BadRequest, NotFound
from citewell.http.auth import ADMIN, GuardedRoute, UploadRoute, project_of
from citewell.http.background import UploadWorker
from citewell.http.errors import DOCUMENTED
from citewell.ingest.parse import SUFFIXES
from citewell.models import DocumentSummary, Project, Upload
from citewell.schemas.v1.documents import Chunk, ChunkPlace, Document, DocumentDetail, DocumentList, Neighbour

_MOST_NAME_BYTES = 255
# Marks that show a name in another order than it has: "gpj.exe" for what ends in "exe.jpg".
_REORDERING = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")

uploading = APIRouter(prefix="/api/v1", tags=["documents"], route_class=UploadRoute, responses=DOCUMENTED)
router = APIRouter(prefix="/api/v1", tags=["documents"], route_class=GuardedRoute, responses=DOCUMENTED)


# A file is known by its name, which stands in a header of its part.
_NAMED = {
    "Content-Disposition": {"schema": {"type": "string"}, "example": 'form-data; name="file"; filename="pumps.md"'}
}
_FORM = {"requestBody": {"content": {"multipart/form-data": {"encoding": {"file": {"headers": _NAMED}}}}}}


@uploading.post("/projects/{project_id}/documents", openapi_extra=ADMIN | _FORM, status_code=202)
async def upload_document(
    project_id: UUID, request: Request, file: Annotated[UploadFile, File(description="Any format that `ingest` reads.")]
) -> Document:
    """Send in a document. It is read by a process of its own: ask for its status, PENDING at first.

    The same name again replaces the document; its id stays.
    """
    project = await project_of(request, project_id)
    if sum(not isinstance(value, str) for _, value in (await request.form()).multi_items()) > 1:
        raise BadRequest("send one file at a time")
    path = _path(file.filename)
    most: int = request.app.state.settings.max_upload_bytes
    if file.size is not None and file.size > most:
        raise HTTPException(413, f"the file is larger than {most} bytes, which is the most that is taken")
    content = await file.read()
    upload = Upload(uuid4(), project, path, "ingest", "PENDING", len(content), datetime.now(UTC))
    await request.app.state.keeping.uploads.add(upload, content=content)
    worker: UploadWorker = request.app.state.worker
    worker.wake()
    return _waiting(upload)


@router.get("/projects/{project_id}/documents", openapi_extra=ADMIN)
async def list_documents(project_id: UUID, request: Request) -> DocumentList:
    """Every document by its path, with its status; also those on their way in, and those that failed."""
    return DocumentList(documents=await _documents(await project_of(request, project_id), request))


@router.delete(
    "/projects/{project_id}/documents/{document_id}",
    openapi_extra=ADMIN,
    status_code=204,
    responses={202: {"description": "Under way: another ingest is not done yet."}},
)
async def delete_document(project_id: UUID, document_id: UUID, request: Request) -> Response:
    """Remove a document: when this answers 204, nothing is answered or cited from it any more."""
    project = await project_of(request, project_id)
    found = [one for one in await _documents(project, request) if one.documentId == document_id]
    if not found:
        raise NotFound("there is no such document")
    worker: UploadWorker = request.app.state.worker
    return Response(status_code=204 if await worker.remove(project, found[0].filename) else 202)


@router.get("/documents/{document_id}", openapi_extra=ADMIN)
async def get_document(
    document_id: UUID, request: Request, text: Annotated[bool, Query(description="With the whole text.")] = False
) -> DocumentDetail:
    """One document, and where its chunks stand in it."""
    shown = await _document(document_id, request)
    library = request.app.state.reading.library
    held = await library.document(document_id)
    chunks = [chunk async for batch in library.chunks(document_id) for _, chunk in batch] if held else []
    return DocumentDetail(
        **shown.model_dump(),
        text=held.text if held and text else None,
        chunks=[_place(chunk) for chunk in chunks],
    )


@router.get("/documents/{document_id}/chunks/{index}", openapi_extra=ADMIN)
async def get_chunk(document_id: UUID, index: Annotated[int, Path(ge=0, le=2**31 - 1)], request: Request) -> Chunk:
    """One chunk: its text, its place, and its neighbours."""
    await _document(document_id, request)
    chunks = [one async for batch in request.app.state.reading.library.chunks(document_id) for _, one in batch]
    if index >= len(chunks):
        raise NotFound("there is no such chunk")
    chunk = chunks[index]
    return Chunk(
        **_place(chunk).model_dump(),
        documentId=document_id,
        source=chunk.source,
        chapter=chunk.chapter,
        headings=list(chunk.headings),
        chunkText=chunk.text,
        source_url=chunk.url,
        previous=_neighbour(chunks[index - 1]) if index else None,
        next=_neighbour(chunks[index + 1]) if index + 1 < len(chunks) else None,
    )


def _path(name: str | None) -> str:
    """The path a client gives its document; never used as a path on this machine."""
    path = normalize("NFC", name or "")  # macOS takes an é apart that others send whole
    parts = path.split("/")
    if not path.strip() or any(part in ("", ".", "..") for part in parts) or "\\" in path:
        raise BadRequest("name the file by a plain name, or a path without `..` below the project")
    if len(path.encode("utf-8", "replace")) > _MOST_NAME_BYTES:
        raise BadRequest(f"the file's name is longer than {_MOST_NAME_BYTES} bytes")
    if any(not mark.isprintable() or mark in _REORDERING for mark in path):
        raise BadRequest("the file's name has marks in it that cannot be seen")
    if (suffix := PurePosixPath(path).suffix.lower()) not in SUFFIXES:
        raise HTTPException(
            415, f"cannot read {suffix or 'a file without a suffix'}; readable are {', '.join(SUFFIXES)}"
        )
    return path


async def _documents(project: Project, request: Request) -> list[Document]:
    """What is held, what waits and what failed; of a document that is sent in again, how that goes."""
    held = await request.app.state.reading.library.documents(project)
    by_id = {one.id: _held(one, project) for one in held}
    for upload in await request.app.state.keeping.uploads.uploads(project.id):
        before = by_id.get(upload.document_id)
        told = {"status": upload.status, "error": upload.error, "updatedAt": upload.created_at}
        if before:
            by_id[upload.document_id] = before.model_copy(update=told)
        elif upload.kind == "ingest":
            by_id[upload.document_id] = _waiting(upload)
    return sorted(by_id.values(), key=lambda one: one.filename)


async def _document(identity: UUID, request: Request) -> Document:
    """A document of a project that the caller may see."""
    project = await _project_of_document(identity, request)
    found = [one for one in await _documents(project, request) if one.documentId == identity]
    if not found:
        raise NotFound("there is no such document")
    return found[0]


async def _project_of_document(identity: UUID, request: Request) -> Project:
    owner = await request.app.state.reading.library.project_of(identity)
    if owner is None:
        coming = await request.app.state.keeping.uploads.uploads()
        owner = next((one.project.id for one in coming if one.document_id == identity), None)
    if owner is None:
        raise NotFound("there is no such document")
    try:
        return await project_of(request, owner)
    except NotFound as error:
        raise NotFound("there is no such document") from error


def _held(one: DocumentSummary, project: Project) -> Document:
    return Document(
        documentId=one.id,
        projectId=project.id,
        filename=one.path,
        status="COMPLETED",
        error=None,
        title=one.title,
        url=one.url,
        chunkCount=one.chunks,
        characters=one.characters,
        updatedAt=one.ingested_at,
    )


def _waiting(upload: Upload) -> Document:
    return Document(
        documentId=upload.document_id,
        projectId=upload.project.id,
        filename=upload.path,
        status=upload.status,
        error=upload.error,
        updatedAt=upload.created_at,
    )


def _place(chunk: models.Chunk) -> ChunkPlace:
    return ChunkPlace(
        id=chunk.id,
        chunkIndex=chunk.index,
        section=chunk.section,
        start=chunk.start,
        end=chunk.end,
        line=chunk.first_line,
        lastLine=chunk.last_line,
        page=chunk.page,
    )


def _neighbour(chunk: models.Chunk) -> Neighbour:
    return Neighbour(id=chunk.id, chunkIndex=chunk.index, chunkText=chunk.text)
