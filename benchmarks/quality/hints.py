"""How a hint changes retrieval: golden questions with a hint from the right section, from elsewhere, or none.

    python benchmarks/quality/hints.py [BOOK] --home FOLDER

BOOK is a folder of documents with a `golden.jsonl`, by default the example book; it is indexed below --home. A hint is
a sentence: of the section that answers, or of another document. Questions like "What does this mean?" are asked too;
they should retrieve the passage that the hint is from.
"""

import argparse
import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from citewell import wiring
from citewell.answer import flow
from citewell.answer.engines import AnswerEngines
from citewell.answer.reply.markers import NumberedMarkers
from citewell.evaluate.questions import Question, read_questions
from citewell.ingest.flow import ingest
from citewell.models import DEFAULT_PROJECT, Answer, Chunk, Project
from citewell.ports import Library
from citewell.settings import Settings
from citewell.text.units import split_units, unit_text

BOOK = Path(__file__).parents[2] / "examples" / "robotics-book"
PROJECT = Project.named(DEFAULT_PROJECT)
REFERRING_QUESTIONS = ("What does this mean?", "why?", "Explain this, please", "How does it work?")


@dataclass(frozen=True, slots=True)
class HintCase:
    """A question, the ids of its section's chunks, a sentence from there and a sentence from elsewhere."""

    question: Question
    right: frozenset[str]
    near: str
    far: str


def make_cases(questions: Sequence[Question], chunks: Sequence[Chunk]) -> list[HintCase]:
    rng = random.Random(3)
    cases = []
    for question in questions:
        sections = set(question.sections)
        right = [chunk for chunk in chunks if any((chunk.source, name) in sections for name in chunk.headings)]
        far = [chunk for chunk in chunks if chunk.source not in question.files]
        if right:
            ids = frozenset(chunk.id for chunk in right)
            cases.append(HintCase(question, ids, rng.choice(_sentences(right)), rng.choice(_sentences(far))))
    return cases


def _sentences(chunks: Sequence[Chunk]) -> list[str]:
    sentences = [
        unit_text(chunk.text, unit) for chunk in chunks for unit in split_units(chunk.text) if unit.kind == "sentence"
    ]
    return [sentence for sentence in sentences if 8 <= len(sentence.split()) <= 60]


async def ask(question: str, hint: str, engines: AnswerEngines) -> tuple[str, Answer]:
    return await flow.collect(
        flow.answer(question, project=PROJECT, engines=engines, hint=hint), NumberedMarkers().render
    )


async def report(cases: Sequence[HintCase], engines: AnswerEngines) -> None:
    print(
        f"{'looking':10} {'number':>6} {'file@1':>7} {'file@5':>7} {'section@1':>9} {'key answer':>11} {'declined':>9}"
    )
    for name in ("nowhere", "there", "elsewhere"):
        rows = []
        for case in cases:
            hint = {"nowhere": "", "there": case.near, "elsewhere": case.far}[name]
            text, answer = await ask(case.question.text, hint, engines)
            files = [passage.chunk.source in case.question.files for passage in answer.retrieved]
            key = any(key.casefold() in text.casefold() for key in case.question.answers)
            rows.append((files[0], any(files), answer.retrieved[0].chunk.id in case.right, key, not answer.confidence))
        shares = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        print(f"{name:10} {len(rows):6} " + "{:7.3f} {:7.3f} {:9.3f} {:11.3f} {:9.3f}".format(*shares))
    for question in REFERRING_QUESTIONS:
        outcomes = []
        for case in cases:
            _, answer = await ask(question, case.near, engines)
            contains_hint = [
                " ".join(case.near.split()) in " ".join(passage.chunk.text.split()) for passage in answer.retrieved
            ]
            outcomes.append((contains_hint[0], any(contains_hint), bool(answer.confidence)))
        first, five, answered = (sum(column) / len(outcomes) for column in zip(*outcomes, strict=True))
        print(f"{question:22} its passage first {first:.3f}, in five {five:.3f}; answered {answered:.3f}")


async def run(book: Path, home: Path) -> None:
    settings = Settings.model_validate({"home": home})
    async with wiring.open_for_ingest(settings, wait=True, on_wait=lambda: None) as engines:
        recipe = wiring.ingest_recipe(settings)
        await ingest([book], project=PROJECT, engines=engines, recipe=recipe, prune=True, progress=lambda *_: None)
    async with wiring.open_for_answers(settings) as resources:
        chunks = await _all_chunks(resources.library)
        covered = [
            question
            for question in read_questions(book / "golden.jsonl")
            if question.relevant and not question.unanswerable
        ]
        await report(make_cases(covered, chunks), resources.engines)


async def _all_chunks(library: Library) -> list[Chunk]:
    return [chunk async for batch in library.chunks() for _, chunk in batch]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("book", type=Path, nargs="?", default=BOOK)
    parser.add_argument("--home", type=Path, required=True)
    options = parser.parse_args()
    asyncio.run(run(options.book, options.home))


if __name__ == "__main__":
    main()
