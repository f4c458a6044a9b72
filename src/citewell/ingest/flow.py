"""The ingest flow: walk, load, chunk, compare with what is known, embed what is new, publish.

Readers keep the old generation until the new one is complete. The library commits first and names the
generation; a run that dies between that and the switch is finished by the next.
"""

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from uuid import UUID

from citewell.errors import UnreadableFile
from citewell.ingest.chunk import ChunkSize, chunk
from citewell.ingest.load import fingerprint, load, read_bytes
from citewell.ingest.plan import Plan, plan
from citewell.ingest.walk import SourceFile, walk
from citewell.models import Chunk, Document, IngestResult, Project, document_id
from citewell.ports import Change, Embeddable, Embedder, Entry, Library, Shelf, VectorCache

_BATCH = 32  # chunks embedded, remembered and staged together

Progress = Callable[[int, int], None]
"""Called with files done and files to do."""


@dataclass(frozen=True, slots=True)
class Engines:
    """What an ingest writes with."""

    library: Library
    cache: VectorCache
    embedder: Embedder
    shelf: Shelf


@dataclass(slots=True)
class _Run:
    """What one run has gathered so far."""

    documents: list[tuple[Document, list[Chunk]]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    embedded: int = 0


async def ingest(
    paths: Sequence[Path],
    *,
    project: Project,
    engines: Engines,
    size: ChunkSize,
    prune: bool = False,
    progress: Progress,
) -> IngestResult:
    """Bring the project's index up to date with the files under `paths`."""
    began = monotonic()
    files, errors = walk(paths)
    known = await engines.library.fingerprints(project)
    todo = plan(files, known, size)
    vanished = todo.vanished if prune else ()
    run = _Run(errors=[*errors, *todo.errors])
    base = await _intact_generation(engines)
    if todo.read or vanished or base is None:
        removed = [document_id(project, path) for path in vanished]
        changes = _changes(
            todo, removed, project=project, engines=engines, size=size, base=base, run=run, progress=progress
        )
        generation = await engines.shelf.stage(changes, base=base)
        await engines.library.apply(project, documents=run.documents, remove=removed, generation=generation)
        engines.shelf.publish(generation)
    return IngestResult(
        files_processed=len(todo.unchanged) + len(run.documents),
        chunks_created=sum(len(chunks) for _, chunks in run.documents),
        errors=tuple(run.errors),
        warnings=tuple(run.warnings),
        files_unchanged=len(todo.unchanged),
        files_removed=len(vanished),
        chunks_embedded=run.embedded,
        seconds=monotonic() - began,
    )


async def _intact_generation(engines: Engines) -> int | None:
    """The generation that shows the library as it is, published if a run died just before that."""
    generation = await engines.library.generation()
    if generation is None or not engines.shelf.holds(generation):
        return None
    engines.shelf.publish(generation)
    return generation


async def _changes(
    todo: Plan,
    removed: Sequence[UUID],
    *,
    project: Project,
    engines: Engines,
    size: ChunkSize,
    base: int | None,
    run: _Run,
    progress: Progress,
) -> AsyncIterator[Change]:
    """From the base to the files as they are: each file's old chunks go where its new ones come."""
    yield Change(remove=removed)
    replaced = {document_id(project, file.path) for file in todo.read}
    pending: list[tuple[UUID, Chunk]] = []
    for done, file in enumerate(todo.read):
        progress(done, len(todo.read))
        try:
            document, chunks, warnings = _read(file, project=project, size=size)
        except UnreadableFile as error:
            run.errors.append(str(error))
            replaced.discard(document_id(project, file.path))  # what was readable before stays
            continue
        run.documents.append((document, chunks))
        run.warnings.extend(warnings)
        yield Change(remove=[document.id])
        pending.extend((project.id, one) for one in chunks)
        while len(pending) >= _BATCH:
            yield Change(entries=await _embedded(pending[:_BATCH], engines, run))
            del pending[:_BATCH]
    if pending:
        yield Change(entries=await _embedded(pending, engines, run))
    if base is None:
        # Nothing to build on (a first run, a lost index, another model): all else comes from the library.
        async for stored in engines.library.every_chunk():
            kept = [
                (owner, one)
                for owner, one in stored
                if one.document_id not in replaced and one.document_id not in removed
            ]
            yield Change(entries=await _embedded(kept, engines, run))
    progress(len(todo.read), len(todo.read))


def _read(file: SourceFile, *, project: Project, size: ChunkSize) -> tuple[Document, list[Chunk], list[str]]:
    content = read_bytes(file)
    manuscript = load(file, content)
    identity = document_id(project, file.path)
    chunks, warnings = chunk(manuscript, document_id=identity, source=file.path, size=size)
    document = Document(identity, file.path, manuscript.title, manuscript.text, fingerprint(content, size))
    return document, chunks, warnings


async def _embedded(chunks: Sequence[tuple[UUID, Chunk]], engines: Engines, run: _Run) -> list[Entry]:
    """The chunks with their embeddings: remembered ones where the same words were embedded before."""
    wanted = {_key(one): Embeddable(one.label, one.text) for _, one in chunks}
    known = await engines.cache.recall(list(wanted), model=engines.embedder.model)
    if missing := [key for key in wanted if key not in known]:
        made = await engines.embedder.embed_passages([wanted[key] for key in missing])
        fresh = dict(zip(missing, made, strict=True))
        await engines.cache.remember(fresh, model=engines.embedder.model)
        known |= fresh
        run.embedded += len(fresh)
    return [Entry(owner, one, known[_key(one)]) for owner, one in chunks]


def _key(one: Chunk) -> str:
    return hashlib.sha256(f"{one.label}\0{one.text}".encode()).hexdigest()
