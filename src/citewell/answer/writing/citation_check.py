"""Check a sentence against the passages it cites, and give it a support verdict. Pure.

A citation moves if another passage clearly supports its words better. Knows nothing of Markdown or citation markers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from citewell.answer.support import needs_support, support_score, verdict_for
from citewell.models import Passage, Segment, Support
from citewell.text import split_units, stems, unit_text

_UNCITED = Support("uncited", 0.0)

_SURE_SUPPORT = 0.65  # a citation with at least this score stays
_MIN_GAIN = 0.2  # by which another passage must score higher


def should_move(current: float, other: float) -> bool:
    """Whether a citation should move, by the support scores of its passage and the other (measured in docs/log.md)."""
    return current < _SURE_SUPPORT and verdict_for(other) == "supported" and other - current >= _MIN_GAIN


@dataclass(frozen=True, slots=True)
class Citation:
    """A cited passage, and the words it is cited for: those before it, or the sentence if it begins a line."""

    passage: Passage
    words: str


def place_citations(parts: Sequence[str | Passage], passages: Sequence[Passage]) -> list[str | Citation]:
    """The parts of a sentence, with each citation moved to the passage that clearly supports its words, if any.

    place_citations(["A ram moves water", gasket], [gasket, ram]) -> ["A ram moves water", Citation(ram, "A ram …")]
    """
    placed: list[str | Citation] = []
    sentence = "".join(part for part in parts if isinstance(part, str))
    text_before, line = "", ""
    for is_text, group in groupby(parts, key=lambda part: isinstance(part, str)):
        if is_text:
            texts = [part for part in group if isinstance(part, str)]
            text_before = "".join(texts)
            line = (line + text_before).rpartition("\n")[2]
            placed += texts
            continue
        is_leading = not any(char.isalnum() for char in line)
        cited = list(dict.fromkeys(part for part in group if not isinstance(part, str)))
        words = sentence if is_leading else text_before
        chosen = cited if is_leading else _choose_passages(words, cited, passages)
        placed += [Citation(passage, words) for passage in chosen]
        text_before = ""
    return placed


def _choose_passages(words: str, cited: list[Passage], passages: Sequence[Passage]) -> list[Passage]:
    """The passages to cite for these words: the cited ones, or the one that clearly supports them better."""
    if not needs_support(words) or (score := _score_support(words, cited)) >= _SURE_SUPPORT:
        return cited
    others = [passage for passage in passages if passage not in cited]
    scores = [_score_support(words, [passage]) for passage in others]
    best = max(range(len(others)), key=scores.__getitem__, default=None)
    return [others[best]] if best is not None and should_move(score, scores[best]) else cited


def build_segment(parts: Sequence[str | Citation]) -> Segment:
    """The sentence with its support verdict and, for each citation, the quote that it rests on."""
    sentence = "".join(part for part in parts if isinstance(part, str))
    citations = [part for part in parts if isinstance(part, Citation)]
    cited = tuple(dict.fromkeys(citation.passage for citation in citations))
    quotes = tuple((citation.passage, _find_quote(citation, sentence)) for citation in citations)
    support = None
    if needs_support(sentence):
        score = _score_support(sentence, cited) if cited else 0.0
        support = Support(verdict_for(score), round(score, 4)) if cited else _UNCITED
    return Segment(sentence.strip(), cited, support=support, quotes=quotes)


def is_supported(segment: Segment, passages: Sequence[Passage]) -> bool:
    """Whether a passage supports the segment, cited or not; True if it claims nothing."""
    if segment.support is None or segment.support.verdict != "uncited":
        return segment.support is None or segment.support.verdict != "unsupported"
    return verdict_for(_score_support(segment.text, passages)) == "supported"


def _score_support(words: str, passages: Sequence[Passage]) -> float:
    return _cached_score(words.strip(" \n.!?"), tuple(passage.chunk.text for passage in passages))


@lru_cache(maxsize=256)
def _cached_score(words: str, texts: tuple[str, ...]) -> float:
    """`support_score`, cached: most sentences are scored twice, for their citations and for their verdict."""
    return support_score(words, texts)


def _find_quote(citation: Citation, sentence: str) -> str:
    """The unit of the cited passage that shares most words with the citation's; empty if none shares any."""
    text = citation.passage.chunk.text
    cited_stems, sentence_stems = set(stems(citation.words)), set(stems(sentence))
    units = [unit for unit in split_units(text) if unit.kind in ("sentence", "item")] or list(split_units(text))
    stems_by_unit = [_cached_stems(unit_text(text, unit)) for unit in units]
    shared_counts = [(len(cited_stems & unit_stems), len(sentence_stems & unit_stems)) for unit_stems in stems_by_unit]
    best = max(range(len(units)), key=shared_counts.__getitem__, default=None)
    if best is None or not any(shared_counts[best]):
        return ""
    return text[units[best].start : units[best].end]


@lru_cache(maxsize=2048)
def _cached_stems(words: str) -> frozenset[str]:
    return frozenset(stems(words))
