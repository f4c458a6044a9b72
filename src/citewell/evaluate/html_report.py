"""A run as one HTML page that stands alone: no script, nothing fetched, light or dark as its reader likes. Pure.

Questions, answers and file names are other people's words: every one of them goes through `_said`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from itertools import groupby

from citewell.evaluate.charts import bar, histogram, reliability_diagram
from citewell.evaluate.relevance import Placement
from citewell.evaluate.run import Outcome, excerpt
from citewell.evaluate.scores import Score, reliability
from citewell.models import Passage

_SHOWN_PASSAGES = 5
_WORST = 50
_HEADLINES = ("hit@5", "key_answer", "declined", "citations_resolve", "ece", "p50_ms")

_STYLE = """
:root {
  color-scheme: light dark;
  --ink: light-dark(#1d2129, #e6e8ec); --quiet: light-dark(#5c6470, #9aa3b2); --paper: light-dark(#fbfbf9, #15171b);
  --card: light-dark(#fff, #1e2127); --line: light-dark(#e2e2dc, #32363f); --accent: light-dark(#0b5fae, #7db8f0);
  --soft: light-dark(#cfe0f1, #27405a); --warn: light-dark(#8a4b00, #f0b56a); --good: light-dark(#1f7a3f, #7fcf9b);
}
* { box-sizing: border-box; }
body { max-width: 66rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; font: 1rem/1.5 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); }
h1 { margin: 0; font-size: 1.6rem; line-height: 1.25; }
h2 { margin: 2.5rem 0 0.75rem; font-size: 1.15rem; }
h3 { margin: 0 0 0.4rem; font-size: 0.8rem; font-weight: 600; color: var(--quiet); }
p { margin: 0.3rem 0; } .quiet { color: var(--quiet); } .small { font-size: 0.85rem; }
.warning { margin: 1rem 0; padding: 0.6rem 0.9rem; border-inline-start: 3px solid var(--warn);
  background: var(--card); overflow-wrap: anywhere; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: 0.75rem; margin-top: 1.5rem; }
.card { padding: 0.8rem 1rem; border: 1px solid var(--line); border-radius: 0.7rem; background: var(--card); }
.card b { display: block; font-size: 1.5rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
.panel { padding: 1rem 1.25rem; border: 1px solid var(--line); border-radius: 0.7rem; background: var(--card);
  overflow-x: auto; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)); gap: 1rem;
  margin-top: 1rem; }
.pair h2 { margin-top: 0; }
table { width: 100%; border-collapse: collapse; font-size: 0.9rem; }
th { text-align: start; font-weight: 600; color: var(--quiet); font-size: 0.8rem; }
th, td { padding: 0.28rem 0.9rem 0.28rem 0; vertical-align: top; }
.scores tbody th { padding-top: 0.9rem; font-size: 0.9rem; color: var(--ink); }
.scores tbody:first-of-type th { padding-top: 0.3rem; }
.scores td:nth-child(1) { white-space: nowrap; }
.scores td:nth-child(3) { width: 30%; min-width: 5rem; }
.number { text-align: end; white-space: nowrap; font-variant-numeric: tabular-nums; }
code { font: 0.88em ui-monospace, monospace; }
svg.bar { display: block; width: 100%; height: 1rem; margin-top: 0.2rem; }
svg.figure { display: block; width: 100%; max-width: 32rem; height: auto; margin: 0 auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--quiet); }
svg text.mark { fill: var(--ink); font-weight: 600; paint-order: stroke; stroke: var(--card); stroke-width: 3px; }
.track { fill: var(--line); } .fill { fill: var(--accent); opacity: 0.55; }
.whisker, .tick { fill: none; stroke: var(--ink); vector-effect: non-scaling-stroke; stroke-width: 1.2px; }
.tick { stroke: var(--accent); stroke-width: 2px; }
.grid { stroke: var(--line); } .ideal { stroke: var(--quiet); stroke-dasharray: 4 4; }
.off { stroke: var(--warn); stroke-width: 1.5px; } .point { fill: var(--accent); opacity: 0.85; }
path.mark { stroke: var(--ink); stroke-width: 1.3px; stroke-dasharray: 3 3; }
details { margin-bottom: 0.6rem; border: 1px solid var(--line); border-radius: 0.7rem; background: var(--card); }
summary { padding: 0.7rem 1rem; cursor: pointer; overflow-wrap: anywhere; }
summary .badge { margin-inline-end: 0.5rem; padding: 0.1rem 0.5rem; border-radius: 1rem;
  font-size: 0.78rem; white-space: nowrap; color: var(--warn); border: 1px solid currentColor; }
