"""Put every set's questions, and questions it cannot answer, to its documents; keep what the fits read."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from citewell import wiring
from citewell.answer.engines import AnswerEngines
from citewell.answer.quoting.score import Candidate, score_candidates
from citewell.answer.retrieval import rerank
from citewell.answer.retrieval.search import CANDIDATES, Retrieval, weigh_words
from citewell.models import Passage
from citewell.text.terms import keywords
from citewell.text.units import unit_text
from sets import PROJECT, Question, Set, Source, find_sets, off_topic, read_set, settings_for, take_in

MOST_ASKED = 1200  # questions of one set
STRANGERS = 50  # questions of another set
Array = NDArray[np.float64]


@dataclass(slots=True)
class Asked:
    """A question put to a corpus. `kind` is covered, off topic, other docs, taken away or adversarial."""

    corpus: str
    site: bool
    group: str
    kind: str
    question: str
    found: Retrieval
    """Every candidate, as the engine ranked them."""
    rows: Array
    relevant: NDArray[np.bool_]
    row: Question
    one: Set
    _units: dict[int, tuple[list[Candidate], NDArray[np.bool_]]] = field(default_factory=dict)

    def units(self, place: int) -> tuple[list[Candidate], NDArray[np.bool_]]:
        """The quotable units of a candidate, and which of them hold the answer."""
        if place not in self._units:
            passage = self.found.passages[place]
            found = score_candidates(self.question, [passage], self.found.weights)
            gold = np.array([self._is_gold(passage, unit) for unit in found], dtype=bool)
            self._units[place] = found, gold
        return self._units[place]

    def _is_gold(self, passage: Passage, unit: Candidate) -> bool:
        if self.one.named(passage.chunk.source) not in self.row.relevant:
            return False
        text = flat(unit_text(passage.chunk.text, unit.unit))
        if self.row.spans:
            written = self.one.written[passage.chunk.source]
            start = written.offset(passage.chunk.start + unit.unit.start)
            end = written.offset(passage.chunk.start + unit.unit.end)
            shared = sum(max(0, min(end, span.end) - max(start, span.start)) for span in self.row.spans)
            return shared > 0.5 * (end - start)
        if any(flat(answer) in text for answer in (*self.row.answers, *self.row.keywords_in_file)):
            return True
        # A key written in the asker's words: most of what it says must stand in the unit.
        keys = [frozenset(keywords(answer)) for answer in self.row.answers]
        return any(len(key) > 2 and len(key & unit.words) >= 0.6 * len(key) for key in keys)


def flat(text: str) -> str:
    return " ".join(re.sub(r"[*`]", "", text).split()).casefold()


def group_of(one: Set, row: Question) -> str:
    """What is split as one: a site or small set whole with all that was asked of it, an article, else the question."""
    if one.source.kind != "retrieval" or len(one.covered) <= 100:
        return one.source.name
    parts = (row.relevant or row.near or (row.id,))[0].split(":")
    return parts[-2] if len(parts) > 2 else f"{one.source.name}:{row.id}"


async def gather(data: Path, home: Path) -> list[Asked]:
    sources, _ = find_sets(data)
    sets = [read_set(source, home) for source in sources]
    chosen = random.Random(7)
    asked: list[Asked] = []
    for one in sets:
        await take_in(one)
        async with wiring.open_for_answers(settings_for(one.home)) as reading:
            asked += await _ask_all(one, sets, off_topic(data), chosen, engines=reading.engines)
        print(f"{one.source.label}: asked, {len(asked)} so far", flush=True)
    return asked


async def _ask_all(
    one: Set, sets: Sequence[Set], strangers: Sequence[Question], chosen: random.Random, *, engines: AnswerEngines
) -> list[Asked]:
    own = chosen.sample(one.questions, min(len(one.questions), MOST_ASKED))
    todo = [(row, "adversarial" if row.unanswerable else "covered") for row in own]
    foreign = any(row.lang not in ("", "en") for row in own)
    if not foreign and asks(one):
        todo += [(row, "off topic") for row in strangers]
        todo += [(row, "taken away") for row in own if row.answerable and not row.spans][:200]
    if one.source.kind == "docs":
        for other in sets:
            if other is not one and not _alike(one.source, other.source) and asks(other):
                rows = [row for row in other.covered if row.lang in ("", "en")]
                todo += [(row, "other docs") for row in chosen.sample(rows, min(len(rows), STRANGERS))]
    return [await _ask(one, row, kind, engines=engines) for row, kind in todo]


def asks(one: Set) -> bool:
    """Whether its lines are questions, as readers ask them, rather than claims or keywords."""
    return sum(row.text.rstrip().endswith("?") for row in one.questions) > len(one.questions) / 2


def _alike(one: Source, other: Source) -> bool:
    """Two books on one subject answer each other's questions."""
    return one.name.rsplit("_", 1)[0] == other.name.rsplit("_", 1)[0]


_seen: dict[str, Passage] = {}


def _shared(passage: Passage) -> Passage:
    """The passage with the words it shares with every other finding of its chunk: memory for one, not for thousands."""
    known = _seen.setdefault(passage.chunk.id, passage)
    return replace(passage, chunk=known.chunk, sentence_stems=known.sentence_stems)


async def _ask(one: Set, row: Question, kind: str, *, engines: AnswerEngines) -> Asked:
    """Retrieve as the answer flow does; for "taken away" as if the relevant documents did not exist."""
    question = " ".join(row.text.split())
    vector = await engines.embedder.embed_query(question)
    gone = {name.split("#page=")[0] for name in row.relevant} if kind == "taken away" else set()
    limit = CANDIDATES + (20 if gone else 0)
    ranked = await engines.index.search(PROJECT.id, vector=vector, words=question, limit=limit)
    ranked = tuple(_shared(passage) for passage in ranked if one.named(passage.chunk.source) not in gone)[:CANDIDATES]
    spoken = list(keywords(question))
    total, counts = await engines.index.frequencies(PROJECT.id, spoken)
    found = weigh_words(ranked, total=total, frequencies=dict(zip(spoken, counts, strict=True)), limit=CANDIDATES)
    wanted = {name.split("#page=")[0] for name in row.relevant} if kind == "covered" else set()
    return Asked(
        corpus=one.source.name,
        site=one.source.kind == "docs",
        group=group_of(one, row),
        kind=kind,
        question=question,
        found=found,
        rows=rerank.passage_features(question, found.passages, found.weights),
        relevant=np.array([one.named(passage.chunk.source) in wanted for passage in found.passages], dtype=bool),
        row=row,
        one=one,
    )
