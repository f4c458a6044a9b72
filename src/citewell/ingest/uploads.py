"""Process the queue of uploads: index or delete one document after another, until the queue is empty.

A client's path names a document, never a file on this machine: while an upload is indexed, its bytes are in a file
named by the upload's id.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import assert_never

from citewell.errors import CitewellError, OtherModel, StoreUnavailable
from citewell.ingest.flow import IngestEngines, ingest_files, remove_documents, remove_project
from citewell.ingest.plan import KEPT_VERSION
from citewell.ingest.read_ahead import Recipe
from citewell.ingest.run_record import Run, record_run
from citewell.ingest.walk import SourceFile
from citewell.models import Upload
from citewell.ports import Projects, Uploads

_MAX_ATTEMPTS = 3


async def drain(
    uploads: Uploads, projects: Projects, *, engines: IngestEngines, recipe: Recipe, folder: Path
) -> AsyncIterator[tuple[Upload, str | None]]:
    """Yield each upload when it is finished, with the error if it failed. The caller must hold the writer lock.

    Consecutive uploads to one project are recorded as one ingest run.
    """
    _remove_stale_files(folder)
    await uploads.resume()
    last, run = None, Run()
    async with AsyncExitStack() as recording:
        while claimed := await _claim_next(uploads):
            upload, content = claimed
            try:
                if last is None or (upload.project, upload.kind) != (last.project, last.kind):
                    await recording.aclose()
                    run = Run(stage="reading")
                    if upload.kind == "ingest":
                        await recording.enter_async_context(record_run(run, upload.project, engines.ingests))
                run.total = run.done + await _count_waiting(uploads, upload)
                try:
                    error = await _process(upload, content, run, projects, engines, recipe, folder)
                except OtherModel as mismatch:  # a retry would not help
                    error = str(mismatch)
                await uploads.finish(upload.id, error=error)
            except (CitewellError, asyncio.CancelledError):
                await uploads.release(upload.id)
                raise
            last = upload
            run.done += 1
            run.errors.extend([f"{upload.path}: {error}"] if error else [])
            yield upload, error


async def _claim_next(uploads: Uploads) -> tuple[Upload, bytes] | None:
    """Claim the next upload. If cancelled meanwhile, release what the database may have handed out already."""
    claim = asyncio.ensure_future(uploads.claim())
    try:
        return await asyncio.shield(claim)
    except asyncio.CancelledError:
        if claimed := await claim:
            await uploads.release(claimed[0].id)
        raise


async def _count_waiting(uploads: Uploads, upload: Upload) -> int:
    """How many uploads of this kind wait in the project, this one included."""
    waiting = await uploads.uploads(upload.project.id)
    return sum(other.status != "FAILED" and other.kind == upload.kind for other in waiting)


async def _process(
    upload: Upload, content: bytes, run: Run, projects: Projects, engines: IngestEngines, recipe: Recipe, folder: Path
) -> str | None:
    """Index or delete the document; returns the error if it failed."""
    match upload.kind:
        case "ingest":
            if upload.attempts > _MAX_ATTEMPTS:
                known = await engines.library_writer.known_documents(upload.project)
                note = KEPT_VERSION if upload.path in known else ""
                return f"its reader crashed on it; the file is probably broken{note}"
            with _written_to_file(upload, content, folder) as location:
                file = SourceFile(location, upload.path, None)
                result = await ingest_files([file], project=upload.project, engines=engines, recipe=recipe)
            run.files += result.files_processed
            run.chunks += result.chunks_created
            return result.errors[0].removeprefix(f"{upload.path}: ") if result.errors else None
        case "delete":
            if upload.attempts > _MAX_ATTEMPTS:
                return "it could not be removed"
            if upload.path:
                await _delete_document(upload, engines)
            else:
                await remove_project(upload.project, projects=projects, engines=engines)
            return None
        case never:
            assert_never(never)


async def _delete_document(upload: Upload, engines: IngestEngines) -> None:
    if upload.path in await engines.library_writer.known_documents(upload.project):
        await remove_documents([upload.document_id], engines=engines)


@contextmanager
def _written_to_file(upload: Upload, content: bytes, folder: Path) -> Iterator[Path]:
    """The upload's bytes as a file, deleted at the end of the context."""
    location = folder / f"{upload.id}.upload"
    try:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            location.write_bytes(content)
        except OSError as error:  # not the upload's fault: it waits until there is room
            raise StoreUnavailable(f"uploads cannot be written to {folder}: {error.strerror or error}") from error
        yield location
    finally:
        with suppress(OSError):
            location.unlink()


def _remove_stale_files(folder: Path) -> None:
    """Remove files that a worker that died left behind."""
    for file in folder.glob("*.upload"):
        file.unlink(missing_ok=True)
