"""Tables that compare the rankings of several systems, as text and as JSON. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.lib.sets import Question
from citewell.evaluate.metrics import Array, Estimate, graded_ndcg, hit_at, mean_with_interval, span_scores

OURS = "ours"
_MIN_QUESTIONS = 100  # fewer questions give no useful interval of a difference
_TOP_CHUNKS = 5  # as many as an answer uses


@dataclass(frozen=True, slots=True)
class RetrievedText:
    """The place of a retrieved chunk; `file` is its name in `relevant`."""

    file: str
    page: int | None
    sections: frozenset[str]
    start: int
    end: int


Rankings = Mapping[str, Sequence[Sequence[RetrievedText]]]
"""By system: the retrieved chunks for each question, best first."""


@dataclass(frozen=True, slots=True)
class Table:
    """A number per question for each measure of each system. Citewell is `OURS`; `rival` is compared with it."""

    title: str
    ids: tuple[str, ...]
    scores: Mapping[str, Mapping[str, Array]]
    rival: str

    def differences(self) -> dict[str, dict[str, Estimate]]:
        """Ours minus the rival, and minus the best of all others in each measure, question by question."""
        others = [system for system in self.scores if system != OURS]
        if len(self.ids) <= _MIN_QUESTIONS or OURS not in self.scores or not others:
            return {}
        mine = self.scores[OURS]
        best = {name: max(others, key=lambda system: float(self.scores[system][name].mean())) for name in mine}
        rivals = {self.rival: dict.fromkeys(mine, self.rival)} | ({"best": best} if len(others) > 1 else {})
        return {
            f"{OURS} − {rival}": {
                name: mean_with_interval(mine[name] - self.scores[theirs[name]][name]) for name in mine
            }
            for rival, theirs in rivals.items()
        }

    def as_text(self) -> str:
        measures = list(next(iter(self.scores.values())))
        lines = [f"{self.title}, {len(self.ids)} questions", _line("", [f"{name:22}" for name in measures])]
        for system, scores in self.scores.items():
            lines.append(_line(system, [str(mean_with_interval(scores[name])) for name in measures]))
        for name, gains in self.differences().items():
            lines.append(
                _line(name, [f"{gain.value:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]" for gain in gains.values()])
            )
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "questions": len(self.ids),
            "scores": {
                system: {name: asdict(mean_with_interval(values)) for name, values in scores.items()}
                for system, scores in self.scores.items()
            },
            "differences": {
                name: {measure: asdict(gain) for measure, gain in gains.items()}
                for name, gains in self.differences().items()
            },
            "ids": self.ids,
            "each": {
                system: {name: np.round(values, 4).tolist() for name, values in scores.items()}
                for system, scores in self.scores.items()
            },
        }


def _line(name: str, cells: Sequence[str]) -> str:
    return f"  {name:20}" + "".join(f"{cell:26}" for cell in cells).rstrip()


def join_tables(title: str, tables: Sequence[Table]) -> Table:
    """Several tables as one, every question with the same weight; only measures that all tables have."""
    first = tables[0]
    scores = {
        system: {
            name: np.concatenate([table.scores[system][name] for table in tables])
            for name in measures
            if all(name in table.scores[system] for table in tables)
        }
        for system, measures in first.scores.items()
    }
    return Table(title, tuple(question for table in tables for question in table.ids), scores, first.rival)


def file_table(title: str, questions: Sequence[Question], rankings: Rankings, *, rival: str) -> Table:
    """Scores by relevant file; ranks count distinct files, not chunks."""
    graded = any(question.grades for question in questions)

    def measure(question: Question, retrieved: Sequence[RetrievedText]) -> dict[str, float]:
        relevant = frozenset(file.split("#page=")[0] for file in question.relevant)
        ranking = _unique(text.file for text in retrieved)
        return _ranking_scores(ranking, relevant) | (
            {"graded nDCG@10": graded_ndcg(ranking, question.grades or dict.fromkeys(relevant, 1.0))} if graded else {}
        )

    return _table(title, questions, rankings, measure, rival=rival)


def page_table(title: str, questions: Sequence[Question], rankings: Rankings, *, rival: str) -> Table | None:
    """Scores by relevant page of a PDF, for questions whose page is verified; None if there are none."""

    def measure(question: Question, retrieved: Sequence[RetrievedText]) -> dict[str, float]:
        return _ranking_scores(
            _unique(f"{text.file}#page={text.page}" for text in retrieved), frozenset(question.relevant)
        )

    return _filtered_table(
        f"{title}, by page", questions, rankings, lambda question: question.page_verified, measure, rival=rival
    )


def section_table(title: str, questions: Sequence[Question], rankings: Rankings, *, rival: str) -> Table | None:
    """Scores by relevant heading: whether one of the first chunks is under it; None if no question names any."""

    def measure(question: Question, retrieved: Sequence[RetrievedText]) -> dict[str, float]:
        relevant = {
            section_key(path, heading)
            for path, _, heading in (text.partition("#") for text in question.relevant_sections)
        }
        hits = [float(bool(text.sections & relevant)) for text in retrieved]
        return {f"hit@{within}": max(hits[:within], default=0.0) for within in (1, 5)}

    return _filtered_table(
        f"{title}, by heading",
        questions,
        rankings,
        lambda question: bool(question.relevant_sections),
        measure,
        rival=rival,
    )


def span_table(title: str, questions: Sequence[Question], rankings: Rankings, *, rival: str) -> Table | None:
    """Scores by exact span: recall and precision of the first chunks in characters; None if no question has any."""

    def measure(question: Question, retrieved: Sequence[RetrievedText]) -> dict[str, float]:
        relevant = [(question.relevant[0], (span.start, span.end)) for span in question.spans]
        spans = [(text.file, (text.start, text.end)) for text in retrieved[:_TOP_CHUNKS]]
        return dict(zip(("recall", "precision", "IoU"), span_scores(spans, relevant), strict=True))

    full_title = f"{title}, characters of the exact spans in the first {_TOP_CHUNKS} chunks"
    return _filtered_table(full_title, questions, rankings, lambda question: bool(question.spans), measure, rival=rival)


def section_key(path: str, heading: str) -> str:
    """A key for a heading of a file; spacing, backticks and case do not matter."""
    return f"{path}#{' '.join(heading.replace('`', '').split()).casefold()}"


def _ranking_scores(ranking: Sequence[str], relevant: frozenset[str]) -> dict[str, float]:
    return {
        "hit@1": hit_at(1, ranking, relevant),
        "hit@5": hit_at(5, ranking, relevant),
        "nDCG@10": graded_ndcg(ranking, dict.fromkeys(relevant, 1.0)),
    }


def _unique(keys: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(keys))


Measure = Callable[[Question, Sequence[RetrievedText]], dict[str, float]]


def _filtered_table(
    title: str,
    questions: Sequence[Question],
    rankings: Rankings,
    is_included: Callable[[Question], bool],
    measure: Measure,
    *,
    rival: str,
) -> Table | None:
    """The table of the questions that are included; None if there are none."""
    positions = [position for position, question in enumerate(questions) if is_included(question)]
    if not positions:
        return None
    subset = {system: [retrieved[position] for position in positions] for system, retrieved in rankings.items()}
    return _table(title, [questions[position] for position in positions], subset, measure, rival=rival)


def _table(title: str, questions: Sequence[Question], rankings: Rankings, measure: Measure, *, rival: str) -> Table:
    scores = {}
    for system, retrieved in rankings.items():
        rows = [measure(question, text) for question, text in zip(questions, retrieved, strict=True)]
        scores[system] = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return Table(title, tuple(question.id for question in questions), scores, rival)
