"""Process the queue of uploads: index or delete one document after another, until the queue is empty.

Several workers may share the queue: each project has one at a time, which takes its uploads in their order.

A client's path names a document, never a file on this machine: while an upload is indexed, its bytes are in a file
named by the upload's id.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, aclosing, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import assert_never
from uuid import UUID

from citewell.errors import CitewellError, IngestRunning, OtherModel, StoreUnavailable
from citewell.ingest.flow import IngestEngines, ingest_files, remove_documents, remove_project
from citewell.ingest.plan import KEPT_VERSION
from citewell.ingest.read_ahead import Recipe
from citewell.ingest.run_record import Run, record_run
from citewell.ingest.walk import SourceFile
from citewell.models import Upload
from citewell.ports import Projects, Uploads

_MAX_ATTEMPTS = 3
_MAX_BATCH, _MAX_BATCH_BYTES = 32, 16_000_000  # uploads that are published together
_TURN_SECONDS = 30.0  # then it is another project's turn
_RETRY_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0)

Outcome = tuple[Upload, str | None]
"""An upload that is finished, and the error if it failed."""


async def work(
    uploads: Uploads,
    projects: Projects,
    *,
    open_engines: Callable[[UUID], AbstractAsyncContextManager[IngestEngines]],
    recipe: Recipe,
    folder: Path,
) -> AsyncGenerator[Outcome, None]:
    """Yield each upload when it is finished, until all are, or other workers are busy with those that are left.

    `open_engines` gives the engines to write to a project, or raises IngestRunning.
    """
    busy = False
    while not busy:
        busy = True
        for project in await uploads.waiting():
            try:
                async with (
                    open_engines(project) as engines,
                    aclosing(
                        drain(uploads, projects, engines=engines, recipe=recipe, folder=folder, project=project)
                    ) as outcomes,
                ):
                    async for outcome in outcomes:
                        busy = False
                        yield outcome
            except IngestRunning:
                continue


async def drain(
    uploads: Uploads,
    projects: Projects,
    *,
    engines: IngestEngines,
    recipe: Recipe,
    folder: Path,
    project: UUID | None = None,
) -> AsyncGenerator[Outcome, None]:
    """Yield each upload when it is finished: of one project for a while, or of all to the end of the queue.

    The caller must have the right to write. Consecutive uploads to one project are recorded as one ingest run.
    """
    _remove_stale_files(folder, project)
    await uploads.resume(project)
    ends_at = monotonic() + _TURN_SECONDS
    last, run = None, Run()
    async with AsyncExitStack() as recording:
        while (project is None or monotonic() < ends_at) and (batch := await _claim_batch(uploads, project)):
            upload, unfinished = batch[0][0], [upload for upload, _ in batch]
            try:
                if last is None or (upload.project, upload.kind) != (last.project, last.kind):
                    await recording.aclose()
                    run = Run(stage="reading")
                    if upload.kind == "ingest":
                        await recording.enter_async_context(record_run(run, upload.project, engines.ingests))
                run.total = run.done + await _count_waiting(uploads, upload)
                try:
                    errors = await _process(batch, run, projects, engines, recipe, folder)
                except OtherModel as mismatch:  # a retry would not help
                    errors = [str(mismatch)] * len(batch)
                for error in errors:
                    await uploads.finish(unfinished[0].id, error=error)
                    del unfinished[0]
            except CitewellError:
                await _put_back(uploads, unfinished)
                raise
            except asyncio.CancelledError:
                for left in unfinished:
                    await uploads.release(left.id)
                raise
            last = upload
            for (done, _), error in zip(batch, errors, strict=True):
                run.done += 1
                run.errors.extend([f"{done.path}: {error}"] if error else [])
                yield done, error


async def _put_back(uploads: Uploads, unfinished: Sequence[Upload]) -> None:
    """Undo claims. A database that was restarted meanwhile is waited for: only crashes of readers are attempts."""
    pauses = iter(_RETRY_SECONDS)
    for upload in unfinished:
        while True:
            try:
                await uploads.release(upload.id)
                break
            except StoreUnavailable:
                if (seconds := next(pauses, None)) is None:
                    raise
                await asyncio.sleep(seconds)


async def _claim_batch(uploads: Uploads, project: UUID | None) -> list[tuple[Upload, bytes]]:
    """The next upload, with those after it that can be indexed together; empty if none is waiting.

    One on which a worker died comes alone: if it kills another one, only its own attempts are used up.
    """
    batch: list[tuple[Upload, bytes]] = []
    claimed = await _claim_next(uploads, project)
    while claimed:
        batch.append(claimed)
        first, size = batch[0][0], sum(upload.size for upload, _ in batch)
        if first.kind != "ingest" or first.attempts > 1 or len(batch) == _MAX_BATCH or size > _MAX_BATCH_BYTES:
            break
        try:
            claimed = await _claim_next(uploads, first.project.id, only_new=True)
        except BaseException:
            for upload, _ in batch:
                await uploads.release(upload.id)
            raise
    return batch


async def _claim_next(uploads: Uploads, project: UUID | None, *, only_new: bool = False) -> tuple[Upload, bytes] | None:
    """Claim the next upload. If cancelled meanwhile, release what the database may have handed out already."""
    claim = asyncio.ensure_future(uploads.claim(project, only_new=only_new))
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
    batch: Sequence[tuple[Upload, bytes]],
    run: Run,
    projects: Projects,
    engines: IngestEngines,
    recipe: Recipe,
    folder: Path,
) -> list[str | None]:
    """Index documents, or delete one; returns for each the error if it failed."""
    upload = batch[0][0]
    match upload.kind:
        case "ingest":
            if upload.attempts > _MAX_ATTEMPTS:
                known = await engines.library_writer.known_documents(upload.project)
                note = KEPT_VERSION if upload.path in known else ""
                return [f"its reader crashed on it; the file is probably broken{note}"]
            with ExitStack() as written:
                files = [
                    SourceFile(written.enter_context(_written_to_file(one, content, folder)), one.path, None)
                    for one, content in batch
                ]
                result = await ingest_files(files, project=upload.project, engines=engines, recipe=recipe)
            run.files += result.files_processed
            run.chunks += result.chunks_created
            return [_error_of(one.path, result.errors) for one, _ in batch]
        case "delete":
            if upload.attempts > _MAX_ATTEMPTS:
                return ["it could not be removed"]
            if upload.path:
                await _delete_document(upload, engines)
            else:
                await remove_project(upload.project, projects=projects, engines=engines)
            return [None]
        case never:
            assert_never(never)


def _error_of(path: str, errors: Sequence[str]) -> str | None:
    return next((error.removeprefix(f"{path}: ") for error in errors if error.startswith(f"{path}: ")), None)


async def _delete_document(upload: Upload, engines: IngestEngines) -> None:
    if upload.path in await engines.library_writer.known_documents(upload.project):
        await remove_documents([upload.document_id], engines=engines)


@contextmanager
def _written_to_file(upload: Upload, content: bytes, folder: Path) -> Iterator[Path]:
    """The upload's bytes as a file, deleted at the end of the context."""
    location = folder / f"{upload.project.id}.{upload.id}.upload"
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


def _remove_stale_files(folder: Path, project: UUID | None) -> None:
    """Remove files that a worker that died left behind; those of other projects may be in use."""
    for file in folder.glob(f"{project}.*.upload" if project else "*.upload"):
        file.unlink(missing_ok=True)
