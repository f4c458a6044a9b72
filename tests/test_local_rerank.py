"""The local reranker weighs words against meaning; nothing here needs an engine."""

import asyncio
from uuid import uuid4

from citewell.answer.rerank import LocalReranker
from citewell.models import Chunk, Passage
from citewell.terms import sentences


def test_a_passage_that_says_it_in_one_sentence_comes_before_one_that_scatters_it() -> None:
    together = _passage("The pump is primed with water. Nothing else is done.")
    scattered = _passage("The pump is old. Paint has primed it. The cellar has water.")
    weights = {"pump": 0.4, "prime": 0.3, "water": 0.3}
    one, other = asyncio.run(
        LocalReranker().rerank("Is the pump primed with water?", [together, scattered], weights=weights)
    )
    assert one > other


def test_in_another_language_words_decide() -> None:
    near = _passage("Das Wetter war schön und die Sonne war warm.", score=0.6)
    right = _passage("Die Pumpe wird mit dem Wasser gefüllt.", score=0.3)
    weights = {"pump": 0.6, "gefullt": 0.4}
    scores = asyncio.run(LocalReranker().rerank("Wie wird die Pumpe gefüllt?", [near, right], weights=weights))
    assert scores[1] > scores[0]


def _passage(text: str, score: float = 0.5) -> Passage:
    chunk = Chunk(
        id=text,
        document_id=uuid4(),
        content_hash="",
        index=0,
        source="a.md",
        chapter="A",
        section="",
        headings=(),
        text=text,
        start=0,
        end=len(text),
        first_line=1,
        last_line=1,
    )
    return Passage(chunk, score, (), whole=score, spoken=tuple(map(tuple, sentences(text))))
