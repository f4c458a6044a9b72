"""Formulas in HTML as TeX: from KaTeX, MathJax, Sphinx, Pandoc and plain MathML."""

import re
from dataclasses import dataclass

from citewell.ingest.readers.document_builder import clean
from citewell.ingest.readers.xml_tree import Element

_WRAPPER_CLASSES = frozenset({"katex-display", "katex", "katex-block", "mjx-container", "MathJax_Display"})
_MATH_CLASSES = frozenset({"math", "arithmatex"})
_DELIMITED = re.compile(r"\s*(?:\\\((?P<inline>.*)\\\)|\\\[(?P<display>.*)\\\]|\$\$(?P<dollars>.*)\$\$)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Formula:
    tex: str
    display: bool


def formula_of(element: Element) -> Formula | None:
    """The formula that the element is; None if it is no formula."""
    if element.tag == "math":
        return Formula(_find_tex(element), element.get("display") == "block")
    if element.tag == "script" and element.get("type").startswith("math/tex"):
        return Formula(clean(element.text), "display" in element.get("type"))
    classes = {*element.classes, element.tag}
    if not _WRAPPER_CLASSES.isdisjoint(classes) and (math := element.find("math")):
        return Formula(
            _find_tex(math), "katex-display" in classes or "block" in (math.get("display"), element.get("display"))
        )
    if not _MATH_CLASSES.isdisjoint(element.classes) and (match := _DELIMITED.fullmatch(clean(element.text))):
        inline = match["inline"]
        return Formula(inline if inline is not None else match["display"] or match["dollars"] or "", inline is None)
    return None


def _find_tex(math: Element) -> str:
    for element in math.walk():
        if element.tag == "annotation" and "tex" in element.get("encoding").lower():
            return clean(element.text).strip()
    return clean(math.get("alttext")).strip() or " ".join(_mathml_to_tex(math).split())


def _mathml_to_tex(element: Element) -> str:
    """MathML without a TeX annotation, converted to TeX."""
    if element.tag in ("annotation", "annotation-xml"):
        return ""
    if not any(element.elements):
        return clean(element.text).strip()
    parts = [_mathml_to_tex(child).strip() for child in element.elements]
    template = _TEMPLATES.get(element.tag, "")
    if template and template.count("%s") == len(parts):
        return template % tuple(parts)
    return rf"\sqrt{{{' '.join(parts)}}}" if element.tag == "msqrt" else " ".join(parts)


_TEMPLATES = {
    "mfrac": r"\frac{%s}{%s}",
    "mover": "%s^{%s}",
    "msub": "%s_{%s}",
    "msubsup": "%s_{%s}^{%s}",
    "msup": "%s^{%s}",
    "munder": "%s_{%s}",
    "munderover": "%s_{%s}^{%s}",
}
