"""HTML to blocks: headings, paragraphs, lists, tables, code. It is given the content; it decides nothing about that."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from citewell.ingest.readers.document_builder import DocumentBuilder, Place, clean
from citewell.ingest.readers.html.content import HEADINGS
from citewell.ingest.readers.html.formula import formula_in
from citewell.ingest.readers.html.inline import BLOCKS, line, plain, words
from citewell.ingest.readers.html.tables import is_layout, strays, table_of
from citewell.ingest.readers.xml_tree import Element, Node

_LANGUAGE = re.compile(r"(?:language|lang|highlight|brush)[-:](?:source-)?(?P<name>[\w+#.-]+)")
_NO_LANGUAGE = frozenset({"default", "none", "text", "plaintext", "plain", "txt", "notranslate", "unknown", "output"})
_TITLE_CLASS = re.compile(
    r"admonition-title|admonition-?heading|(?:aside_|callout|markdown-alert|blockquote-tag)[_-]title", re.IGNORECASE
)
_LISTS = ("ul", "ol", "menu", "dir")
_NUMBER = re.compile(r"-?\d{1,6}")


class BlockWriter:
    """Walks content and writes it to a composer."""

    def __init__(self, composer: DocumentBuilder) -> None:
        self._out = composer
        self._anchor = ""
        """The id of what was opened just before, so that a heading without one can be found under it."""
        self._tabs: list[str] = []

    def write(self, nodes: Iterable[Node], place: Place, *, language: str = "") -> None:
        """Blocks as blocks; what stands between them, together, as a paragraph."""
        run: list[Node] = []
        for node in nodes:
            if isinstance(node, str) or not _is_block(node):
                run.append(node)
                continue
            self._flush(run, place)
            run = []
            self._block(node, place, language=_language(node) or language)
        self._flush(run, place)

    def _flush(self, run: Sequence[Node], place: Place) -> None:
        if not run:
            return
        if text := words(run):
            for paragraph in re.split(r"\n{2,}", text):  # before `<p>` was common, two `<br>` made a paragraph
                self._out.paragraph(paragraph, place)
            self._anchor = ""
        for element in (node for node in run if isinstance(node, Element)):
            self._anchor = self._anchor or element.get("id") or element.get("name")

    def _block(self, element: Element, place: Place, *, language: str) -> None:
        if (formula := formula_in(element)) is not None:
            self._out.formula(formula.tex, place)
            return
        self._anchor = element.get("id") or self._anchor
        tag, role = element.tag, element.get("role")
        if role == "tablist" or "tabbed-labels" in element.classes:
            self._tabs = [plain(tab) for tab in element.elements]
        elif role == "tabpanel" or "tabbed-block" in element.classes:
            self._panel(element, place)
        elif tag in HEADINGS:
            self._heading(element, place)
        elif tag in ("pre", "xmp", "listing", "plaintext"):
            self._out.code(_code(element), place, language=language)
            self._anchor = ""
        elif tag == "table":
            self._table(element, place, language=language)
        elif tag in _LISTS and any(child.tag == "li" for child in element.elements):
            self._list(element, place)
        elif tag == "dl":
            self._definitions(element, place)
        elif tag == "blockquote":
            self._out.flush_lead(place)
            self._inside(element.children, Place(place, marker="> "))
        else:
            self._container(element, place, language=language)

    def _container(self, element: Element, place: Place, *, language: str) -> None:
        """Any other block: its content, after the title it is given as a note or footnote."""
        if _TITLE_CLASS.search(element.get("class")) and (title := line(element.children)):
            self._out.flush_lead(place)
            place.lead = title[0].upper() + title[1:] + ("" if title[-1] in ".:!?" else ":")
            return
        waiting = place.lead
        nodes = element.children
        if element.get("role") == "doc-footnote" and (label := next(_labels(element), None)):
            place.lead = f"[^{plain(label).strip('[]')}]:"
            nodes = [node for node in nodes if node is not label]
        self.write(nodes, place, language=language)
        if place.lead != waiting:  # the title of a note that has no text
            self._out.flush_lead(place)

    def _inside(self, nodes: Iterable[Node], place: Place) -> None:
        """A list item or quotation, with what stands in it."""
        if place.group is None:
            place.group = self._out.new_group()
        self.write(nodes, place)
        self._out.flush_lead(place)

    def _heading(self, element: Element, place: Place) -> None:
        nested = [child for child in element.elements if child.tag in HEADINGS]  # `<h1>` that was never closed
        own = Element(element.tag, element.attributes, [child for child in element.children if child not in nested])
        text = line(own.children)
        if place.nested:
            self._out.paragraph(text, place)
        else:
            inner = (child.get("id") or child.get("name") for child in own.walk())
            anchor = element.get("id") or next(filter(None, inner), "") or self._anchor
            self._out.heading(int(element.tag[1]), text, title=plain(own), anchor=anchor)
        self._anchor = ""
        self.write(nested, place)

    def _panel(self, element: Element, place: Place) -> None:
        """A tab's content, under its label."""
        if self._tabs and (label := self._tabs.pop(0)):
            self._out.paragraph(f"{label}:", place)
        outer, self._tabs = self._tabs, []
        self.write(element.children, place)
        self._tabs = outer

    def _list(self, element: Element, place: Place) -> None:
        self._out.flush_lead(place)
        start = element.get("start")
        numbers = count(int(start) if _NUMBER.fullmatch(start) else 1)
        group = place.group if place.group is not None else self._out.new_group()
        item = Place(place, kind="list")
        for child in element.children:
            if isinstance(child, Element) and child.tag == "li":
                marker = f"{abs(next(numbers))}. " if element.tag == "ol" else "- "
                item = Place(place, marker=marker, kind="list")
                item.group = group
                self._inside(child.children, item)
            else:  # a list directly in a list belongs to the item before it
                item.group = group
                self.write([child], item)

    def _definitions(self, element: Element, place: Place) -> None:
        """Each term before its definition, as list items: "- term: what it is"."""
        self._out.flush_lead(place)
        group = place.group if place.group is not None else self._out.new_group()
        terms: list[str] = []
        for child in _entries(element):
            if child.tag == "dt":
                terms.append(_term(child))
                continue
            item = Place(place, marker="- ", kind="list")
            item.group = group
            item.lead = f"{', '.join(filter(None, terms)).rstrip(':')}:" if any(terms) else ""
            terms = []
            self._inside(child.children, item)
        item = Place(place, marker="- ", kind="list")
        item.group = group
        self._out.paragraph(", ".join(filter(None, terms)), item)

    def _table(self, element: Element, place: Place, *, language: str) -> None:
        for caption in (child for child in element.elements if child.tag == "caption"):
            self._out.paragraph(words(caption.children), place)
        table = None if is_layout(element) else table_of(element)
        if table is None:
            self._cells(element, place, language=language)
        else:
            self.write(strays(element), place)  # a browser moves them before the table
            self._out.table(table.header, table.rows, place)
            self._anchor = ""

    def _cells(self, element: Element, place: Place, *, language: str) -> None:
        """A table that only arranges the page: what is in its cells, in order."""
        for child in element.children:
            if isinstance(child, Element) and child.tag in ("tbody", "thead", "tfoot", "tr"):
                self._cells(child, place, language=language)
            elif isinstance(child, str) or child.tag not in ("caption", "colgroup", "col"):
                self.write([child], place, language=language)


