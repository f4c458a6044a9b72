"""Counts the chunks of a generation that contain a word, in few requests.

A misspelt word asks for hundreds of words that hardly any document has: one request says for many words at once that
there are none, and only groups with a hit are divided further.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from qdrant_client.models import FieldCondition, Match, MatchText, MatchTextAny

from citewell.adapters.qdrant.conditions import in_generation
from citewell.adapters.qdrant.server import QdrantServer
from citewell.adapters.qdrant.states import Generation
from citewell.models import Filters

_MOST_ALONE = 12  # words of a question: that many are counted one by one, at the same time
_WORDS_PER_GROUP = 32
_MAX_CACHED = 10_000


@dataclass(frozen=True, slots=True)
class Scope:
    """The chunks to count: of one generation of a project, that match the filters."""

    project: UUID
    generation: Generation
    filters: Filters


class WordCounts:
    """Counts of a collection, cached: a generation never changes."""

    def __init__(self, server: QdrantServer, collection: str) -> None:
        self._server = server
        self._collection = collection
        self._counts: dict[tuple[str, Filters, str | None], int] = {}

    async def frequencies(self, scope: Scope, stems: Sequence[str]) -> tuple[int, list[int]]:
        """How many chunks there are, and how many contain each stem."""
        counts = {stem: self._counts[key] for stem in stems if (key := self._key(scope, stem)) in self._counts}
        unknown = [stem for stem in dict.fromkeys(stems) if stem not in counts]
        size = 1 if len(unknown) <= _MOST_ALONE else _WORDS_PER_GROUP
        groups = [unknown[start : start + size] for start in range(0, len(unknown), size)]
        counted = asyncio.gather(*(self._count(scope, group, counts) for group in groups))
        total, _ = await asyncio.gather(self._total(scope), counted)
        if len(self._counts) > _MAX_CACHED:
            self._counts.clear()
        self._counts |= {self._key(scope, stem): count for stem, count in counts.items()}
        return total, [counts[stem] for stem in stems]

    async def _total(self, scope: Scope) -> int:
        key = self._key(scope, None)
        if (known := self._counts.get(key)) is not None:
            return known
        self._counts[key] = total = await self._matching(scope, None)
        return total

    async def _count(self, scope: Scope, stems: Sequence[str], counts: dict[str, int]) -> None:
        """Count the chunks with each of the stems."""
        if len(stems) == 1:
            counts[stems[0]] = await self._matching(scope, MatchText(text=stems[0]))
        elif await self._matching(scope, MatchTextAny(text_any=" ".join(stems))):
            middle = len(stems) // 2
            halves = stems[:middle], stems[middle:]
            await asyncio.gather(*(self._count(scope, half, counts) for half in halves))
        else:
            counts.update(dict.fromkeys(stems, 0))

    async def _matching(self, scope: Scope, words: Match | None) -> int:
        contains = () if words is None else (FieldCondition(key="words", match=words),)
        matching = in_generation(scope.project, scope.generation.number, scope.filters, *contains)
        return await self._server.count(self._collection, matching)

    def _key(self, scope: Scope, stem: str | None) -> tuple[str, Filters, str | None]:
        return scope.generation.build, scope.filters, stem
