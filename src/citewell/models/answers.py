"""Questions, passages and answers."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from citewell.models.documents import Chunk


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a chunk's text that was embedded as one, and its similarity to the question."""

    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved chunk.

    Readers are shown `cosine`. Ranking and confidence use `score`, which `similarity_scale.py` converts from it: they
    were fitted to one embedding model, and the cosines of another mean other things.
    """

    chunk: Chunk
    score: float
    """The similarity of its best window, in [0, 1]."""
    windows: tuple[Window, ...]
    mean_score: float = 0.0
    """The similarity of the mean of its windows."""
    cosine: float = 0.0
    """The cosine of its best window to the question, as the embedding model gives it, clipped to [0, 1]."""
    sentence_stems: tuple[tuple[str, ...], ...] = ()
    """The stems of each of its sentences, as the index stores them."""


@dataclass(frozen=True, slots=True)
class Cite:
    """In a stream: the text just before is supported by this passage."""

    passage: Passage


@dataclass(frozen=True, slots=True)
class StageReached:
    """In a stream: what is being done now. It has no text."""

    stage: Literal["retrieving", "generating"]


Piece: TypeAlias = str | Cite | StageReached
"""What an answer is streamed as; each endpoint renders a `Cite` as its own kind of citation marker."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer."""

    question: str
    answer: str
    timestamp: datetime | None = field(default=None, compare=False)
    """When it was stored, if it was."""


Mode = Literal["full", "selected_text", "retrieval_only", "no_results"]


Verdict = Literal["supported", "weak", "unsupported", "uncited"]


UnsupportedPolicy = Literal["drop", "fold", "show"]
"""What becomes of an LLM's sentences that no passage supports: left out; left out unless too little is left, then given
beside the answer; or shown with their verdict if they cite a passage."""


@dataclass(frozen=True, slots=True)
class Support:
    """Whether the cited text supports a sentence: the verdict, and its probability."""

    verdict: Verdict
    score: float


QUOTED = Support("supported", 1.0)
"""The support of a quote, which is the passage's own text."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of an answer, the passages that it cites, and, for a quote, where in the first one it begins."""

    text: str
    passages: tuple[Passage, ...]
    start: int | None = None
    support: Support | None = None
    """None if the text makes no claim."""
    quotes: tuple[tuple[Passage, str], ...] = ()
    """For each citation in the text, in order: the passage, and the words of it that support the text, verbatim.

    The words are "" if the text is no quote and no sentence of the passage comes near.
    """

    def source_words(self, passage: Passage) -> tuple[str, int | None]:
        """The words of a passage that support this text, and where they begin in it, as far as is known."""
        if self.start is not None or not self.quotes:
            return self.text, self.start
        words = next((words for cited, words in self.quotes if cited == passage), "")
        return (words, passage.chunk.text.find(words)) if words else (passage.chunk.text, None)


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """How many tokens an LLM read and wrote, as it reports them; None if it does not."""

    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    truncated: bool = False
    """Whether it stopped at the limit of its output."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of the answer flow. `confidence` is 0 if and only if the question was not answered."""

    segments: tuple[Segment, ...]
    confidence: float
    mode: Mode
    model: str
    retrieved: tuple[Passage, ...]
    """Every passage that was retrieved, best first."""
    question: str = ""
    """The question as it was understood: a follow-up together with what it refers to."""
    nearest: tuple[Passage, ...] = ()
    """If the question was not answered: the nearest topics, one passage each."""
    low_confidence: bool = False
    """Answered, but more likely wrong than right."""
    usage: TokenUsage | None = None
    """The tokens used, if an LLM wrote the answer."""
    notice: str = ""
    """A remark for the reader: that the LLM was not available."""
    unsupported: tuple[str, ...] = ()
    """What an LLM wrote beside the answer and no passage supports; no part of the text."""

    @property
    def cited(self) -> tuple[Passage, ...]:
        """The passages that the answer cites, in order of first use."""
        by_id = {passage.chunk.id: passage for segment in self.segments for passage in segment.passages}
        return tuple(by_id.values())

    def quotes(self, passage: Passage) -> list[str]:
        """The words of a passage behind each citation of it, in order; "" if unknown."""
        quotes = (quote for segment in self.segments for quote in segment.quotes)
        return [words for cited, words in quotes if cited.chunk.id == passage.chunk.id]

    def line(self, passage: Passage) -> int:
        """The line of the document where the first words from a passage begin."""
        citing = (segment for segment in self.segments if passage in segment.passages)
        starts = (segment.source_words(passage)[1] for segment in citing)
        start = next((start for start in starts if start is not None and start >= 0), 0)
        return passage.chunk.first_line + passage.chunk.text.count("\n", 0, start)

    def excerpt(self, passage: Passage, *, length: int) -> str:
        """The first words that the answer took from a passage, at most `length` characters."""
        quoted = (segment.source_words(passage)[0] for segment in self.segments if passage in segment.passages)
        source = next(quoted, passage.chunk.text)
        words = " ".join(source.split())
        return words if len(words) <= length else words[: words.rfind(" ", 0, length + 1)] or words[:length]
