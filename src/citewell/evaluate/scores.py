"""Scores of an evaluation, each with its 95 % interval and the number of cases. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

import numpy as np

from citewell.evaluate.metrics import Array, ReliabilityBin, bootstrap_interval, calibration_error, reliability_bins
from citewell.evaluate.relevance import DEPTH, Placement
from citewell.evaluate.run import Outcome

Unit = Literal["share", "mean", "milliseconds", "characters"]
Cases: TypeAlias = Sequence[float] | Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Measure:
    """The definition of a score: its name, what it means, the cases of each outcome, and the statistic over them."""

    name: str
    group: str
    meaning: str
    unit: Unit
    cases: Callable[[Outcome], Cases]
    statistic: Callable[[Array], float]


@dataclass(frozen=True, slots=True)
class Score:
    """A value with its 95 % interval over `count` cases; None if there was no case."""

    measure: Measure
    value: float | None
    low: float
    high: float
    count: int

    def formatted(self) -> str:
        return "–" if self.value is None else format_value(self.value, self.measure.unit)

    def formatted_interval(self) -> str:
        """The interval, with the unit once: "70.0 – 88.3 %"."""
        if self.value is None:
            return ""
        low, high = format_value(self.low, self.measure.unit), format_value(self.high, self.measure.unit)
        return f"{low.split()[0]} – {high}"


def score(outcomes: Sequence[Outcome]) -> dict[str, Score]:
    """All scores by name, in the order of the report."""
    return {measure.name: _score(measure, outcomes) for measure in MEASURES}


def reliability(outcomes: Sequence[Outcome]) -> list[ReliabilityBin]:
    """Confidence and the share of right answers, by tenths of the scale."""
    forecasts = [pair for outcome in outcomes for pair in _forecast(outcome)]
    return reliability_bins(np.array(forecasts)) if forecasts else []


def format_value(value: float, unit: Unit) -> str:
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


def missing_warnings(outcomes: Sequence[Outcome]) -> list[str]:
    """A warning for each kind of thing that questions name and the project does not have."""
    files = [outcome.relevant.missing_files for outcome in outcomes]
    headings = [outcome.relevant.missing_headings for outcome in outcomes]
    unquotable = [(outcome.question.id,) if outcome.relevant.answers_not_in_files else () for outcome in outcomes]
    return [
        *_warning("files that are not in this project (`citewell documents list` shows what is)", files),
        *_warning("headings that are not in their file", headings),
        *_warning("key answers that their files do not contain word for word, so no quotation can", unquotable),
    ]


def _warning(what: str, by_question: Sequence[tuple[str, ...]]) -> Iterator[str]:
    count = sum(bool(names) for names in by_question)
    if count:
        names = list(dict.fromkeys(name for names in by_question for name in names))
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        questions = "1 question names" if count == 1 else f"{count} questions name"
        yield f"{questions} {what}: {', '.join(names[:10])}{more}"


def _score(measure: Measure, outcomes: Sequence[Outcome]) -> Score:
    each = [cases for outcome in outcomes if (cases := measure.cases(outcome))]
    if not each:
        return Score(measure, None, 0.0, 0.0, 0)
    values = np.array([case for cases in each for case in cases], dtype=np.float64)
    owners = np.repeat(np.arange(len(each)), [len(cases) for cases in each])
    low, high = bootstrap_interval(values, owners, measure.statistic)
    return Score(measure, measure.statistic(values), low, high, len(values))


def _mean(values: Array) -> float:
    return float(values.mean())


def _median(values: Array) -> float:
    return float(np.median(values))


def _percentile_95(values: Array) -> float:
    return float(np.percentile(values, 95))


def _ranking_measures() -> Iterator[Measure]:
    """The same four scores by file, by heading and by passage."""
    kinds: list[tuple[str, str, Callable[[Outcome], Placement | None]]] = [
        ("", "file", lambda outcome: outcome.by_file),
        ("heading_", "heading", lambda outcome: outcome.by_heading),
        ("passage_", "passage", lambda outcome: outcome.by_passage),
    ]
    for prefix, what, placement_of in kinds:
        metrics: list[tuple[str, str, Unit, Callable[[Placement], float]]] = [
            ("hit@1", f"the right {what} comes first", "share", lambda placed: placed.is_hit_at(1)),
            ("hit@5", f"the right {what} is among the first 5", "share", lambda placed: placed.is_hit_at(5)),
            (f"mrr@{DEPTH}", "mean of 1/rank of the first right one", "mean", lambda placed: placed.reciprocal_rank),
            (f"ndcg@{DEPTH}", "how near the top all the right ones are", "mean", lambda placed: placed.ndcg),
        ]
        for name, meaning, unit, metric in metrics:
            cases = _ranking_cases(placement_of, metric)
            yield Measure(f"{prefix}{name}", f"Found: the {what}", meaning, unit, cases, _mean)


def _ranking_cases(
    placement_of: Callable[[Outcome], Placement | None], metric: Callable[[Placement], float]
) -> Callable[[Outcome], Cases]:
    return lambda outcome: [metric(placement)] if (placement := placement_of(outcome)) else []


def _case_if_known(flag: bool | None) -> Cases:
    return [] if flag is None else [float(flag)]


def _characters(outcome: Outcome) -> Cases:
    return [] if outcome.declined else [float(len(outcome.answer_text))]


def _milliseconds(outcome: Outcome) -> Cases:
    return [outcome.seconds * 1000]


def _forecast(outcome: Outcome) -> Sequence[tuple[float, float]]:
    """The confidence of an answer, and 1 if it was right. A refusal has confidence 0 and is never right, so it adds
    no calibration error; the scores `answered` and `declined` judge refusals."""
    right = outcome.is_right
    return [] if right is None else [(outcome.answer.confidence, float(right))]


MEASURES = (
    *_ranking_measures(),
    Measure(
        "answered", "Answered", "covered questions that got an answer", "share",
        lambda outcome: [] if outcome.question.unanswerable else [float(not outcome.declined)], _mean,
    ),
    Measure(
        "declined", "Answered", "uncovered questions that were declined", "share",
        lambda outcome: [float(outcome.declined)] if outcome.question.unanswerable else [], _mean,
    ),
    Measure(
        "key_answer", "Answered", "answers that say a key answer", "share",
        lambda outcome: _case_if_known(outcome.has_key_answer), _mean
    ),
    Measure("mean_characters", "Answered", "length of an answer, mean", "characters", _characters, _mean),
    Measure("median_characters", "Answered", "length of an answer, median", "characters", _characters, _median),
    Measure(
        "citations_resolve", "Citations", "citations that lead to their words", "share",
        lambda outcome: [float(citation.resolves) for citation in outcome.citations], _mean,
    ),
    Measure(
        "citations_quote", "Citations", "citations whose passage says the quote", "share",
        lambda outcome: [float(citation.quotes) for citation in outcome.citations if citation.quotes is not None],
        _mean,
    ),
    Measure("ece", "Confidence", "how far confidence is off, on average", "mean", _forecast, calibration_error),
    Measure("p50_ms", "Latency", "half of the answers took less", "milliseconds", _milliseconds, _median),
    Measure("p95_ms", "Latency", "19 of 20 answers took less", "milliseconds", _milliseconds, _percentile_95),
)  # fmt: skip
