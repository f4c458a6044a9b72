"""The example book is answered as well as we say. Nothing was fitted on these questions."""

import asyncio
from pathlib import Path

from citewell import wiring
from citewell.evaluate.golden import read_questions, run_questions
from citewell.evaluate.scores import score, table
from tests.conftest import BOOK, PROJECT, settings_for


def test_golden_questions_are_found_answered_and_declined(book_home: Path) -> None:
    async def run() -> tuple[dict[str, float], str]:
        async with wiring.reading(settings_for(book_home)) as reading:
            questions = read_questions(BOOK / "golden.jsonl")
            outcomes = await run_questions(questions, project=PROJECT, engines=reading.engines)
        return score(outcomes), table(score(outcomes), outcomes)

    scores, shown = asyncio.run(run())
    assert scores["hit@5"] >= 0.90, shown
    assert scores["key_answer"] >= 0.70, shown
    assert scores["declined"] >= 12 / 15, shown
