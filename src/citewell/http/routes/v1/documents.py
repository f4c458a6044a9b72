"""`/api/v1/projects/{id}/documents`, `/api/v1/documents/{id}` and its chunks: what is indexed, and what is uploaded."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Annotated
from unicodedata import normalize
from uuid import UUID, uuid4

from fastapi import APIRouter, File, Path, Query, Request, Response, UploadFile
from starlette.exceptions import HTTPException

from citewell import models
from citewell.errors import BadRequest, NotFound
from citewell.http.errors import DOCUMENTED
from citewell.http.route import ADMIN, GuardedRoute, UploadRoute, project_of
from citewell.http.state import state_of
from citewell.ingest.parse import SUFFIXES
from citewell.models import DocumentSummary, Project, Upload
from citewell.schemas.fields import Uuid
from citewell.schemas.v1.documents import Chunk, ChunkPlace, Document, DocumentDetail, DocumentList, Neighbour

_MAX_NAME_BYTES = 255
# Bidirectional control characters, which show a name in another order: "gpj.exe" for what ends in "exe.jpg".
_BIDI_CONTROLS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")

upload_router = APIRouter(prefix="/api/v1", tags=["documents"], route_class=UploadRoute, responses=DOCUMENTED)
router = APIRouter(prefix="/api/v1", tags=["documents"], route_class=GuardedRoute, responses=DOCUMENTED)


# The name of a file is in a header of its part of the form.
_PART_HEADERS = {
    "Content-Disposition": {"schema": {"type": "string"}, "example": 'form-data; name="file"; filename="pumps.md"'}
}
_FORM_DOCUMENTATION = {
    "requestBody": {"content": {"multipart/form-data": {"encoding": {"file": {"headers": _PART_HEADERS}}}}}
}


@upload_router.post("/projects/{project_id}/documents", openapi_extra=ADMIN | _FORM_DOCUMENTATION, status_code=202)
async def upload_document(
    project_id: Uuid, request: Request, file: Annotated[UploadFile, File(description="Any format that `ingest` reads.")]
) -> Document:
    """Upload a document. A background process indexes it: poll its status, which is PENDING at first.

    The same name again replaces the document; its id stays the same.
    """
    project = await project_of(request, project_id)
    _check_form((await request.form()).multi_items())
    path = _document_path(file.filename)
    state = state_of(request)
    max_bytes = state.settings.max_upload_bytes
    if file.size is not None and file.size > max_bytes:
        raise HTTPException(413, f"the file is larger than {max_bytes} bytes, the limit for uploads")
    content = await file.read()
    upload = Upload(uuid4(), project, path, "ingest", "PENDING", len(content), datetime.now(UTC))
    await state.stores.uploads.add(upload, content=content)
    state.upload_worker.wake()
    return _uploaded_document(upload)


@router.get("/projects/{project_id}/documents", openapi_extra=ADMIN)
async def list_documents(project_id: Uuid, request: Request) -> DocumentList:
    """Every document by its path, with its status; also uploads that wait, run or failed."""
    return DocumentList(documents=await _documents(await project_of(request, project_id), request))


@router.delete(
    "/projects/{project_id}/documents/{document_id}",
    openapi_extra=ADMIN,
    status_code=204,
    responses={202: {"description": "Under way: another ingest is not done yet."}},
)
async def delete_document(project_id: Uuid, document_id: Uuid, request: Request) -> Response:
    """Delete a document: once this returns 204, no answer uses or cites it."""
    project = await project_of(request, project_id)
    document = await _find_document(document_id, project, request)
    deleted = await state_of(request).upload_worker.remove(project, document.filename)
    return Response(status_code=204 if deleted else 202)


@router.get("/documents/{document_id}", openapi_extra=ADMIN)
async def get_document(
    document_id: Uuid, request: Request, text: Annotated[bool, Query(description="With the whole text.")] = False
) -> DocumentDetail:
    """One document, and the places of its chunks."""
    summary = await _visible_document(document_id, request)
    library = state_of(request).answers.library
    document = await library.document(document_id)
    chunks = [chunk async for batch in library.chunks(document_id) for _, chunk in batch] if document else []
    return DocumentDetail(
        **summary.model_dump(),
        text=document.text if document and text else None,
        chunks=[_place(chunk) for chunk in chunks],
    )


@router.get("/documents/{document_id}/chunks/{index}", openapi_extra=ADMIN)
async def get_chunk(document_id: Uuid, index: Annotated[int, Path(ge=0, le=2**31 - 1)], request: Request) -> Chunk:
    """One chunk: its text, its place, and its neighbours."""
    await _visible_document(document_id, request)
    library = state_of(request).answers.library
    chunks = [chunk async for batch in library.chunks(document_id) for _, chunk in batch]
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


def _check_form(items: Sequence[tuple[str, object]]) -> None:
    """Refuse a second file, and fields that the form does not have."""
    if unknown := next((name for name, _ in items if name != "file"), None):
        raise BadRequest(f"{unknown[:100]}: there is no such field; the fields are file", field=unknown[:100])
    if len(items) > 1:
        raise BadRequest("file: send one file at a time", field="file")


def _document_path(filename: str | None) -> str:
    """The path by which the project knows an upload; never used as a path on this machine."""
    path = normalize("NFC", filename or "")  # macOS sends é as two characters, others as one
    parts = path.split("/")
    if not path.strip() or any(part in ("", ".", "..") for part in parts) or "\\" in path:
        raise BadRequest("file: name it by a plain name, or a path without `..` below the project", field="file")
    if (size := len(path.encode("utf-8", "replace"))) > _MAX_NAME_BYTES:
        raise BadRequest(f"file: its name should have at most {_MAX_NAME_BYTES} bytes, has {size}", field="file")
    if any(not character.isprintable() or character in _BIDI_CONTROLS for character in path):
        raise BadRequest("file: its name has characters in it that cannot be seen", field="file")
    if (suffix := PurePosixPath(path).suffix.lower()) not in SUFFIXES:
        raise HTTPException(
            415, f"cannot read {suffix or 'a file without a suffix'}; readable are {', '.join(SUFFIXES)}"
        )
    return path


async def _documents(project: Project, request: Request) -> list[Document]:
    """What is indexed, what waits and what failed; of a document that is uploaded again, the upload's status."""
    state = state_of(request)
    summaries = await state.answers.library.documents(project)
    by_id = {summary.id: _indexed_document(summary, project) for summary in summaries}
    for upload in await state.stores.uploads.uploads(project.id):
        indexed = by_id.get(upload.document_id)
        if indexed:
            status = {"status": upload.status, "error": upload.error, "updatedAt": upload.created_at}
            by_id[upload.document_id] = indexed.model_copy(update=status)
        elif upload.kind == "ingest":
            by_id[upload.document_id] = _uploaded_document(upload)
    return sorted(by_id.values(), key=lambda document: document.filename)


