"""The evaluation report as one HTML file: no script, no requests, light or dark mode. Pure.

Questions, answers and file names are untrusted text: each goes through `_escape`.
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

_MAX_PASSAGES = 5
_MAX_PROBLEMS = 50
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
    """The page. `questions` is the name of the JSONL file."""
    uncovered = sum(outcome.question.unanswerable for outcome in outcomes)
    title = f"How well “{project}” answers"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{_escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<h1>{_escape(title)}</h1>
<p class="quiet">{len(outcomes)} questions from {_escape(questions)}: {len(outcomes) - uncovered} the documents answer,
{uncovered} they do not. {made:%d %B %Y, %H:%M} UTC.</p>
</header>
{"".join(f'<p class="warning">{_escape(line)}</p>' for line in warnings)}
<div class="cards">{"".join(_card(scores[name]) for name in _HEADLINES if scores[name].count)}</div>
<h2>Scores</h2>
<div class="panel">{_score_table(scores)}
<p class="quiet small">The whisker is the 95 % interval: where the score would lie had other questions of the same
kind been asked (1000 bootstrap samples of the questions). Ranks count passages; n is the number of cases.</p></div>
<div class="pair">{_confidence_panel(scores["ece"], outcomes)}{_latency_panel(scores, outcomes)}</div>
{_problems(outcomes)}
{_all_questions(outcomes)}
</body>
</html>
"""


def _escape(text: str) -> str:
    """Untrusted text, escaped for HTML."""
    return escape(text, quote=True)


def _card(score: Score) -> str:
    return (
        f'<div class="card"><span class="quiet small"><code>{score.measure.name}</code></span>'
        f"<b>{score.formatted()}</b>"
        f'<span class="quiet small">{score.measure.meaning}</span></div>'
    )


def _score_table(scores: Mapping[str, Score]) -> str:
    bodies = [
        f'<tbody><tr><th colspan="6" scope="rowgroup">{group}</th></tr>{"".join(map(_score_row, members))}</tbody>'
        for group, members in groupby(scores.values(), key=lambda score: score.measure.group)
    ]
    head = (
        '<thead><tr><th>name</th><th>what it says</th><th></th><th class="number">score</th>'
        '<th class="number">95 % interval</th><th class="number">n</th></tr></thead>'
    )
    return f'<table class="scores">{head}{"".join(bodies)}</table>'


def _score_row(score: Score) -> str:
    has_bar = score.value is not None and score.measure.unit in ("share", "mean")
    meaning = score.measure.meaning if score.count else "no question says anything about it"
    return (
        f'<tr><td><code>{score.measure.name}</code></td><td class="quiet">{meaning}</td>'
        f"<td>{bar(score.value or 0.0, score.low, score.high) if has_bar else ''}</td>"
        f'<td class="number">{score.formatted()}</td><td class="number quiet">{score.formatted_interval()}</td>'
        f'<td class="number quiet">{score.count}</td></tr>'
    )


def _confidence_panel(error: Score, outcomes: Sequence[Outcome]) -> str:
    return f"""<div class="panel"><h2>Does confidence mean what it says?</h2>
{reliability_diagram(reliability(outcomes))}
<p class="quiet small">Height: the share of answers that were right. On the dashed line confidence is exact; above
it, it is too modest; below it, too sure. Larger points are more answers; refusals are the point at 0.
On average it is off by {error.formatted()}.</p></div>"""


def _latency_panel(scores: Mapping[str, Score], outcomes: Sequence[Outcome]) -> str:
    marks = [(f"p{name} {scores[f'p{name}_ms'].formatted()}", scores[f"p{name}_ms"].value or 0.0) for name in (50, 95)]
    chart = histogram([outcome.seconds * 1000 for outcome in outcomes], marks=marks)
    return f"""<div class="panel"><h2>How long does an answer take?</h2>
{chart}
<p class="quiet small">From the question to the last word, one question at a time. Slower answers than the scale
shows are in the last column.</p></div>"""


