"""Prove that the library and the index agree and that nothing is left of what was deleted; or mend it."""

from citewell.errors import IndexUnavailable, OtherModel
from citewell.ingest.flow import IngestEngines, rebuild_index


async def examine(engines: IngestEngines) -> list[str]:
    """Everything that is wrong, a line each; empty when all is well."""
    found = [f"library: {fault}" for fault in await engines.audit.audit()]
    found += [f"index: {fault}" for fault in await _index_faults(engines)]
    found += [f"index: {name} is left over" for name in engines.shelf.leftovers()]
    return found


async def mend(engines: IngestEngines) -> None:
    """Make library and index sound again; the library's documents are the truth."""
    await engines.ledger.discard()
    await engines.audit.repair()
    if await _index_faults(engines):
        await rebuild_index(engines)
    engines.shelf.remove_leftovers()


async def _index_faults(engines: IngestEngines) -> list[str]:
    generation = await engines.library.generation()
    stored = {one.id: hash(one.text) async for batch in engines.library.chunks() for _, one in batch}
    if generation is None:
        return ["there is none for what the library holds"] if stored else []
    if (made := engines.shelf.embedding_model_of(generation)) not in (None, engines.embedder.model):
        return [str(OtherModel(made=str(made), configured=engines.embedder.model))]
    if not engines.shelf.has_generation(generation):
        return [f"generation {generation} is missing, or was made by another version"]
    faults = []
    if engines.shelf.current_generation() != generation:
        faults.append(f"generation {generation} shows what the library holds, but another is published")
    try:
        indexed = {identity: hash(text) for identity, text in engines.shelf.contents(generation)}
    except IndexUnavailable:
        return [*faults, f"generation {generation} cannot be read"]
    if missing := stored.keys() - indexed.keys():
        faults.append(f"{len(missing)} chunks of the library are not in it, such as {min(missing)}")
    if ghosts := indexed.keys() - stored.keys():
        faults.append(f"{len(ghosts)} chunks are in it that the library does not have, such as {min(ghosts)}")
    if other := {one for one in stored.keys() & indexed.keys() if stored[one] != indexed[one]}:
        faults.append(f"{len(other)} chunks say other words in it, such as {min(other)}")
    return faults
