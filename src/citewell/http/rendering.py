"""Answers and sources as the endpoints show them: one function fills the fields that all of them share.

Each endpoint's contract has its own names for a source; what is the same in all of them is written once.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from citewell.answer.reply import EXTRACTIVE, locate
from citewell.models import Answer, Chunk, Passage, StageReached
from citewell.schemas import ask, chat, query
from citewell.schemas.answer import RatedAnswerFields, SupportedSentence, Topic
from citewell.schemas.errors import ErrorResponse
from citewell.schemas.location import SourceLocation
from citewell.schemas.v1 import chat as v1

_EXCERPT_CHARACTERS = 200

ModelT = TypeVar("ModelT", bound=BaseModel)
EndT = TypeVar("EndT")
EventT = TypeVar("EventT", bound=BaseModel)
ChatEventT = TypeVar("ChatEventT", bound=chat.ChatEventFields)


@dataclass(frozen=True, slots=True)
class EventRenderer(Generic[EndT, EventT]):
    """How an endpoint writes the events of an answer stream."""

    stage: Callable[[StageReached], EventT | None]
    text: Callable[[str], EventT]
    end: Callable[[EndT], EventT]
    error: Callable[[ErrorResponse], EventT]

    async def render(self, stream: AsyncGenerator[StageReached | str | EndT, None]) -> AsyncGenerator[EventT, None]:
        """The stream in the endpoint's own events."""
        async with aclosing(stream):
            async for item in stream:
                if isinstance(item, StageReached):
                    if event := self.stage(item):
                        yield event
                elif isinstance(item, str):
                    yield self.text(item)
                else:
                    yield self.end(item)


def chat_event_renderer(event: type[ChatEventT], end: Callable[[EndT], ChatEventT]) -> EventRenderer[EndT, ChatEventT]:
    """The events of `/chat/stream` and `/api/v1/chat/stream`, which differ in the response at their end."""
    return EventRenderer(
        stage=lambda reached: event(stage=reached.stage),
        text=lambda text: event(delta=text),
        end=end,
        error=lambda error: event(done=True, error=error),
    )


def render_answer_fields(answer: Answer) -> RatedAnswerFields:
    """What is said about an answer beside its text and sources; the only place that fills these fields."""
    return RatedAnswerFields(
        confidence=round(answer.confidence, 4),
        nearest=_render_topics(answer),
        support=render_support(answer),
        unsupported=list(answer.unsupported) or None,
        notice=answer.notice or None,
    )


def fill_fields(response: ModelT, fields: BaseModel) -> ModelT:
    """The response with every field that it shares with `fields` set, except where those are None."""
    own = type(response).model_fields
    values = {name: value for name, value in fields if name in own and value is not None}
    return response.model_copy(update=values)


def render_support(answer: Answer) -> list[SupportedSentence] | None:
    """The claims of an answer that an LLM wrote, with their verdicts; a quotation needs none."""
    if answer.model == EXTRACTIVE:
        return None
    sentences = [
        SupportedSentence(
            sentence=segment.text,
            verdict=segment.support.verdict,
            score=segment.support.score,
            chunk_ids=[passage.chunk.citation_id for passage in segment.passages],
        )
        for segment in answer.segments
        if segment.support
    ]
    return sentences or None


def _render_topics(answer: Answer) -> list[Topic] | None:
    chunks = [passage.chunk for passage in answer.nearest]
    return [Topic(title=chunk.topic, url=chunk.url, source_file=chunk.source) for chunk in chunks] or None


def render_location(chunk: Chunk, passage: Passage | None = None, answer: Answer | None = None) -> SourceLocation:
    """Where a chunk is; of a passage that an answer cites, with the line of the quoted words and a link to them."""
    cited = locate(answer, passage) if answer and passage else None
    return SourceLocation(
        start=chunk.start,
        end=chunk.end,
        line=cited.line if cited else chunk.first_line,
        page=chunk.page,
        chunk_id=chunk.id,
        document_id=chunk.document_id,
        source_url=cited.source_url if cited else chunk.url,
    )


def render_citation(passage: Passage, answer: Answer) -> ask.Citation:
    """A cited passage as `/api/ask` shows it."""
    chunk = passage.chunk
    citation = ask.Citation(
        chapter=chunk.source.rsplit("/", 1)[-1].rsplit(".", 1)[0],
        chapter_title=chunk.chapter,
        source_file=chunk.source,
        excerpt=answer.excerpt(passage, length=_EXCERPT_CHARACTERS),
    )
    return fill_fields(citation, render_location(chunk, passage, answer))


def render_query_source(passage: Passage, answer: Answer) -> query.Source:
    """A cited passage as `/api/query` shows it."""
    chunk = passage.chunk
    source = query.Source(
        chapter=chunk.chapter or chunk.source,
        section=chunk.section or chunk.chapter or chunk.source,
        filename=chunk.source,
        score=passage.cosine,
    )
    return fill_fields(source, render_location(chunk, passage, answer))


def render_chat_source(
    passage: Passage, answer: Answer, *, quotes: list[str | None] | None = None
) -> chat.SourceCitation:
    """A cited passage as `/chat` shows it."""
    chunk = passage.chunk
    source = chat.SourceCitation(
        source_url=f"/{chunk.source}",  # where it has no address
        title=chunk.chapter,
        section=chunk.section or chunk.chapter,
        chunk_position=chunk.index or 0,
        similarity_score=passage.cosine,
        snippet=chunk.text[:_EXCERPT_CHARACTERS],
        quotes=quotes,
    )
    return fill_fields(source, render_location(chunk, passage, answer))


def render_source(
    chunk: Chunk, *, cosine: float | None = None, passage: Passage | None = None, answer: Answer | None = None
) -> v1.Source:
    """A chunk as `/api/v1` shows it, with its distance from the question."""
    source = v1.Source(
        id=chunk.public_id,
        documentId=chunk.document_id,
        chunkText=chunk.text,
        chunkIndex=chunk.index,
        source=chunk.source,
        distance=None if cosine is None else 1 - cosine,
        source_url=None,
        chapter=chunk.chapter,
        section=chunk.section,
    )
    return fill_fields(source, render_location(chunk, passage, answer))


def render_cited_source(passage: Passage, answer: Answer) -> v1.Source:
    """A cited passage as `/api/v1/chat` shows it."""
    return render_source(passage.chunk, cosine=passage.cosine, passage=passage, answer=answer)
