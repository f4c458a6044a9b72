"""Check a sentence against the passages it cites, and give it a support verdict. Pure.

A citation moves if another passage clearly supports its words better, and a sentence without one is attributed to the
passage that says it. Knows nothing of Markdown or citation markers.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from citewell.answer.support import needs_support, support_score, verdict_for
from citewell.models import Passage, Segment, Support
from citewell.text import split_units, split_words, stems, unit_text

_FENCE_LINE = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_FENCE_LANGUAGE = re.compile(r"(?<=```|~~~)(?![`~])[^\n]*$", re.MULTILINE)
_ITEM_MARK = re.compile(r"\s*(?:>\s*)*(?:[-*+]|\d{1,9}[.)])\s+")
_CLAUSE_END = re.compile(r";|\s[—–]\s")
_MIN_VERBATIM_WORDS = 3
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


def find_supporting_passage(sentence: str, passages: Sequence[Passage]) -> Passage | None:
    """The passage that says what the sentence says; None if no score is in the band of "supported".

    Choosing among five passages found no more false support than the cited one alone (docs/log.md), so the band that
    holds for citations holds here, too.
    """
    scores = [_score_support(sentence, [passage]) for passage in passages]
    best = max(range(len(scores)), key=scores.__getitem__, default=None)
    return passages[best] if best is not None and verdict_for(scores[best]) == "supported" else None


def build_segment(parts: Sequence[str | Citation], *, is_claim: bool = True) -> Segment:
    """The sentence with, for each citation, the quote that it rests on; and a support verdict if it is a claim."""
    sentence = "".join(part for part in parts if isinstance(part, str))
    citations = [part for part in parts if isinstance(part, Citation)]
    cited = tuple(dict.fromkeys(citation.passage for citation in citations))
    quotes = tuple((citation.passage, _find_quote(citation, sentence)) for citation in citations)
    support = None
    if is_claim:
        score = _score_support(sentence, cited) if cited else 0.0
        support = Support(verdict_for(score), round(score, 4)) if cited else _UNCITED
    return Segment(sentence.strip(), cited, support=support, quotes=quotes)


def _score_support(words: str, passages: Sequence[Passage]) -> float:
    plain, texts = _FENCE_LINE.sub("", words).strip(" \n.!?"), tuple(passage.chunk.text for passage in passages)
    if any(_is_verbatim(plain, text) for text in texts):
        return 1.0
    score = _cached_score(plain, texts)
    # Only between fences are calls and arguments known to be code; the language after a fence is no word of it.
    as_code = _FENCE_LANGUAGE.sub("", words)
    return min(score, _cached_score(as_code, texts)) if _FENCE_LINE.search(words) else score


def _is_verbatim(words: str, text: str) -> bool:
    """Whether a whole sentence or item of the text, or its first clause, has exactly these words."""
    claimed = _comparable_words(_ITEM_MARK.sub("", words, count=1))
    return len(claimed) >= _MIN_VERBATIM_WORDS and claimed in _cached_unit_words(text)


@lru_cache(maxsize=512)
def _cached_unit_words(text: str) -> frozenset[tuple[str, ...]]:
    units = [_FENCE_LINE.sub("", unit_text(text, unit)) for unit in split_units(text)]
    return frozenset(_comparable_words(part) for unit in units for part in (unit, _CLAUSE_END.split(unit)[0]))


def _comparable_words(text: str) -> tuple[str, ...]:
    return tuple(word.casefold() for word in split_words(text))


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
