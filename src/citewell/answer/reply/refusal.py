"""The reply where there is no answer: not covered, a question back, or a polite phrase. Pure.

It cites nothing: the topics it names are suggestions.
"""

from collections.abc import Sequence
from typing import assert_never

from citewell.answer.question import ResolvedQuestion
from citewell.models import Filters, Passage

_MAX_TOPICS = 3


def refusal(
    resolved: ResolvedQuestion,
    passages: Sequence[Passage],
    filters: Filters,
    *,
    title: str = "",
    selected: bool = False,
) -> tuple[str, tuple[Passage, ...]]:
    """The text of the reply, and a passage for each topic it suggests; none where a selection was asked about.

    `title` is what the documents are called; without one they are "these documents".
    """
    topics = () if selected else nearest_topics(passages)
    match resolved.kind:
        case "courtesy":
            text, topics = resolved.reply, ()
        case "unclear":
            text = f"{resolved.reply} You could ask about {_join_topics(topics, 'or')}." if topics else resolved.reply
        case "question" | "more" if selected:
            text = "An answer was not found in selection; ask again without one to search all documents."
        case "more" if passages:
            text = f"Nothing more was found on this.{_nearest_topics_sentence(topics, 'nearby')}"
        case "question" | "more":
            if filters and not passages:
                text = f"There is nothing in {filters} to answer from."
            elif filters:
                text = f"This is not covered in {filters}.{_nearest_topics_sentence(topics, 'there')}"
            else:
                name, where = (title, "it covers") if title else ("these documents", "they cover")
                text = f"This is not covered by {name}.{_nearest_topics_sentence(topics, where)}"
        case never:
            assert_never(never)
    return text, topics


def nearest_topics(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The first passages with different topics, none of which is a part of another."""
    nearest: list[Passage] = []
    for passage in passages:
        path = f"{passage.chunk.topic} > "
        others = [f"{other.chunk.topic} > " for other in nearest]
        if not any(path.startswith(other) or other.startswith(path) for other in others):
            nearest.append(passage)
    return tuple(nearest[:_MAX_TOPICS])


def _nearest_topics_sentence(topics: Sequence[Passage], where: str) -> str:
    """ " The nearest topics nearby are “A” and “B”."; empty where there are no topics."""
    if not topics:
        return ""
    subject, verb = ("topics", "are") if len(topics) > 1 else ("topic", "is")
    return f" The nearest {subject} {where} {verb} {_join_topics(topics, 'and')}."


def _join_topics(topics: Sequence[Passage], conjunction: str) -> str:
    """“A”, “B” and “C”"""
    *first, last = [f"“{topic.chunk.topic}”" for topic in topics]
    return f"{', '.join(first)} {conjunction} {last}" if first else last
