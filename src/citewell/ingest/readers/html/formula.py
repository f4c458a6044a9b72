"""Formulas in HTML, as TeX: from KaTeX, MathJax, Sphinx, Pandoc and bare MathML."""

import re
from dataclasses import dataclass

from citewell.ingest.readers.document_builder import clean
from citewell.ingest.readers.xml_tree import Element

_WRAPPERS = frozenset({"katex-display", "katex", "katex-block", "mjx-container", "MathJax_Display"})
_MARKED = frozenset({"math", "arithmatex"})
_DELIMITED = re.compile(r"\s*(?:\\\((?P<inline>.*)\\\)|\\\[(?P<display>.*)\\\]|\$\$(?P<dollars>.*)\$\$)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Formula:
    tex: str
    display: bool


def formula_in(element: Element) -> Formula | None:
    """The formula that the element shows, if it is one."""
    if element.tag == "math":
        return Formula(_tex(element), element.get("display") == "block")
    if element.tag == "script" and element.get("type").startswith("math/tex"):
        return Formula(clean(element.text), "display" in element.get("type"))
    classes = {*element.classes, element.tag}
    if not _WRAPPERS.isdisjoint(classes) and (math := element.find("math")):
        return Formula(
            _tex(math), "katex-display" in classes or "block" in (math.get("display"), element.get("display"))
        )
    if not _MARKED.isdisjoint(element.classes) and (match := _DELIMITED.fullmatch(clean(element.text))):
        inline = match["inline"]
        return Formula(inline if inline is not None else match["display"] or match["dollars"] or "", inline is None)
    return None


def _tex(math: Element) -> str:
    for element in math.walk():
        if element.tag == "annotation" and "tex" in element.get("encoding").lower():
            return clean(element.text).strip()
    return clean(math.get("alttext")).strip() or " ".join(_linear(math).split())


def _linear(element: Element) -> str:
    """MathML without a TeX source, written as TeX would be."""
    if element.tag in ("annotation", "annotation-xml"):
        return ""
    if not any(element.elements):
        return clean(element.text).strip()
    parts = [_linear(child).strip() for child in element.elements]
    shape = _SHAPES.get(element.tag, "")
    if shape and shape.count("%s") == len(parts):
        return shape % tuple(parts)
    return rf"\sqrt{{{' '.join(parts)}}}" if element.tag == "msqrt" else " ".join(parts)


_SHAPES = {
    "mfrac": r"\frac{%s}{%s}",
    "mover": "%s^{%s}",
    "msub": "%s_{%s}",
    "msubsup": "%s_{%s}^{%s}",
    "msup": "%s^{%s}",
    "munder": "%s_{%s}",
    "munderover": "%s_{%s}^{%s}",
}
