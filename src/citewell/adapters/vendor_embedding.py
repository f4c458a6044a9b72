"""What every vendor's embedder does alike: cut passages, send as much as a call takes, check what comes back.

Knows no vendor and no protocol. A chunk has up to 800 tokens and some models read 512, so a chunk becomes a few
windows of whole sentences under its title and section path, as with the local model.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np

from citewell.adapters.windows import rough_tokens, span_of, whole_sentences
from citewell.errors import ModelError, SettingsError
from citewell.models import Matrix
from citewell.ports import Embeddable, Embedding
from citewell.retry import CircuitBreaker, RetryPolicy, sendable, with_retries

T = TypeVar("T")

_WINDOW = 400  # rough tokens of a chunk's own words: some 200 English words, well within Cohere's 512 tokens
_LABEL = 60  # of title and section path at most
_QUESTION = 500
_CALL = 30_000  # rough tokens; OpenAI takes 300,000 of its own, Gemini's free tier that many a minute
_BLANK = "…"  # vendors refuse a text that says nothing

IN_INGEST = RetryPolicy(try_seconds=60.0, whole_seconds=600.0, backoff_seconds=1.0)
FOR_QUESTION = RetryPolicy(try_seconds=4.0, whole_seconds=9.0, rest_seconds=10.0)
"""Less than an answer waits for its embedder, so that whoever asks is told what the vendor said."""


class UnusableAnswer(ValueError):
    """A vendor's answer that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Window:
    """A piece of a passage as it is sent: where it lies, what is sent, and how long that is."""

    passage: int
    span: tuple[int, int]
    text: str
    tokens: int


def split_windows(passages: Sequence[Embeddable]) -> Iterator[Window]:
    """Every word of every passage, each window under its passage's label."""
    for number, passage in enumerate(passages):
        label, said = sendable(_cut(passage.label, _LABEL)), sendable(passage.text)
        head = f"{label}\n" if label.strip() else ""
        offsets = rough_tokens(said)
        for first, last in whole_sentences(said, offsets, largest=_WINDOW):
            start, end = span = span_of(offsets, first, last)
            text = head + said[start:end]
            yield Window(number, span, text if text.strip() else _BLANK, last - first + _LABEL)


def truncate_question(text: str) -> str:
    """A question as it is sent; of an endless one the beginning."""
    cut = sendable(_cut(text, _QUESTION))
    return cut if cut.strip() else _BLANK


def _cut(text: str, tokens: int) -> str:
    offsets = rough_tokens(text)
    return text[: offsets[tokens - 1][1]] if len(offsets) > tokens else text


def batch_windows(windows: Sequence[Window], *, most: int) -> Iterator[Sequence[Window]]:
    """Windows in their order, as many together as one call takes."""
    first = size = 0
    for place, window in enumerate(windows):
        if place - first == most or (place > first and size + window.tokens > _CALL):
            yield windows[first:place]
            first, size = place, 0
        size += window.tokens
    if windows:
        yield windows[first:]


async def embed(
    passages: Sequence[Embeddable], *, most: int, ask: Callable[[list[str]], Awaitable[Matrix]]
) -> list[Embedding]:
    """An embedding for each passage; `ask` gives a row for each text, of which it takes at most so many."""
    cut = list(split_windows(passages))
    if not cut:
        return []
    vectors = np.concatenate([await ask([one.text for one in lot]) for lot in batch_windows(cut, most=most)])
    bounds = np.searchsorted([one.passage for one in cut], np.arange(len(passages) + 1))
    return [
        Embedding(vectors[first:last], tuple(one.span for one in cut[first:last])) for first, last in pairwise(bounds)
    ]


def dimensions_of(model: str, *, own: int | None, wanted: int | None) -> int:
    """How long the model's vectors are, as wished or else as known."""
    if wanted is None and own is None:
        raise SettingsError(
            f"how many dimensions the embedding model {model} has is not known here; set CITEWELL_EMBEDDING_DIMENSIONS"
        )
    return wanted or own or 0


def to_unit_vectors(rows: Sequence[Sequence[float]], *, texts: int, dimensions: int) -> Matrix:
    """The vendor's rows at unit length; raises Senseless unless there is a sound one for each text."""
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
    scaled: Matrix = vectors / lengths
    return scaled


class Vendor(Protocol):
    """What an adapter knows about its vendor's errors."""

    name: str

    @property
    def faults(self) -> tuple[type[Exception], ...]:
        """What its SDK raises when a call fails."""
        ...

    def passing(self, error: Exception) -> bool:
        """Whether another try may succeed."""
        ...

    def limited(self, error: Exception) -> bool:
        """Whether it is only asked too fast."""
        ...

    def headers(self, error: Exception) -> Mapping[str, str]: ...

    def says(self, error: Exception) -> str:
        """What went wrong, after the vendor's name and without a word of the key."""
        ...


class _Down(ModelError):
    """The vendor fails in a way that may pass."""


class Calls:
    """Calls to one vendor: patient in an ingest, brief for a question, and none for a while after it failed one."""

    def __init__(
        self,
        vendor: Vendor,
        *,
        in_ingest: RetryPolicy | None,
        for_question: RetryPolicy | None,
        now: Callable[[], float],
    ) -> None:
        self._vendor = vendor
        self._in_ingest = in_ingest or IN_INGEST
        self._for_question = for_question or FOR_QUESTION
        self._pause = CircuitBreaker(self._for_question, now)

    async def patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """For an ingest, which waits as long as the vendor asks for: nothing is lost but time."""
        return await self._made(call, patience=self._in_ingest, limited=self._vendor.limited)

    async def briefly(self, call: Callable[[], Awaitable[T]]) -> T:
        """For a question: somebody waits."""
        tries = self._pause.tries()
        if not tries:
            raise ModelError(f"{self._pause.reason}; that was a moment ago, and it is left alone for now")
        try:
            given = await self._made(call, patience=self._for_question, tries=tries)
        except _Down as error:
            self._pause.begin(str(error))
            raise
        self._pause.end()
        return given

    async def _made(
        self,
        call: Callable[[], Awaitable[T]],
        *,
        patience: RetryPolicy,
        limited: Callable[[Exception], bool] = lambda _: False,
        tries: int | None = None,
    ) -> T:
        vendor = self._vendor
        caught: tuple[type[Exception], ...] = (*vendor.faults, TimeoutError)
        try:
            return await with_retries(
                call,
                patience=patience,
                faults=vendor.faults,
                passing=vendor.passing,
                headers=vendor.headers,
                limited=limited,
                tries=tries,
            )
        except UnusableAnswer as error:
            raise ModelError(f"the embeddings of {vendor.name} make no sense: {error}") from error
        except caught as error:
            says = "it did not answer in time" if isinstance(error, TimeoutError) else vendor.says(error)
            kind = _Down if vendor.passing(error) else ModelError
            raise kind(f"{vendor.name} gives no embeddings: {says}") from error
