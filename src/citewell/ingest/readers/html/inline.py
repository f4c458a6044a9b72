"""Inline HTML as text: links, code and formulas become Markdown, all other markup is removed."""

import re
from collections.abc import Callable, Iterable, Iterator

from citewell.ingest.readers.document_builder import clean, code_span, superscript, web_link
from citewell.ingest.readers.html.formula import formula_of
from citewell.ingest.readers.xml_tree import Element, Node

BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "dir", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "footer", "form", "frameset", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "noframes", "ol", "p", "pre", "search",
    "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul", "caption", "plaintext",
    "xmp", "listing",
})  # fmt: skip
_CODE = frozenset({"code", "tt", "samp"})
_BREAK = "\x0b"  # `clean` removes this character from text
_SPACE = re.compile(r"[ \t\n\r\f]+")
_AROUND_BREAK = re.compile(f" ?{_BREAK} ?")
_IMAGE_FILE = re.compile(r"\S+\.(?:png|jpe?g|gif|svg|webp|bmp|ico)", re.IGNORECASE)
_FOOTNOTE_CLASSES = frozenset({"footnote-ref", "footnote-reference", "footnote"})


def markdown_text(nodes: Iterable[Node]) -> str:
    """The text as a browser shows it, with white space collapsed; a `<br>` is a newline."""
    collapsed = _SPACE.sub(" ", "".join(_markdown_parts(nodes)))
    return _AROUND_BREAK.sub("\n", collapsed).strip()


def markdown_line(nodes: Iterable[Node]) -> str:
    """The same on one line, for a heading or a table cell."""
    return " ".join(markdown_text(nodes).split())


def bare_text(element: Element) -> str:
    """The text without links, backticks or other markup, on one line."""
    return " ".join("".join(_bare_parts(element)).split())


def _bare_parts(element: Element) -> Iterator[str]:
    for child in element.children:
        if isinstance(child, str):
            yield clean(child)
        elif (formula := formula_of(child)) is not None:
            yield f"${formula.tex}$"
        elif child.tag == "img":
            yield _image_text(child)
        else:
            yield " " if child.tag == "br" or child.tag in BLOCKS else ""
            yield from _bare_parts(child)


def _markdown_parts(nodes: Iterable[Node]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, str):
            yield clean(node)
        elif (formula := formula_of(node)) is not None:
            yield f"${' '.join(formula.tex.split())}$" if formula.tex.strip() else ""
        else:
            yield from _element_parts(node)


def _element_parts(element: Element) -> Iterator[str]:
    match element.tag:
        case "br":
            yield _BREAK
        case "img":
            yield _image_text(element)
        case "input":
            yield "[x] " if "checked" in element.attributes else "[ ] "
        case "q":
            yield from ("“", markdown_text(element.children), "”")
        case "a":
            yield from _link_parts(element)
        case "sup":
            yield _superscript(element)
        case "ul" | "ol":
            items = (markdown_text(item.children) for item in element.elements)
            yield f" {'; '.join(item for item in items if item)} "
        case tag if tag in _CODE or tag == "pre":
            yield from _with_outer_spaces(bare_text(element), "".join(_bare_parts(element)), code_span)
        case tag:
            gap = " " if tag in BLOCKS else ""
            yield gap
            yield from _markdown_parts(element.children)
            yield gap


def _with_outer_spaces(inner: str, source: str, add_markup: Callable[[str], str]) -> Iterator[str]:
    """Marked-up text, with the spaces at its edges moved outside: "see<a> here</a>" becomes "see [here]"."""
    if inner:
        yield " " if source[:1].isspace() else ""
        yield add_markup(inner)
    yield " " if source[-1:].isspace() else ""


def _link_parts(element: Element) -> Iterator[str]:
    inner = "".join(_markdown_parts(element.children))
    bare = " ".join(inner.replace(_BREAK, " ").split())
    if element.get("role") == "doc-noteref" or not _FOOTNOTE_CLASSES.isdisjoint(element.classes):
        yield f"[^{bare.strip('[]')}]"
    elif element.get("role") != "doc-backlink":
        yield from _with_outer_spaces(bare, inner, lambda text: web_link(text, element.get("href")))


def _superscript(element: Element) -> str:
    """An exponent, or a reference to a footnote."""
    inner = markdown_text(element.children)
    if inner.startswith("[^"):
        return inner
    target = element.find("a")
    if target and "#" in target.get("href") and len(inner) <= 8:
        return f"[^{inner.strip('[]')}]" if inner.strip("[]") else ""
    return superscript(inner)


def _image_text(element: Element) -> str:
    """The alternative text of an image; "" if it is only a file name or the source of a graph."""
    alt = " ".join(clean(element.get("alt")).split())
    if alt and any(name in element.get("class") for name in ("math", "latex")):
        return f"${alt}$"
    return "" if _IMAGE_FILE.fullmatch(alt) or "graphviz" in element.classes else alt
