"""Find the content of a page: remove hidden elements and the site around it. It knows themes, not blocks."""

import re
from collections.abc import Callable, Iterator

from citewell.ingest.readers.xml_tree import Element, Node

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")

_CONTENT_CLASSES = frozenset({"theme-doc-markdown", "md-content__inner", "bd-article", "vp-doc", "markdown-section"})
"""Docusaurus, MkDocs Material, PyData, VitePress, GitBook: their `main` also contains tables of contents."""

_REMOVED_TAGS = frozenset({
    "nav", "style", "noscript", "template", "button", "iframe", "svg", "canvas", "object",
    "embed", "audio", "video", "select", "textarea", "datalist", "map", "head", "title", "meta", "link", "frame",
    "rp",
})  # fmt: skip
_REMOVED_ROLES = frozenset({"navigation", "contentinfo", "search", "complementary", "dialog", "menu", "toolbar"})
_REMOVED_CLASSES = frozenset({
    # links of a heading to itself, line numbers, folded lines of code, text for screen readers only
    "headerlink", "hash-link", "anchor-link", "anchorjs-link", "header-anchor", "viewcode-link", "linenos",
    "linenodiv", "gutter", "eqno", "footnote-backref",
    "footnote-back", "data-footnote-backref", "boring", "sr-only", "visually-hidden", "screen-reader-text", "skip-link",
    # tables of contents and links to other pages
    "toc", "table-of-contents", "toc-tree", "toc-drawer", "theme-doc-toc-mobile", "theme-doc-toc-desktop",
    "breadcrumb", "breadcrumbs", "theme-doc-breadcrumbs", "pagination-nav", "prev-next-area", "prev-next-footer",
    "rst-footer-buttons", "related-pages", "mw-editsection",
    # tools
    "theme-doc-footer", "theme-doc-version-badge", "theme-doc-version-banner", "theme-edit-this-page",
    "edit-this-page", "md-content__button", "md-source-file", "content-icon-container", "copybtn",
    "view-this-page", "back-to-top", "rightside", "out-of-band", "hideme",
})  # fmt: skip
_NOTE_CLASSES = frozenset({
    "admonition", "callout", "note", "tip", "warning", "starlight-aside", "footnote", "footnote-list", "footnotes",
    "topic", "citation",
})  # fmt: skip
_NOTE_ROLES = frozenset({"note", "doc-footnote", "doc-tip", "doc-endnotes"})
_NOT_DISPLAYED = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_TABS = frozenset({"tab", "tabpanel"})


def find_content(page: Element) -> list[Node]:
    """The nodes of the page's content, in order. Removes everything hidden from the tree."""
    has_title = any(element.tag == "h1" for element in _outside_headers(page))
    _prune(page, in_content=False, has_title=has_title)
    return _content_nodes(page)


def _outside_headers(element: Element) -> Iterator[Element]:
    for child in element.elements:
        if child.tag != "header":
            yield child
            yield from _outside_headers(child)


def _content_nodes(page: Element) -> list[Node]:
    """The narrowest elements that the page or its theme marks as content; the whole page if there are none."""
    for elements in (
        _outermost(page, lambda element: not _CONTENT_CLASSES.isdisjoint(element.classes)),
        _outermost(page, lambda element: element.get("itemprop") == "articleBody"),
        _outermost(page, lambda element: element.tag == "main" or element.get("role") == "main"),
    ):
        if any(element.text.strip() for element in elements):
            return list(elements)
    articles = _outermost(page, lambda element: element.tag == "article")
    words = sum(len(element.text.split()) for element in articles)
    # Cards that link to other pages are articles too: they must not replace the text beside them.
    return list(articles) if words and 2 * words >= len(page.text.split()) else page.children


def _outermost(element: Element, matches: Callable[[Element], bool]) -> list[Element]:
    elements: list[Element] = []
    for child in element.elements:
        if matches(child):
            elements.append(child)
        else:
            elements += _outermost(child, matches)
    return elements


def _prune(element: Element, *, in_content: bool, has_title: bool) -> None:
    element.children = [
        child
        for child in element.children
        if isinstance(child, str) or _is_visible(child, element, in_content, has_title)
    ]
    inside = in_content or element.tag in ("main", "article") or element.get("role") == "main"
    for child in element.elements:
        _prune(child, in_content=inside or not _CONTENT_CLASSES.isdisjoint(element.classes), has_title=has_title)


def _is_visible(element: Element, parent: Element, in_content: bool, has_title: bool) -> bool:
    tag, role = element.tag, element.get("role")
    if tag in _SOMETIMES_VISIBLE:
        if not _SOMETIMES_VISIBLE[tag](element, parent):
            return False
    elif (tag in _REMOVED_TAGS and role != "tab") or (
        tag == "header" and not _is_page_header(element, in_content, has_title)
    ):
        return False
    if role in _REMOVED_ROLES or not _REMOVED_CLASSES.isdisjoint(element.classes) or _is_self_link(element):
        return False
    return role in _TABS or tag == "body" or not _is_hidden(element)  # scripts unhide a body


def _is_page_header(element: Element, in_content: bool, has_title: bool) -> bool:
    """Whether a `<header>` belongs to the page's text, not to the site."""
    if in_content:
        return element.find(*HEADINGS) is not None
    return not has_title and element.find("h1") is not None


def _is_note(element: Element, _parent: Element) -> bool:
    return not _NOTE_CLASSES.isdisjoint(element.classes) or element.get("role") in _NOTE_ROLES


def _is_hidden(element: Element) -> bool:
    """Whether the element is always hidden. A tab that is not selected is not: a click shows it."""
    return (
        "hidden" in element.attributes
        or element.get("aria-hidden") == "true"
        or bool(_NOT_DISPLAYED.search(element.get("style")))
    )


def _is_self_link(element: Element) -> bool:
    """Whether the element is the symbol beside a heading that links to it."""
    return element.tag == "a" and "#" in element.get("href") and element.text.strip(" \n\u200b") in set("#¶§🔗")


_SOMETIMES_VISIBLE: dict[str, Callable[[Element, Element], bool]] = {
    "aside": _is_note,
    "dialog": lambda element, _: "open" in element.attributes,
    "footer": lambda _, parent: parent.tag == "blockquote",
    # Some frameworks wrap the whole page in a form.
    "form": lambda element, _: element.find("h1", "h2", "main", "article") is not None,
    "input": lambda element, parent: element.get("type") == "checkbox" and parent.tag in ("li", "p", "label"),
    "script": lambda element, _: element.get("type").startswith("math/tex"),
}