def _is_block(element: Element) -> bool:
    """Whether it, or anything in it, ends the line of text it stands in."""
    if element.tag in BLOCKS:
        return True
    if (formula := formula_in(element)) is not None:
        return formula.display
    return any(child.tag in BLOCKS or _is_display(child) for child in element.walk())


def _is_display(element: Element) -> bool:
    formula = formula_in(element)
    return formula is not None and formula.display


def _labels(footnote: Element) -> Iterator[Element]:
    return (child for child in footnote.elements if "label" in child.classes)


def _entries(element: Element) -> Iterator[Element]:
    """The terms and definitions of a list, also where each pair stands in a `<div>`, or they were not closed."""
    for child in element.elements:
        if child.tag in ("dt", "dd"):
            yield child
        else:
            yield from _entries(child)


def _term(element: Element) -> str:
    """A defined term; a signature in an API's documentation is code."""
    if "sig" in element.classes or "sig-object" in element.classes:
        return f"`{plain(element).replace('`', '')}`"
    return line(element.children)


def _language(element: Element) -> str:
    """What a class or attribute says code is written in."""
    named = [element.get("data-language"), element.get("data-lang")]
    candidates = [element, *element.elements] if element.tag == "pre" else [element]
    for one in candidates:
        named += [match["name"] for name in one.classes if (match := _LANGUAGE.fullmatch(name))]
    known = (name.lower() for name in named if re.fullmatch(r"[\w+#.-]{1,30}", name))
    return next((name for name in known if name not in _NO_LANGUAGE), "")


def _code(element: Element) -> str:
    """Preformatted text; a `<br>` or a block inside it ends a line."""
    parts: list[str] = []
    _collect_code(element, parts)
    return clean("".join(parts)).expandtabs(4)


def _collect_code(element: Element, parts: list[str]) -> None:
    for child in element.children:
        if isinstance(child, str):
            parts.append(child)
        elif child.tag == "br":
            parts.append("\n")
        else:
            edge = "\n" if child.tag in BLOCKS else ""
            parts.append(edge if parts and not parts[-1].endswith("\n") else "")
            _collect_code(child, parts)
            parts.append(edge if parts and not parts[-1].endswith("\n") else "")
