"""Ask the answer set's questions and score the answers: right, wrongly declined, near-topic declined, calibrated.

    python benchmarks/quality/answers.py DATA [--home FOLDER] [--sites SITE ...] [--save FILE] [--wrong] [--llm]

DATA holds `answers/answers.jsonl`, and the documents of each site. Each site has its own index below --home;
a missing one is built. Without --llm the answers are quotes only. --save writes a JSON line per question, --wrong
prints each failed question with its answer.
"""

import argparse
import asyncio
import json
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from citewell import wiring
from citewell.answer import flow
from citewell.answer.engines import AnswerEngines
from citewell.answer.reply.markers import NumberedMarkers
from citewell.ingest.flow import ingest
from citewell.models import DEFAULT_PROJECT, Project
from citewell.settings import Settings

PROJECT = Project.named(DEFAULT_PROJECT)
DOCUMENTS = {"pdf": "pdf/zava_hr"}
"""Where the documents of a site are, if not in docs/<site>."""
SURE = 0.9
_RESAMPLES = 1000
_LONG_ANSWER_CHARACTERS = 1500
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AnswerQuestion:
    """A line of `answers.jsonl`: a question with the keys that any right answer contains."""

    id: str
    site: str
    kind: str
    question: str
    answerable: bool
    must: tuple[tuple[str, ...], ...]
    files: frozenset[str]
    """Files that hold the answer; others may say the same."""
    quotes: tuple[str, ...] = ()
    """Words of these files that answer."""

    def with_keys(self, must: tuple[tuple[str, ...], ...]) -> "AnswerQuestion":
        return replace(self, must=must)


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """What the product answered, and whether that is right."""

    question: AnswerQuestion
    text: str
    confidence: float
    declined: bool
    right: bool
    """A key of every group is in an answer that was shown. Never true of a question that is not answerable."""
    grounded: bool

    @property
    def good(self) -> bool:
        return self.right if self.question.answerable else self.declined


def read_questions(data: Path) -> list[AnswerQuestion]:
    lines = (data / "answers" / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines if line.strip()]
    return [
        AnswerQuestion(
            id=row["id"],
            site=row["site"],
            kind=row["kind"],
            question=row["question"],
            answerable=row["answerable"],
            must=tuple(map(tuple, row.get("must", ()))),
            files=frozenset(gold["file"] for gold in row.get("gold", ())),
            quotes=tuple(gold["quote"] for gold in row.get("gold", ())),
        )
        for row in rows
    ]


_TYPOGRAPHY = str.maketrans("‘’“”\u00a0‐‑", "''\"\" --")
_MARKUP: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"</?(?:kbd|[abip]|em|strong|code|[bh]r|span|[uo]l|li|div|h\d|su[bp]|pre|mark|ins)\b[^<>\n]*>"), ""),
    (re.compile(r"!?\[([^\]\n]+)\]\([^)\s]*\)"), r"\1"),
    (re.compile(r"\s?\[\^?\d+(?:\s*,\s*\d+)*\]"), ""),
    (re.compile(r"`|\*\*"), ""),
    (re.compile(r"(?<![\w*])\*([^*\n]+)\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<!\w)_([^_\n]+)_(?!\w)"), r"\1"),
)


def without_markup(text: str) -> str:
    """The text without Markdown and HTML emphasis, links and citation markers."""
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return text


def normalized(text: str) -> str:
    return " ".join(text.translate(_TYPOGRAPHY).split()).lower()


def contains_key(texts: Sequence[str], key: str) -> bool:
    """Whether a normalized text holds the key; a number does not match inside a longer number."""
    for plain in {normalized(key), normalized(re.sub(r"`|\*\*", "", key))} - {""}:
        before = r"(?<![0-9])(?<![0-9]\.)" if plain[0].isdigit() else ""
        after = r"(?![0-9])(?!\.[0-9])" if plain[-1].isdigit() else ""
        pattern = re.compile(before + re.escape(plain) + after)
        if any(pattern.search(text) for text in texts):
            return True
    return False


def is_right(question: AnswerQuestion, answer: str) -> bool:
    """Whether the answer holds a key of every group."""
    texts = [normalized(answer), normalized(without_markup(answer))]
    return all(any(contains_key(texts, key) for key in group) for group in question.must)


@asynccontextmanager
async def open_site(site: str, *, data: Path, home: Path) -> AsyncIterator[AnswerEngines]:
    """Engines on the site's index; it is built if it is missing."""
    settings = Settings.model_validate({"home": home / site})
    if not (home / site / "citewell.db").is_file():
        folder = data / DOCUMENTS.get(site, f"docs/{site}")
        async with wiring.open_for_ingest(settings, wait=True, on_wait=lambda: None) as engines:
            recipe = wiring.ingest_recipe(settings)
            await ingest([folder], project=PROJECT, engines=engines, recipe=recipe, prune=True, progress=_silent)
    async with wiring.open_for_answers(settings) as resources:
        yield resources.engines


def _silent(*_: object) -> None:
    """No progress bar."""


async def ask(question: AnswerQuestion, engines: AnswerEngines) -> ScoredAnswer:
    markers = NumberedMarkers()
    text, answer = await flow.collect(
        flow.answer(question.question, project=PROJECT, engines=engines, buffered=True), markers.render
    )
    declined = answer.confidence == 0
    cited = {passage.chunk.source for passage in markers.passages}
    return ScoredAnswer(
        question=question,
        text=text,
        confidence=answer.confidence,
        declined=declined,
        right=question.answerable and not declined and is_right(question, text),
        grounded=any(source.endswith(file) or file.endswith(source) for source in cited for file in question.files),
    )


