"""Hold a sentence against the passages that it cites. Pure.

A citation that its words do not rest on moves to the passage that they do rest on, where there is one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from citewell.answer.support import needs_support, support_score, verdict_for
from citewell.models import Passage, Segment, Support
from citewell.text import split_units, stems, unit_text

_UNCITED = Support("uncited", 0.0)

SURE = 0.65
"""Of words that are likelier supported than this, the citation stays."""
_CLEARLY = 0.2


def moves(cited: float, other: float) -> bool:
    """Whether a citation moves to a passage that supports its words so likely (docs/log.md has what that costs)."""
    return cited < SURE and verdict_for(other) == "supported" and other - cited >= _CLEARLY


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation with the words that it is of: those before it, or, at the start of a line, the whole sentence."""

    passage: Passage
    words: str


def place_citations(parts: Sequence[str | Passage], given: Sequence[Passage]) -> list[str | Citation]:
    """The parts of a sentence, each citation at the passage that supports its words, where one clearly does.

    place_citations(["A ram moves water", gasket], [gasket, ram]) -> ["A ram moves water", Citation(ram, "A ram …")]
    """
    placed: list[str | Citation] = []
    sentence = "".join(part for part in parts if isinstance(part, str))
    before, line = "", ""
    for is_text, group in groupby(parts, key=lambda part: isinstance(part, str)):
        if is_text:
            texts = [part for part in group if isinstance(part, str)]
            before = "".join(texts)
            line = (line + before).rpartition("\n")[2]
            placed += texts
            continue
        leads = not any(char.isalnum() for char in line)
        cited = list(dict.fromkeys(part for part in group if not isinstance(part, str)))
        words = sentence if leads else before
        placed += [Citation(passage, words) for passage in (cited if leads else _better(words, cited, given))]
        before = ""
    return placed


def _better(words: str, cited: list[Passage], given: Sequence[Passage]) -> list[Passage]:
    """What these words are to cite: what they cite, or the passage that clearly supports them better."""
    if not needs_support(words) or (probability := _support(words, cited)) >= SURE:
        return cited
    others = [passage for passage in given if passage not in cited]
    scores = [_support(words, [passage]) for passage in others]
    best = max(range(len(others)), key=scores.__getitem__, default=None)
    return [others[best]] if best is not None and moves(probability, scores[best]) else cited


def check(parts: Sequence[str | Citation]) -> Segment:
    """The sentence with its verdict, and with the words of each passage that it rests on."""
    sentence = "".join(part for part in parts if isinstance(part, str))
    citations = [part for part in parts if isinstance(part, Citation)]
    cited = tuple(dict.fromkeys(citation.passage for citation in citations))
    quotes = tuple((one.passage, _nearest_words(one.words, sentence, one.passage)) for one in citations)
    support = None
    if needs_support(sentence):
        probability = _support(sentence, cited) if cited else 0.0
        support = Support(verdict_for(probability), round(probability, 4)) if cited else _UNCITED
    return Segment(sentence.strip(), cited, support=support, quotes=quotes)


def is_borne_out(segment: Segment, given: Sequence[Passage]) -> bool:
    """Whether a passage supports what is said, be it cited or not; so it is where nothing is claimed."""
    if segment.support is None or segment.support.verdict != "uncited":
        return segment.support is None or segment.support.verdict != "unsupported"
    return verdict_for(_support(segment.text, given)) == "supported"


def _support(words: str, passages: Sequence[Passage]) -> float:
    return _probability(words.strip(" \n.!?"), tuple(passage.chunk.text for passage in passages))


@lru_cache(maxsize=256)
def _probability(words: str, texts: tuple[str, ...]) -> float:
    """A sentence is mostly held against the same texts twice: for its citations, and for its verdict."""
    return support_score(words, texts)


def _nearest_words(words: str, sentence: str, passage: Passage) -> str:
    """The words of a passage that those of a sentence most likely rest on; none, where it speaks of something else."""
    text = passage.chunk.text
    cited, around = set(stems(words)), set(stems(sentence))
    quotable = [unit for unit in split_units(text) if unit.kind in ("sentence", "item")] or list(split_units(text))
    shared = [(len(cited & (found := _stems(unit_text(text, unit)))), len(around & found)) for unit in quotable]
    best = max(range(len(quotable)), key=shared.__getitem__, default=None)
    if best is None or not any(shared[best]):
        return ""
    return text[quotable[best].start : quotable[best].end]


@lru_cache(maxsize=2048)
def _stems(words: str) -> frozenset[str]:
    return frozenset(stems(words))
