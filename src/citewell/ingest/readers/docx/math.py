"""Convert Word's formulas to TeX, as far as a reader needs to recognize them."""

from citewell.ingest.readers.document_builder import clean
from citewell.ingest.readers.xml_tree import Element

_TEMPLATES = {
    "m:f": (r"\frac{%s}{%s}", "m:num", "m:den"),
    "m:sSup": ("%s^{%s}", "m:e", "m:sup"),
    "m:sSub": ("%s_{%s}", "m:e", "m:sub"),
    "m:sSubSup": ("%s_{%s}^{%s}", "m:e", "m:sub", "m:sup"),
    "m:limLow": ("%s_{%s}", "m:e", "m:lim"),
    "m:limUpp": ("%s^{%s}", "m:e", "m:lim"),
    "m:func": ("%s %s", "m:fName", "m:e"),
}


def formula_to_tex(element: Element) -> str:
    """A formula as TeX on one line."""
    return " ".join(_to_tex(element).split())


def _to_tex(element: Element) -> str:
    if element.tag in _TEMPLATES:
        template, *parts = _TEMPLATES[element.tag]
        return template % tuple(_part(element, part) for part in parts)
    match element.tag:
        case "m:t":
            return clean(element.text)
        case "m:rad":
            degree = _part(element, "m:deg")
            return rf"\sqrt{f'[{degree}]' if degree else ''}{{{_part(element, 'm:e')}}}"
        case "m:d":
            inner = ", ".join(_to_tex(child).strip() for child in element.elements if child.tag == "m:e")
            return f"{_character(element, 'm:begChr', '(')}{inner}{_character(element, 'm:endChr', ')')}"
        case "m:nary":
            operator = _character(element, "m:chr", "∫")
            limits = ((script, _part(element, part)) for script, part in (("_", "m:sub"), ("^", "m:sup")))
            return (
                operator
                + "".join(f"{script}{{{limit}}}" for script, limit in limits if limit)
                + f" {_part(element, 'm:e')}"
            )
    parts = [_to_tex(child) for child in element.elements]
    return " & ".join(parts) + r" \\ " if element.tag == "m:mr" else "".join(parts)


def _part(element: Element, tag: str) -> str:
    return " ".join("".join(_to_tex(child) for child in element.elements if child.tag == tag).split())


def _character(element: Element, tag: str, default: str) -> str:
    setting = element.find(tag)
    return clean(setting.get("m:val")) if setting and setting.tag == tag else default
