"""One call retrieves passages: from the reader's selection, or else from the index."""

from collections.abc import Sequence

import pytest

from citewell.adapters.hashing import HashingEmbedder
from citewell.answer.engines import AnswerEngines
from citewell.answer.retrieval import LocalReranker, Retrieval, retrieve_passages
from citewell.models import Filters, Passage
from citewell.similarity_scale import IDENTITY_SCALE, SimilarityScale
from citewell.text import sentence_stems
from tests.conftest import PROJECT, chunk_of

QUESTION = "What does a pump do?"
TEXTS = ("A pump moves water uphill.", "A pump moves oil downhill.")

pytestmark = pytest.mark.anyio


def passage_of(text: str, number: int) -> Passage:
    return Passage(chunk_of(text, number=number), 0.9, (), sentence_stems=tuple(map(tuple, sentence_stems(text))))


class TwoPages:
    """An index of two pages that remembers how it was searched."""

    def __init__(self) -> None:
        self.searches: list[object] = []

    async def search(self, *_: object, **options: object) -> tuple[Passage, ...]:
        self.searches.append(options["filters"])
        return tuple(passage_of(text, number) for number, text in enumerate(TEXTS))

    async def frequencies(self, project: object, stems: Sequence[str], **_: object) -> tuple[int, list[int]]:  # noqa: ARG002
        return 2, [2] * len(stems)

    async def scale(self) -> SimilarityScale:
        return IDENTITY_SCALE

    def problem(self) -> str | None:
        return None

    async def close(self) -> None:
        pass


async def retrieved(
    index: TwoPages, *, selection: str = "", hint: str = "", filters: Filters | None = None
) -> Retrieval:
    engines = AnswerEngines(HashingEmbedder(), index, LocalReranker())
    return await retrieve_passages(
        QUESTION,
        project=PROJECT.id,
        engines=engines,
        limit=5,
        selection=selection,
        hint=hint,
        filters=filters or Filters(),
    )


async def test_a_selection_is_read_and_the_index_is_not_searched() -> None:
    index = TwoPages()
    retrieval = await retrieved(index, selection="A siphon moves water downhill.", hint=TEXTS[1])
    assert [passage.chunk.text for passage in retrieval.passages] == ["A siphon moves water downhill."]
    assert retrieval.from_selection
    assert index.searches == []


async def test_without_a_selection_the_index_is_searched_with_the_filters() -> None:
    index = TwoPages()
    filters = Filters(chapter="Pumps")
    retrieval = await retrieved(index, filters=filters)
    assert [passage.chunk.text for passage in retrieval.passages] == list(TEXTS)
    assert not retrieval.from_selection
    assert index.searches == [filters]


async def test_a_hint_moves_the_passage_that_the_reader_looks_at_to_the_front() -> None:
    retrieval = await retrieved(TwoPages(), hint=TEXTS[1])
    assert [passage.chunk.text for passage in retrieval.passages] == [TEXTS[1], TEXTS[0]]
    assert retrieval.hinted == {retrieval.passages[0].chunk.id}
