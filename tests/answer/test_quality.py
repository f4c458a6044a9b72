"""The example book is answered as well as we say. Nothing was fitted on these questions."""

import asyncio
from pathlib import Path

from citewell import wiring
from citewell.evaluate.questions import read_questions
from citewell.evaluate.run import run_questions
from citewell.evaluate.scores import Score, score
from citewell.evaluate.text_report import text_report
from tests.conftest import BOOK, PROJECT, settings_for


def test_golden_questions_are_found_answered_and_declined(book_home: Path) -> None:
    async def run() -> tuple[dict[str, Score], str]:
        async with wiring.open_for_answers(settings_for(book_home, reader="minilm")) as reading:
            questions = read_questions(BOOK / "golden.jsonl")
            outcomes = await run_questions(questions, project=PROJECT, engines=reading.engines, library=reading.library)
        return score(outcomes), text_report(score(outcomes), outcomes)

    scores, shown = asyncio.run(run())
    least = {"hit@5": 0.90, "key_answer": 0.70, "declined": 14 / 15, "citations_resolve": 1.0, "citations_quote": 1.0}
    assert [name for name, bound in least.items() if (scores[name].value or 0) < bound] == [], shown
