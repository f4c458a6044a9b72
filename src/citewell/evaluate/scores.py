"""Scores of a run, and the table a person reads. Pure."""

from collections.abc import Sequence
from statistics import median, quantiles

from citewell.evaluate.golden import Outcome


def score(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Each score as a share of the questions it speaks about; latencies in milliseconds."""
    covered = [one for one in outcomes if not one.question.unanswerable]
    uncovered = [one for one in outcomes if one.question.unanswerable]
    keyed = [one for one in covered if one.question.answers]
    ranks = [one.rank() for one in covered]
    times = [one.seconds * 1000 for one in outcomes]
    return {
        "questions": len(covered),
        "uncovered": len(uncovered),
        "hit@1": _share([rank == 1 for rank in ranks]),
        "hit@5": _share([rank is not None and rank <= 5 for rank in ranks]),
        "mrr": _mean([1 / rank if rank else 0.0 for rank in ranks]),
        "key_answer": _share([one.contains_key() for one in keyed]),
        "answered": _share([not one.declined for one in covered]),
        "declined": _share([one.declined for one in uncovered]),
        "p50_ms": round(median(times), 1) if times else 0.0,
        "p95_ms": round(quantiles(times, n=20, method="inclusive")[-1], 1) if len(times) > 1 else 0.0,
    }


def table(scores: dict[str, float], outcomes: Sequence[Outcome]) -> str:
    """The scores, and every question that went wrong."""
    covered, uncovered = int(scores["questions"]), int(scores["uncovered"])
    declined = f"({round(scores['declined'] * uncovered)} of {uncovered})"
    lines = [
        f"{covered} questions the documents answer",
        f"  right file first            {_percent(scores['hit@1'])}",
        f"  right file in the first 5   {_percent(scores['hit@5'])}   (mean reciprocal rank {scores['mrr']:.3f})",
        f"  answered at all             {_percent(scores['answered'])}",
        f"  key answer in the answer    {_percent(scores['key_answer'])}",
        f"{uncovered} questions they do not",
        f"  declined                    {_percent(scores['declined'])}   {declined}",
        f"latency p50 {scores['p50_ms']:.0f} ms, p95 {scores['p95_ms']:.0f} ms",
    ]
    wrong = [
        f"  {one.question.id:8} {complaint}: {one.question.text}" for one in outcomes if (complaint := _complaint(one))
    ]
    return "\n".join([*lines, "", "What went wrong:" if wrong else "Nothing went wrong.", *wrong])


def _complaint(one: Outcome) -> str | None:
    if one.question.unanswerable:
        return None if one.declined else "answered, though not covered"
    if (one.rank() or 99) > 5:
        return "right file not found"
    if one.declined:
        return "declined, though covered"
    if one.question.answers and not one.contains_key():
        return "key answer missing"
    return None


def _share(flags: Sequence[bool]) -> float:
    return _mean([float(flag) for flag in flags])


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0


def _percent(share: float) -> str:
    return f"{share:6.1%}"
