"""The words of a stretch of HTML on one line: links, code and formulas written as Markdown, the rest plain."""

import re
from collections.abc import Callable, Iterable, Iterator

from citewell.ingest.readers.document_builder import clean, code_span, link, raised
from citewell.ingest.readers.html.formula import formula_in
from citewell.ingest.readers.xml_tree import Element, Node

BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "dir", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "footer", "form", "frameset", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "noframes", "ol", "p", "pre", "search",
    "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul", "caption", "plaintext",
    "xmp", "listing",
})  # fmt: skip
_CODE = frozenset({"code", "tt", "samp"})
_BREAK = "\x0b"  # cannot stand in a text that was cleaned
_SPACE = re.compile(r"[ \t\n\r\f]+")
_AROUND_BREAK = re.compile(f" ?{_BREAK} ?")
_PICTURE_FILE = re.compile(r"\S+\.(?:png|jpe?g|gif|svg|webp|bmp|ico)", re.IGNORECASE)
_FOOTNOTE_CLASSES = frozenset({"footnote-ref", "footnote-reference", "footnote"})


def words(nodes: Iterable[Node]) -> str:
    """What a browser shows, white space collapsed as it does; a forced line break is a newline."""
    collapsed = _SPACE.sub(" ", "".join(_pieces(nodes)))
    return _AROUND_BREAK.sub("\n", collapsed).strip()


def line(nodes: Iterable[Node]) -> str:
    """The same where only one line has room: a heading, a table cell."""
    return " ".join(words(nodes).split())


def plain(element: Element) -> str:
    """The bare words: no link, no marks."""
    return " ".join("".join(_bare(element)).split())


def _bare(element: Element) -> Iterator[str]:
    for child in element.children:
        if isinstance(child, str):
            yield clean(child)
        elif (formula := formula_in(child)) is not None:
            yield f"${formula.tex}$"
        elif child.tag == "img":
            yield _picture(child)
        else:
            yield " " if child.tag == "br" or child.tag in BLOCKS else ""
            yield from _bare(child)


def _pieces(nodes: Iterable[Node]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, str):
            yield clean(node)
        elif (formula := formula_in(node)) is not None:
            yield f"${' '.join(formula.tex.split())}$" if formula.tex.strip() else ""
        else:
            yield from _element(node)


def _element(element: Element) -> Iterator[str]:
    match element.tag:
        case "br":
            yield _BREAK
        case "img":
            yield _picture(element)
        case "input":
            yield "[x] " if "checked" in element.attributes else "[ ] "
        case "q":
            yield from ("“", words(element.children), "”")
        case "a":
            yield from _link(element)
        case "sup":
            yield _superscript(element)
        case "ul" | "ol":
            items = (words(item.children) for item in element.elements)
            yield f" {'; '.join(item for item in items if item)} "
        case tag if tag in _CODE or tag == "pre":
            yield from _around(plain(element), "".join(_bare(element)), code_span)
        case tag:
            gap = " " if tag in BLOCKS else ""
            yield gap
            yield from _pieces(element.children)
            yield gap


def _around(inner: str, source: str, mark: Callable[[str], str]) -> Iterator[str]:
    """Marked text, with the spaces that stood inside its edges outside: "see<a> here</a>" reads "see [here]"."""
    if inner:
        yield " " if source[:1].isspace() else ""
        yield mark(inner)
    yield " " if source[-1:].isspace() else ""


def _link(element: Element) -> Iterator[str]:
    inner = "".join(_pieces(element.children))
    bare = " ".join(inner.replace(_BREAK, " ").split())
    if element.get("role") == "doc-noteref" or not _FOOTNOTE_CLASSES.isdisjoint(element.classes):
        yield f"[^{bare.strip('[]')}]"
    elif element.get("role") != "doc-backlink":
        yield from _around(bare, inner, lambda text: link(text, element.get("href")))


def _superscript(element: Element) -> str:
    """A power, or the reference to a note."""
    inner = words(element.children)
    if inner.startswith("[^"):
        return inner
    target = element.find("a")
    if target and "#" in target.get("href") and len(inner) <= 8:
        return f"[^{inner.strip('[]')}]" if inner.strip("[]") else ""
    return raised(inner)


def _picture(element: Element) -> str:
    """What a picture is said to show; a file name says nothing, and a graph's source is for programs."""
    shown = " ".join(clean(element.get("alt")).split())
    if shown and any(mark in element.get("class") for mark in ("math", "latex")):
        return f"${shown}$"
    return "" if _PICTURE_FILE.fullmatch(shown) or "graphviz" in element.classes else shown
