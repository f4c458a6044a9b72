"""The upload flow: take what clients sent in, one after another, bring it in or out, finish it; until none is left.

A client's path names a document and never a file: bytes lie under names of our own while they are read.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import assert_never

from citewell.errors import CitewellError, OtherModel
from citewell.ingest.flow import IngestEngines, ingest_files, remove_documents
from citewell.ingest.read_ahead import Recipe
from citewell.ingest.run_record import Run, record_run
from citewell.ingest.walk import SourceFile
from citewell.models import Upload, document_id
from citewell.ports import Projects, Uploads

_MOST_ATTEMPTS = 3


async def drain(
    uploads: Uploads, projects: Projects, *, engines: IngestEngines, recipe: Recipe, folder: Path
) -> AsyncIterator[tuple[Upload, str | None]]:
    """Each upload that waits, once it is finished, with why it failed; for whoever holds the writer's lock.

    Documents that came in one after another for one project are one run of an ingest.
    """
    _sweep(folder)
    await uploads.resume()
    last, run = None, Run()
    async with AsyncExitStack() as recording:
        while taken := await _taken(uploads):
            upload, content = taken
            try:
                if last is None or (upload.project, upload.kind) != (last.project, last.kind):
                    await recording.aclose()
                    run = Run(stage="reading")
                    if upload.kind == "ingest":
                        await recording.enter_async_context(record_run(run, upload.project, engines.ingests))
                run.total = run.done + await _waiting(uploads, upload)
                try:
                    error = await _carry_out(upload, content, run, projects, engines, recipe, folder)
                except OtherModel as mismatch:  # no second try helps
                    error = str(mismatch)
                await uploads.finish(upload.id, error=error)
            except (CitewellError, asyncio.CancelledError):
                await uploads.release(upload.id)
                raise
            last = upload
            run.done += 1
            run.errors.extend([f"{upload.path}: {error}"] if error else [])
            yield upload, error


async def _taken(uploads: Uploads) -> tuple[Upload, bytes] | None:
    """The next in line. Asked to go meanwhile, it puts back what the database has perhaps given already."""
    taking = asyncio.ensure_future(uploads.claim())
    try:
        return await asyncio.shield(taking)
    except asyncio.CancelledError:
        if taken := await taking:
            await uploads.release(taken[0].id)
        raise


async def _waiting(uploads: Uploads, upload: Upload) -> int:
    """How many there are to carry out like this one, itself included."""
    left = await uploads.uploads(upload.project.id)
    return sum(one.status != "FAILED" and one.kind == upload.kind for one in left)


async def _carry_out(
    upload: Upload, content: bytes, run: Run, projects: Projects, engines: IngestEngines, recipe: Recipe, folder: Path
) -> str | None:
    """Do what the upload asks for; says why it cannot be."""
    match upload.kind:
        case "ingest":
            if upload.attempts > _MOST_ATTEMPTS:
                return "its reader crashed on it; the file is probably broken"
            with _laid_out(upload, content, folder) as location:
                file = SourceFile(location, upload.path, None)
                result = await ingest_files([file], project=upload.project, engines=engines, recipe=recipe)
            run.files += result.files_processed
            run.chunks += result.chunks_created
            return result.errors[0].removeprefix(f"{upload.path}: ") if result.errors else None
        case "delete":
            if upload.attempts > _MOST_ATTEMPTS:
                return "it could not be removed"
            await _remove(upload, projects, engines)
            return None
        case never:
            assert_never(never)


async def _remove(upload: Upload, projects: Projects, engines: IngestEngines) -> None:
    held = await engines.ledger.known_documents(upload.project)
    if gone := [document_id(upload.project, path) for path in held if upload.path in ("", path)]:
        await remove_documents(gone, engines=engines)
    if not upload.path:
        await projects.delete(upload.project.id)


@contextmanager
def _laid_out(upload: Upload, content: bytes, folder: Path) -> Iterator[Path]:
    """The upload's bytes as a file, for as long as it is read."""
    location = folder / f"{upload.id}.upload"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    location.write_bytes(content)
    try:
        yield location
    finally:
        location.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Remove what a worker that died had laid out."""
    for left in folder.glob("*.upload"):
        left.unlink(missing_ok=True)
