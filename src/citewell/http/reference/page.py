"""The page `/docs`, made of the OpenAPI document alone. Pure: a description in, HTML out."""

import json
import re
from functools import lru_cache
from html import escape
from itertools import groupby
from typing import Any

from citewell.http.reference.examples import Example, examples
from citewell.http.reference.openapi import Described, operations
from citewell.schemas.fields import NAME, QUESTION, SOMETHING

_WHO = {"open": "open to anybody", "ask": "any key", "admin": "admin key"}
_LIMITS = {"minLength": "at least {} characters", "maxLength": "at most {} characters", "minimum": "from {}",
           "maximum": "to {}", "exclusiveMinimum": "more than {}", "minItems": "at least {} of them",
           "maxItems": "at most {} of them", "pattern": "like {}", "default": "{} unless said"}  # fmt: skip
_PATTERNS = {
    SOMETHING: "not blank",
    QUESTION: "3 to 1,000 characters after trimming",
    NAME: "one line that neither begins nor ends with a blank",
}
_DEEPEST = 6


def render(document: Described) -> str:
    return _page(json.dumps(document))


@lru_cache(maxsize=1)
def _page(described: str) -> str:
    document: Described = json.loads(described)
    doors = sorted(operations(document), key=lambda door: _order(door, document))
    by_tag = [(tag, list(some)) for tag, some in groupby(doors, key=lambda door: door[2]["tags"][0])]
    says = {one["name"]: one["description"] for one in document["tags"]}
    listed = "".join(f"<h2>{_text(tag)}</h2><ul>{''.join(_entry(*door) for door in some)}</ul>" for tag, some in by_tag)
    told = "".join(
        f"<h2>{_text(tag)}</h2><p>{_prose(says[tag])}</p>{''.join(_door(*door, document) for door in some)}"
        for tag, some in by_tag
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_text(document["info"]["title"])}: the HTTP API</title>
<link rel="stylesheet" href="/docs.css">
</head>
<body>
<div class="layout">
<nav aria-label="Doors"><a class="brand" href="#top">{_text(document["info"]["title"])}</a>{listed}</nav>
<main id="top">{_opening(document)}{told}</main>
</div>
</body>
</html>
"""


def _order(door: tuple[str, str, Described], document: Described) -> int:
    return [one["name"] for one in document["tags"]].index(door[2]["tags"][0])


def _opening(document: Described) -> str:
    info = document["info"]
    rows = "".join(
        f"<tr><td>{status}</td><td>{'<br>'.join(f'<code>{_text(code)}</code>' for code in response['x-codes'])}</td>"
        f"<td>{_prose(response['description'])}</td></tr>"
        for status, response in document["components"]["responses"].items()
    )
    problem: Described = next(iter(examples().errors.get("400", {}).values()), {})
    return f"""<h1>The HTTP API</h1>
