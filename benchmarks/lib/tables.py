"""Rankings of several systems held against what is relevant: a table a person reads, its numbers for machines. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.lib.sets import Question
from citewell.evaluate.metrics import Array, Estimate, graded_ndcg, hit_at, mean_with_interval, span_scores

OURS = "ours"
_ENOUGH = 100  # questions from which a difference is worth its interval
_CHUNKS = 5  # what an answer is written from, and what spans are held against


@dataclass(frozen=True, slots=True)
class Found:
    """Where something that was found stands, in the words of `relevant`."""

    file: str
    page: int | None
    sections: frozenset[str]
    start: int
    end: int


Rankings = Mapping[str, Sequence[Sequence[Found]]]
"""By system: what it found for each question, best first."""


@dataclass(frozen=True, slots=True)
class Table:
    """One number per question for each measure of each system; ours is `OURS`, `rival` what it is held against."""

    title: str
    ids: tuple[str, ...]
    scores: Mapping[str, Mapping[str, Array]]
    rival: str

    def differences(self) -> dict[str, dict[str, Estimate]]:
        """Ours minus the rival, and minus the best of all others in each measure, question by question."""
        others = [system for system in self.scores if system != OURS]
        if len(self.ids) <= _ENOUGH or OURS not in self.scores or not others:
            return {}
        mine = self.scores[OURS]
        best = {name: max(others, key=lambda one: float(self.scores[one][name].mean())) for name in mine}
        rivals = {self.rival: dict.fromkeys(mine, self.rival)} | ({"best": best} if len(others) > 1 else {})
        return {
            f"{OURS} − {rival}": {
                name: mean_with_interval(mine[name] - self.scores[theirs[name]][name]) for name in mine
            }
            for rival, theirs in rivals.items()
        }

    def shown(self) -> str:
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


def joined(title: str, tables: Sequence[Table]) -> Table:
    """Several sets as one, every question weighing the same; measures that they all have."""
    first = tables[0]
    scores = {
        system: {
            name: np.concatenate([table.scores[system][name] for table in tables])
            for name in measures
            if all(name in table.scores[system] for table in tables)
        }
        for system, measures in first.scores.items()
    }
    return Table(title, tuple(one for table in tables for one in table.ids), scores, first.rival)


def file_table(title: str, questions: Sequence[Question], rankings: Rankings, *, rival: str) -> Table:
    """By relevant file or passage: the rank of distinct ones counts, not of their chunks."""
    graded = any(question.grades for question in questions)

    def measure(question: Question, found: Sequence[Found]) -> dict[str, float]:
        relevant = frozenset(file.split("#page=")[0] for file in question.relevant)
        ranking = _distinct(one.file for one in found)
        return _ranked(ranking, relevant) | (
            {"graded nDCG@10": graded_ndcg(ranking, question.grades or dict.fromkeys(relevant, 1.0))} if graded else {}
        )

    return _table(title, questions, rankings, measure, rival=rival)


def page_table(title: str, questions: Sequence[Question], rankings: Rankings, *, rival: str) -> Table | None:
    """By relevant page of a PDF, where someone checked that the page is right."""

    def measure(question: Question, found: Sequence[Found]) -> dict[str, float]:
        return _ranked(_distinct(f"{one.file}#page={one.page}" for one in found), frozenset(question.relevant))

    return _some(f"{title}, by page", questions, rankings, lambda one: one.page_verified, measure, rival=rival)


def section_table(title: str, questions: Sequence[Question], rankings: Rankings, *, rival: str) -> Table | None:
    """By relevant heading: whether one of the first chunks stands below it."""

    def measure(question: Question, found: Sequence[Found]) -> dict[str, float]:
        wanted = {
            section(path, heading) for path, _, heading in (one.partition("#") for one in question.relevant_sections)
        }
        under = [float(bool(one.sections & wanted)) for one in found]
        return {f"hit@{within}": max(under[:within], default=0.0) for within in (1, 5)}

    return _some(
        f"{title}, by heading", questions, rankings, lambda one: bool(one.relevant_sections), measure, rival=rival
    )


def span_table(title: str, questions: Sequence[Question], rankings: Rankings, *, rival: str) -> Table | None:
    """By exact span: how much of it the first chunks hold, and how much else."""

    def measure(question: Question, found: Sequence[Found]) -> dict[str, float]:
        wanted = [(question.relevant[0], (span.start, span.end)) for span in question.spans]
        given = [(one.file, (one.start, one.end)) for one in found[:_CHUNKS]]
        return dict(zip(("recall", "precision", "IoU"), span_scores(given, wanted), strict=True))

    what = f"{title}, characters of the exact spans in the first {_CHUNKS} chunks"
    return _some(what, questions, rankings, lambda one: bool(one.spans), measure, rival=rival)


def section(path: str, heading: str) -> str:
    """A heading of a file, however it is spaced, quoted and capitalised."""
    return f"{path}#{' '.join(heading.replace('`', '').split()).casefold()}"


def _ranked(ranking: Sequence[str], relevant: frozenset[str]) -> dict[str, float]:
    return {
        "hit@1": hit_at(1, ranking, relevant),
        "hit@5": hit_at(5, ranking, relevant),
        "nDCG@10": graded_ndcg(ranking, dict.fromkeys(relevant, 1.0)),
    }


def _distinct(keys: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(keys))


Measure = Callable[[Question, Sequence[Found]], dict[str, float]]


def _some(
    title: str,
    questions: Sequence[Question],
    rankings: Rankings,
    wanted: Callable[[Question], bool],
    measure: Measure,
    *,
    rival: str,
) -> Table | None:
    """The table of those questions that can be measured this way."""
    kept = [place for place, question in enumerate(questions) if wanted(question)]
    if not kept:
        return None
    some = {system: [found[place] for place in kept] for system, found in rankings.items()}
    return _table(title, [questions[place] for place in kept], some, measure, rival=rival)


def _table(title: str, questions: Sequence[Question], rankings: Rankings, measure: Measure, *, rival: str) -> Table:
    scores = {}
    for system, found in rankings.items():
        rows = [measure(question, one) for question, one in zip(questions, found, strict=True)]
        scores[system] = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return Table(title, tuple(question.id for question in questions), scores, rival)
