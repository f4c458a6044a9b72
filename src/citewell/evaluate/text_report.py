"""The scores as a person reads them in a terminal. Pure."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from citewell.evaluate.run import Outcome
from citewell.evaluate.scores import Score


def text_report(scores: Mapping[str, Score], outcomes: Sequence[Outcome]) -> str:
    """Every score with its interval and number of cases, and every question that went wrong."""
    uncovered = sum(one.question.unanswerable for one in outcomes)
    lines = [
        f"{len(outcomes)} questions: {len(outcomes) - uncovered} the documents answer, {uncovered} they do not",
        "",
        f"{'':20}{'score':>9}   {'95 % interval':18}{'n':>5}",
    ]
    for group, members in groupby(scores.values(), key=lambda one: one.measure.group):
        lines += [group, *map(_row, members)]
    return "\n".join([*lines, "", *_wrongs(outcomes)])


def _row(one: Score) -> str:
    meaning = one.measure.meaning if one.count else "no question says anything about it"
    return f"  {one.measure.name:18}{one.shown():>9}   {one.shown_interval():18}{one.count:5}   {meaning}"


def _wrongs(outcomes: Sequence[Outcome]) -> list[str]:
    wrong = [(complaint, one.question) for one in outcomes if (complaint := one.complaint)]
    if not wrong:
        return ["Nothing went wrong."]
    width = min(max(len(question.id) for _, question in wrong), 24)
    return [
        f"What went wrong, {len(wrong)} of {len(outcomes)}:",
        *(f"  {question.id:{width}}  {complaint}: {' '.join(question.text.split())}" for complaint, question in wrong),
    ]
