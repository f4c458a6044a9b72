"""What an ingest would do, without doing it: reads every changed file, writes nothing."""

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from citewell.errors import UnreadableFile
from citewell.ingest.embed import ChunkEmbedder
from citewell.ingest.flow import IngestEngines, plan_ingest, usable_generation
from citewell.ingest.plan import Plan
from citewell.ingest.read_ahead import Recipe, read_ahead
from citewell.ingest.walk import FileRules
from citewell.models import Preview, Project, document_id


async def preview(
    paths: Sequence[Path],
    *,
    project: Project,
    engines: IngestEngines,
    recipe: Recipe,
    reembed: bool = False,
    prune: bool = False,
    rules: FileRules | None = None,
) -> Preview:
    """What `ingest` would do with the same arguments."""
    from_scratch = await usable_generation(engines, reembed=reembed) is None
    plan = await plan_ingest(paths, project, engines, recipe, prune=prune, rules=rules)
    embedder = ChunkEmbedder(engines.embedder, engines.cache)
    result = _from_plan(plan)
    not_cached: set[str] = set()
    updated_documents = {document_id(project, path) for path in plan.vanished}
    for document in updated_documents:
        result.chunks_removed += len(await _chunk_ids(document, engines))
    async for file, outcome in read_ahead(plan.to_read, project=project, recipe=recipe):
        if isinstance(outcome, UnreadableFile):
            result.errors.append(f"{file.path}: {outcome}")
            continue
        old_ids = await _chunk_ids(outcome.document.id, engines)
        new_ids = {chunk.id for chunk in outcome.chunks}
        result.chunks_added += len(new_ids - old_ids)
        result.chunks_removed += len(old_ids - new_ids)
        result.chunks_unchanged += len(old_ids & new_ids)
        not_cached |= await embedder.missing_from_cache(outcome.chunks)
        updated_documents.add(outcome.document.id)
    if from_scratch:
        async for batch in engines.library.chunks():
            others = [chunk for _, chunk in batch if chunk.document_id not in updated_documents]
            not_cached |= await embedder.missing_from_cache(others)
    result.embeddings_needed = len(not_cached)
    return result


def _from_plan(plan: Plan) -> Preview:
    return Preview(
        added=[file.path for file in plan.added],
        changed=[file.path for file in plan.changed],
        unchanged=[file.path for file in plan.unchanged],
        removed=list(plan.vanished),
        errors=list(plan.errors),
        skipped=list(plan.skipped),
        not_pruned=list(plan.not_pruned),
    )


async def _chunk_ids(document: UUID, engines: IngestEngines) -> set[str]:
    return {chunk.id async for batch in engines.library.chunks(document) for _, chunk in batch}
