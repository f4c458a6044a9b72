"""What every library keeps, on SQLite and on PostgreSQL: documents word for word, and what became of their chunks."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from citewell.adapters.sql import Database, SqlLibrary, SqlProjects
from citewell.ingest.chunk import ChunkSize, chunk, keep_whole
from citewell.ingest.readers.markdown import read_markdown
from citewell.models import Chunk, Document, Project, Trace, document_id
from citewell.ports import Embedding
from citewell.similarity_scale import SimilarityScale

pytestmark = pytest.mark.anyio

OURS, THEIRS = Project.named("ours"), Project.named("theirs")
PUMPS = (
    "# Pumps\n\nA pump moves water uphill.\n\n## Priming\n\nFill the casing first 💧.\n\n## Oil\n\nOil it monthly.\n"
)


@pytest.fixture
async def library(database: Path | str) -> AsyncIterator[SqlLibrary]:
    opened = await Database.open(database)
    yield SqlLibrary(opened)
    await opened.close()


def page(path: str, source: str, *, project: Project = OURS) -> tuple[Document, list[Chunk]]:
    """A document and its chunks, one for each section, as an ingest reads them."""
    manuscript = read_markdown(source, mdx=False, fallback_title=path)
    identity = document_id(project, path)
    chunks, _ = chunk(manuscript, document_id=identity, source=path, size=ChunkSize(5, 50, 0), url=None)
    return Document(identity, path, manuscript.title, manuscript.text, fingerprint="f" * 64, root="/books"), chunks


async def keep(
    library: SqlLibrary,
    *pages: tuple[Document, list[Chunk]],
    project: Project = OURS,
    remove: tuple[UUID, ...] = (),
    generation: int = 1,
) -> None:
    await library.stage(project, pages)
    await library.commit(remove=remove, generation=generation)


async def stored(library: SqlLibrary) -> list[Chunk]:
    return [one async for batch in library.chunks() for _, one in batch]


async def traced(library: SqlLibrary, chunk: Chunk, *, project: Project = OURS) -> Trace:
    return (await library.trace(project.id, [chunk.id]))[chunk.id]


async def test_what_is_staged_is_seen_when_it_is_entered_and_not_before(library: SqlLibrary) -> None:
    document, chunks = page("pumps.md", PUMPS)
    await library.stage(OURS, [(document, chunks)])
    assert await library.documents(OURS) == []
    assert await library.document(document.id) is None
    assert await library.generation() is None
    assert await library.project_of(document.id) is None
    await library.commit(remove=[], generation=7)
    assert await library.project_of(document.id) == OURS.id
    (entered,) = await library.documents(OURS)
    assert (entered.path, entered.chunks, entered.characters) == ("pumps.md", 3, len(document.text))
    assert entered.ingested_at.utcoffset() is not None
    assert await library.document(document.id) == document
    assert await stored(library) == chunks
    assert await library.generation() == 7
    assert (await library.known_documents(OURS))["pumps.md"].fingerprint == document.fingerprint
    assert await library.known_documents(THEIRS) == {}


async def test_projects_with_an_index_each_are_staged_and_committed_apart(opened: Database) -> None:
    everything, ours, theirs = (
        SqlLibrary(opened),
        SqlLibrary(opened, project=OURS.id),
        SqlLibrary(opened, project=THEIRS.id),
    )
    mine, (yours, _) = page("pumps.md", PUMPS), page("wells.md", PUMPS, project=THEIRS)
    await ours.stage(OURS, [mine])
    await theirs.stage(THEIRS, [page("wells.md", PUMPS, project=THEIRS)])
    await ours.commit(remove=[], generation=3)
    assert await everything.document(yours.id) is None
    await ours.discard()
    await theirs.commit(remove=[], generation=1)
    assert [await ours.generation(), await theirs.generation(), await everything.generation()] == [3, 1, None]
    assert await everything.generation(OURS.id) == 3
    assert await stored(ours) == mine[1]
    assert len(await stored(everything)) == 6
    await SqlProjects(opened).delete(OURS.id)
    assert await ours.generation() is None


async def test_what_stands_around_a_chunk_is_the_document_s_own_text(library: SqlLibrary) -> None:
    document, chunks = page("pumps.md", PUMPS)
    await keep(library, (document, chunks), page("oil.md", "# Oil\n\nOil.\n"))
    for one in chunks:
        for characters in (1, 10, 1000):
            around = await library.surroundings(one.id, characters=characters)
            assert around is not None
            assert around.before == document.text[max(0, one.start - characters) : one.start]
            assert around.after == document.text[one.end : one.end + characters]
            assert around.chunks == len(chunks)
    assert await library.surroundings("0" * 64, characters=10) is None


async def test_the_documents_of_every_project_are_counted(library: SqlLibrary) -> None:
    assert await library.document_counts() == {}
    await keep(library, page("pumps.md", PUMPS), page("oil.md", "# Oil\n\nOil.\n"))
    await keep(library, page("pumps.md", PUMPS, project=THEIRS), project=THEIRS, generation=2)
    assert await library.document_counts() == {OURS.id: 2, THEIRS.id: 1}
    await keep(library, remove=(document_id(THEIRS, "pumps.md"),), project=THEIRS, generation=3)
    assert await library.document_counts() == {OURS.id: 2}


async def test_what_is_discarded_is_never_seen(library: SqlLibrary) -> None:
    await library.stage(OURS, [page("pumps.md", PUMPS)])
    await library.discard()
    await library.commit(remove=[], generation=1)
    assert await library.documents(OURS) == []


async def test_documents_come_in_the_order_of_their_paths_on_every_engine(library: SqlLibrary) -> None:
    names = ["b.md", "B.md", "a/z.md", "ä.md", "a.md", "_.md"]
    await keep(library, *(page(name, f"# T\n\nText of {name}.\n") for name in names))
    assert [one.path for one in await library.documents(OURS)] == sorted(names)
    assert [one.source for one in await stored(library)] == sorted(names)


async def test_more_documents_than_a_statement_takes_come_and_go(library: SqlLibrary) -> None:
    many = [page(f"{n:04}.md", f"# Page\n\nThis is number {n}.\n") for n in range(1200)]
    await keep(library, *many)
    assert len(await library.documents(OURS)) == 1200
    await keep(library, remove=tuple(document.id for document, _ in many), generation=2)
    assert await library.documents(OURS) == []
    every = await library.trace(OURS.id, [one.id for _, chunks in many for one in chunks])
    assert all(trace.known for trace in every.values())
    assert await library.audit() == []


async def test_marks_that_an_engine_cannot_keep_do_not_stop_an_ingest(library: SqlLibrary) -> None:
    source = '---\ntitle: "nul \\0"\n---\n\n## Sound\n\nAll is well here.\n'
    document, chunks = page("odd.md", source)
    assert "\0" in document.title
    document = replace(document, root="/home/m\udcfcller")  # a folder's name need not be UTF-8
    await keep(library, (document, chunks))
    (entered,) = await library.documents(OURS)
    assert entered.title == "nul \ufffd"
    assert [one.text for one in await stored(library)] == [one.text for one in chunks]


async def test_a_chunk_that_is_there_is_traced_to_where_it_stands(library: SqlLibrary) -> None:
    document, chunks = page("pumps.md", PUMPS)
    await keep(library, (document, chunks))
    for one in chunks:
        assert await traced(library, one) == Trace(current=one, known=True)


async def test_words_that_moved_are_found_in_their_new_place(library: SqlLibrary) -> None:
    before = page("pumps.md", PUMPS)
    await keep(library, before)
    after = page("pumps.md", PUMPS.replace("# Pumps", "# All about pumps"))
    copy = page("a-copy.md", PUMPS.replace("# Pumps", "# A copy"))
    await keep(library, after, copy)
    place, gone = next((place, one) for place, one in enumerate(before[1]) if one.section == "Oil")
    assert await traced(library, gone) == Trace(moved_to=after[1][place], known=True), "rather than in another document"
    await keep(library, remove=(after[0].id,))
    assert await traced(library, gone) == Trace(moved_to=copy[1][place], known=True)


async def test_words_that_changed_are_traced_to_what_stands_in_their_place(library: SqlLibrary) -> None:
    before = page("pumps.md", PUMPS)
    await keep(library, before)
    after = page("pumps.md", PUMPS.replace("Oil it monthly.", "Oil it weekly."))
    await keep(library, after)
    gone = before[1][-1]
    assert await traced(library, gone) == Trace(successor=after[1][-1], known=True)
    shorter = page("pumps.md", "# Pumps\n\nPumps move water.\n")
    await keep(library, shorter)
    assert await traced(library, gone) == Trace(successor=shorter[1][-1], known=True), "the last one there is"


async def test_chunks_of_a_deleted_document_were_there_once_and_others_never(library: SqlLibrary) -> None:
    document, chunks = page("pumps.md", PUMPS)
    await keep(library, (document, chunks))
    await keep(library, remove=(document.id,))
    assert await traced(library, chunks[0]) == Trace(known=True)
    assert await library.trace(OURS.id, ["0" * 64, "nonsense"]) == {"0" * 64: Trace(), "nonsense": Trace()}


async def test_chunks_that_come_back_are_there_again(library: SqlLibrary) -> None:
    document, chunks = page("pumps.md", PUMPS)
    await keep(library, (document, chunks))
    await keep(library, remove=(document.id,))
    await keep(library, (document, chunks))
    assert await traced(library, chunks[0]) == Trace(current=chunks[0], known=True)
    assert await library.audit() == []


async def test_another_project_learns_nothing_of_a_chunk(library: SqlLibrary) -> None:
    ours = page("pumps.md", PUMPS)
    await keep(library, ours)
    assert await traced(library, ours[1][0], project=THEIRS) == Trace()
    await keep(library, remove=(ours[0].id,))
    theirs = page("pumps.md", PUMPS, project=THEIRS)
    await keep(library, theirs, project=THEIRS)
    assert await traced(library, ours[1][0]) == Trace(known=True), "the same words of theirs are no twin of ours"
    assert await traced(library, ours[1][0], project=THEIRS) == Trace()


async def test_the_similarity_scale_is_remembered_by_model(library: SqlLibrary) -> None:
    assert await library.load_scale(model="one") is None
    await library.save_scale(SimilarityScale(0.1, 0.6), model="one")
    await library.save_scale(SimilarityScale(0.2, 0.7), model="one")
    assert await library.load_scale(model="one") == SimilarityScale(0.2, 0.7)
    assert await library.load_scale(model="other") is None
    assert await library.generation() is None


async def test_embeddings_are_remembered_by_model(library: SqlLibrary) -> None:
    made = {f"{n:064}": Embedding(np.full((2, 3), n, dtype=np.float32), ((0, 4), (2, 9))) for n in range(1100)}
    await library.save(made, model="m")
    await library.save(made, model="m")
    known = await library.load([*made, "0" * 63 + "x"], model="m")
    assert known.keys() == made.keys()
    assert np.array_equal(known[f"{7:064}"].vectors, made[f"{7:064}"].vectors)
    assert known[f"{7:064}"].spans == ((0, 4), (2, 9))
    assert await library.load(list(made), model="other") == {}


async def test_the_audit_finds_what_an_ingest_left_and_the_repair_removes_it(library: SqlLibrary) -> None:
    kept = page("pumps.md", PUMPS)
    await keep(library, kept)
    await library.stage(OURS, [page("valves.md", "# Valves\n\nA valve stops the flow.\n")])
    assert await library.audit() == [
        "1 chunks staged by an ingest that did not finish",
        "1 documents staged by an ingest that did not finish",
    ]
    await library.repair()
    await library.vacuum()
    assert await library.audit() == []
    assert await stored(library) == kept[1]


def whole(path: str, source: str) -> tuple[Document, list[Chunk]]:
    """A document that is stored whole."""
    document, _ = page(path, source)
    manuscript = read_markdown(source, mdx=False, fallback_title=path)
    piece = keep_whole(manuscript, document_id=document.id, source=path, size=ChunkSize())
    assert piece is not None
    return document, [piece]


async def test_a_document_that_is_stored_whole_is_traced_by_its_own_id(library: SqlLibrary) -> None:
    document, (piece,) = whole("pumps.md", PUMPS)
    cited = str(document.id)
    await keep(library, (document, [piece]))
    assert await stored(library) == [piece]
    assert piece.index is None
    both = await library.trace(OURS.id, [cited, piece.id])
    assert both == {cited: Trace(current=piece, known=True), piece.id: Trace(current=piece, known=True)}
    assert (await library.trace(THEIRS.id, [cited]))[cited] == Trace()

    _, (edited,) = changed = whole("pumps.md", PUMPS.replace("monthly", "weekly"))
    await keep(library, changed, generation=2)
    both = await library.trace(OURS.id, [cited, piece.id])
    assert both[cited] == Trace(current=edited, known=True), "the document is still there"
    assert both[piece.id] == Trace(successor=edited, known=True), "its text is another"

    await keep(library, split := page("pumps.md", PUMPS), generation=3)
    assert (await library.trace(OURS.id, [cited]))[cited] == Trace(successor=split[1][-1], known=True)
    await keep(library, remove=(document.id,), generation=4)
    assert (await library.trace(OURS.id, [cited]))[cited] == Trace(known=True)
    assert await library.audit() == []


async def test_a_document_with_chunks_is_no_citation(library: SqlLibrary) -> None:
    document, chunks = page("pumps.md", PUMPS)
    await keep(library, (document, chunks))
    assert (await library.trace(OURS.id, [str(document.id)]))[str(document.id)] == Trace()
