"""HTML and XML as a plain tree. The one place that knows lxml, and what a hostile file may not do to us.

lxml calls us for each tag instead of building its own tree, which is untyped and silently ends the page where
nesting passes 256 levels (2,048 if asked). selectolax was the other candidate: closer to a browser on broken
markup, but quadratic in nesting (50,000 open `<div>` take 5 s here) and with a history of crashes that
take the process along. What it does better, `html/blocks.py` makes up for in a few lines.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lxml import etree  # type: ignore[import-untyped]

from citewell.errors import UnreadableFile

Node: TypeAlias = "Element | str"

_DEEPEST = 100
"""Levels of nesting we keep, so that recursion over a tree is safe; what is deeper hangs on the last of them."""

_MOST_OPEN = 2_000
"""HTML tags open at once; lxml looks through them at every closing tag, and no page written for people comes near."""

_DEEPEST_XML = 200
"""Levels of XML we read. It closes its tags, and to hang them elsewhere would change what they mean: we refuse it."""

# In `<dt>a<dt>b` and `<li><b>a<li>b`, the second closes the first.
_SIBLINGS = {"li": ("li",), "dt": ("dt", "dd"), "dd": ("dt", "dd")}
_LISTS = frozenset({"ul", "ol", "menu", "dir", "dl", "table"})


@dataclass(slots=True)
class Element:
    """A tag with what stands in it."""

    tag: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)

    def get(self, name: str) -> str:
        """An attribute's value, "" where there is none."""
        return self.attributes.get(name, "")

    @property
    def classes(self) -> list[str]:
        return self.get("class").split()

    @property
    def elements(self) -> Iterator["Element"]:
        return (child for child in self.children if isinstance(child, Element))

    def walk(self) -> Iterator["Element"]:
        """Every element below this one, in the order of the file."""
        pending = [self.elements]
        while pending:
            if (element := next(pending[-1], None)) is None:
                pending.pop()
                continue
            yield element
            pending.append(element.elements)

    def find(self, *tags: str) -> "Element | None":
        """The first element below this one with one of the tags."""
        return next((element for element in self.walk() if element.tag in tags), None)

    @property
    def text(self) -> str:
        """All text in it, as it stands in the file."""
        return "".join(_strings(self))


def _strings(element: Element) -> Iterator[str]:
    for child in element.children:
        if isinstance(child, str):
            yield child
        else:
            yield from _strings(child)


def parse_html(text: str) -> Element:
    """The page as a tree; tags that are missing or crossed are mended as far as lxml does."""
    return _parsed(etree.HTMLParser, text.encode("utf-8", "replace"), encoding="utf-8", huge_tree=True)


def parse_xml(content: bytes, *, prefixes: Mapping[str, str]) -> Element:
    """The document as a tree, its names as `prefix:name` for the namespaces given, and `name` for all others.

    A document type is refused: entities live there, and no file of ours needs one.
    """
    return _parsed(etree.XMLParser, content, prefixes=prefixes, resolve_entities=False, load_dtd=False)


def _parsed(kind: Any, content: bytes, *, prefixes: Mapping[str, str] | None = None, **options: Any) -> Element:
    builder = _Builder(prefixes)
    parser = kind(target=builder, no_network=True, **options)
    try:
        parser.feed(content)
        root: Element = parser.close()
    except etree.LxmlError as error:
        raise UnreadableFile(f"its markup cannot be read ({error}); save it again from its editor") from error
    return root


class _Builder:
    """What lxml calls while it reads; HTML where no prefixes are given."""

    def __init__(self, prefixes: Mapping[str, str] | None) -> None:
        self._open = [Element("")]
        self._prefixes = prefixes
        self._names: dict[str, str] = {}

    def doctype(self, name: str, public: str | None, system: str | None) -> None:  # noqa: ARG002 (lxml's signature)
        if self._prefixes is not None:
            raise UnreadableFile("it defines XML entities, which no such file needs; save it again from its editor")

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if self._prefixes is not None and len(self._open) > _DEEPEST_XML:
            raise UnreadableFile(f"its content is nested more than {_DEEPEST_XML} levels deep; simplify its tables")
        if len(self._open) > _MOST_OPEN:
            raise UnreadableFile(f"more than {_MOST_OPEN:,} tags are open at once; close them, for example with Tidy")
        element = Element(self._name(tag), {self._name(name): value for name, value in attributes.items()})
        self._open[self._parent(tag)].children.append(element)
        self._open.append(element)

    def _parent(self, tag: str) -> int:
        """Which of the open elements this one stands in: the last, save for what lxml does not close by itself."""
        last = len(self._open) - 1
        if self._prefixes is not None:
            return last
        parent = last = min(last, _DEEPEST)
        if tag in _SIBLINGS and last < _DEEPEST:
            for index in range(last, max(last - 20, 0), -1):
                if self._open[index].tag in _LISTS:
                    break
                if self._open[index].tag in _SIBLINGS[tag]:
                    parent = index - 1
        return parent

    def _name(self, name: str) -> str:
        """`{http://…/main}p` as `w:p`."""
        if self._prefixes is None or name[:1] != "{":
            return name
        if name not in self._names:
            namespace, _, local = name[1:].partition("}")
            prefix = self._prefixes.get(namespace, "")
            self._names[name] = f"{prefix}:{local}" if prefix else local
        return self._names[name]

    def end(self, tag: str) -> None:  # noqa: ARG002 (lxml's signature)
        if len(self._open) > 1:
            self._open.pop()

    def data(self, text: str) -> None:
        element = self._open[-1]
        if self._prefixes is None and len(self._open) > _DEEPEST + 1:
            last = self._open[_DEEPEST].children
            if last[-1] is not element:  # another tag stood in between: go on after it, so that words keep their order
                element = self._open[-1] = Element(element.tag, element.attributes)
                last.append(element)
        element.children.append(text)

    def close(self) -> Element:
        return self._open[0]
