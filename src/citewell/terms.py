"""Words and their stems, in any script: what a text speaks about. Pure; the index and the answer count alike.

Latin text is stemmed in the language that its function words betray, other alphabets by their script; scripts that
put no spaces between words are read as pairs of neighbouring characters.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from operator import itemgetter

import Stemmer
from sentencex import get_sentence_boundaries

ENGLISH = "english"

# Letters and digits of any script, with the vowel signs that Python's \w leaves out.
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0963\u0966-\u0dff\u0e31-\u0e3a\u0e47-\u0e4e"
)
_WORD = re.compile(rf"(?:[^\W_]|[{_MARKS}])+(?:[.'’](?:[^\W_]|[{_MARKS}])+)*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_UNSPACED = re.compile(
    r"[\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_HALVES = re.compile("[\ud800-\udfff]")
_VIETNAMESE = re.compile("[ăđơưĂĐƠƯ\u1ea0-\u1ef9]")
_BREAK = re.compile(r"\n(?=\s*(?:[-*+>#|]|\d{1,3}[.)]\s|\n))")
_SCRIPTS = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u04ff", "russian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)
_BM25_K, _BM25_B, _USUAL_LENGTH = 1.5, 0.75, 200
_LOOKED_AT = 300  # words that tell a text's language

# What people wrap a question in. Rare in prose, so rarity alone would take these for its subject.
_WRAPPING = frozenset(files("citewell").joinpath("data", "wrapping-words.txt").read_text(encoding="utf-8").split())


@cache
def _function_words() -> dict[str, frozenset[str]]:
    lines = files("citewell").joinpath("data", "function-words.txt").read_text(encoding="utf-8").splitlines()
    return {name: frozenset(said.split()) for name, said in (line.split(":") for line in lines)}


def function_words(tongue: str) -> frozenset[str]:
    """The little words of a language, which say nothing by themselves."""
    return _function_words().get(tongue, frozenset())


@cache
def _languages() -> dict[str, list[str]]:
    """The languages that each function word is one of."""
    found: dict[str, list[str]] = {}
    for name, said in _function_words().items():
        for word in said:
            found.setdefault(word, []).append(name)
    return found


@lru_cache(maxsize=4096)
def language(text: str) -> str:
    """The language whose function words a text uses; English where nothing speaks against it.

    language("Wie hoch ist der Turm?") -> "german"
    """
    spoken = [word.casefold() for word in _WORD.findall(text[:4000])[:_LOOKED_AT]]
    if len(_VIETNAMESE.findall(text[:4000])) > max(1, len(spoken) // 5):
        return "vietnamese"
    known, counts = _languages(), dict.fromkeys(_function_words(), 0)
    for word in spoken:
        for name in known.get(word, ()):
            counts[name] += 1
    name, most = max(counts.items(), key=itemgetter(1))
    # A list of names or a listing says little; half as many again as English is a language of its own.
    return (
        name if most > 1.5 * counts[ENGLISH] and most >= (2 if len(spoken) > 20 else 1) + len(spoken) // 20 else ENGLISH
    )


def readable(text: str) -> str:
    """The text as long as it was, with a mark in place of half characters, which no encoding can hold."""
    return text if text.isascii() else _HALVES.sub("\ufffd", text)


def mostly_other_letters(text: str) -> bool:
    """Whether a text is written in another alphabet than English is."""
    letters = [mark for mark in text if mark.isalpha()]
    return sum(mark.isascii() for mark in letters) < len(letters) / 2


@lru_cache(maxsize=200_000)
def stem(word: str, tongue: str = ENGLISH) -> str:
    """A word's stem, without case and accents: "Calibrations" -> "calibr"."""
    folded = unicodedata.normalize("NFC", word.casefold())
    if tongue == "vietnamese" or _UNSPACED.match(folded):
        return folded  # their marks make other words, and nothing is inflected
    name = next((name for first, last, name in _SCRIPTS if first <= folded[0] <= last), tongue)
    stemmed: str = _stemmer(name).stemWord(folded.removesuffix("'s").removesuffix("’s"))
    if stemmed.isascii():
        return stemmed
    return "".join(mark for mark in unicodedata.normalize("NFKD", stemmed) if not unicodedata.combining(mark))


