"""Training cases: every set's questions, and questions it cannot answer, with the passages retrieved for them."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.lib.sets import (
    PROJECT,
    Question,
    QuestionSet,
    Source,
    find_sets,
    index_set,
    read_off_topic,
    read_set,
    settings_for,
)
from citewell import wiring
from citewell.answer.engines import AnswerEngines
from citewell.answer.quoting.score import Candidate, score_candidates
from citewell.answer.retrieval import rerank
from citewell.answer.retrieval.rerank import Retrieval, weigh_words
from citewell.answer.retrieval.search import CANDIDATES
from citewell.evaluate.metrics import Array
from citewell.models import Passage
from citewell.text import keywords
from citewell.text.units import unit_text

MAX_QUESTIONS = 1200  # questions of one set
OTHER_SET_QUESTIONS = 50  # questions of another set


@dataclass(slots=True)
class Case:
    """A question and what a corpus retrieves for it.

    `kind` is covered, off topic, other docs, taken away or adversarial.
    """

    corpus: str
    site: bool
    group: str
    kind: str
    question: str
    retrieval: Retrieval
    """Every candidate, as the engine ranked them."""
    rows: Array
    relevant: NDArray[np.bool_]
    row: Question
    question_set: QuestionSet
    _units: dict[int, tuple[list[Candidate], NDArray[np.bool_]]] = field(default_factory=dict)

    def units(self, place: int) -> tuple[list[Candidate], NDArray[np.bool_]]:
        """The quotable units of a passage, and which of them contain the answer."""
        if place not in self._units:
            passage = self.retrieval.passages[place]
            candidates = score_candidates(self.question, [passage], self.retrieval.weights)
            gold = np.array([self._is_gold(passage, unit) for unit in candidates], dtype=bool)
            self._units[place] = candidates, gold
        return self._units[place]

    def _is_gold(self, passage: Passage, unit: Candidate) -> bool:
        if self.question_set.document_name(passage.chunk.source) not in self.row.relevant:
            return False
        text = normalize(unit_text(passage.chunk.text, unit.unit))
        if self.row.spans:
            written = self.question_set.written[passage.chunk.source]
            start = written.offset(passage.chunk.start + unit.unit.start)
            end = written.offset(passage.chunk.start + unit.unit.end)
            shared = sum(max(0, min(end, span.end) - max(start, span.start)) for span in self.row.spans)
            return shared > 0.5 * (end - start)
        if any(normalize(answer) in text for answer in (*self.row.answers, *self.row.keywords_in_file)):
            return True
        # A paraphrased answer: most of its words must be in the unit.
        keys = [frozenset(keywords(answer)) for answer in self.row.answers]
        return any(len(key) > 2 and len(key & unit.words) >= 0.6 * len(key) for key in keys)


def normalize(text: str) -> str:
    return " ".join(re.sub(r"[*`]", "", text).split()).casefold()


def group_of(question_set: QuestionSet, row: Question) -> str:
    """The group for cross-validation: a whole site or small set, else the article, else the question."""
    if question_set.source.kind != "retrieval" or len(question_set.covered) <= 100:
        return question_set.source.name
    parts = (row.relevant or row.near or (row.id,))[0].split(":")
    return parts[-2] if len(parts) > 2 else f"{question_set.source.name}:{row.id}"


async def gather_cases(data: Path, home: Path, *, only_sites: bool = False) -> list[Case]:
    """Every set's questions, and questions it cannot answer; with `only_sites`, covered ones about docs sites."""
    sources = [source for source in find_sets(data)[0] if not only_sites or source.kind != "retrieval"]
    sets = [read_set(source, home) for source in sources]
    rng = random.Random(7)
    cases: list[Case] = []
    for question_set in sets:
        await index_set(question_set)
        async with wiring.open_for_answers(settings_for(question_set.home)) as resources:
            engines = resources.engines
            if only_sites:
                cases += [
                    await _retrieve(question_set, row, "covered", engines=engines) for row in question_set.covered
                ]
            else:
                cases += await _retrieve_all(question_set, sets, read_off_topic(data), rng, engines=engines)
        print(f"{question_set.source.label}: asked, {len(cases)} so far", flush=True)
    return cases


