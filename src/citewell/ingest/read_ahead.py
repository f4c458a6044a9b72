"""Parse and chunk documents ahead of the embedder: few files in a thread, many in worker processes.

A file that crashes its parser ends only a worker process: it becomes one error, and the run continues.
"""

import asyncio
import os
import signal
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TypedDict
from uuid import UUID

from citewell.errors import UnreadableFile
from citewell.ingest.chunk import ChunkSize, chunk, keep_whole
from citewell.ingest.parse import fingerprint, parse, read_bytes
from citewell.ingest.readers.markdown import Includes
from citewell.ingest.site_paths import part_of, url_of
from citewell.ingest.walk import SourceFile
from citewell.models import Chunk, Document, Project, document_id

_MIN_BYTES_FOR_PROCESSES = 4_000_000  # starting a process takes about half a second
_CRASHABLE_SUFFIXES = (".pdf",)  # parsed by native code: a hostile file may end the process


@dataclass(frozen=True, slots=True)
class Recipe:
    """How documents are parsed and chunked."""

    size: ChunkSize
    base_url: str | None = None
    whole_documents: bool = False
    """Whether a document that is smaller than the smallest chunk is stored whole, without chunks."""

    def fingerprint(self, file: SourceFile, content: bytes) -> str:
        """Of the file's bytes and of everything else that its chunks depend on."""
        sizes = f"{self.size.smallest}:{self.size.largest}:{self.size.overlap}{':whole' * self.whole_documents}"
        included = Includes(file.location, file.root).digest(content)
        return fingerprint(content, f"{sizes}:{self.base_url or ''}:{part_of(file.root, file.path)}{included}")


class _Place(TypedDict):
    """What the chunks of a document have in common."""

    document_id: UUID
    source: str
    size: ChunkSize
    url: str | None


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    """A document after parsing, with its chunks."""

    document: Document
    chunks: list[Chunk]
    warnings: list[str]


def read_document(file: SourceFile, project: Project, recipe: Recipe) -> ChunkedDocument:
    """Parse and chunk one file."""
    content = read_bytes(file.location)
    parsed = parse(file.path, content, includes=Includes(file.location, file.root))
    identity = document_id(project, file.path)
    url = url_of(recipe.base_url, file.path, slug=parsed.slug) if recipe.base_url else None
    place = _Place(document_id=identity, source=file.path, size=recipe.size, url=url)
    whole = keep_whole(parsed, **place) if recipe.whole_documents else None
    chunks, warnings = ([whole], []) if whole else chunk(parsed, **place)
    if recipe.whole_documents and chunks and not whole:
        limit = recipe.size.smallest
        warnings.append(f"{file.path}: chunked, because only a document of less than {limit} tokens is stored whole")
    warnings.extend(f"{file.path}: {warning}" for warning in parsed.warnings)
    if not chunks:
        warnings.append(f"{file.path}: nothing to read in it")  # for example a page that only imports another
    document = Document(
        id=identity,
        path=file.path,
        title=parsed.title,
        text=parsed.text,
        fingerprint=recipe.fingerprint(file, content),
        part=part_of(file.root, file.path),
        url=url,
        root=str(file.root) if file.root else "",
    )
    return ChunkedDocument(document, chunks, warnings)


async def read_ahead(
    files: Sequence[SourceFile], *, project: Project, recipe: Recipe
) -> AsyncIterator[tuple[SourceFile, ChunkedDocument | UnreadableFile]]:
    """Parse and chunk the files in order, a few of them ahead of the consumer. Yields each file with its outcome."""
    loop = asyncio.get_running_loop()
    with _start_executor(files) as (executor, workers):
        waiting = deque(files)
        ahead: deque[tuple[SourceFile, asyncio.Future[ChunkedDocument]]] = deque()
        while waiting or ahead:
            while waiting and len(ahead) < 4 * workers:
                file = waiting.popleft()
                ahead.append((file, loop.run_in_executor(executor, read_document, file, project, recipe)))
            file, future = ahead.popleft()
            try:
                yield file, await future
            except UnreadableFile as error:
                yield file, error
            except BrokenProcessPool:
                # One of the files in flight crashed its process. Each now gets its own process, so only that one fails.
                suspects = [file, *(other for other, _ in ahead), *waiting]
                async for suspect in _read_in_own_processes(suspects, project=project, recipe=recipe):
                    yield suspect
                return


async def _read_in_own_processes(
    files: Iterable[SourceFile], *, project: Project, recipe: Recipe
) -> AsyncIterator[tuple[SourceFile, ChunkedDocument | UnreadableFile]]:
    """Parse and chunk each file in a new process."""
    loop = asyncio.get_running_loop()
    for file in files:
        with _process_pool(1) as executor:
            try:
                yield file, await loop.run_in_executor(executor, read_document, file, project, recipe)
            except UnreadableFile as error:
                yield file, error
            except BrokenProcessPool:
                yield file, UnreadableFile("its reader crashed on it; the file is probably broken")


@contextmanager
def _start_executor(files: Sequence[SourceFile]) -> Iterator[tuple[Executor, int]]:
    """A thread for a few small files, else one process per core; with the number of workers."""
    total_bytes = sum(_file_size(file) for file in files)
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    may_crash = any(file.path.lower().endswith(_CRASHABLE_SUFFIXES) for file in files)
    if total_bytes < _MIN_BYTES_FOR_PROCESSES and not may_crash:
        with ThreadPoolExecutor(1) as thread:
            yield thread, 1
    else:
        with _process_pool(workers) as pool:
            yield pool, workers


@contextmanager
def _process_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_start_worker, initargs=(os.getpid(),)
    )
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start_worker(parent: int) -> None:
    """Ignore Ctrl-C, which the parent handles, and exit when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch_parent() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch_parent, daemon=True).start()


def _file_size(file: SourceFile) -> int:
    try:
        return file.location.stat().st_size
    except OSError:
        return 0
