"""The ingest flow: walk, load, chunk, compare with what is known, embed what is new, publish.

Readers keep the old generation until the new one is complete. The ledger is entered first and names the
generation; a run that dies between that and the switch is finished by the next. Nothing is held longer
than a batch: documents are staged as they are read.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from uuid import UUID

import numpy as np

from citewell.errors import ModelError, OtherModel, UnreadableFile
from citewell.ingest.plan import Plan, plan
from citewell.ingest.read_ahead import ChunkedDocument, Recipe, read_ahead
from citewell.ingest.run_record import Progress, Run, record_run
from citewell.ingest.walk import SourceFile, walk
from citewell.models import Chunk, IngestResult, Preview, Project, document_id
from citewell.ports import (
    Audit,
    Change,
    Embeddable,
    Embedder,
    Embedding,
    Entry,
    IndexBuilder,
    Ingests,
    Library,
    LibraryWriter,
    VectorCache,
)
from citewell.similarity_scale import PAIRS, SimilarityScale, measure_scale

_log = logging.getLogger("citewell.ingest")

_BATCH = 32  # chunks embedded, remembered and staged together
_HELD_CHARACTERS = 4_000_000  # of documents read but not yet staged


def _silently(done: int, total: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class IngestEngines:
    """What an ingest writes with."""

    library: Library
    ledger: LibraryWriter
    audit: Audit
    cache: VectorCache
    embedder: Embedder
    shelf: IndexBuilder
    ingests: Ingests


async def ingest(
    paths: Sequence[Path],
    *,
    project: Project,
    engines: IngestEngines,
    recipe: Recipe,
    prune: bool = False,
    everything: bool = False,
    reembed: bool = False,
    progress: Progress,
    again: Progress = _silently,
) -> IngestResult:
    """Bring the project's index up to date with the files under `paths`.

    An index of another embedding model is refused, unless all that the library holds is to be embedded anew; `again`
    says how many chunks that is. `progress` counts files.
    """
    run = Run()
    async with record_run(run, project, engines.ingests):
        todo = await _todo(paths, project, engines, recipe, prune=prune, everything=everything)
        return await _carry_out(
            todo,
            run,
            project=project,
            engines=engines,
            recipe=recipe,
            reembed=reembed,
            progress=run.counting("reading", progress),
            again=run.counting("embedding", again),
        )


async def ingest_files(
    files: Sequence[SourceFile], *, project: Project, engines: IngestEngines, recipe: Recipe
) -> IngestResult:
    """Take in these files and leave all else as it is. Nothing is walked: a path need not say where its file lies."""
    todo = replace(plan(files, await engines.ledger.known_documents(project), recipe, walked=()), vanished=())
    return await _carry_out(todo, Run(), project=project, engines=engines, recipe=recipe)


async def _carry_out(
    todo: Plan,
    run: Run,
    *,
    project: Project,
    engines: IngestEngines,
    recipe: Recipe,
    reembed: bool = False,
    progress: Progress = _silently,
    again: Progress = _silently,
) -> IngestResult:
    began = monotonic()
    removed = [document_id(project, path) for path in todo.vanished]
    run.errors.extend(todo.errors)
    run.files = len(todo.unchanged)
    base = await _intact_generation(engines, reembed=reembed)
    if todo.to_read or removed or base is None:
        rest = again if base is None else None
        steps = _changes(todo, removed, project, engines, recipe, run, rest=rest, progress=progress)
        await _publish(steps, base=base, removed=removed, engines=engines)
    return IngestResult(
        files_processed=run.files,
        chunks_created=run.chunks,
        errors=tuple(run.errors),
        warnings=tuple(run.warnings),
        files_unchanged=len(todo.unchanged),
        files_removed=len(removed),
        chunks_embedded=run.embedded,
        seconds=monotonic() - began,
    )


async def preview(
    paths: Sequence[Path],
    *,
    project: Project,
    engines: IngestEngines,
    recipe: Recipe,
    prune: bool = False,
    everything: bool = False,
    reembed: bool = False,
) -> Preview:
    """What `ingest` would do with the same arguments; reads everything, writes nothing."""
    anew = await _base(engines, reembed=reembed) is None
    todo = await _todo(paths, project, engines, recipe, prune=prune, everything=everything)
    found = Preview(
        added=[file.path for file in todo.added],
        changed=[file.path for file in todo.changed],
        unchanged=[file.path for file in todo.unchanged],
        removed=list(todo.vanished),
        errors=list(todo.errors),
    )
    for path in todo.vanished:
        found.chunks_removed += len(await _chunk_ids(document_id(project, path), engines))
    wanted: set[str] = set()
    read = {document_id(project, path) for path in todo.vanished}
    async for file, outcome in read_ahead(todo.to_read, project=project, recipe=recipe):
        if isinstance(outcome, UnreadableFile):
            found.errors.append(f"{file.path}: {outcome}")
            continue
        before, after = await _chunk_ids(outcome.document.id, engines), {one.id for one in outcome.chunks}
        found.chunks_added += len(after - before)
        found.chunks_removed += len(before - after)
        found.chunks_unchanged += len(before & after)
        keys = [one.embedding_key for one in outcome.chunks]
        wanted |= await _unknown(keys, engines)
        read.add(outcome.document.id)
    if anew:
        async for batch in engines.library.chunks():
            wanted |= await _unknown([one.embedding_key for _, one in batch if one.document_id not in read], engines)
    found.embeddings_needed = len(wanted)
    return found


async def _unknown(keys: Sequence[str], engines: IngestEngines) -> set[str]:
    """Those that were never embedded with this model."""
    return set(keys) - (await engines.cache.load(keys, model=engines.embedder.model)).keys()


async def _todo(
    paths: Sequence[Path], project: Project, engines: IngestEngines, recipe: Recipe, *, prune: bool, everything: bool
) -> Plan:
    """What there is to do. Nothing is pruned while a path that was named cannot be walked: a typo is no wish."""
    known = await engines.ledger.known_documents(project)
    files, errors = walk(paths, known_roots={one.root for one in known.values() if one.root}, everything=everything)
    todo = plan(files, known, recipe, walked=paths)
    if prune and errors and todo.vanished:
        errors.append("nothing was pruned, because not everything that was named could be looked at")
    vanished = todo.vanished if prune and not errors else ()
    return replace(todo, vanished=vanished, errors=(*errors, *todo.errors))


async def remove_documents(documents: Sequence[UUID], *, engines: IngestEngines) -> None:
    """Remove documents, from the library and the index alike."""
    base = await _intact_generation(engines)
    without = frozenset(documents)
    steps = _removal(documents) if base is not None else _library(engines, Run(), without=without)
    await _publish(steps, base=base, removed=documents, engines=engines)


async def rebuild_index(engines: IngestEngines) -> None:
    """Make the index anew from the library; only what was never embedded is."""
    await _base(engines, reembed=False)
    steps = _library(engines, Run(), without=frozenset())
    await _publish(steps, base=None, removed=[], engines=engines)


async def _publish(
    changes: AsyncIterator[Change], *, base: int | None, removed: Sequence[UUID], engines: IngestEngines
) -> None:
    await engines.ledger.discard()  # what a run that died had staged
    generation = await engines.shelf.stage(changes, base=base)
    await engines.ledger.commit(remove=removed, generation=generation)
    engines.shelf.publish(generation)


async def _intact_generation(engines: IngestEngines, *, reembed: bool = False) -> int | None:
    """The generation that shows the library as it is, published if a run died just before that."""
    generation = await _base(engines, reembed=reembed)
    if generation is not None:
        engines.shelf.publish(generation)
    return generation


async def _base(engines: IngestEngines, *, reembed: bool) -> int | None:
    """What can be built on: nothing yet, or lost, or of another model, which takes a wish. It may cost money and time,
    and readers who are configured for the old one are shut out."""
    generation = await engines.library.generation()
    if generation is None:
        return None
    made = engines.shelf.embedding_model_of(generation)
    if made not in (None, engines.embedder.model) and not reembed:
        raise OtherModel(made=str(made), configured=engines.embedder.model)
    return generation if engines.shelf.has_generation(generation) else None


async def _changes(
    todo: Plan,
    removed: Sequence[UUID],
    project: Project,
    engines: IngestEngines,
    recipe: Recipe,
    run: Run,
    *,
    rest: Progress | None,
    progress: Progress,
) -> AsyncIterator[Change]:
    """From the base to the files as they are: each document's old chunks go where its new ones come.

    With nothing to build on (a first run, a lost index, another model) the `rest` comes from the library.
    """
    yield Change(remove=removed)
    pending: list[tuple[UUID, Chunk]] = []
    held: list[ChunkedDocument] = []
    done = 0
    async for file, outcome in read_ahead(todo.to_read, project=project, recipe=recipe):
        progress(done, len(todo.to_read))
        done += 1
        if isinstance(outcome, UnreadableFile):
            run.errors.append(f"{file.path}: {outcome}")  # what was readable before stays
            continue
        held.append(outcome)
        run.read.add(outcome.document.id)
        run.files += 1
        run.chunks += len(outcome.chunks)
        run.warnings.extend(outcome.warnings)
        yield Change(remove=[outcome.document.id])
        pending.extend((project.id, one) for one in outcome.chunks)
        while len(pending) >= _BATCH:
            yield Change(entries=await _embedded(pending[:_BATCH], engines, run))
            del pending[:_BATCH]
        if sum(len(one.document.text) for one in held) > _HELD_CHARACTERS:
            await _stage(held, project, engines)
    await _stage(held, project, engines)
    if pending:
        yield Change(entries=await _embedded(pending, engines, run))
    progress(done, len(todo.to_read))
    if rest is not None:
        async for change in _library(engines, run, without=frozenset(run.read.union(removed)), progress=rest):
            yield change
    run.stage = "publishing"


async def _removal(documents: Sequence[UUID]) -> AsyncIterator[Change]:
    yield Change(remove=documents)


async def _library(
    engines: IngestEngines, run: Run, *, without: frozenset[UUID], progress: Progress = _silently
) -> AsyncIterator[Change]:
    """Everything the library holds, but for some documents."""
    pending: list[tuple[UUID, Chunk]] = []
    total = 0
    if progress is not _silently:
        async for stored in engines.library.chunks():
            total += sum(one.document_id not in without for _, one in stored)
    done = 0
    async for stored in engines.library.chunks():
        pending.extend((owner, one) for owner, one in stored if one.document_id not in without)
        while len(pending) >= _BATCH:
            progress(done, total)
            yield Change(entries=await _embedded(pending[:_BATCH], engines, run))
            del pending[:_BATCH]
            done += _BATCH
    if pending:
        progress(done, total)
        yield Change(entries=await _embedded(pending, engines, run))
    progress(total, total)
    if not engines.embedder.fitted:
        yield Change(scale=await _scale(engines.embedder))


async def _scale(embedder: Embedder) -> SimilarityScale | None:
    """What the model's cosines are worth, by questions with known answers."""
    answers = await embedder.embed_passages([Embeddable("", answer) for _, answer in PAIRS])
    questions = await embedder.embed_queries([question for question, _ in PAIRS])
    found = measure_scale(questions, np.array([one.vectors[0] for one in answers]))
    if found is None:
        _log.warning("%s does not tell answers from other texts; its answers are worth little", embedder.model)
    return found