async def _retrieve_all(
    question_set: QuestionSet,
    sets: Sequence[QuestionSet],
    off_topic_questions: Sequence[Question],
    rng: random.Random,
    *,
    engines: AnswerEngines,
) -> list[Case]:
    own = rng.sample(question_set.questions, min(len(question_set.questions), MAX_QUESTIONS))
    todo = [(row, "adversarial" if row.unanswerable else "covered") for row in own]
    foreign = any(row.lang not in ("", "en") for row in own)
    if question_set.source.kind == "answers":
        pass  # the site's own set asks the others
    elif not foreign and has_questions(question_set):
        todo += [(row, "off topic") for row in off_topic_questions]
        todo += [(row, "taken away") for row in own if row.answerable and not row.spans][:200]
    if question_set.source.kind == "docs":
        for other in sets:
            if (
                other is not question_set
                and not _same_subject(question_set.source, other.source)
                and has_questions(other)
            ):
                rows = [row for row in other.covered if row.lang in ("", "en")]
                todo += [(row, "other docs") for row in rng.sample(rows, min(len(rows), OTHER_SET_QUESTIONS))]
    return [await _retrieve(question_set, row, kind, engines=engines) for row, kind in todo]


def has_questions(question_set: QuestionSet) -> bool:
    """Whether the set has questions as readers ask them, rather than claims or keywords."""
    return sum(row.text.rstrip().endswith("?") for row in question_set.questions) > len(question_set.questions) / 2


def _same_subject(source: Source, other: Source) -> bool:
    """Whether two sets are books on one subject, which answer each other's questions."""
    return source.name.rsplit("_", 1)[0] == other.name.rsplit("_", 1)[0]


_passages: dict[str, Passage] = {}


def _share_chunk(passage: Passage) -> Passage:
    """The passage with the chunk object of earlier retrievals, so that each chunk is in memory once."""
    known = _passages.setdefault(passage.chunk.id, passage)
    return replace(passage, chunk=known.chunk, sentence_stems=known.sentence_stems)


async def _retrieve(question_set: QuestionSet, row: Question, kind: str, *, engines: AnswerEngines) -> Case:
    """Retrieve as the answer flow does; for "taken away", without the relevant documents."""
    question = " ".join(row.text.split())
    vector = await engines.embedder.embed_query(question)
    hidden = {name.split("#page=")[0] for name in row.relevant} if kind == "taken away" else set()
    limit = CANDIDATES + (20 if hidden else 0)
    ranked = await engines.index.search(PROJECT.id, vector=vector, words=question, limit=limit)
    ranked = tuple(
        _share_chunk(passage) for passage in ranked if question_set.document_name(passage.chunk.source) not in hidden
    )[:CANDIDATES]
    words = list(keywords(question))
    total, counts = await engines.index.frequencies(PROJECT.id, words)
    retrieval = weigh_words(ranked, total=total, frequencies=dict(zip(words, counts, strict=True)), limit=CANDIDATES)
    relevant_files = {name.split("#page=")[0] for name in row.relevant} if kind == "covered" else set()
    return Case(
        corpus=question_set.source.name,
        site=question_set.source.kind in ("docs", "answers"),
        group=group_of(question_set, row),
        kind=kind,
        question=question,
        retrieval=retrieval,
        rows=rerank.passage_features(question, retrieval.passages, retrieval.weights),
        relevant=np.array(
            [question_set.document_name(passage.chunk.source) in relevant_files for passage in retrieval.passages],
            dtype=bool,
        ),
        row=row,
        question_set=question_set,
    )
