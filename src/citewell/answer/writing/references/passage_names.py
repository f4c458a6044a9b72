"""Find the passages that an LLM names: by number, chunk id, document id, file, page or title. Pure.

LLMs are asked to cite passages by number, and some cite by what else they know of them.
"""

import re
from collections.abc import Sequence

from citewell.models import Passage

_MIN_PREFIX_CHARACTERS = 6  # of an id
_HEX = re.compile(r"[0-9a-f-]{6,64}")
_POSITION = re.compile(
    r"(?P<document>.*?[^\s,:;#(_-])[\s,:;#(_-]{1,3}"
    r"(?P<kind>chunk|index|lines?|l|pages?|pp?\.?)?[\s_.:#-]{0,2}(?P<number>\d{1,6})(?:[-–]\w{1,6})?\)?"
)
_CHUNK_PREFIX = re.compile(r"(?:chunk|passage|source|doc|document)(?:[_-]?id)?[_:-](?=.)")
_SUFFIX = re.compile(r"\.\w{1,8}\Z")
_NOT_IN_ANCHOR = re.compile(r"[\W_]+")


def _fold(name: str) -> str:
    """The name in lower case, without quotation marks and a leading slash."""
    return " ".join(name.split()).strip("\"'“”‘’`").removeprefix(".").lstrip("/").casefold()


class PassageNames:
    """The names of numbered passages. `passages` may grow: numbers count from 1, in their order."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages
        self._count = 0  # of passages whose names are in the maps below
        self._numbers_by_name: dict[str, list[int]] = {}
        """Of ids, paths, file names, URLs and titles."""
        self._numbers_by_document: dict[str, list[int]] = {}
        """Of whatever names a whole document, also file names without their suffix."""

    def resolve(self, reference: str) -> list[int]:
        """The number of the passage that a reference names, in a list; empty if it names none.

        resolve("2") == resolve("guide/pumps.md") == resolve("pumps.md, chunk 5") == resolve("308b9271") -> [2]

        Of a document, it is the first of its passages: the citation check moves the citation if another one supports
        the sentence better. A name that several documents have names none of them, and neither does a chunk, line or
        page that is in no passage.
        """
        self._add_new_passages()
        name = _fold(reference)
        if name.isdecimal() and 0 < int(name) <= len(self._passages):
            return [int(name)]
        numbers = self._numbers_by_name.get(name) or self._find_by_prefix(name)
        numbers = numbers or self._find_position(name) or self._find_anchor(name)
        documents = {self._passages[number - 1].chunk.document_id for number in numbers}
        return numbers[:1] if len(documents) == 1 else []

    def _add_new_passages(self) -> None:
        for number, passage in enumerate(self._passages[self._count :], self._count + 1):
            chunk = passage.chunk
            folders = chunk.source.split("/")
            paths = ["/".join(folders[start:]) for start in range(len(folders))]
            documents = [str(chunk.document_id), *paths, *([chunk.url.partition("#")[0]] if chunk.url else [])]
            for name in (*documents, *(_SUFFIX.sub("", path) for path in paths), chunk.chapter):
                self._numbers_by_document.setdefault(_fold(name), []).append(number)
            for name in (chunk.id, *documents, *_titles(passage), chunk.url or ""):
                self._numbers_by_name.setdefault(_fold(name), []).append(number)
        self._count = len(self._passages)

    def _find_by_prefix(self, name: str) -> list[int]:
        """The passage whose id, or else whose document's id, is the only one that begins so."""
        if not _HEX.fullmatch(name) or len(name) < _MIN_PREFIX_CHARACTERS:
            return []
        numbered = list(enumerate(self._passages, 1))
        numbers = [number for number, passage in numbered if passage.chunk.id.startswith(name)]
        if len(numbers) > 1:
            return []
        return numbers or [number for number, passage in numbered if str(passage.chunk.document_id).startswith(name)]

    def _find_position(self, name: str) -> list[int]:
        """The passages at a place of a document: "pumps.md, chunk 5", "pumps.md:12", "chunk_pumps_5"."""
        if not (match := _POSITION.fullmatch(name)):
            return []
        numbers = self._find_document(match["document"])
        kind, wanted = (match["kind"] or "")[:1], int(match["number"])
        chunks = [(number, self._passages[number - 1].chunk) for number in numbers]
        by_index = [number for number, chunk in chunks if kind in ("", "c", "i") and chunk.index == wanted]
        by_page = [number for number, chunk in chunks if kind == "p" and chunk.page == wanted]
        by_line = [
            number for number, chunk in chunks if kind in ("", "l") and chunk.first_line <= wanted <= chunk.last_line
        ]
        return by_index or by_page or by_line

    def _find_document(self, name: str) -> list[int]:
        for spelling in dict.fromkeys((name, _CHUNK_PREFIX.sub("", name, count=1))):
            if numbers := self._numbers_by_document.get(spelling) or self._find_by_prefix(spelling):
                return numbers
        return []

    def _find_anchor(self, name: str) -> list[int]:
        """The passage below the heading of "pumps.md#priming"."""
        document, _, anchor = name.partition("#")
        if not anchor:
            return []
        numbers, words = self._find_document(document), _NOT_IN_ANCHOR.sub("-", anchor)
        headings = {number: self._passages[number - 1].chunk.headings for number in numbers}
        return [
            number
            for number, titles in headings.items()
            if any(_NOT_IN_ANCHOR.sub("-", title.casefold()) == words for title in titles)
        ]


def _titles(passage: Passage) -> tuple[str, ...]:
    """Its title, its section, and both, as in the prompt."""
    chunk = passage.chunk
    return tuple(dict.fromkeys(title for title in (chunk.label, chunk.topic, chunk.section, chunk.chapter) if title))
