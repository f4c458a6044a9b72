"""Scores of a run, each with its interval and the number of cases it speaks about. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

import numpy as np

from citewell.evaluate.calibration import Bin, bins, calibration_error
from citewell.evaluate.metrics import Values, interval
from citewell.evaluate.relevance import DEPTH, Placement
from citewell.evaluate.run import Outcome

Unit = Literal["share", "mean", "milliseconds", "characters"]
Cases: TypeAlias = Sequence[float] | Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Measure:
    """What a score is called, what it says, and how it is made of the cases that each outcome has for it."""

    name: str
    group: str
    meaning: str
    unit: Unit
    cases: Callable[[Outcome], Cases]
    statistic: Callable[[Values], float]


@dataclass(frozen=True, slots=True)
class Score:
    """A measured value with its 95 % interval over `count` cases; None where there was no case."""

    measure: Measure
    value: float | None
    low: float
    high: float
    count: int

    def shown(self) -> str:
        return "–" if self.value is None else show(self.value, self.measure.unit)

    def shown_interval(self) -> str:
        """Its interval, with the unit once: "70.0 – 88.3 %"."""
        if self.value is None:
            return ""
        low, high = show(self.low, self.measure.unit), show(self.high, self.measure.unit)
        return f"{low.split()[0]} – {high}"


def score(outcomes: Sequence[Outcome]) -> dict[str, Score]:
    """Every score, by its name, in the order in which it is shown."""
    return {measure.name: _scored(measure, outcomes) for measure in MEASURES}


def reliability(outcomes: Sequence[Outcome]) -> list[Bin]:
    """Confidence against truth, by tenths of the scale."""
    forecasts = [pair for one in outcomes for pair in _forecast(one)]
    return bins(np.array(forecasts)) if forecasts else []


def show(value: float, unit: Unit) -> str:
    match unit:
        case "share":
            return f"{value * 100:.1f} %"
        case "mean":
            return f"{value:.3f}"
        case "milliseconds":
            return f"{value:.0f} ms"
        case "characters":
            return f"{value:.0f}"
        case never:
            assert_never(never)


def missing(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each kind of thing that questions name and the project does not have: their author has work to do."""
    files = [one.wanted.missing_files for one in outcomes]
    headings = [one.wanted.missing_headings for one in outcomes]
    unsaid = [(one.question.id,) if one.wanted.unsaid else () for one in outcomes]
    return [
        *_named("files that are not in this project (`citewell documents list` shows what is)", files),
        *_named("headings that are not in their file", headings),
        *_named("key answers that their files do not say word for word, so a quotation cannot either", unsaid),
    ]


def _named(what: str, by_question: Sequence[tuple[str, ...]]) -> Iterator[str]:
    count = sum(bool(names) for names in by_question)
    if count:
        names = list(dict.fromkeys(name for names in by_question for name in names))
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        who = "1 question names" if count == 1 else f"{count} questions name"
        yield f"{who} {what}: {', '.join(names[:10])}{more}"


def _scored(measure: Measure, outcomes: Sequence[Outcome]) -> Score:
    each = [cases for one in outcomes if (cases := measure.cases(one))]
    if not each:
        return Score(measure, None, 0.0, 0.0, 0)
    values = np.array([case for cases in each for case in cases], dtype=np.float64)
    owners = np.repeat(np.arange(len(each)), [len(cases) for cases in each])
    low, high = interval(values, owners, measure.statistic)
    return Score(measure, measure.statistic(values), low, high, len(values))


def _mean(values: Values) -> float:
    return float(values.mean())


def _median(values: Values) -> float:
    return float(np.median(values))


def _nearly_all(values: Values) -> float:
    return float(np.percentile(values, 95))


def _rankings() -> Iterator[Measure]:
    """The same four scores by file, by heading and by passage."""
    kinds: list[tuple[str, str, Callable[[Outcome], Placement | None]]] = [
        ("", "file", lambda one: one.by_file),
        ("heading_", "heading", lambda one: one.by_heading),
        ("passage_", "passage", lambda one: one.by_passage),
    ]
    for prefix, what, where in kinds:
        scored: list[tuple[str, str, Unit, Callable[[Placement], float]]] = [
            ("hit@1", f"the right {what} comes first", "share", lambda at: at.within(1)),
            ("hit@5", f"the right {what} is among the first 5", "share", lambda at: at.within(5)),
            (f"mrr@{DEPTH}", "mean of 1/rank of the first right one", "mean", lambda at: at.reciprocal),
            (f"ndcg@{DEPTH}", "how near the top all the right ones are", "mean", lambda at: at.ndcg),
        ]
        for name, meaning, unit, of in scored:
            yield Measure(f"{prefix}{name}", f"Found: the {what}", meaning, unit, _placed(where, of), _mean)


def _placed(
    where: Callable[[Outcome], Placement | None], of: Callable[[Placement], float]
) -> Callable[[Outcome], Cases]:
    return lambda one: [of(at)] if (at := where(one)) else []


def _known(flag: bool | None) -> Cases:
    return [] if flag is None else [float(flag)]


def _length(one: Outcome) -> Cases:
    return [] if one.declined else [float(len(one.words))]


def _milliseconds(one: Outcome) -> Cases:
    return [one.seconds * 1000]


def _forecast(one: Outcome) -> Sequence[tuple[float, float]]:
    right = one.answered_rightly
    return [] if right is None else [(one.answer.confidence, float(right))]


MEASURES = (
    *_rankings(),
    Measure(
        "answered", "Answered", "covered questions that got an answer", "share",
        lambda one: [] if one.question.unanswerable else [float(not one.declined)], _mean,
    ),
    Measure(
        "declined", "Answered", "uncovered questions that were declined", "share",
        lambda one: [float(one.declined)] if one.question.unanswerable else [], _mean,
    ),
    Measure(
        "key_answer", "Answered", "answers that say a key answer", "share", lambda one: _known(one.says_key), _mean
    ),
    Measure("mean_characters", "Answered", "length of an answer, mean", "characters", _length, _mean),
    Measure("median_characters", "Answered", "length of an answer, median", "characters", _length, _median),
    Measure(
        "citations_resolve", "Citations", "citations that lead to their words", "share",
        lambda one: [float(each.resolves) for each in one.citations], _mean,
    ),
    Measure(
        "citations_quote", "Citations", "citations whose passage says the quote", "share",
        lambda one: [float(each.quotes) for each in one.citations if each.quotes is not None], _mean,
    ),
    Measure("ece", "Confidence", "how far confidence is off, on average", "mean", _forecast, calibration_error),
    Measure("p50_ms", "Latency", "half of the answers took less", "milliseconds", _milliseconds, _median),
    Measure("p95_ms", "Latency", "19 of 20 answers took less", "milliseconds", _milliseconds, _nearly_all),
)  # fmt: skip