async def _stage(held: list[ChunkedDocument], project: Project, engines: IngestEngines) -> None:
    await engines.ledger.stage(project, [(one.document, one.chunks) for one in held])
    held.clear()


async def _embedded(chunks: Sequence[tuple[UUID, Chunk]], engines: IngestEngines, run: Run) -> list[Entry]:
    """The chunks with their embeddings: remembered ones where the same words were embedded before."""
    wanted = {one.embedding_key: Embeddable(one.label, one.text) for _, one in chunks}
    known = await engines.cache.load(list(wanted), model=engines.embedder.model)
    if missing := [key for key in wanted if key not in known]:
        made = await _made([wanted[key] for key in missing], engines, run)
        fresh = dict(zip(missing, made, strict=True))
        await engines.cache.save(fresh, model=engines.embedder.model)
        known |= fresh
        run.embedded += len(fresh)
    return [Entry(owner, one, known[one.embedding_key]) for owner, one in chunks]


async def _made(passages: Sequence[Embeddable], engines: IngestEngines, run: Run) -> list[Embedding]:
    try:
        return await engines.embedder.embed_passages(passages)
    except ModelError as error:
        if not run.embedded:
            raise
        raise ModelError(
            f"{error}; nothing has changed for readers, and the {run.embedded} chunks that were embedded are "
            "remembered: run the same again to go on from there"
        ) from error


async def _chunk_ids(document: UUID, engines: IngestEngines) -> set[str]:
    return {one.id async for batch in engines.library.chunks(document) for _, one in batch}
