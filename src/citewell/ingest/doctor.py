"""Check that library and index are intact and agree, and that nothing is left of deleted documents; repair them."""

from citewell.errors import IndexUnavailable, OtherModel
from citewell.ingest.flow import IngestEngines, rebuild_index
from citewell.ports import IndexBuilder, Library


async def examine(engines: IngestEngines) -> list[str]:
    """Every problem, one line each; empty when nothing is wrong."""
    problems = [f"library: {problem}" for problem in await engines.audit.audit()]
    problems += [f"index: {problem}" for problem in await _find_index_problems(engines)]
    problems += [f"index: {name} is left over" for name in await engines.index_builder.leftovers()]
    return problems


async def mend(engines: IngestEngines) -> None:
    """Repair the library, rebuild the index from it where they differ, and remove leftovers."""
    await engines.library_writer.discard()
    await engines.audit.repair()
    if await _find_index_problems(engines):
        await rebuild_index(engines)
    await engines.index_builder.remove_leftovers()


async def _find_index_problems(engines: IngestEngines) -> list[str]:
    builder = engines.index_builder
    generation = await engines.library.generation()
    if generation is None:
        async for batch in engines.library.chunks():
            if batch:
                return ["there is no index for the documents of the library"]
        return []
    if (model := await builder.embedding_model_of(generation)) not in (None, engines.embedder.model):
        return [str(OtherModel(made=str(model), configured=engines.embedder.model))]
    if fault := await builder.fault_of(generation):
        return [f"generation {generation} {fault}"]
    problems = []
    if (published := await builder.current_generation()) != generation:
        problems.append(f"generation {generation} matches the library, but {published or 'none'} is published")
    return [*problems, *await compare_contents(engines.library, builder, generation)]


async def compare_contents(library: Library, builder: IndexBuilder, generation: int) -> list[str]:
    """How the chunks of an intact generation differ from those of the library, one line for each kind."""
    stored = {chunk.id: hash(chunk.text) async for batch in library.chunks() for _, chunk in batch}
    try:
        indexed = {chunk: hash(text) async for chunk, text in builder.contents(generation)}
    except IndexUnavailable:
        return [f"generation {generation} cannot be read"]
    problems = []
    if missing := stored.keys() - indexed.keys():
        problems.append(f"{len(missing)} chunks of the library are not in it, such as {min(missing)}")
    if unknown := indexed.keys() - stored.keys():
        problems.append(f"{len(unknown)} chunks in it are not in the library, such as {min(unknown)}")
    if different := {chunk for chunk in stored.keys() & indexed.keys() if stored[chunk] != indexed[chunk]}:
        problems.append(f"{len(different)} chunks have another text in it, such as {min(different)}")
    return problems
