"""The evaluation report for a terminal. Pure."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from citewell.evaluate.run import Outcome
from citewell.evaluate.scores import Score


def text_report(scores: Mapping[str, Score], outcomes: Sequence[Outcome]) -> str:
    """All scores with their intervals and numbers of cases, and the questions that went wrong."""
    uncovered = sum(outcome.question.unanswerable for outcome in outcomes)
    lines = [
        f"{len(outcomes)} questions: {len(outcomes) - uncovered} the documents answer, {uncovered} they do not",
        "",
        f"{'':20}{'score':>9}   {'95 % interval':18}{'n':>5}",
    ]
    for group, members in groupby(scores.values(), key=lambda score: score.measure.group):
        lines += [group, *map(_row, members)]
    return "\n".join([*lines, "", *_problems(outcomes)])


def _row(score: Score) -> str:
    meaning = score.measure.meaning if score.count else "no question says anything about it"
    return (
        f"  {score.measure.name:18}{score.formatted():>9}   {score.formatted_interval():18}{score.count:5}   {meaning}"
    )


def _problems(outcomes: Sequence[Outcome]) -> list[str]:
    wrong = [(complaint, outcome.question) for outcome in outcomes if (complaint := outcome.complaint)]
    if not wrong:
        return ["Nothing went wrong."]
    width = min(max(len(question.id) for _, question in wrong), 24)
    return [
        f"What went wrong, {len(wrong)} of {len(outcomes)}:",
        *(f"  {question.id:{width}}  {complaint}: {' '.join(question.text.split())}" for complaint, question in wrong),
    ]