async def ask_all(
    questions: Sequence[AnswerQuestion], *, data: Path, home: Path, llm: bool, before_site: Callable[[str], None]
) -> list[ScoredAnswer]:
    answers = []
    for site in dict.fromkeys(question.site for question in questions):
        before_site(site)
        async with open_site(site, data=data, home=home) as engines:
            used = engines if llm else replace(engines, writer=None)
            answers += [await ask(question, used) for question in questions if question.site == site]
    return answers


def calibration_error(rows: Array) -> float:
    """Expected calibration error over ten bins; a row is a confidence and whether the answer was right."""
    if not len(rows):
        return 0.0
    confidence, right = rows.T
    bins = np.clip((confidence * 10).astype(int), 0, 9)
    return float(np.abs(np.bincount(bins, weights=confidence - right, minlength=10)).sum() / len(rows))


def with_interval(
    rows: Iterable[Any], statistic: Callable[[Array], float] | None = None, *, percent: bool = True
) -> str:
    """A mean, or another statistic of the rows, with its 95 % bootstrap interval."""
    values = np.asarray(list(rows), dtype=float)
    if not len(values):
        return "-"
    compute = statistic or (lambda sample: float(sample.mean()))
    draws = np.random.default_rng(7).integers(0, len(values), (_RESAMPLES, len(values)))
    low, high = np.quantile([compute(values[draw]) for draw in draws], [0.025, 0.975])
    value = compute(values)
    if percent:
        return f"{100 * value:5.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _table(title: str, groups: dict[str, list[ScoredAnswer]]) -> list[str]:
    lines = [f"{title:22}{'n':>4}  {'right':24}{'wrong':>6}{'declined':>10}"]
    for name, answers in groups.items():
        declined = sum(answer.declined for answer in answers)
        wrong = sum(not answer.declined and not answer.right for answer in answers)
        right = with_interval(answer.right for answer in answers)
        lines.append(f"  {name:20}{len(answers):4}  {right:24}{wrong:6}{declined:10}")
    return lines


def report(answers: Sequence[ScoredAnswer]) -> str:
    """Everything that is measured, as text."""
    answerable = [answer for answer in answers if answer.question.answerable]
    others = [answer for answer in answers if not answer.question.answerable]
    shown = [answer for answer in answers if not answer.declined]
    sites = sorted({answer.question.site for answer in answers})
    kinds = dict.fromkeys(answer.question.kind for answer in answerable)
    lines = _table("answerable, by kind", {k: [a for a in answerable if a.question.kind == k] for k in kinds})
    lines += _table("answerable, by site", {s: [a for a in answerable if a.question.site == s] for s in sites})
    lines.append("unanswerable, declined")
    for kind in ("near", "far"):
        for site in (*sites, "all"):
            part = [a for a in others if a.question.kind == kind and site in (a.question.site, "all")]
            lines.append(f"  {kind:5}{site:19}{len(part):4}  {with_interval(a.declined for a in part)}")
    lengths = [len(answer.text) for answer in answers if answer.right]
    calibrated = [(answer.confidence, answer.right) for answer in shown]
    sure = [answer.right for answer in shown if answer.confidence >= SURE]
    lines.append("confidence of shown answers")
    for tenth in range(10):
        part = [answer for answer in shown if min(int(answer.confidence * 10), 9) == tenth]
        if part:
            mean = np.mean([answer.confidence for answer in part])
            lines.append(
                f"  {tenth / 10:.1f} to {(tenth + 1) / 10:.1f}  n {len(part):3}  mean {mean:.2f}"
                f"  right {np.mean([answer.right for answer in part]):.2f}"
            )
    lines += [
        f"right                  {with_interval(a.right for a in answerable)}",
        f"wrongly declined       {with_interval(a.declined for a in answerable)}",
        f"near-topic declined    {with_interval(a.declined for a in others if a.question.kind == 'near')}",
        f"far declined           {with_interval(a.declined for a in others if a.question.kind == 'far')}",
        f"cites a gold file      {with_interval(a.grounded for a in answerable if not a.declined)}",
        f"calibration error      {with_interval(calibrated, calibration_error, percent=False)}   of {len(shown)}",
        f"right at >= {SURE}         {with_interval(sure)}   of {len(sure)}",
        f"overall                {with_interval(answer.good for answer in answers)}",
        f"length of right ones   {np.mean(lengths) if lengths else 0:.0f} characters on average,"
        f" {sum(length > _LONG_ANSWER_CHARACTERS for length in lengths)} over {_LONG_ANSWER_CHARACTERS}",
    ]
    return "\n".join(lines)


def failures(answers: Sequence[ScoredAnswer]) -> str:
    lines = []
    for answer in answers:
        if not answer.good:
            question = answer.question
            verdict = "declined" if answer.declined else f"confidence {answer.confidence:.2f}"
            lines += [f"--- {question.id} {question.kind} {verdict}", f"question: {question.question}"]
            lines += [f"keys: {question.must}"] if question.answerable else []
            lines.append(f"answer: {answer.text[:900]}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--sites", nargs="*", default=())
    parser.add_argument("--save", type=Path)
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--llm", action="store_true")
    options = parser.parse_args()
    questions = [q for q in read_questions(options.data) if not options.sites or q.site in options.sites]
    with tempfile.TemporaryDirectory() as scratch:
        home = options.home or Path(scratch)
        answers = asyncio.run(
            ask_all(questions, data=options.data, home=home, llm=options.llm, before_site=lambda _: None)
        )
    if options.save:
        rows = [json.dumps(asdict(answer), default=sorted, ensure_ascii=False) for answer in answers]
        options.save.write_text("\n".join(rows) + "\n", encoding="utf-8")
    if options.wrong:
        print(failures(answers))
    print(report(answers))


if __name__ == "__main__":
    main()
