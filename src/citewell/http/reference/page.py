"""The page `/docs`, generated from the OpenAPI document alone. Pure: a document in, HTML out."""

import json
import re
from functools import lru_cache
from html import escape
from itertools import groupby
from typing import Any

from citewell.http.reference.examples import Example, examples
from citewell.http.reference.openapi import Described, operations
from citewell.schemas.fields import NAME, NOT_BLANK, QUESTION

_ACCESS = {"open": "open to anybody", "ask": "any key", "admin": "admin key"}
_CONSTRAINTS = {"minLength": "at least {} characters", "maxLength": "at most {} characters",
           "x-maxWords": "at most {} words", "minimum": "from {}",
           "maximum": "to {}", "exclusiveMinimum": "more than {}", "minItems": "at least {} of them",
           "maxItems": "at most {} of them", "pattern": "like {}", "default": "default {}"}  # fmt: skip
_PATTERNS = {
    NOT_BLANK: "not blank",
    QUESTION: "3 to 1,000 characters after trimming",
    NAME: "one line that neither begins nor ends with a blank",
}
_MAX_DEPTH = 6


def render(document: Described) -> str:
    """The whole page."""
    return _page(json.dumps(document))


@lru_cache(maxsize=1)
def _page(described: str) -> str:
    document: Described = json.loads(described)
    endpoints = sorted(operations(document), key=lambda endpoint: _order(endpoint, document))
    by_tag = [(tag, list(group)) for tag, group in groupby(endpoints, key=lambda endpoint: endpoint[2]["tags"][0])]
    descriptions = {tag["name"]: tag["description"] for tag in document["tags"]}
    contents = "".join(
        f"<h2>{_text(tag)}</h2><ul>{''.join(_contents_entry(*endpoint) for endpoint in group)}</ul>"
        for tag, group in by_tag
    )
    sections = "".join(
        f"<h2>{_text(tag)}</h2><p>{_prose(descriptions[tag])}</p>"
        f"{''.join(_endpoint_section(*endpoint, document) for endpoint in group)}"
        for tag, group in by_tag
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
<nav aria-label="Endpoints"><a class="brand" href="#top">{_text(document["info"]["title"])}</a>{contents}</nav>
<main id="top">{_introduction(document)}{sections}</main>
</div>
</body>
</html>
"""


def _order(endpoint: tuple[str, str, Described], document: Described) -> int:
    return [tag["name"] for tag in document["tags"]].index(endpoint[2]["tags"][0])


def _introduction(document: Described) -> str:
    info = document["info"]
    rows = "".join(
        f"<tr><td>{status}</td><td>{'<br>'.join(f'<code>{_text(code)}</code>' for code in response['x-codes'])}</td>"
        f"<td>{_prose(response['description'])}</td></tr>"
        for status, response in document["components"]["responses"].items()
    )
    error: Described = next(iter(examples().errors.get("400", {}).values()), {})
    return f"""<h1>The HTTP API</h1>
<p>{_prose(info["description"])} Version {_text(info["version"])}; for programs:
<a href="/openapi.json">openapi.json</a>, for readers: <a href="/chat">the chat page</a>.</p>
<p>On this machine every endpoint works without a key until you create one with <code>citewell keys create NAME</code>.
From then on, send a key as <code>Authorization: Bearer &lt;key&gt;</code> or <code>X-API-Key: &lt;key&gt;</code>; the
examples below leave it out. Their responses come from the example book.</p>
<h2 id="errors">Errors</h2>
<p>Every error has the same shape, and every response its <code>X-Request-ID</code>.</p>
<section>{_code_block(error)}<div class="scroll"><table>
<thead><tr><th>status</th><th>error_code</th><th>when</th></tr></thead>
<tbody>{rows}</tbody></table></div></section>"""


def _contents_entry(method: str, path: str, operation: Described) -> str:
    return f'<li><a href="#{_text(operation["operationId"])}">{_method(method)}<code>{_path(path)}</code></a></li>'


def _method(method: str) -> str:
    return f'<span class="method {method.lower()}">{method}</span>'


def _endpoint_section(method: str, path: str, operation: Described, document: Described) -> str:
    operation_id = _text(operation["operationId"])
    example = examples().endpoints.get(operation["operationId"])
    parts = [
        f'<section id="{operation_id}"><h3>{_method(method)}<a href="#{operation_id}"><code>{_path(path)}</code></a>'
        f'<span class="who">{_ACCESS[operation["x-scope"]]}</span></h3>',
        f"<p>{_prose(operation['summary'])}</p>",
        *(f"<p>{_prose(part)}</p>" for part in operation.get("description", "").split("\n\n") if part),
        _parameters(operation, document),
        _body(operation, document),
        _responses(operation, document),
        _example(example, method, path) if example else "",
        _errors(operation),
        "</section>",
    ]
    return "".join(parts)


def _parameters(operation: Described, document: Described) -> str:
    parameters = operation.get("parameters", [])
    if not parameters:
        return ""
    fields = "".join(
        _field(
            parameter["name"],
            {"description": parameter.get("description", ""), **parameter["schema"]},
            document,
            required=parameter["required"],
            place=parameter["in"],
        )
        for parameter in parameters
    )
    return f'<h4>Parameters</h4><dl class="fields">{fields}</dl>'


def _body(operation: Described, document: Described) -> str:
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        fields = _fields(content["schema"], document, in_request=True)
        return f"<h4>Body, <code>{_text(media_type)}</code></h4>{fields}"
    return ""


def _responses(operation: Described, document: Described) -> str:
    parts = []
    for status, response in operation["responses"].items():
        if "$ref" in response:
            continue
        media_type = next(iter(response.get("content", {})), "")
        content: Described = response["content"][media_type] if media_type else {}
        schema: Described = content.get("x-event") or content.get("schema", {})
        suffix = f", <code>{_text(media_type)}</code>" if media_type else ""
        parts.append(f"<h4>{status}{suffix}: {_prose(response['description'])}</h4>")
        inner = _fields(schema, document)
        parts.append(f"<details><summary>Fields</summary>{inner}</details>" if inner else "")
    return "".join(parts)


def _fields(schema: Described, document: Described, *, in_request: bool = False, depth: int = 0) -> str:
    """The fields of an object; those of a request say whether they are required."""
    schema = _resolve(schema, document)
    has_text = schema.get("description") and "properties" in schema
    description = f"<p>{_prose(schema['description'])}</p>" if has_text else ""
    required = schema.get("required", []) if in_request else []
    fields = "".join(
        _field(name, field, document, required=name in required, in_request=in_request, depth=depth)
        for name, field in schema.get("properties", {}).items()
    )
    return f'{description}<dl class="fields">{fields}</dl>' if fields else ""


def _field(
    name: str,
    schema: Described,
    document: Described,
    *,
    required: bool,
    in_request: bool = True,
    place: str = "",
    depth: int = 0,
) -> str:
    constraints = [
        _constraint(keyword, part)
        for part in _alternatives(schema, document)
        for keyword in _CONSTRAINTS
        if keyword in part
    ]
    objects = _nested_objects(schema, document) if depth < _MAX_DEPTH else []
    inner = "".join(_nested(part, document, in_request=in_request, depth=depth + 1) for part in objects)
    kind = ", ".join(filter(None, [_type(schema, document), f"in the {place}" if place else "", *constraints]))
    mark = '<span class="must">required</span>' if required else ""
    description = f"<dd>{_prose(schema['description'])}</dd>" if schema.get("description") else ""
    nested = f"<dd>{inner}</dd>" if inner else ""
    term = f'<dt><code>{_text(name)}</code><span class="type">{kind}</span>{mark}</dt>'
    return f"<div>{term}{description}{nested}</div>"


def _nested(schema: Described, document: Described, *, in_request: bool, depth: int) -> str:
    inner = _fields(schema, document, in_request=in_request, depth=depth)
    return f"<details><summary>{_text(schema.get('title', 'Fields'))}</summary>{inner}</details>" if inner else ""


def _constraint(name: str, schema: Described) -> str:
    value = schema[name]
    if (name == "default" and value is None) or (name == "pattern" and schema.get("format") == "uuid"):
        return ""
    if name == "pattern":
        return _PATTERNS.get(value) or _CONSTRAINTS[name].format(f"<code>{_text(value)}</code>")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return _CONSTRAINTS[name].format(f"{value:,.12g}" if is_number else _text(json.dumps(value)))


def _resolve(schema: Described, document: Described) -> Described:
    if "$ref" not in schema:
        return schema
    target: Described = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
    return target


def _alternatives(schema: Described, document: Described) -> list[Described]:
    """The schema itself, and those of its `anyOf`."""
    return [schema, *(_resolve(part, document) for part in schema.get("anyOf", ()))]


def _nested_objects(schema: Described, document: Described) -> list[Described]:
    """Every object that a field is, may be, or is a list or map of."""
    objects = []
    for part in _alternatives(_resolve(schema, document), document):
        if "properties" in part:
            objects.append(part)
        for inner in (part.get("items"), part.get("additionalProperties")):
            if isinstance(inner, dict):
                objects += _nested_objects(inner, document)
    return objects


def _type(schema: Described, document: Described) -> str:
    if "$ref" in schema:
        return _type({"title": "", **_resolve(schema, document)}, document)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(part, document) for part in schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(f"<code>{_text(str(value))}</code>" for value in schema["enum"])
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}), document)}"
    if schema.get("format") == "uuid":
        return "UUID of version 4" if "pattern" in schema else "UUID"
    if "const" in schema:
        kind = json.dumps(schema["const"])
    return _text(schema.get("format") or ("file" if "contentMediaType" in schema else kind))


def _example(example: Example, method: str, path: str) -> str:
    request = f'<h4>Request</h4><pre class="wrap" tabindex="0">{_text(example.request.curl(method, path))}</pre>'
    response = "" if example.response is None else _code_block(example.response)
    return f"{request}<h4>Response: {example.status}</h4>{response}"


def _code_block(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return f'<pre class="wrap" tabindex="0">{_text(text.strip())}</pre>'


def _errors(operation: Described) -> str:
    statuses = [status for status, response in operation["responses"].items() if "$ref" in response]
    items = "".join(f"<li>{status}</li>" for status in statuses)
    return f'<h4>Or <a href="#errors">an error</a></h4><ul class="errors">{items}</ul>' if items else ""


def _path(path: str) -> str:
    """A path that may break between its parts."""
    return _text(path).replace("/", "<wbr>/")


def _text(text: str) -> str:
    return escape(text)


def _prose(text: str) -> str:
    """Escaped text in which `code` is marked up."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
