"""The ingest flow: walk → compare with the index → parse → chunk → embed what is new → publish.

Readers use the old index generation until the new one is complete. The library is committed first and names the new
generation; if a run dies between the commit and the switch, the next run finishes it. Documents are staged as they
are read, so at most a few megabytes of text are in memory.
"""

import logging
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from uuid import UUID

from citewell.errors import OtherModel, UnreadableFile
from citewell.ingest.embed import ChunkEmbedder, ProjectChunk, take_full_batches
from citewell.ingest.plan import KEPT_VERSION, Plan, compare
from citewell.ingest.read_ahead import ChunkedDocument, Recipe, read_ahead
from citewell.ingest.run_record import Progress, Run, record_run
from citewell.ingest.walk import FileRules, SourceFile, walk
from citewell.models import IngestResult, Project, document_id
from citewell.ports import (
    Audit,
    Change,
    Embedder,
    IndexBuilder,
    Ingests,
    Library,
    LibraryWriter,
    Projects,
    VectorCache,
)

_log = logging.getLogger("citewell.ingest")

_MAX_UNSTAGED_CHARACTERS = 4_000_000  # of documents that are read but not yet staged


def _no_progress(done: int, total: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class IngestEngines:
    """The stores and the embedder that an ingest works with."""

    library: Library
    library_writer: LibraryWriter
    audit: Audit
    cache: VectorCache
    embedder: Embedder
    index_builder: IndexBuilder
    ingests: Ingests


async def ingest(
    paths: Sequence[Path],
    *,
    project: Project,
    engines: IngestEngines,
    recipe: Recipe,
    prune: bool = False,
    rules: FileRules | None = None,
    reembed: bool = False,
    progress: Progress,
    reembed_progress: Progress = _no_progress,
) -> IngestResult:
    """Bring the project's index up to date with the files under `paths`.

    Raises OtherModel for an index that another embedding model made, unless `reembed` allows to embed the whole
    library again. `progress` counts files; `reembed_progress` counts the library's chunks that are embedded again.
    """
    run = Run()
    async with record_run(run, project, engines.ingests):
        plan = await plan_ingest(paths, project, engines, recipe, prune=prune, rules=rules)
        update = _IndexUpdate(
            *(project, engines, recipe, run),
            progress=run.counting("reading", progress),
            reembed_progress=run.counting("embedding", reembed_progress),
        )
        return await update.apply(plan, reembed=reembed)


async def ingest_files(
    files: Sequence[SourceFile], *, project: Project, engines: IngestEngines, recipe: Recipe
) -> IngestResult:
    """Index exactly these files and leave all other documents as they are. No folder is walked."""
    plan = compare(files, await engines.library_writer.known_documents(project), recipe, walked=())
    return await _IndexUpdate(project, engines, recipe, Run()).apply(replace(plan, vanished=()))


async def remove_documents(documents: Sequence[UUID], *, engines: IngestEngines) -> None:
    """Remove documents from the library and from the index."""
    base = await _publish_intact_generation(engines, reembed=False)
    if base is not None:
        changes = _removal_changes(documents)
    else:
        changes = _library_changes(engines, ChunkEmbedder(engines.embedder, engines.cache), without=documents)
    await _publish(changes, base=base, removed=documents, engines=engines)


async def remove_project(project: Project, *, projects: Projects, engines: IngestEngines) -> None:
    """Remove a project: its documents from the library and the index, then its sessions and everything else of it."""
    known = await engines.library_writer.known_documents(project)
    if documents := [document_id(project, path) for path in known]:
        await remove_documents(documents, engines=engines)
    await projects.delete(project.id)


async def rebuild_index(engines: IngestEngines) -> None:
    """Build the index again from the library. Only chunks that are not in the cache are embedded."""
    await engines.index_builder.publish(await build_index(engines))


async def build_index(engines: IngestEngines) -> int:
    """The same without publishing it: the library names the new generation, but readers use the old one."""
    generation = await engines.library.generation()
    if generation is not None and (model := await _other_model(engines, generation)):
        raise OtherModel(made=model, configured=engines.embedder.model)
    changes = _library_changes(engines, ChunkEmbedder(engines.embedder, engines.cache), without=())
    return await _commit(changes, base=None, removed=[], engines=engines)


async def plan_ingest(
    paths: Sequence[Path],
    project: Project,
    engines: IngestEngines,
    recipe: Recipe,
    *,
    prune: bool,
    rules: FileRules | None,
) -> Plan:
    """Walk the paths and compare the files with what is indexed.

    If one of the paths cannot be walked, nothing is pruned: a typo must not delete documents.
    """
    known = await engines.library_writer.known_documents(project)
    known_roots = {document.root for document in known.values() if document.root}
    found = walk(paths, known_roots=known_roots, rules=rules)
    plan = compare(found.files, known, recipe, walked=paths)
    errors = found.errors
    if prune and errors and plan.vanished:
        errors.append("nothing was pruned, because some of the given paths could not be read")
    vanished, not_pruned = (plan.vanished, ()) if prune and not errors else ((), plan.vanished)
    return replace(
        plan,
        vanished=vanished,
        not_pruned=not_pruned,
        skipped=tuple(found.skipped),
        errors=(*errors, *plan.errors),
    )


async def usable_generation(engines: IngestEngines, *, reembed: bool) -> int | None:
    """The index generation that the next one can be built on; None if there is none and all must be indexed again.

    Raises OtherModel for a generation of another embedding model unless `reembed` is set: embedding everything again
    may cost time and money, and servers that are configured for the old model stop answering.
    """
    generation = await engines.library.generation()
    if generation is None:
        return None
    if model := await _other_model(engines, generation):
        if not reembed:
            raise OtherModel(made=model, configured=engines.embedder.model)
        return None
    fault = await engines.index_builder.fault_of(generation)
    if fault:
        _log.warning("generation %s of the index %s; the index is built anew from the library", generation, fault)
    return None if fault else generation


async def _other_model(engines: IngestEngines, generation: int) -> str | None:
    """The embedding model of a generation, if it is not the configured one."""
    model = await engines.index_builder.embedding_model_of(generation)
    return None if model == engines.embedder.model else model


class _IndexUpdate:
    """One run over a plan: parse, chunk and embed its files, then publish the new generation."""

    def __init__(
        self,
        project: Project,
        engines: IngestEngines,
        recipe: Recipe,
        run: Run,
        *,
        progress: Progress = _no_progress,
        reembed_progress: Progress = _no_progress,
    ) -> None:
        self._project = project
        self._engines = engines
        self._recipe = recipe
        self._run = run
        self._progress = progress
        self._reembed_progress = reembed_progress
        self._embedder = ChunkEmbedder(engines.embedder, engines.cache)
        self._replaced_paths: set[str] = set()
        self._updated_documents: set[UUID] = set()
        self._unstaged: list[ChunkedDocument] = []

    async def apply(self, plan: Plan, *, reembed: bool = False) -> IngestResult:
        started = monotonic()
        run = self._run
        removed = [document_id(self._project, path) for path in plan.vanished]
        run.errors.extend(plan.errors)
        run.files = len(plan.unchanged)
        self._replaced_paths.update(file.path for file in plan.changed)
        base = await _publish_intact_generation(self._engines, reembed=reembed)
        if plan.to_read or removed or base is None:
            changes = self._changes(plan.to_read, removed, from_scratch=base is None)
            await _publish(changes, base=base, removed=removed, engines=self._engines)
        return IngestResult(
            files_processed=run.files,
            chunks_created=run.chunks,
            errors=tuple(run.errors),
            warnings=tuple(run.warnings),
            files_unchanged=len(plan.unchanged),
            files_removed=len(removed),
            files_not_pruned=len(plan.not_pruned),
            skipped=plan.skipped,
            chunks_embedded=self._embedder.embedded_chunks,
            seconds=monotonic() - started,
        )

    async def _changes(
        self, files: Sequence[SourceFile], removed: Sequence[UUID], *, from_scratch: bool
    ) -> AsyncIterator[Change]:
        """The steps from the base generation to the files as they are now.

        `from_scratch` (a first run, a lost index, another model) adds all other documents of the library.
        """
        yield Change(remove=removed)
        async for change in self._file_changes(files):
            yield change
        if from_scratch:
            without = self._updated_documents.union(removed)
            progress = self._reembed_progress
            async for change in _library_changes(self._engines, self._embedder, without=without, progress=progress):
                yield change
        self._run.stage = "publishing"

    async def _file_changes(self, files: Sequence[SourceFile]) -> AsyncIterator[Change]:
        """Parse, chunk and embed each file: its old chunks are removed, the new ones added."""
        pending: list[ProjectChunk] = []
        async for document in self._read_documents(files):
            yield Change(remove=[document.document.id])
            pending.extend((self._project.id, chunk) for chunk in document.chunks)
            for batch in take_full_batches(pending):
                yield Change(entries=await self._embedder.embed(batch))
            self._unstaged.append(document)
            if sum(len(unstaged.document.text) for unstaged in self._unstaged) > _MAX_UNSTAGED_CHARACTERS:
                await self._stage_documents()
        await self._stage_documents()
        if pending:
            yield Change(entries=await self._embedder.embed(pending))
        self._progress(len(files), len(files))

    async def _read_documents(self, files: Sequence[SourceFile]) -> AsyncIterator[ChunkedDocument]:
        """Parse and chunk the files. A file that cannot be read is an error; its earlier version stays indexed."""
        run, done = self._run, 0
        async for file, outcome in read_ahead(files, project=self._project, recipe=self._recipe):
            self._progress(done, len(files))
            done += 1
            if isinstance(outcome, UnreadableFile):
                note = KEPT_VERSION if file.path in self._replaced_paths else ""
                run.errors.append(f"{file.path}: {outcome}{note}")
                continue
            self._updated_documents.add(outcome.document.id)
            run.files += 1
            run.chunks += len(outcome.chunks)
            run.warnings.extend(outcome.warnings)
            yield outcome

    async def _stage_documents(self) -> None:
        documents = [(document.document, document.chunks) for document in self._unstaged]
        await self._engines.library_writer.stage(self._project, documents)
        self._unstaged.clear()


async def _removal_changes(documents: Sequence[UUID]) -> AsyncIterator[Change]:
    yield Change(remove=documents)


async def _library_changes(
    engines: IngestEngines,
    embedder: ChunkEmbedder,
    *,
    without: Collection[UUID],
    progress: Progress = _no_progress,
) -> AsyncIterator[Change]:
    """Embed and add every chunk of the library, except those of some documents."""
    total = 0
    if progress is not _no_progress:
        async for stored in engines.library.chunks():
            total += sum(chunk.document_id not in without for _, chunk in stored)
    done = 0
    pending: list[ProjectChunk] = []
    async for stored in engines.library.chunks():
        pending.extend((project, chunk) for project, chunk in stored if chunk.document_id not in without)
        for batch in take_full_batches(pending):
            progress(done, total)
            yield Change(entries=await embedder.embed(batch))
            done += len(batch)
    if pending:
        progress(done, total)
        yield Change(entries=await embedder.embed(pending))
    progress(total, total)
    if not engines.embedder.fitted:
        yield Change(scale=await embedder.measure_scale())


async def _publish(
    changes: AsyncIterator[Change], *, base: int | None, removed: Sequence[UUID], engines: IngestEngines
) -> None:
    """Build the next generation, commit the library, and switch readers to the new generation."""
    await engines.index_builder.publish(await _commit(changes, base=base, removed=removed, engines=engines))


async def _commit(
    changes: AsyncIterator[Change], *, base: int | None, removed: Sequence[UUID], engines: IngestEngines
) -> int:
    """Build the next generation and commit the library; returns the generation, which readers don't use yet."""
    await engines.library_writer.discard()  # what a run that died had staged
    generation = await engines.index_builder.stage(changes, base=base)
    await engines.library_writer.commit(remove=removed, generation=generation)
    return generation


async def _publish_intact_generation(engines: IngestEngines, *, reembed: bool) -> int | None:
    """The usable generation. It is published again, in case a run died just before it switched."""
    generation = await usable_generation(engines, reembed=reembed)
    if generation is not None:
        await engines.index_builder.publish(generation)
    return generation