<p>{_prose(info["description"])} Version {_text(info["version"])}; for programs:
<a href="/openapi.json">openapi.json</a>, for readers: <a href="/chat">the chat page</a>.</p>
<p>On this machine the doors stand open until a key is made with <code>citewell keys create NAME</code>. From then on,
send one as <code>Authorization: Bearer &lt;key&gt;</code> or <code>X-API-Key: &lt;key&gt;</code>; the lines below leave
it out. The answers shown were given over the example book.</p>
<h2 id="errors">Errors</h2>
<p>Every error has the same shape, and every response its <code>X-Request-ID</code>.</p>
<section>{_block(problem)}<div class="scroll"><table>
<thead><tr><th>status</th><th>error_code</th><th>when</th></tr></thead>
<tbody>{rows}</tbody></table></div></section>"""


def _entry(method: str, path: str, operation: Described) -> str:
    return f'<li><a href="#{_text(operation["operationId"])}">{_method(method)}<code>{_path(path)}</code></a></li>'


def _method(method: str) -> str:
    return f'<span class="method {method.lower()}">{method}</span>'


def _door(method: str, path: str, operation: Described, document: Described) -> str:
    identity = _text(operation["operationId"])
    shown = examples().doors.get(operation["operationId"])
    parts = [
        f'<section id="{identity}"><h3>{_method(method)}<a href="#{identity}"><code>{_path(path)}</code></a>'
        f'<span class="who">{_WHO[operation["x-scope"]]}</span></h3>',
        f"<p>{_prose(operation['summary'])}</p>",
        *(f"<p>{_prose(part)}</p>" for part in operation.get("description", "").split("\n\n") if part),
        _parameters(operation, document),
        _body(operation, document),
        _responses(operation, document),
        _shown(shown, method, path) if shown else "",
        _errors(operation),
        "</section>",
    ]
    return "".join(parts)


def _parameters(operation: Described, document: Described) -> str:
    told = operation.get("parameters", [])
    if not told:
        return ""
    fields = "".join(
        _field(
            one["name"],
            {"description": one.get("description", ""), **one["schema"]},
            document,
            must=one["required"],
            place=one["in"],
        )
        for one in told
    )
    return f'<h4>In the address and headers</h4><dl class="fields">{fields}</dl>'


def _body(operation: Described, document: Described) -> str:
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        return f"<h4>Body, <code>{_text(kind)}</code></h4>{_fields(content['schema'], document, given=True)}"
    return ""


def _responses(operation: Described, document: Described) -> str:
    parts = []
    for status, response in operation["responses"].items():
        if "$ref" in response:
            continue
        kind = next(iter(response.get("content", {})), "")
        content: Described = response["content"][kind] if kind else {}
        schema: Described = content.get("x-event") or content.get("schema", {})
        named = f", <code>{_text(kind)}</code>" if kind else ""
        parts.append(f"<h4>{status}{named}: {_prose(response['description'])}</h4>")
        inner = _fields(schema, document)
        parts.append(f"<details><summary>Fields</summary>{inner}</details>" if inner else "")
    return "".join(parts)


def _fields(schema: Described, document: Described, *, given: bool = False, depth: int = 0) -> str:
    """The fields of an object; which of them must be given is said where a reader gives them."""
    schema = _resolved(schema, document)
    said = f"<p>{_prose(schema['description'])}</p>" if schema.get("description") and "properties" in schema else ""
    must = schema.get("required", []) if given else []
    told = "".join(
        _field(name, one, document, must=name in must, given=given, depth=depth)
        for name, one in schema.get("properties", {}).items()
    )
    return f'{said}<dl class="fields">{told}</dl>' if told else ""


def _field(
    name: str,
    schema: Described,
    document: Described,
    *,
    must: bool,
    given: bool = True,
    place: str = "",
    depth: int = 0,
) -> str:
    limits = [_limit(one, part) for part in _alternatives(schema, document) for one in _LIMITS if one in part]
    parts = _inside(schema, document) if depth < _DEEPEST else []
    inner = "".join(_nested(part, document, given=given, depth=depth + 1) for part in parts)
    kind = ", ".join(filter(None, [_type(schema, document), f"in the {place}" if place else "", *limits]))
    needed = '<span class="must">required</span>' if must else ""
    says = f"<dd>{_prose(schema['description'])}</dd>" if schema.get("description") else ""
    nested = f"<dd>{inner}</dd>" if inner else ""
    return f'<div><dt><code>{_text(name)}</code><span class="type">{kind}</span>{needed}</dt>{says}{nested}</div>'


def _nested(schema: Described, document: Described, *, given: bool, depth: int) -> str:
    inner = _fields(schema, document, given=given, depth=depth)
    return f"<details><summary>{_text(schema.get('title', 'Fields'))}</summary>{inner}</details>" if inner else ""


def _limit(name: str, schema: Described) -> str:
    value = schema[name]
    if (name == "default" and value is None) or (name == "pattern" and schema.get("format") == "uuid"):
        return ""
    if name == "pattern":
        return _PATTERNS.get(value) or _LIMITS[name].format(f"<code>{_text(value)}</code>")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return _LIMITS[name].format(f"{value:,.12g}" if number else _text(json.dumps(value)))


def _resolved(schema: Described, document: Described) -> Described:
    if "$ref" not in schema:
        return schema
    found: Described = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
    return found


def _alternatives(schema: Described, document: Described) -> list[Described]:
    """The schema itself, and what it may be one of."""
    return [schema, *(_resolved(one, document) for one in schema.get("anyOf", ()))]


def _inside(schema: Described, document: Described) -> list[Described]:
    """Every object that a field is, may be, or is a list or map of."""
    found = []
    for one in _alternatives(_resolved(schema, document), document):
        if "properties" in one:
            found.append(one)
        for inner in (one.get("items"), one.get("additionalProperties")):
            if isinstance(inner, dict):
                found += _inside(inner, document)
    return found


def _type(schema: Described, document: Described) -> str:
    if "$ref" in schema:
        return _type({"title": "", **_resolved(schema, document)}, document)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one, document) for one in schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(f"<code>{_text(str(one))}</code>" for one in schema["enum"])
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}), document)}"
    if schema.get("format") == "uuid":
        return "UUID of version 4" if "pattern" in schema else "UUID"
    if "const" in schema:
        kind = json.dumps(schema["const"])
    return _text(schema.get("format") or ("file" if "contentMediaType" in schema else kind))


def _shown(example: Example, method: str, path: str) -> str:
    asked = f'<h4>Asked</h4><pre class="wrap" tabindex="0">{_text(example.sent.curl(method, path))}</pre>'
    if example.answered is None:
        return f"{asked}<h4>Answered: {example.status}</h4>"
    return f"{asked}<h4>Answered: {example.status}</h4>{_block(example.answered)}"


def _block(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return f'<pre class="wrap" tabindex="0">{_text(text.strip())}</pre>'


def _errors(operation: Described) -> str:
    refused = [status for status, one in operation["responses"].items() if "$ref" in one]
    named = "".join(f"<li>{status}</li>" for status in refused)
    return f'<h4>Or <a href="#errors">an error</a></h4><ul class="errors">{named}</ul>' if named else ""


def _path(path: str) -> str:
    """An address that breaks between its parts, where it has to."""
    return _text(path).replace("/", "<wbr>/")


def _text(text: str) -> str:
    return escape(text)


def _prose(text: str) -> str:
    """Text with `code` in it."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
