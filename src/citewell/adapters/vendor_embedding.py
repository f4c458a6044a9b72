"""What every vendor's embedder shares: cut passages into windows, batch them, retry calls, check the vectors.

Knows no vendor and no protocol. A chunk has up to 800 tokens and some models read 512, so a chunk becomes a few
windows of whole sentences under its title and section path, as with the local model.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from citewell.adapters.windows import approximate_tokens, replace_surrogates, span_of, split_at_sentences
from citewell.errors import ModelError
from citewell.models import Matrix, Vector
from citewell.ports import Embeddable, Embedding
from citewell.retry import CircuitBreaker, RetryPolicy, RetryRules, with_retries

# In approximate tokens:
_WINDOW_TOKENS = 400  # of a chunk's own text: some 200 English words, well within Cohere's 512 tokens
_LABEL_TOKENS = 60  # of title and section path at most
_QUESTION_TOKENS = 500
_CALL_TOKENS = 30_000  # OpenAI accepts 300,000 of its own, Gemini's free tier that many a minute
_INSTEAD_OF_BLANK = "…"  # vendors refuse a blank text

_INGEST_POLICY = RetryPolicy(attempt_seconds=60.0, total_seconds=600.0, backoff_seconds=1.0)
_QUESTION_POLICY = RetryPolicy(attempt_seconds=4.0, total_seconds=9.0, open_seconds=10.0)


@dataclass(frozen=True, slots=True)
class EmbeddingPolicies:
    """How long an ingest and a question wait for a vendor."""

    ingest: RetryPolicy = _INGEST_POLICY
    question: RetryPolicy = _QUESTION_POLICY
    """Shorter than an answer waits for its embedder, so that its reader sees the vendor's error."""

    @classmethod
    def for_slow_server(cls) -> "EmbeddingPolicies":
        """For a server that may run on a CPU."""
        return cls(ingest=replace(_INGEST_POLICY, attempt_seconds=300.0))


EmbedTexts: TypeAlias = Callable[[list[str]], Awaitable[Matrix]]
"""One call to a vendor: a row for each text."""


class UnusableAnswer(ValueError):
    """A vendor's response that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a passage as it is sent: the passage's number, the span in its text, and the text with its label."""

    passage: int
    span: tuple[int, int]
    text: str
    tokens: int


def split_windows(passages: Sequence[Embeddable]) -> Iterator[Window]:
    """Windows that cover the whole text of every passage, each under its passage's label."""
    for number, passage in enumerate(passages):
        label = replace_surrogates(_truncate(passage.label, _LABEL_TOKENS))
        passage_text = replace_surrogates(passage.text)
        head = f"{label}\n" if label.strip() else ""
        offsets = approximate_tokens(passage_text)
        for first, last in split_at_sentences(passage_text, offsets, max_tokens=_WINDOW_TOKENS):
            start, end = span = span_of(offsets, first, last)
            text = head + passage_text[start:end]
            yield Window(number, span, text if text.strip() else _INSTEAD_OF_BLANK, last - first + _LABEL_TOKENS)


def _truncate_question(text: str) -> str:
    """A question as it is sent: the beginning of an overlong one."""
    truncated = replace_surrogates(_truncate(text, _QUESTION_TOKENS))
    return truncated if truncated.strip() else _INSTEAD_OF_BLANK


def _truncate(text: str, max_tokens: int) -> str:
    offsets = approximate_tokens(text)
    return text[: offsets[max_tokens - 1][1]] if len(offsets) > max_tokens else text


def batch_windows(windows: Sequence[Window], *, max_texts: int) -> Iterator[Sequence[Window]]:
    """Windows in their order, in batches that fit into one call."""
    first = tokens = 0
    for number, window in enumerate(windows):
        if number - first == max_texts or (number > first and tokens + window.tokens > _CALL_TOKENS):
            yield windows[first:number]
            first, tokens = number, 0
        tokens += window.tokens
    if windows:
        yield windows[first:]


