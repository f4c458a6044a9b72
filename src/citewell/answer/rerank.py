"""Put the passages that were found in the order in which they answer. A vendor that fails costs its opinion only."""

import logging
from collections.abc import Mapping, Sequence

from citewell.errors import RerankerUnavailable, SettingsError
from citewell.models import Passage
from citewell.ports import Reranker

_log = logging.getLogger("citewell.answer")


class LocalReranker:
    """Trusts the index: keeps the order that its words and vectors gave."""

    model = "local"

    async def rerank(
        self,
        question: str,  # noqa: ARG002 (the port's signature)
        passages: Sequence[Passage],
        *,
        weights: Mapping[str, float],  # noqa: ARG002
    ) -> list[float]:
        return [-float(place) for place in range(len(passages))]

    async def close(self) -> None:
        pass


async def reorder(
    question: str, passages: Sequence[Passage], *, reranker: Reranker, weights: Mapping[str, float]
) -> tuple[Passage, ...]:
    """The passages, best first; in the local order, with a line in the log, where the reranker fails."""
    try:
        scores = await reranker.rerank(question, passages, weights=weights)
    except (RerankerUnavailable, SettingsError) as error:
        level = logging.WARNING if isinstance(error, RerankerUnavailable) else logging.ERROR
        _log.log(level, "answering in the local order: %s", error, extra={"reranker": reranker.model})
        scores = await LocalReranker().rerank(question, passages, weights=weights)
    best_first = sorted(range(len(passages)), key=lambda place: -scores[place])
    return tuple(passages[place] for place in best_first)
