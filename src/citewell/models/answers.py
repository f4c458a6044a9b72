"""Questions, passages and answers."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from citewell.models.documents import Chunk


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a chunk's text that was embedded as one, and how close it is to the question."""

    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk that was found, with the cosine of its best window in [0, 1]."""

    chunk: Chunk
    score: float
    windows: tuple[Window, ...]
    mean_score: float = 0.0
    """The cosine of the mean of its windows."""
    sentence_stems: tuple[tuple[str, ...], ...] = ()
    """The stems of its sentences, as the index keeps them."""


@dataclass(frozen=True, slots=True)
class Cite:
    """In a stream of text: the words just before rest on this passage."""

    passage: Passage


@dataclass(frozen=True, slots=True)
class StageReached:
    """In a stream: what is being done now. It has no words."""

    stage: Literal["retrieving", "generating"]


Piece: TypeAlias = str | Cite | StageReached
"""What an answer is streamed as; a door turns each `Cite` into its own kind of mark."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question as it was asked, and the words it was answered with."""

    question: str
    answer: str


Mode = Literal["full", "selected_text", "retrieval_only", "no_results"]


Verdict = Literal["supported", "weak", "unsupported", "uncited"]


@dataclass(frozen=True, slots=True)
class Support:
    """How well the cited words bear a sentence out: the verdict, and how likely it is that they do."""

    verdict: Verdict
    score: float


QUOTED = Support("supported", 1.0)
"""Of a quotation: it is what the passage says."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Words of an answer, the passages they rest on, and, for a quotation, where in the first one it begins."""

    text: str
    passages: tuple[Passage, ...]
    start: int | None = None
    support: Support | None = None
    """None where nothing is claimed."""
    quotes: tuple[tuple[Passage, str], ...] = ()
    """For each citation in the words, in order: what is cited, and which of its words this rests on, verbatim.

    None of its words, where they are not a quotation and none comes near to them.
    """

    def source_words(self, passage: Passage) -> tuple[str, int | None]:
        """The words of a passage that this rests on, and where in the passage they begin, as far as is known."""
        if self.start is not None or not self.quotes:
            return self.text, self.start
        words = next((words for one, words in self.quotes if one == passage), "")
        return (words, passage.chunk.text.find(words)) if words else (passage.chunk.text, None)


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """What an LLM counted: tokens it read, and tokens it wrote. None where it did not say."""

    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    truncated: bool = False
    """Whether it wrote as much as it may, and had not finished."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the answer flow ends with. `confidence` is 0 exactly when nothing was answered."""

    segments: tuple[Segment, ...]
    confidence: float
    mode: Mode
    model: str
    retrieved: tuple[Passage, ...]
    """Every passage that was looked at, best first."""
    question: str = ""
    """As it was understood: a follow-up with what it follows up on."""
    nearest: tuple[Passage, ...] = ()
    """Where nothing was answered: the nearest topics there are, one passage each."""
    low_confidence: bool = False
    """Answered, but likelier wrong than right."""
    usage: TokenUsage | None = None
    """Where an LLM wrote it."""
    notice: str = ""
    """What the reader should know about how this came about: that no LLM could be asked."""

    @property
    def cited(self) -> tuple[Passage, ...]:
        """The passages that the answer rests on, in order of first use."""
        by_id = {passage.chunk.id: passage for segment in self.segments for passage in segment.passages}
        return tuple(by_id.values())

    def quotes(self, passage: Passage) -> list[str]:
        """The words of a passage that each citation of it rests on, in order; "" where nobody knows."""
        cited = (one for segment in self.segments for one in segment.quotes)
        return [words for one, words in cited if one.chunk.id == passage.chunk.id]

    def line(self, passage: Passage) -> int:
        """The line of the document on which the first words taken from a passage stand."""
        starts = (one.source_words(passage)[1] for one in self.segments if passage in one.passages)
        start = next((start for start in starts if start is not None and start >= 0), 0)
        return passage.chunk.first_line + passage.chunk.text.count("\n", 0, start)

    def excerpt(self, passage: Passage, *, length: int) -> str:
        """The first words that the answer took from a passage, in at most so many characters."""
        quoted = (segment.source_words(passage)[0] for segment in self.segments if passage in segment.passages)
        taken = next(quoted, passage.chunk.text)
        words = " ".join(taken.split())
        return words if len(words) <= length else words[: words.rfind(" ", 0, length + 1)] or words[:length]
