"""Write the content of an HTML page as blocks: headings, paragraphs, lists, tables, code.

Which part of the page is content is decided in `content.py`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from citewell.ingest.readers.document_builder import Container, DocumentBuilder, clean
from citewell.ingest.readers.html.content import HEADINGS
from citewell.ingest.readers.html.formula import formula_of
from citewell.ingest.readers.html.inline import BLOCKS, bare_text, markdown_line, markdown_text
from citewell.ingest.readers.html.tables import content_outside_cells, is_layout, read_table
from citewell.ingest.readers.xml_tree import Element, Node

_LANGUAGE = re.compile(r"(?:language|lang|highlight|brush)[-:](?:source-)?(?P<name>[\w+#.-]+)")
_NO_LANGUAGE = frozenset({"default", "none", "text", "plaintext", "plain", "txt", "notranslate", "unknown", "output"})
_TITLE_CLASS = re.compile(
    r"admonition-title|admonition-?heading|(?:aside_|callout|markdown-alert|blockquote-tag)[_-]title", re.IGNORECASE
)
_LISTS = ("ul", "ol", "menu", "dir")
_NUMBER = re.compile(r"-?\d{1,6}")


class BlockWriter:
    """Walks the content of a page and adds its blocks to a document builder."""

    def __init__(self, builder: DocumentBuilder) -> None:
        self._builder = builder
        self._anchor = ""
        """The id of the element opened just before: the anchor of a heading that has no id of its own."""
        self._tabs: list[str] = []

    def write(self, nodes: Iterable[Node], container: Container, *, language: str = "") -> None:
        """Write block elements as blocks, and the inline content between two of them as a paragraph."""
        inline: list[Node] = []
        for node in nodes:
            if isinstance(node, str) or not _is_block(node):
                inline.append(node)
                continue
            self._write_inline(inline, container)
            inline = []
            self._write_block(node, container, language=_language_of(node) or language)
        self._write_inline(inline, container)

    def _write_inline(self, nodes: Sequence[Node], container: Container) -> None:
        if not nodes:
            return
        if text := markdown_text(nodes):
            for paragraph in re.split(r"\n{2,}", text):  # before `<p>` was common, two `<br>` made a paragraph
                self._builder.add_paragraph(paragraph, container)
            self._anchor = ""
        for element in (node for node in nodes if isinstance(node, Element)):
            self._anchor = self._anchor or element.get("id") or element.get("name")

    def _write_block(self, element: Element, container: Container, *, language: str) -> None:
        if (formula := formula_of(element)) is not None:
            self._builder.add_formula(formula.tex, container)
            return
        self._anchor = element.get("id") or self._anchor
        tag, role = element.tag, element.get("role")
        if role == "tablist" or "tabbed-labels" in element.classes:
            self._tabs = [bare_text(tab) for tab in element.elements]
        elif role == "tabpanel" or "tabbed-block" in element.classes:
            self._write_tab(element, container)
        elif tag in HEADINGS:
            self._write_heading(element, container)
        elif tag in ("pre", "xmp", "listing", "plaintext"):
            self._builder.add_code(_preformatted_text(element), container, language=language)
            self._anchor = ""
        elif tag == "table":
            self._write_table(element, container, language=language)
        elif tag in _LISTS and any(child.tag == "li" for child in element.elements):
            self._write_list(element, container)
        elif tag == "dl":
            self._write_definitions(element, container)
        elif tag == "blockquote":
            self._builder.flush_lead(container)
            self._write_inside(element.children, Container(container, marker="> "))
        else:
            self._write_other_block(element, container, language=language)

    def _write_other_block(self, element: Element, container: Container, *, language: str) -> None:
        """Write any other block: its content, after the title of a note or the label of a footnote."""
        if _TITLE_CLASS.search(element.get("class")) and (title := markdown_line(element.children)):
            self._builder.flush_lead(container)
            container.lead = title[0].upper() + title[1:] + ("" if title[-1] in ".:!?" else ":")
            return
        lead_before = container.lead
        nodes = element.children
        if element.get("role") == "doc-footnote" and (label := next(_footnote_labels(element), None)):
            container.lead = f"[^{bare_text(label).strip('[]')}]:"
            nodes = [node for node in nodes if node is not label]
        self.write(nodes, container, language=language)
        if container.lead != lead_before:  # the title of a note that has no text
            self._builder.flush_lead(container)

    def _write_inside(self, nodes: Iterable[Node], container: Container) -> None:
        """Write the content of a list item or quotation."""
        if container.group is None:
            container.group = self._builder.new_group()
        self.write(nodes, container)
        self._builder.flush_lead(container)

    def _write_heading(self, element: Element, container: Container) -> None:
        nested = [child for child in element.elements if child.tag in HEADINGS]  # `<h1>` that was never closed
        own = Element(element.tag, element.attributes, [child for child in element.children if child not in nested])
        text = markdown_line(own.children)
        if container.nested:
            self._builder.add_paragraph(text, container)
        else:
            inner = (child.get("id") or child.get("name") for child in own.walk())
            anchor = element.get("id") or next(filter(None, inner), "") or self._anchor
            self._builder.add_heading(int(element.tag[1]), text, title=bare_text(own), anchor=anchor)
        self._anchor = ""
        self.write(nested, container)

    def _write_tab(self, element: Element, container: Container) -> None:
        """Write a tab's content after its label."""
        if self._tabs and (label := self._tabs.pop(0)):
            self._builder.add_paragraph(f"{label}:", container)
        outer, self._tabs = self._tabs, []
        self.write(element.children, container)
        self._tabs = outer

    def _write_list(self, element: Element, container: Container) -> None:
        self._builder.flush_lead(container)
        start = element.get("start")
        numbers = count(int(start) if _NUMBER.fullmatch(start) else 1)
        group = container.group if container.group is not None else self._builder.new_group()
        item = Container(container, kind="list")
        for child in element.children:
            if isinstance(child, Element) and child.tag == "li":
                marker = f"{abs(next(numbers))}. " if element.tag == "ol" else "- "
                item = Container(container, marker=marker, kind="list")
                item.group = group
                self._write_inside(child.children, item)
            else:  # a list directly in a list belongs to the item before it
                item.group = group
                self.write([child], item)

    def _write_definitions(self, element: Element, container: Container) -> None:
        """Write each term with its definition as a list item: "- term: what it is"."""
        self._builder.flush_lead(container)
        group = container.group if container.group is not None else self._builder.new_group()
        terms: list[str] = []
        for child in _terms_and_definitions(element):
            if child.tag == "dt":
                terms.append(_term_text(child))
                continue
            item = Container(container, marker="- ", kind="list")
            item.group = group
            item.lead = f"{', '.join(filter(None, terms)).rstrip(':')}:" if any(terms) else ""
            terms = []
            self._write_inside(child.children, item)
        item = Container(container, marker="- ", kind="list")
        item.group = group
        self._builder.add_paragraph(", ".join(filter(None, terms)), item)

    def _write_table(self, element: Element, container: Container, *, language: str) -> None:
        for caption in (child for child in element.elements if child.tag == "caption"):
            self._builder.add_paragraph(markdown_text(caption.children), container)
        table = None if is_layout(element) else read_table(element)
        if table is None:
            self._write_cells(element, container, language=language)
        else:
            self.write(content_outside_cells(element), container)  # a browser moves it before the table
            self._builder.add_table(table.header, table.rows, container)
            self._anchor = ""

    def _write_cells(self, element: Element, container: Container, *, language: str) -> None:
        """Write the content of a layout table's cells, in order."""
        for child in element.children:
            if isinstance(child, Element) and child.tag in ("tbody", "thead", "tfoot", "tr"):
                self._write_cells(child, container, language=language)
            elif isinstance(child, str) or child.tag not in ("caption", "colgroup", "col"):
                self.write([child], container, language=language)