@cache
def _stemmer(name: str) -> Stemmer.Stemmer:
    return Stemmer.Stemmer(name, 0)  # without a cache of its own, which costs more than a stem


def words(text: str) -> list[str]:
    """The words of a text as written; pairs of characters where a script has no spaces."""
    found: list[str] = _WORD.findall(text)
    return found if text.isascii() else [part for word in found for part in _parts(word)]


def _parts(word: str) -> Iterator[str]:
    if word.isascii() or not _UNSPACED.search(word):
        yield word
        return
    end = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > end:
            yield word[end : run.start()]
        pairs = [first + second for first, second in pairwise(run[0])]
        yield from pairs or [run[0]]
        end = run.end()
    if end < len(word):
        yield word[end:]


def stems(text: str, tongue: str | None = None) -> list[str]:
    """The stems of a text; an identifier gives its own and its parts': "mapBatches" -> "mapbatch", "map", "batch"."""
    tongue = tongue or language(text)
    found = []
    for word in words(text):
        found.append(stem(word, tongue))
        if not (word.islower() or word.istitle() or word.isupper() or word.isdigit()):
            parts = _CAMEL.split(word)
            found.extend(stem(part, tongue) for part in parts if len(parts) > 1)
    return found


def sentences(text: str, tongue: str | None = None) -> list[list[str]]:
    """The stems of a text, sentence by sentence, line by line in lists and tables."""
    tongue = tongue or language(text)
    found = []
    for block in _BREAK.split(text):
        for boundary in get_sentence_boundaries("en", block):
            if said := stems(block[boundary["start_index"] : boundary["end_index"]], tongue):
                found.append(said)
    return found


def worth(count: int, length: int) -> float:
    """What so many mentions in a text of so many words are worth, by BM25: more with each, but never more than 1."""
    return count / (count + _BM25_K * (1 - _BM25_B + _BM25_B * length / _USUAL_LENGTH))


def substance(text: str) -> list[str]:
    """The words of a text that say what it is about; none where all of it is wrapping."""
    tongue = language(text)
    wrapping = _WRAPPING if tongue == ENGLISH else function_words(tongue)
    return [word for word in words(text) if word.casefold().replace("’", "'") not in wrapping]


def subject(question: str) -> dict[str, str]:
    """The question's own words by their stems: what it is about, in order of appearance.

    subject("How do I calibrate the camera?") -> {"calibr": "calibrate", "camera": "camera"}
    """
    tongue = language(question)
    return {stem(word, tongue): word for word in substance(question) or words(question)}


def specific(question: str) -> frozenset[str]:
    """Stems of what only this question would say: names, codes, words that are not general English.

    specific("Does nitinol beat a Dynamixel MX64?") -> stems of nitinol, Dynamixel and MX64
    """
    spoken = words(question)
    tongue = language(question)
    english = tongue == ENGLISH and question.isascii()
    found = {
        stem(word, tongue)
        for position, word in enumerate(spoken)
        if any(mark.isdigit() for mark in word)
        or (english and position > 0 and word[0].isupper())
        or (english and len(word) > 3 and stem(word) not in _general())
    }
    return frozenset(found & subject(question).keys())


@cache
def _general() -> frozenset[str]:
    """Stems of the words that are frequent enough in English to be whole entries of BERT's vocabulary."""
    entries = files("citewell").joinpath("data", "bert-uncased-vocabulary.txt").read_text(encoding="utf-8").split("\n")
    said = [entry for entry in entries if entry.isalpha()]
    # All at once, for whoever asks first waits for it: word by word this takes ten times as long.
    plain = _stemmer(ENGLISH).stemWords([entry for entry in said if entry.isascii()])
    return frozenset(plain) | {stem(entry) for entry in said if not entry.isascii()}
