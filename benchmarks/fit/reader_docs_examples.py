"""Make training examples of the reader from the answer set: the windows that the product would read, with labels.

    python benchmarks/fit/reader_docs_examples.py DATA OUT.npz [--home FOLDER]

The examples know their site, so that `reader.py train --leave-out SITE` fits on the others and is judged on this one. A
window with a unit of a gold quote answers. So does one that holds all keys, but which of its units do is not known.
"""

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from citewell.answer.engines import AnswerEngines
from citewell.answer.question import resolve
from citewell.answer.quoting import score_candidates
from citewell.answer.quoting.read import readable_windows
from citewell.answer.retrieval import retrieve

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.fit.reader_examples import UNKNOWN, Example, save
from benchmarks.lib.made_questions import typed_carelessly
from benchmarks.quality.answers import (
    PROJECT,
    AnswerQuestion,
    is_right,
    normalized,
    open_site,
    read_questions,
    without_markup,
)

PASSAGES, WINDOWS, NEGATIVE_WINDOWS = 10, 14, 8
COPIES = 2
"""How often each window is used, with the question typed in different ways."""
_MIN_SHARED_CHARACTERS = 12


def gold_units(question: AnswerQuestion, units: Sequence[str]) -> list[int]:
    """The units that a gold quote contains, or that contain it."""
    gold = [normalized(without_markup(quote)) for quote in question.quotes]
    found = []
    for at, unit in enumerate(units):
        text = normalized(without_markup(unit))
        if len(text) >= _MIN_SHARED_CHARACTERS and any(text in quote or quote in text for quote in gold):
            found.append(at)
    return found


def labelled(question: AnswerQuestion, heading: str, units: Sequence[str]) -> Example:
    """The window with what is known about it."""
    text = "\n".join(units)
    gold = gold_units(question, units) if question.answerable else []
    complete = question.answerable and is_right(question, text)
    part = question.answerable and any(
        is_right(question.with_keys((group,)), text) for group in question.must if len(question.must) > 1
    )
    answers = 1 if gold or complete else UNKNOWN if part else 0
    unknown = range(len(units)) if not gold and (complete or part) else ()
    return Example(question.question, heading, tuple(units), tuple(gold), tuple(unknown), answers)


async def examples_of(question: AnswerQuestion, engines: AnswerEngines) -> list[Example]:
    resolved = await resolve(question.question, (), None, selection="", hint="")
    retrieval = await retrieve(resolved.search_text, project=PROJECT.id, engines=engines, limit=PASSAGES)
    candidates = score_candidates(retrieval.question, retrieval.passages, retrieval.weights, with_code=True)
    windows = [text for _, text in readable_windows(candidates, retrieval.passages, WINDOWS)]
    examples = [labelled(question, window.heading, window.units) for window in windows]
    return [example for rank, example in enumerate(examples) if rank < NEGATIVE_WINDOWS or example.answers]


async def make(options: argparse.Namespace, home: Path) -> tuple[list[Example], list[str]]:
    rng = random.Random(7)
    examples, sites = list[Example](), list[str]()
    questions = read_questions(options.data)
    for site in dict.fromkeys(question.site for question in questions):
        async with open_site(site, data=options.data, home=home) as engines:
            for question in (question for question in questions if question.site == site):
                for example in await examples_of(question, engines):
                    for copy in range(COPIES):
                        typed = typed_carelessly(example.question, rng) if copy else example.question
                        examples.append(example.asked_as(typed))
                        sites.append(site)
    order = rng.sample(range(len(examples)), len(examples))
    return [examples[at] for at in order], [sites[at] for at in order]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--home", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        examples, sites = asyncio.run(make(options, options.home or Path(scratch)))
    save(examples, options.out, sites)


if __name__ == "__main__":
    main()
