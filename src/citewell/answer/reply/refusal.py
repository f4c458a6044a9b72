"""What is said instead of an answer: an honest no, a question back, or a friendly word. Pure.

Nothing here rests on a passage; the topics it names are offers, not citations.
"""

from collections.abc import Sequence
from typing import assert_never

from citewell.answer.question import ResolvedQuestion
from citewell.models import Filters, Passage

_MOST_TOPICS = 3


def refusal(
    asked: ResolvedQuestion, passages: Sequence[Passage], where: Filters, *, selected: bool = False
) -> tuple[str, tuple[Passage, ...]]:
    """The words, and the topics they offer: a passage each. A selection has none to offer."""
    topics = () if selected else nearest_topics(passages)
    match asked.kind:
        case "courtesy":
            words, topics = asked.reply, ()
        case "unclear":
            words = f"{asked.reply} You could ask about {_named(topics, 'or')}." if topics else asked.reply
        case "question" | "more" if selected:
            words = "An answer was not found in selection; ask again without one to search the whole book."
        case "more" if passages:
            words = f"Nothing more was found on this.{_covered(topics, 'nearby')}"
        case "question" | "more":
            if where and not passages:
                words = f"There is nothing in {where} to answer from."
            elif where:
                words = f"This is not covered in {where}.{_covered(topics, 'there')}"
            else:
                words = f"This is not covered by this book.{_covered(topics, 'it covers')}"
        case never:
            assert_never(never)
    return words, topics


def nearest_topics(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The first few topics among the passages, none of which is, or is part of, another."""
    kept: list[Passage] = []
    for passage in passages:
        path = f"{passage.chunk.topic} > "
        others = [f"{one.chunk.topic} > " for one in kept]
        if not any(path.startswith(other) or other.startswith(path) for other in others):
            kept.append(passage)
    return tuple(kept[:_MOST_TOPICS])


def _covered(topics: Sequence[Passage], place: str) -> str:
    if not topics:
        return ""
    subject, verb = ("topics", "are") if len(topics) > 1 else ("topic", "is")
    return f" The nearest {subject} {place} {verb} {_named(topics, 'and')}."


def _named(topics: Sequence[Passage], joint: str) -> str:
    """“A”, “B” and “C”"""
    *first, last = [f"“{topic.chunk.topic}”" for topic in topics]
    return f"{', '.join(first)} {joint} {last}" if first else last
