"""Plots and a table of how indexes grow, from the numbers of `benchmarks/speed/scaling.py`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from pathlib import Path
from typing import Any, TypeAlias

Rows: TypeAlias = Sequence[Mapping[str, Any]]
"""A measurement for each engine and size."""

_WIDTH, _HEIGHT = 520, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 20, 40, 62
_COLOURS = ("#1f6feb", "#c2410c", "#15803d", "#7e22ce")


@dataclass(frozen=True, slots=True)
class _Plot:
    """A file, its title, and the measures that it shows, each by the name of its line."""

    file: str
    title: str
    measures: Mapping[str, str]


_PLOTS = (
    _Plot("scaling-query.svg", "Hybrid query, ms", {"p50": "query_p50_ms", "p95": "query_p95_ms"}),
    _Plot(
        "scaling-processor.svg",
        "Hybrid query, ms of processor time",
        {"p50": "query_processor_p50_ms", "p95": "query_processor_p95_ms"},
    ),
    _Plot("scaling-ingest.svg", "Chunks added per second", {"": "chunks_per_second"}),
    _Plot(
        "scaling-memory.svg", "Peak memory, MB", {"building": "build_peak_megabytes", "asking": "read_peak_megabytes"}
    ),
    _Plot("scaling-disk.svg", "Disk, MB", {"": "megabytes_on_disk"}),
)

_COLUMNS = (
    ("engine", "engine", "{}"),
    ("chunks", "chunks", "{:,}"),
    ("chunks_per_second", "chunks/s added", "{:,.0f}"),
    ("build_processor_seconds", "processor s", "{:,.0f}"),
    ("build_peak_megabytes", "peak MB, building", "{:,.0f}"),
    ("read_peak_megabytes", "peak MB, asking", "{:,.0f}"),
    ("megabytes_on_disk", "MB on disk", "{:,.0f}"),
    ("query_p50_ms", "p50 ms", "{:.1f}"),
    ("query_p95_ms", "p95 ms", "{:.1f}"),
    ("query_processor_p50_ms", "p50 ms processor", "{:.1f}"),
    ("query_processor_p95_ms", "p95 ms processor", "{:.1f}"),
    ("recall_at_10", "recall@10", "{:.3f}"),
    ("load", "load", "{:.0f}"),
)


def draw(rows: Rows, folder: Path) -> None:
    """Write each plot as SVG."""
    for plot in _PLOTS:
        lines: dict[str, list[tuple[float, float]]] = {}
        for row in sorted(rows, key=lambda one: int(one["chunks"])):
            for name, measure in plot.measures.items():
                if measure in row:
                    label = f"{row['engine']} {name}".strip()
                    lines.setdefault(label, []).append((float(row["chunks"]), float(row[measure])))
        (folder / plot.file).write_text(_svg(plot.title, lines), encoding="utf-8")


def table(rows: Rows) -> str:
    """The numbers as a Markdown table, with the ratio of each p95 to that of the smallest size."""
    header = [title for _, title, _ in _COLUMNS] + ["p95 / smallest"]
    lines = [f"| {' | '.join(header)} |", f"|{' --- |' * len(header)}"]
    for row in sorted(rows, key=lambda one: (str(one["engine"]), int(one["chunks"]))):
        smallest = min((one for one in rows if one["engine"] == row["engine"]), key=lambda one: int(one["chunks"]))
        cells = [form.format(row[key]) if key in row else "" for key, _, form in _COLUMNS]
        cells.append(f"{row['query_p95_ms'] / smallest['query_p95_ms']:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _svg(title: str, lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Lines over the number of chunks, both axes logarithmic, so that what grows in proportion rises by 45 degrees."""
    values = [value for points in lines.values() for _, value in points]
    sizes = [size for points in lines.values() for size, _ in points]
    low, high = floor(log10(min(values))), max(ceil(log10(max(values))), floor(log10(min(values))) + 1)
    first, last = floor(log10(min(sizes))), max(ceil(log10(max(sizes))), floor(log10(min(sizes))) + 1)

    def x(size: float) -> float:
        return round(_LEFT + (log10(size) - first) / (last - first) * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(value: float) -> float:
        return round(_HEIGHT - _BOTTOM - (log10(value) - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM), 1)

    parts = [f'<text x="{_LEFT}" y="24" font-size="15">{title}</text>']
    for power in range(low, high + 1):
        height = y(10**power)
        parts.append(f'<path d="M{_LEFT} {height}H{_WIDTH - _RIGHT}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{height + 4}" text-anchor="end">{10**power:,g}</text>')
    for power in range(first, last + 1):
        parts.append(f'<text x="{x(10**power)}" y="{_HEIGHT - 42}" text-anchor="middle">{10**power:,.0f}</text>')
    for place, (name, points) in enumerate(lines.items()):
        colour = _COLOURS[place % len(_COLOURS)]
        path = " ".join(f"{x(size)},{y(value)}" for size, value in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for size, value in points:
            parts.append(f'<circle cx="{x(size)}" cy="{y(value)}" r="3.5" fill="{colour}"/>')
            parts.append(f'<text x="{x(size)}" y="{y(value) - 8}" text-anchor="middle">{_short(value)}</text>')
        at = _LEFT + place * 120
        parts.append(f'<rect x="{at}" y="{_HEIGHT - 24}" width="12" height="4" fill="{colour}"/>')
        parts.append(f'<text x="{at + 17}" y="{_HEIGHT - 18}">{name}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" role="img" aria-label="{title}" font-family="sans-serif" font-size="11" fill="#1f2328">'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