def _is_block(element: Element) -> bool:
    """Whether the element is a block or contains one."""
    if element.tag in BLOCKS:
        return True
    if (formula := formula_of(element)) is not None:
        return formula.display
    return any(child.tag in BLOCKS or _is_display(child) for child in element.walk())


def _is_display(element: Element) -> bool:
    formula = formula_of(element)
    return formula is not None and formula.display


def _footnote_labels(footnote: Element) -> Iterator[Element]:
    return (child for child in footnote.elements if "label" in child.classes)


def _terms_and_definitions(element: Element) -> Iterator[Element]:
    """The terms and definitions of a list, also if each pair is in a `<div>` or the tags were not closed."""
    for child in element.elements:
        if child.tag in ("dt", "dd"):
            yield child
        else:
            yield from _terms_and_definitions(child)


def _term_text(element: Element) -> str:
    """A defined term; an API signature becomes code."""
    if "sig" in element.classes or "sig-object" in element.classes:
        return f"`{bare_text(element).replace('`', '')}`"
    return markdown_line(element.children)


def _language_of(element: Element) -> str:
    """The programming language that a class or attribute names; "" if none."""
    names = [element.get("data-language"), element.get("data-lang")]
    candidates = [element, *element.elements] if element.tag == "pre" else [element]
    for candidate in candidates:
        names += [match["name"] for name in candidate.classes if (match := _LANGUAGE.fullmatch(name))]
    known = (name.lower() for name in names if re.fullmatch(r"[\w+#.-]{1,30}", name))
    return next((name for name in known if name not in _NO_LANGUAGE), "")


def _preformatted_text(element: Element) -> str:
    """The text of a `<pre>`; a `<br>` or a block inside it ends a line."""
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
