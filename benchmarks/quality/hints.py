"""What a hint does to a question: golden questions asked while looking at the right section, elsewhere, or nowhere.

    python benchmarks/quality/hints.py [BOOK] --home FOLDER

BOOK is a folder of documents with a `golden.jsonl`, by default the example book; it is taken in below --home.
A hint is a sentence: one of the section that answers, or one of another document. Then only "What does this mean?" and
the like are asked, and the passage that the hint comes from is to be found.
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
POINTING = ("What does this mean?", "why?", "Explain this, please", "How does it work?")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the chunks of its section, and a sentence from there and from elsewhere."""

    question: Question
    right: frozenset[str]
    near: str
    far: str


def hinted(questions: Sequence[Question], chunks: Sequence[Chunk]) -> list[Asked]:
    chosen = random.Random(3)
    found = []
    for one in questions:
        sections = set(one.sections)
        right = [chunk for chunk in chunks if any((chunk.source, name) in sections for name in chunk.headings)]
        far = [chunk for chunk in chunks if chunk.source not in one.files]
        if right:
            ids = frozenset(chunk.id for chunk in right)
            found.append(Asked(one, ids, chosen.choice(_sentences(right)), chosen.choice(_sentences(far))))
    return found


def _sentences(chunks: Sequence[Chunk]) -> list[str]:
    said = [
        unit_text(chunk.text, unit) for chunk in chunks for unit in split_units(chunk.text) if unit.kind == "sentence"
    ]
    return [one for one in said if 8 <= len(one.split()) <= 60]


async def told(question: str, hint: str, engines: AnswerEngines) -> tuple[str, Answer]:
    return await flow.collect(
        flow.answer(question, project=PROJECT, engines=engines, hint=hint), NumberedMarkers().render
    )


async def report(asked: Sequence[Asked], engines: AnswerEngines) -> None:
    print(
        f"{'looking':10} {'number':>6} {'file@1':>7} {'file@5':>7} {'section@1':>9} {'key answer':>11} {'declined':>9}"
    )
    for name in ("nowhere", "there", "elsewhere"):
        rows = []
        for one in asked:
            hint = {"nowhere": "", "there": one.near, "elsewhere": one.far}[name]
            text, answer = await told(one.question.text, hint, engines)
            files = [passage.chunk.source in one.question.files for passage in answer.retrieved]
            key = any(key.casefold() in text.casefold() for key in one.question.answers)
            rows.append((files[0], any(files), answer.retrieved[0].chunk.id in one.right, key, not answer.confidence))
        shares = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        print(f"{name:10} {len(rows):6} " + "{:7.3f} {:7.3f} {:9.3f} {:11.3f} {:9.3f}".format(*shares))
    for question in POINTING:
        places = []
        for one in asked:
            _, answer = await told(question, one.near, engines)
            held = [" ".join(one.near.split()) in " ".join(passage.chunk.text.split()) for passage in answer.retrieved]
            places.append((held[0], any(held), bool(answer.confidence)))
        first, five, answered = (sum(column) / len(places) for column in zip(*places, strict=True))
        print(f"{question:22} its passage first {first:.3f}, in five {five:.3f}; answered {answered:.3f}")


async def run(book: Path, home: Path) -> None:
    settings = Settings.model_validate({"home": home})
    async with wiring.open_for_ingest(settings, wait=True, on_wait=lambda: None) as writing:
        recipe = wiring.ingest_recipe(settings)
        await ingest([book], project=PROJECT, engines=writing, recipe=recipe, prune=True, progress=lambda *_: None)
    async with wiring.open_for_answers(settings) as reading:
        chunks = await _chunks(reading.library)
        covered = [one for one in read_questions(book / "golden.jsonl") if one.relevant and not one.unanswerable]
        await report(hinted(covered, chunks), reading.engines)


async def _chunks(library: Library) -> list[Chunk]:
    return [chunk async for batch in library.chunks() for _, chunk in batch]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("book", type=Path, nargs="?", default=BOOK)
    parser.add_argument("--home", type=Path, required=True)
    options = parser.parse_args()
    asyncio.run(run(options.book, options.home))


if __name__ == "__main__":
    main()
