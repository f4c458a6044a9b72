"""Word's formulas as TeX, as far as a reader needs to recognise them."""

from citewell.ingest.readers.document_builder import clean
from citewell.ingest.readers.xml_tree import Element

_SHAPES = {
    "m:f": (r"\frac{%s}{%s}", "m:num", "m:den"),
    "m:sSup": ("%s^{%s}", "m:e", "m:sup"),
    "m:sSub": ("%s_{%s}", "m:e", "m:sub"),
    "m:sSubSup": ("%s_{%s}^{%s}", "m:e", "m:sub", "m:sup"),
    "m:limLow": ("%s_{%s}", "m:e", "m:lim"),
    "m:limUpp": ("%s^{%s}", "m:e", "m:lim"),
    "m:func": ("%s %s", "m:fName", "m:e"),
}


def tex(element: Element) -> str:
    """A formula on one line."""
    return " ".join(_tex(element).split())


def _tex(element: Element) -> str:
    if element.tag in _SHAPES:
        shape, *parts = _SHAPES[element.tag]
        return shape % tuple(_part(element, part) for part in parts)
    match element.tag:
        case "m:t":
            return clean(element.text)
        case "m:rad":
            degree = _part(element, "m:deg")
            return rf"\sqrt{f'[{degree}]' if degree else ''}{{{_part(element, 'm:e')}}}"
        case "m:d":
            inner = ", ".join(_tex(child).strip() for child in element.elements if child.tag == "m:e")
            return f"{_sign(element, 'm:begChr', '(')}{inner}{_sign(element, 'm:endChr', ')')}"
        case "m:nary":
            sign = _sign(element, "m:chr", "∫")
            limits = ((mark, _part(element, part)) for mark, part in (("_", "m:sub"), ("^", "m:sup")))
            return sign + "".join(f"{mark}{{{at}}}" for mark, at in limits if at) + f" {_part(element, 'm:e')}"
    parts = [_tex(child) for child in element.elements]
    return " & ".join(parts) + r" \\ " if element.tag == "m:mr" else "".join(parts)


def _part(element: Element, tag: str) -> str:
    return " ".join("".join(_tex(child) for child in element.elements if child.tag == tag).split())


def _sign(element: Element, tag: str, usual: str) -> str:
    found = element.find(tag)
    return clean(found.get("m:val")) if found and found.tag == tag else usual
