"""Charts as inline SVG: a bar with its interval, a reliability diagram, a histogram. Pure.

The page sets the colours by class, so charts follow its dark mode. Charts contain only numbers that we computed and
no text of others, so nothing needs escaping.
"""

from collections.abc import Sequence
from math import ceil, log10, sqrt

from citewell.evaluate.metrics import ReliabilityBin

_WIDTH, _HEIGHT = 420, 300
_LEFT, _BOTTOM, _TOP, _RIGHT = 46, 42, 14, 20
_INNER_WIDTH, _INNER_HEIGHT = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM


def bar(value: float, low: float, high: float) -> str:
    """A bar filled to `value` (0 to 1), with a whisker over its interval."""
    at, left, right = (_tidy(2 + 196 * share) for share in (value, low, high))
    return (
        '<svg class="bar" viewBox="0 0 200 16" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" x="2" y="3" width="196" height="10" rx="2"/>'
        f'<rect class="fill" x="2" y="3" width="{_tidy(196 * value)}" height="10" rx="2"/>'
        f'<path class="whisker" d="M{left} 8H{right}M{left} 4V12M{right} 4V12"/>'
        f'<path class="tick" d="M{at} 2V14"/></svg>'
    )


def reliability_diagram(bins: Sequence[ReliabilityBin]) -> str:
    """Confidence against the share of right answers: a point per bin, larger for more answers."""
    total = sum(group.count for group in bins) or 1
    points = "".join(
        f'<path class="off" d="M{_x(group.confidence)} {_y(group.confidence)}V{_y(group.right)}"/>'
        f'<circle class="point" cx="{_x(group.confidence)}" cy="{_y(group.right)}" '
        f'r="{_tidy(4 + 14 * sqrt(group.count / total))}">'
        f"<title>{group.count} answers: confidence {group.confidence:.0%}, right {group.right:.0%}</title></circle>"
        for group in bins
    )
    quarters = [0, 0.25, 0.5, 0.75, 1]
    grid = "".join(
        f'<path class="grid" d="M{_x(0)} {_y(at)}H{_x(1)}"/>'
        f'<text x="{_LEFT - 8}" y="{_tidy(float(_y(at)) + 4)}" text-anchor="end">{at:.0%}</text>'
        f'<text x="{_x(at)}" y="{_HEIGHT - 22}" text-anchor="middle">{at:.0%}</text>'
        for at in quarters
    )
    ideal = f'<path class="ideal" d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}"/>'
    return _figure("Confidence against the share of right answers", grid + ideal + points, "confidence")


def histogram(milliseconds: Sequence[float], *, marks: Sequence[tuple[str, float]]) -> str:
    """The number of answers by latency, with a line at each named mark. Slow outliers share the last column."""
    top = _round_up(max([value * 1.25 for _, value in marks], default=1.0))
    columns = 24
    counts = [0] * columns
    for value in milliseconds:
        counts[min(int(value / top * columns), columns - 1)] += 1
    most = max(counts) or 1
    step = 1 / columns
    bars = "".join(
        f'<rect class="fill" x="{_tidy(float(_x(place * step)) + 1)}" y="{_y(count / most)}" '
        f'width="{_tidy(_INNER_WIDTH * step - 2)}" height="{_tidy(_INNER_HEIGHT * count / most)}" rx="1">'
        f"<title>{count} answers: {place * step * top:.0f} ms{'' if place < columns - 1 else ' or more'}</title></rect>"
        for place, count in enumerate(counts)
        if count
    )
    scale = "".join(
        f'<text x="{_x(at)}" y="{_HEIGHT - 22}" text-anchor="middle">{at * top:.0f}</text>'
        for at in (0, 0.25, 0.5, 0.75, 1)
    )
    axis = (
        f'<path class="grid" d="M{_x(0)} {_y(0)}H{_x(1)}"/>'
        f'<text x="{_LEFT - 8}" y="{_tidy(float(_y(1)) + 4)}" text-anchor="end">{most}</text>'
        f'<text x="{_LEFT - 8}" y="{_tidy(float(_y(0)) + 4)}" text-anchor="end">0</text>'
    )
    lines = "".join(
        f'<path class="mark" d="M{_x(value / top)} {_y(0)}V{_TOP}"/>'
        f'<text class="mark" x="{_tidy(float(_x(value / top)) + 4)}" y="{_TOP + 10 + 14 * place}">{name}</text>'
        for place, (name, value) in enumerate(marks)
    )
    return _figure("How long answers took", axis + scale + bars + lines, "milliseconds")


def _figure(name: str, inside: str, axis: str) -> str:
    middle = _LEFT + _INNER_WIDTH / 2
    return (
        f'<svg class="figure" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{name}">{inside}'
        f'<text x="{_tidy(middle)}" y="{_HEIGHT - 4}" text-anchor="middle">{axis}</text></svg>'
    )


def _x(share: float) -> str:
    return _tidy(_LEFT + _INNER_WIDTH * min(share, 1.0))


def _y(share: float) -> str:
    return _tidy(_TOP + _INNER_HEIGHT * (1 - share))


def _round_up(value: float) -> float:
    """The next of 1, 2, 4, 6, 8 and 10 times a power of ten, as the end of an axis."""
    power = 10.0 ** int(log10(value)) if value >= 1 else 1.0
    return float(next(step * power for step in (1, 2, 4, 6, 8, 10, 20) if step * power >= ceil(value)))


def _tidy(number: float) -> str:
    return f"{number:.1f}"
