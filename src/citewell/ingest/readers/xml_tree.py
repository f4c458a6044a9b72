"""Parse HTML and XML into a plain tree. The only module that uses lxml; it limits what a hostile file can do.

lxml calls us for each tag instead of building its own tree, which is untyped and silently truncates the page
where nesting passes 256 levels (2,048 as an option). selectolax was the other candidate: closer to a browser on
broken markup, but quadratic in nesting (50,000 open `<div>` take 5 s here) and with a history of crashes that
end the process. `html/blocks.py` handles the broken markup that matters in a few lines.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lxml import etree  # type: ignore[import-untyped]

from citewell.errors import UnreadableFile

Node: TypeAlias = "Element | str"

_MAX_DEPTH = 100
"""Levels of nesting in the tree, so that recursion over it is safe; deeper elements are attached to the last level."""

_MAX_OPEN_TAGS = 2_000
"""HTML tags open at once; lxml searches them at every closing tag, and no real page has nearly as many."""

_MAX_XML_DEPTH = 200
"""Levels of nesting in XML; a deeper file is refused, since moving its elements would change their meaning."""

# In `<dt>a<dt>b` and `<li><b>a<li>b`, the second closes the first.
_SIBLINGS = {"li": ("li",), "dt": ("dt", "dd"), "dd": ("dt", "dd")}
_LISTS = frozenset({"ul", "ol", "menu", "dir", "dl", "table"})


@dataclass(slots=True)
class Element:
    """A tag with its attributes and children."""

    tag: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)

    def get(self, name: str) -> str:
        """An attribute's value; "" if it is missing."""
        return self.attributes.get(name, "")

    @property
    def classes(self) -> list[str]:
        return self.get("class").split()

    @property
    def elements(self) -> Iterator["Element"]:
        return (child for child in self.children if isinstance(child, Element))

    def walk(self) -> Iterator["Element"]:
        """Every element below this one, in document order."""
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
        """All text inside the element, unchanged."""
        return "".join(_text_parts(self))


def _text_parts(element: Element) -> Iterator[str]:
    for child in element.children:
        if isinstance(child, str):
            yield child
        else:
            yield from _text_parts(child)


def parse_html(text: str) -> Element:
    """The page as a tree. lxml repairs missing and wrongly nested tags."""
    return _parse(etree.HTMLParser, text.encode("utf-8", "replace"), encoding="utf-8", huge_tree=True)


def parse_xml(content: bytes, *, prefixes: Mapping[str, str]) -> Element:
    """The document as a tree. Names are `prefix:name` for the given namespaces, and `name` for all others.

    A document type declaration is refused: it can define entities, and no Word document needs one.
    """
    return _parse(etree.XMLParser, content, prefixes=prefixes, resolve_entities=False, load_dtd=False)


def _parse(kind: Any, content: bytes, *, prefixes: Mapping[str, str] | None = None, **options: Any) -> Element:
    builder = _TreeBuilder(prefixes)
    parser = kind(target=builder, no_network=True, **options)
    try:
        parser.feed(content)
        root: Element = parser.close()
    except etree.LxmlError as error:
        raise UnreadableFile(f"its markup cannot be read ({error}); save it again from its editor") from error
    return root


class _TreeBuilder:
    """Called by lxml for each tag and text; it reads HTML if no prefixes are given."""

    def __init__(self, prefixes: Mapping[str, str] | None) -> None:
        self._open = [Element("")]
        self._prefixes = prefixes
        self._names: dict[str, str] = {}

    def doctype(self, name: str, public: str | None, system: str | None) -> None:  # noqa: ARG002 (lxml's signature)
        if self._prefixes is not None:
            raise UnreadableFile("it defines XML entities, which no such file needs; save it again from its editor")

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if self._prefixes is not None and len(self._open) > _MAX_XML_DEPTH:
            raise UnreadableFile(f"its content is nested more than {_MAX_XML_DEPTH} levels deep; simplify its tables")
        if len(self._open) > _MAX_OPEN_TAGS:
            raise UnreadableFile(
                f"more than {_MAX_OPEN_TAGS:,} tags are open at once; close them, for example with Tidy"
            )
        element = Element(self._prefixed(tag), {self._prefixed(name): value for name, value in attributes.items()})
        self._open[self._parent_index(tag)].children.append(element)
        self._open.append(element)

    def _parent_index(self, tag: str) -> int:
        """Which of the open elements is the parent: the last, unless this tag closes one that lxml leaves open."""
        last = len(self._open) - 1
        if self._prefixes is not None:
            return last
        parent = last = min(last, _MAX_DEPTH)
        if tag in _SIBLINGS and last < _MAX_DEPTH:
            for index in range(last, max(last - 20, 0), -1):
                if self._open[index].tag in _LISTS:
                    break
                if self._open[index].tag in _SIBLINGS[tag]:
                    parent = index - 1
        return parent

    def _prefixed(self, name: str) -> str:
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
        if self._prefixes is None and len(self._open) > _MAX_DEPTH + 1:
            last = self._open[_MAX_DEPTH].children
            if last[-1] is not element:  # another tag came in between: continue after it, to keep the order of the text
                element = self._open[-1] = Element(element.tag, element.attributes)
                last.append(element)
        element.children.append(text)

    def close(self) -> Element:
        return self._open[0]
