"""A chunk as the `/api/v1` doors show it, and what several doors say beside an answer."""

from citewell.answer.reply import EXTRACTIVE, locate
from citewell.models import Answer, Chunk, Passage
from citewell.schemas.ask import Topic
from citewell.schemas.support import SupportedSentence
from citewell.schemas.v1.chat import Source


def render_source(chunk: Chunk, *, score: float | None = None) -> Source:
    """The chunk, where it stands, and how far from the question it is."""
    return Source(
        id=chunk.id,
        documentId=chunk.document_id,
        chunkText=chunk.text,
        chunkIndex=chunk.index,
        source=chunk.source,
        distance=None if score is None else min(1.0, max(0.0, 1 - score)),
        start=chunk.start,
        end=chunk.end,
        line=chunk.first_line,
        page=chunk.page,
        source_url=chunk.url,
        chapter=chunk.chapter,
        section=chunk.section,
    )


def render_support(answer: Answer) -> list[SupportedSentence] | None:
    """The claims of an answer that was written, with their verdicts; a quotation needs none."""
    if answer.model == EXTRACTIVE:
        return None
    told = [
        SupportedSentence(
            sentence=one.text,
            verdict=one.support.verdict,
            score=one.support.score,
            chunk_ids=[passage.chunk.id for passage in one.passages],
        )
        for one in answer.segments
        if one.support
    ]
    return told or None


def render_topics(answer: Answer) -> list[Topic] | None:
    """Where nothing was answered: what comes nearest to the question."""
    chunks = [passage.chunk for passage in answer.nearest]
    return [Topic(title=one.topic, url=one.url, source_file=one.source) for one in chunks] or None


def render_cited_source(passage: Passage, answer: Answer) -> Source:
    """The same of a passage that an answer quotes: with the line of the quoted words, and a link to them."""
    place = locate(answer, passage)
    shown = render_source(passage.chunk, score=passage.score)
    return shown.model_copy(update={"line": place.line, "source_url": place.source_url})
