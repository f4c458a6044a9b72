"""The local reranker weighs words against meaning; nothing here needs an engine."""

import asyncio

from citewell.answer.retrieval.rerank import LocalReranker
from citewell.models import Passage
from citewell.text.sentences import sentence_stems
from tests.conftest import chunk_of


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
    return Passage(chunk_of(text), score, (), mean_score=score, sentence_stems=tuple(map(tuple, sentence_stems(text))))