.inside { padding: 0.2rem 1rem 1rem; }
.inside > div { margin-top: 0.8rem; } .inside :is(p, td) { overflow-wrap: anywhere; }
.words { white-space: pre-wrap; padding: 0.6rem 0.8rem; border-radius: 0.4rem; background: var(--paper);
  font-size: 0.92rem; }
.wide { overflow-x: auto; }
.found td { border-top: 1px solid var(--line); padding-block: 0.4rem; }
.found .right { color: var(--good); font-weight: 600; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
@media (max-width: 40rem) {
  .panel { padding: 0.8rem; }
  .scores :is(thead th, td):is(:nth-child(2), :nth-child(5)) { display: none; }
}
@media print { details > summary { list-style: none; } body { padding: 0; } }
"""


def html_report(
    scores: Mapping[str, Score],
    outcomes: Sequence[Outcome],
    *,
    project: str,
    questions: str,
    made: datetime,
    warnings: Sequence[str] = (),
) -> str:
    """The page. `questions` names the file they came from."""
    uncovered = sum(one.question.unanswerable for one in outcomes)
    title = f"How well “{project}” answers"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{_said(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<h1>{_said(title)}</h1>
<p class="quiet">{len(outcomes)} questions from {_said(questions)}: {len(outcomes) - uncovered} the documents answer,
{uncovered} they do not. {made:%d %B %Y, %H:%M} UTC.</p>
</header>
{"".join(f'<p class="warning">{_said(line)}</p>' for line in warnings)}
<div class="cards">{"".join(_card(scores[name]) for name in _HEADLINES if scores[name].count)}</div>
<h2>Scores</h2>
<div class="panel">{_score_table(scores)}
<p class="quiet small">The whisker is the 95 % interval: where the score would lie had other questions of the same
kind been asked (1000 bootstrap samples of the questions). Ranks count passages; n is the number of cases.</p></div>
<div class="pair">{_confidence(scores["ece"], outcomes)}{_latency(scores, outcomes)}</div>
{_worst(outcomes)}
{_every(outcomes)}
</body>
</html>
"""


def _said(text: str) -> str:
    """Other people's words, harmless in HTML."""
    return escape(text, quote=True)


def _card(one: Score) -> str:
    return (
        f'<div class="card"><span class="quiet small"><code>{one.measure.name}</code></span><b>{one.shown()}</b>'
        f'<span class="quiet small">{one.measure.meaning}</span></div>'
    )


def _score_table(scores: Mapping[str, Score]) -> str:
    bodies = [
        f'<tbody><tr><th colspan="6" scope="rowgroup">{group}</th></tr>{"".join(map(_score_row, members))}</tbody>'
        for group, members in groupby(scores.values(), key=lambda one: one.measure.group)
    ]
    head = (
        '<thead><tr><th>name</th><th>what it says</th><th></th><th class="number">score</th>'
        '<th class="number">95 % interval</th><th class="number">n</th></tr></thead>'
    )
    return f'<table class="scores">{head}{"".join(bodies)}</table>'


def _score_row(one: Score) -> str:
    drawn = one.value is not None and one.measure.unit in ("share", "mean")
    meaning = one.measure.meaning if one.count else "no question says anything about it"
    return (
        f'<tr><td><code>{one.measure.name}</code></td><td class="quiet">{meaning}</td>'
        f"<td>{bar(one.value or 0.0, one.low, one.high) if drawn else ''}</td>"
        f'<td class="number">{one.shown()}</td><td class="number quiet">{one.shown_interval()}</td>'
        f'<td class="number quiet">{one.count}</td></tr>'
    )


def _confidence(error: Score, outcomes: Sequence[Outcome]) -> str:
    return f"""<div class="panel"><h2>Does confidence mean what it says?</h2>
{reliability_diagram(reliability(outcomes))}
<p class="quiet small">Height: the share of answers that were right. On the dashed line confidence is exact; above
it, it is too modest; below it, too sure. Larger points are more answers; refusals are the point at 0.
On average it is off by {error.shown()}.</p></div>"""


def _latency(scores: Mapping[str, Score], outcomes: Sequence[Outcome]) -> str:
    marks = [(f"p{name} {scores[f'p{name}_ms'].shown()}", scores[f"p{name}_ms"].value or 0.0) for name in (50, 95)]
    drawn = histogram([one.seconds * 1000 for one in outcomes], marks=marks)
    return f"""<div class="panel"><h2>How long does an answer take?</h2>
{drawn}
<p class="quiet small">From the question to the last word, one question at a time. Slower answers than the scale
shows are in the last column.</p></div>"""


def _worst(outcomes: Sequence[Outcome]) -> str:
    """What went wrong, the surest first: a wrong answer that sounds sure misleads most."""
    wrong = sorted((one for one in outcomes if one.complaint), key=lambda one: -one.answer.confidence)
    if not wrong:
        return "<h2>Nothing went wrong</h2>"
    more = f'<p class="quiet">and {len(wrong) - _WORST} more</p>' if len(wrong) > _WORST else ""
    shown = "".join(_details(one, is_open=place == 0) for place, one in enumerate(wrong[:_WORST]))
    return f"""<h2>What went wrong: {len(wrong)} of {len(outcomes)}</h2>
<p class="quiet">The surest first: a wrong answer that sounds sure misleads most.</p>
{shown}{more}"""


def _details(one: Outcome, *, is_open: bool) -> str:
    question = one.question
    wants = [
        ("file", question.relevant),
        ("heading", question.relevant_sections),
        ("key answer", question.answers),
    ]
    expected = "".join(f'<p><span class="quiet">{what}</span> {_any_of(named)}</p>' for what, named in wants if named)
    nothing = "<p>A refusal: the documents do not cover this.</p>"
    rows = "".join(
        _found_row(rank, passage, one) for rank, passage in enumerate(one.ranking[:_SHOWN_PASSAGES], start=1)
    )
    certainty = "declined" if one.declined else f"confidence {one.answer.confidence:.0%}"
    return f"""<details{" open" if is_open else ""}>
<summary><span class="badge">{one.complaint}</span>{_said(question.text)}
<span class="quiet small">{_said(question.id)}, {certainty}</span></summary>
<div class="inside">
<div><h3>What was expected</h3>{nothing if question.unanswerable else expected}</div>
<div><h3>What was answered</h3><p class="words">{_said(one.text)}</p></div>
<div><h3>What was found</h3><table class="found"><thead><tr><th>rank</th><th>passage</th>
<th class="number">score</th></tr></thead>{rows}</table></div>
</div>
</details>
"""


def _any_of(names: Sequence[str]) -> str:
    return ' <span class="quiet">or</span> '.join(f"<code>{_said(name)}</code>" for name in names)


def _found_row(rank: int, passage: Passage, one: Outcome) -> str:
    chunk = passage.chunk
    right = not one.question.unanswerable and chunk.source in one.question.files
    page = f", page {chunk.page}" if chunk.page else ""
    name = f"{_said(chunk.source)}{page}"
    file = f'<span class="right">{name} ✓</span>' if right else name
    return (
        f'<tr><td class="quiet">{rank}</td><td>{file} <span class="quiet">{_said(chunk.section)}</span>'
        f'<div class="small quiet">{_said(excerpt(passage))}</div></td><td class="number">{passage.score:.2f}</td></tr>'
    )


def _every(outcomes: Sequence[Outcome]) -> str:
    rows = "".join(
        f"<tr><td>{_said(one.question.id)}</td><td>{_said(one.question.text)}</td>"
        f'<td class="number">{_rank(one.by_file)}</td><td class="number">{_rank(one.by_heading)}</td>'
        f'<td class="number">{_rank(one.by_passage)}</td>'
        f'<td class="number">{"declined" if one.declined else f"{one.answer.confidence:.0%}"}</td>'
        f'<td class="number">{one.seconds * 1000:.0f} ms</td><td>{one.complaint or ""}</td></tr>'
        for one in outcomes
    )
    return f"""<h2>Every question</h2>
<details><summary>{len(outcomes)} questions, with the rank of the right file, heading and passage</summary>
<div class="inside wide"><table class="found"><thead><tr><th>id</th><th>question</th>
<th class="number">file</th><th class="number">heading</th><th class="number">passage</th>
<th class="number">confidence</th><th class="number">took</th><th>what went wrong</th></tr></thead>
{rows}</table></div></details>"""


def _rank(placement: Placement | None) -> str:
    return "" if placement is None else str(placement.rank or "not found")