async def _find_document(document_id: UUID, project: Project, request: Request) -> Document:
    for document in await _documents(project, request):
        if document.documentId == document_id:
            return document
    raise NotFound("there is no such document")


async def _visible_document(document_id: UUID, request: Request) -> Document:
    """A document of a project that the caller may see."""
    return await _find_document(document_id, await _project_of_document(document_id, request), request)


async def _project_of_document(document_id: UUID, request: Request) -> Project:
    state = state_of(request)
    project_id = await state.answers.library.project_of(document_id)
    if project_id is None:
        uploads = await state.stores.uploads.uploads()
        project_id = next((upload.project.id for upload in uploads if upload.document_id == document_id), None)
    if project_id is None:
        raise NotFound("there is no such document")
    try:
        return await project_of(request, project_id)
    except NotFound as error:
        raise NotFound("there is no such document") from error


def _indexed_document(summary: DocumentSummary, project: Project) -> Document:
    return Document(
        documentId=summary.id,
        projectId=project.id,
        filename=summary.path,
        status="COMPLETED",
        error=None,
        title=summary.title,
        url=summary.url,
        chunkCount=summary.chunks,
        characters=summary.characters,
        updatedAt=summary.ingested_at,
    )


def _uploaded_document(upload: Upload) -> Document:
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
        id=chunk.public_id,
        chunkIndex=chunk.index,
        section=chunk.section,
        start=chunk.start,
        end=chunk.end,
        line=chunk.first_line,
        lastLine=chunk.last_line,
        page=chunk.page,
    )


def _neighbour(chunk: models.Chunk) -> Neighbour:
    return Neighbour(id=chunk.public_id, chunkIndex=chunk.index, chunkText=chunk.text)