def to_unit_vectors(rows: Sequence[Sequence[float]], *, texts: int, dimensions: int) -> Matrix:
    """The vendor's vectors at unit length; raises UnusableAnswer unless there is a valid one for each text."""
    if len(rows) != texts:
        raise UnusableAnswer(f"{len(rows)} vectors for {texts} texts")
    if wrong := {len(row) for row in rows} - {dimensions}:
        raise UnusableAnswer(
            f"vectors of {min(wrong)} numbers instead of {dimensions}; set CITEWELL_EMBEDDING_DIMENSIONS to as many"
        )
    with np.errstate(over="ignore"):
        vectors = np.array(rows, dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise UnusableAnswer("vectors with numbers that are none, or with nothing but zeros")
    unit_vectors: Matrix = vectors / lengths
    return unit_vectors


class _TransientError(ModelError):
    """The vendor failed in a way that another call may not meet."""


class EmbeddingCalls:
    """Calls to one vendor: long waits in an ingest, short ones for a question, and a circuit breaker for questions.

    `describe` says what went wrong in an error of `rules`, to follow the vendor's name; it never shows the key.
    """

    def __init__(
        self,
        vendor_name: str,
        *,
        rules: RetryRules,
        describe: Callable[[Exception], str],
        policies: EmbeddingPolicies,
        now: Callable[[], float],
    ) -> None:
        self._vendor_name = vendor_name
        self._rules = rules
        self._describe = describe
        self._policies = policies
        self._breaker = CircuitBreaker(policies.question, now)

    async def embed_passages(
        self, passages: Sequence[Embeddable], embed_texts: EmbedTexts, *, max_texts: int
    ) -> list[Embedding]:
        """An embedding for each passage, with at most `max_texts` texts in a call."""
        windows = list(split_windows(passages))
        if not windows:
            return []
        rows = [
            await self._for_ingest(embed_texts, [window.text for window in batch])
            for batch in batch_windows(windows, max_texts=max_texts)
        ]
        vectors = np.concatenate(rows)
        bounds = np.searchsorted([window.passage for window in windows], np.arange(len(passages) + 1))
        return [
            Embedding(vectors[first:last], tuple(window.span for window in windows[first:last]))
            for first, last in pairwise(bounds)
        ]

    async def embed_queries(self, questions: Sequence[str], embed_texts: EmbedTexts) -> Matrix:
        """A row for each question; nobody waits for it."""
        return await self._for_ingest(embed_texts, [_truncate_question(question) for question in questions])

    async def embed_query(self, question: str, embed_texts: EmbedTexts) -> Vector:
        """The vector of a question. Gives up soon: a reader is waiting."""
        max_attempts = self._breaker.allowed_attempts()
        if not max_attempts:
            raise ModelError(f"{self._breaker.reason}; that was a moment ago, and it is not retried yet")
        texts = [_truncate_question(question)]
        try:
            rows = await self._call(embed_texts, texts, policy=self._policies.question, max_attempts=max_attempts)
        except _TransientError as error:
            self._breaker.open(str(error))
            raise
        self._breaker.close()
        vector: Vector = rows[0]
        return vector

    async def _for_ingest(self, embed_texts: EmbedTexts, texts: list[str]) -> Matrix:
        """Waits as long as the vendor asks for: an ingest loses nothing but time."""
        return await self._call(embed_texts, texts, policy=self._policies.ingest, wait_out_rate_limits=True)

    async def _call(
        self,
        embed_texts: EmbedTexts,
        texts: list[str],
        *,
        policy: RetryPolicy,
        max_attempts: int | None = None,
        wait_out_rate_limits: bool = False,
    ) -> Matrix:
        try:
            return await with_retries(
                lambda: embed_texts(texts),
                policy=policy,
                rules=self._rules,
                max_attempts=max_attempts,
                wait_out_rate_limits=wait_out_rate_limits,
            )
        except UnusableAnswer as error:
            raise ModelError(f"the embeddings of {self._vendor_name} make no sense: {error}") from error
        except self._rules.caught as error:
            timed_out = isinstance(error, TimeoutError)
            description = "it did not answer in time" if timed_out else self._describe(error)
            kind = _TransientError if self._rules.is_transient(error) else ModelError
            raise kind(f"{self._vendor_name} gives no embeddings: {description}") from error