def _problems(outcomes: Sequence[Outcome]) -> str:
    """The questions that went wrong, the highest confidence first: a wrong answer that sounds sure misleads most."""
    wrong = sorted(
        (outcome for outcome in outcomes if outcome.complaint), key=lambda outcome: -outcome.answer.confidence
    )
    if not wrong:
        return "<h2>Nothing went wrong</h2>"
    more = f'<p class="quiet">and {len(wrong) - _MAX_PROBLEMS} more</p>' if len(wrong) > _MAX_PROBLEMS else ""
    details = "".join(_details(outcome, is_open=place == 0) for place, outcome in enumerate(wrong[:_MAX_PROBLEMS]))
    return f"""<h2>What went wrong: {len(wrong)} of {len(outcomes)}</h2>
<p class="quiet">The surest first: a wrong answer that sounds sure misleads most.</p>
{details}{more}"""


def _details(outcome: Outcome, *, is_open: bool) -> str:
    question = outcome.question
    named = [
        ("file", question.relevant),
        ("heading", question.relevant_sections),
        ("key answer", question.answers),
    ]
    expected = "".join(f'<p><span class="quiet">{what}</span> {_any_of(names)}</p>' for what, names in named if names)
    refusal = "<p>A refusal: the documents do not cover this.</p>"
    rows = "".join(
        _passage_row(rank, passage, outcome) for rank, passage in enumerate(outcome.ranking[:_MAX_PASSAGES], start=1)
    )
    certainty = "declined" if outcome.declined else f"confidence {outcome.answer.confidence:.0%}"
    return f"""<details{" open" if is_open else ""}>
<summary><span class="badge">{outcome.complaint}</span>{_escape(question.text)}
<span class="quiet small">{_escape(question.id)}, {certainty}</span></summary>
<div class="inside">
<div><h3>What was expected</h3>{refusal if question.unanswerable else expected}</div>
<div><h3>What was answered</h3><p class="words">{_escape(outcome.text)}</p></div>
<div><h3>What was found</h3><table class="found"><thead><tr><th>rank</th><th>passage</th>
<th class="number">score</th></tr></thead>{rows}</table></div>
</div>
</details>
"""


def _any_of(names: Sequence[str]) -> str:
    return ' <span class="quiet">or</span> '.join(f"<code>{_escape(name)}</code>" for name in names)


def _passage_row(rank: int, passage: Passage, outcome: Outcome) -> str:
    chunk = passage.chunk
    right = not outcome.question.unanswerable and chunk.source in outcome.question.files
    page = f", page {chunk.page}" if chunk.page else ""
    name = f"{_escape(chunk.source)}{page}"
    file = f'<span class="right">{name} ✓</span>' if right else name
    return (
        f'<tr><td class="quiet">{rank}</td><td>{file} <span class="quiet">{_escape(chunk.section)}</span>'
        f'<div class="small quiet">{_escape(excerpt(passage))}</div></td>'
        f'<td class="number">{passage.cosine:.2f}</td></tr>'
    )


def _all_questions(outcomes: Sequence[Outcome]) -> str:
    rows = "".join(
        f"<tr><td>{_escape(outcome.question.id)}</td><td>{_escape(outcome.question.text)}</td>"
        f'<td class="number">{_rank(outcome.by_file)}</td><td class="number">{_rank(outcome.by_heading)}</td>'
        f'<td class="number">{_rank(outcome.by_passage)}</td>'
        f'<td class="number">{"declined" if outcome.declined else f"{outcome.answer.confidence:.0%}"}</td>'
        f'<td class="number">{outcome.seconds * 1000:.0f} ms</td><td>{outcome.complaint or ""}</td></tr>'
        for outcome in outcomes
    )
    return f"""<h2>Every question</h2>
<details><summary>{len(outcomes)} questions, with the rank of the right file, heading and passage</summary>
<div class="inside wide"><table class="found"><thead><tr><th>id</th><th>question</th>
<th class="number">file</th><th class="number">heading</th><th class="number">passage</th>
<th class="number">confidence</th><th class="number">took</th><th>what went wrong</th></tr></thead>
{rows}</table></div></details>"""


def _rank(placement: Placement | None) -> str:
    return "" if placement is None else str(placement.rank or "not found")
