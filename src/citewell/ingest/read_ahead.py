"""Read documents ahead of the embedder: in a thread for a few pages, in processes of their own for many.

A process of its own also means that a file which crashes its parser costs one line of errors, not the run.
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

from citewell.errors import UnreadableFile
from citewell.ingest.chunk import ChunkSize, chunk
from citewell.ingest.parse import fingerprint, parse, read_bytes
from citewell.ingest.site_paths import part_of, url_of
from citewell.ingest.walk import SourceFile
from citewell.models import Chunk, Document, Project, document_id

_WORTH_PROCESSES = 4_000_000  # bytes; starting one costs about half a second
_PARSERS_THAT_CRASH = (".pdf",)  # native code: a hostile file may end the process


@dataclass(frozen=True, slots=True)
class Recipe:
    """How documents are read and cut."""

    size: ChunkSize
    base_url: str | None = None

    def fingerprint(self, file: SourceFile, content: bytes) -> str:
        cut = f"{self.size.smallest}:{self.size.largest}:{self.size.overlap}"
        return fingerprint(content, f"{cut}:{self.base_url or ''}:{part_of(file.root, file.path)}")


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    """A document as it was read."""

    document: Document
    chunks: list[Chunk]
    warnings: list[str]


def read_document(file: SourceFile, project: Project, recipe: Recipe) -> ChunkedDocument:
    content = read_bytes(file.location)
    manuscript = parse(file.path, content)
    identity = document_id(project, file.path)
    url = url_of(recipe.base_url, file.path, slug=manuscript.slug) if recipe.base_url else None
    chunks, warnings = chunk(manuscript, document_id=identity, source=file.path, size=recipe.size, url=url)
    if not chunks:
        warnings.append(f"{file.path}: nothing to read in it")  # a page that only imports another, say
    document = Document(
        id=identity,
        path=file.path,
        title=manuscript.title,
        text=manuscript.text,
        fingerprint=recipe.fingerprint(file, content),
        part=part_of(file.root, file.path),
        url=url,
        root=str(file.root) if file.root else "",
    )
    return ChunkedDocument(document, chunks, warnings)


async def read_ahead(
    files: Sequence[SourceFile], *, project: Project, recipe: Recipe
) -> AsyncIterator[tuple[SourceFile, ChunkedDocument | UnreadableFile]]:
    """Each file with what was read of it, in order, a few of them ahead of whoever asks."""
    loop = asyncio.get_running_loop()
    with _readers(files) as (executor, workers):
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
                # One of those in flight ended its process. Each gets a process of its own, so that only it fails.
                suspects = [file, *(other for other, _ in ahead), *waiting]
                async for suspect in _one_by_one(suspects, project=project, recipe=recipe):
                    yield suspect
                return


async def _one_by_one(
    files: Iterable[SourceFile], *, project: Project, recipe: Recipe
) -> AsyncIterator[tuple[SourceFile, ChunkedDocument | UnreadableFile]]:
    loop = asyncio.get_running_loop()
    for file in files:
        with _processes(1) as executor:
            try:
                yield file, await loop.run_in_executor(executor, read_document, file, project, recipe)
            except UnreadableFile as error:
                yield file, error
            except BrokenProcessPool:
                yield file, UnreadableFile("its reader crashed on it; the file is probably broken")


@contextmanager
def _readers(files: Sequence[SourceFile]) -> Iterator[tuple[Executor, int]]:
    bulk = sum(_size(file) for file in files)
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    risky = any(file.path.lower().endswith(_PARSERS_THAT_CRASH) for file in files)
    if bulk < _WORTH_PROCESSES and not risky:
        with ThreadPoolExecutor(1) as thread:
            yield thread, 1
    else:
        with _processes(workers) as pool:
            yield pool, workers


@contextmanager
def _processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_begin_worker, initargs=(os.getpid(),)
    )
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin_worker(parent: int) -> None:
    """A worker leaves Ctrl-C to its parent, and does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _size(file: SourceFile) -> int:
    try:
        return file.location.stat().st_size
    except OSError:
        return 0
