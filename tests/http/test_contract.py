"""What holds at every endpoint: the endpoints are those of the application, so that a new one is covered as well.

Valid requests are the recorded examples, which every endpoint has; what is wrong with them is made from the schemas.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest
from fastapi.routing import iter_route_contexts

from citewell.http.app import create_app
from citewell.http.reference.examples import ExampleRequest, examples
from citewell.http.reference.openapi import operations
from citewell.models import CITATION_ID
from citewell.schemas.fields import QUESTION
from citewell.settings import Settings
from tests.conftest import settings_for
from tests.http.conftest import ingest_folder, problem, running

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
APP = create_app(Settings.model_validate({"database_url": None}))
DOCUMENT: dict[str, Any] = APP.openapi()
QUESTIONS = {"question", "query", "message"}
METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE"}
CHANGING = {"/metrics", "/health", "/ready"}  # counts and times are other ones in the next response
PYTHON_WORDS = re.compile(
    r"\b(str|int|bool|float|dict|dictionary|tuple|None|NoneType|True|False|list_type|Input|valid string|items|class)\b"
)


@dataclass(frozen=True)
class Endpoint:
    method: str
    path: str
    operation: dict[str, Any]

    @property
    def example(self) -> ExampleRequest:
        return examples().endpoints[self.operation["operationId"]].request

    @property
    def body_schema(self) -> dict[str, Any]:
        """The schema of a JSON body; empty where there is none."""
        content = self.operation.get("requestBody", {}).get("content", {})
        return resolved(content.get("application/json", {}).get("schema", {}))

    @property
    def asks(self) -> bool:
        return bool(QUESTIONS & set(self.body_schema.get("properties", {})))

    async def send(self, http: httpx2.AsyncClient, **changes: Any) -> httpx2.Response:
        """Send the example with some of its parts changed."""
        request = self.example.model_copy(update=changes)
        files = [("file", (name, text.encode())) for name, text in (request.file or {}).items()]
        address = request.address(self.path)
        return await http.request(
            self.method, address, json=request.body, files=files or None, headers=request.headers or None
        )


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return resolved(DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]])
    return schema


ENDPOINTS = [Endpoint(*one) for one in operations(DOCUMENT)]
WITH_BODY = [one for one in ENDPOINTS if one.body_schema]
ASKING = [one for one in ENDPOINTS if one.asks]


def named(endpoints: list[Endpoint]) -> list[Any]:
    return [pytest.param(one, id=one.operation["operationId"]) for one in endpoints]


@pytest.fixture(scope="module")
async def http(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx2.AsyncClient]:
    """A server with one small page."""
    folder = tmp_path_factory.mktemp("contract")
    (folder / "docs").mkdir()
    (folder / "docs" / "pumps.md").write_text("# Pumps\n\nA pump moves water uphill.\n")
    settings = settings_for(folder / "home", embedder="hashing")
    await asyncio.to_thread(ingest_folder, settings, folder / "docs")
    async with running(settings) as client:
        yield client


def parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schema itself, and those of which it is one."""
    schema = resolved(schema)
    yield schema
    for part in () if "properties" in schema else schema.get("anyOf", ()):
        yield from parts(part)


def objects(schema: dict[str, Any], path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every object of a body: its path, and its schema."""
    for part in parts(schema):
        if "properties" in part:
            yield path, part
            for name, inner in part["properties"].items():
                yield from objects(inner, (*path, name))
        if "items" in part:
            yield from objects(part["items"], (*path, 0))


def placed(body: dict[str, Any], path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """The body with a value at a path; what is above it is made where it is not there."""
    inner = value
    for part in reversed(path[1:]):
        inner = [inner] if part == 0 else {part: inner}
    return {**body, str(path[0]): inner} if path else {**body, **(value if isinstance(value, dict) else {})}


def check_invalid(response: httpx2.Response, field: str) -> None:
    """An error about this field, in plain English."""
    assert response.status_code == 400, response.text
    problem(response)
    body = response.json()
    assert body["details"]["field"] == field or body["details"]["field"].startswith(f"{field}."), body
    assert body["message"].startswith(f"{body['details']['field']}: "), body
    assert not PYTHON_WORDS.search(body["message"]), body


@pytest.mark.parametrize("endpoint", named(WITH_BODY))
async def test_an_unknown_key_is_refused_with_the_known_ones(http: httpx2.AsyncClient, endpoint: Endpoint) -> None:
    for path, schema in objects(endpoint.body_schema):
        wrong = placed(endpoint.example.body or {}, path, {"colour": "red"})
        response = await endpoint.send(http, body=wrong)
        assert problem(response) == (400, "VALIDATION_ERROR")
        check_invalid(response, ".".join(map(str, (*path, "colour"))))
        assert response.json()["message"].endswith(f"the fields are {', '.join(schema['properties'])}")


def test_a_client_accepts_responses_with_more_than_it_knows() -> None:
    """A newer server may send more; only requests are closed."""
    schemas, seen = DOCUMENT["components"]["schemas"], set[str]()
    responses = [endpoint.operation["responses"] for endpoint in ENDPOINTS] + [DOCUMENT["components"]["responses"]]
    waiting = re.findall(r"#/components/schemas/(\w+)", json.dumps(responses))
    while waiting:
        if (name := waiting.pop()) not in seen:
            seen.add(name)
            waiting += re.findall(r"#/components/schemas/(\w+)", json.dumps(schemas[name]))
    assert len(seen) > 20
    assert [name for name in seen if schemas[name].get("additionalProperties") is False] == []


async def test_an_unknown_field_of_a_form_is_refused(http: httpx2.AsyncClient) -> None:
    (upload,) = [one for one in ENDPOINTS if "multipart/form-data" in str(one.operation.get("requestBody"))]
    address = upload.example.address(upload.path)
    response = await http.post(address, files={"file": ("a.md", b"# A")}, data={"colour": "red"})
    if "there is no such project" not in response.text:
        check_invalid(response, "colour")
    home = f"/api/v1/projects/{(await http.get('/api/v1/projects')).json()['projects'][0]['id']}/documents"
    check_invalid(await http.post(home, files={"file": ("a.md", b"# A")}, data={"colour": "red"}), "colour")
    check_invalid(await http.post(home, data={"file": "text"}, files={"other": ("a.md", b"# A")}), "file")
    check_invalid(await http.post(home, files={"other": ("a.md", b"# A")}), "file")


@pytest.mark.parametrize("endpoint", named(WITH_BODY))
async def test_a_wrong_type_is_refused_with_the_field(http: httpx2.AsyncClient, endpoint: Endpoint) -> None:
    tried = 0
    for path, schema in objects(endpoint.body_schema):
        for name, field in schema["properties"].items():
            validator = jsonschema_rs.Draft202012Validator({**field, "components": DOCUMENT["components"]})
            for wrong in (7, 1.5, True, "nope", None, [], [7], {}, {"a": 1}, [["x"]]):
                if validator.is_valid(wrong):
                    continue
                others = {
                    key: value for key, value in (("role", "user"), ("content", "x")) if key in schema["properties"]
                }
                body = placed(endpoint.example.body or {}, path, {**others, name: wrong})
                response = await endpoint.send(http, body=body)
                check_invalid(response, ".".join(map(str, (*path, name))))
                tried += 1
    assert tried > 4
    for content in ('"text"', "7", "[]", "null", ""):
        json_type = {"Content-Type": "application/json"}
        check_invalid(await http.request(endpoint.method, endpoint.path, content=content, headers=json_type), "body")


@pytest.mark.parametrize("endpoint", named(ENDPOINTS))
async def test_a_wrong_parameter_is_refused_with_its_name(http: httpx2.AsyncClient, endpoint: Endpoint) -> None:
    for parameter in endpoint.operation.get("parameters", ()):
        place = {"path": "path", "query": "query", "header": "headers"}[parameter["in"]]
        wrong = "x" * 256 if place == "headers" else "nope"
        values = {**getattr(endpoint.example, place), parameter["name"]: wrong}
        check_invalid(await endpoint.send(http, **{place: values}), parameter["name"])


@pytest.mark.parametrize("endpoint", named(ENDPOINTS))
async def test_a_uuid_is_written_with_hyphens_in_capitals_or_not(http: httpx2.AsyncClient, endpoint: Endpoint) -> None:
    def sent(place: str, name: str, value: str) -> dict[str, Any]:
        return {place: {**(getattr(endpoint.example, place) or {}), name: value}}

    fields = [("body", name, field) for name, field in endpoint.body_schema.get("properties", {}).items()]
    parameters = [(one["in"], one["name"], one["schema"]) for one in endpoint.operation.get("parameters", ())]
    for place, name, schema in fields + parameters:
        if any(part.get("format") == "uuid" for part in parts(schema)):
            uuid = "9f3b1c52-6d0e-4d7a-8a55-2f1c0b7e4a90"
            for odd in (f"{{{uuid}}}", f"urn:uuid:{uuid}", uuid.replace("-", ""), f" {uuid}", f"{uuid}\n"):
                check_invalid(await endpoint.send(http, **sent(place, name, odd.replace("\n", "%0A"))), name)
            capitals = await endpoint.send(http, **sent(place, name, uuid.upper()))
            assert capitals.status_code < 500
            assert capitals.status_code != 400, capitals.text


@pytest.mark.parametrize("endpoint", named(ASKING))
async def test_a_question_that_is_missing_empty_or_invisible_is_empty(
    http: httpx2.AsyncClient, endpoint: Endpoint
) -> None:
    (name,) = QUESTIONS & set(endpoint.body_schema["properties"])
    body = endpoint.example.body or {}
    invisible = (
        "\u200b\ufeff",
        "\u00ad",
        "\u115f\u1160\u3164\uffa0",
        "\ufe0f\U000e0100",
        "\x00\x07\x1b\x7f\x85",
        "\u2800",
    )
    for empty in ("", "   ", "\n\t\u3000", None, *invisible, " ".join(invisible)):
        response = await endpoint.send(http, body={**body, name: empty})
        assert problem(response) == (400, "EMPTY_QUERY"), repr(empty)
        assert response.json()["details"] == {"field": name}
    missing = {key: value for key, value in body.items() if key != name}
    assert problem(await endpoint.send(http, body=missing)) == (400, "EMPTY_QUERY")


@pytest.mark.parametrize("endpoint", named(ENDPOINTS))
async def test_an_empty_index_is_said_alike_and_before_the_first_byte(
    empty: httpx2.AsyncClient, endpoint: Endpoint
) -> None:
    response = await endpoint.send(empty)
    if endpoint.asks:
        assert problem(response) == (503, "EMPTY_KNOWLEDGE_BASE")
        assert response.headers["content-type"] == "application/json"
        assert "citewell ingest" in response.json()["message"]
    else:
        assert response.status_code < 500, response.text


@pytest.fixture(scope="module")
async def empty(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx2.AsyncClient]:
    """A server without a document."""
    async with running(settings_for(tmp_path_factory.mktemp("empty"), embedder="hashing")) as client:
        yield client


def addresses() -> dict[str, set[str]]:
    """An address for each path of the application, the hidden ones too, and its methods."""
    paths: dict[str, set[str]] = {}
    for route in iter_route_contexts(APP.routes):
        paths.setdefault(str(route.path), set()).update(route.methods or ())
    values = {"language": "de"}
    for endpoint in ENDPOINTS:
        values |= {name: str(value) for name, value in endpoint.example.path.items()}
    return {path.format(**values): methods for path, methods in paths.items()}


ADDRESSES = addresses()


@pytest.mark.parametrize("address", sorted(address for address, methods in ADDRESSES.items() if "GET" in methods))
async def test_head_is_get_without_the_body(http: httpx2.AsyncClient, address: str) -> None:
    got, head = await http.get(address), await http.head(address)
    assert head.status_code == got.status_code
    assert head.content == b""
    assert set(head.headers) == set(got.headers)
    changing = {"x-request-id"} | ({"content-length"} if address in CHANGING else set())
    for name in set(got.headers) - changing:
        assert head.headers[name] == got.headers[name], name


@pytest.mark.parametrize("address", sorted(ADDRESSES))
async def test_a_wrong_method_is_named_with_the_right_ones(http: httpx2.AsyncClient, address: str) -> None:
    allowed = ADDRESSES[address] | ({"HEAD"} if "GET" in ADDRESSES[address] else set())
    for method in sorted(METHODS - allowed | ({"HEAD"} - allowed)):
        response = await http.request(method, address)
        assert response.headers["allow"] == ", ".join(sorted(allowed))
        if method == "HEAD":
            assert (response.status_code, response.content) == (405, b"")
        else:
            assert problem(response) == (405, "METHOD_NOT_ALLOWED")
            assert all(name in response.json()["message"] for name in allowed)


@pytest.mark.parametrize(
    ("body", "line", "column", "why"),
    [
        ("{", 1, 2, "expecting property name enclosed in double quotes"),
        ('{"question": "a"\n "top_k": 5}', 2, 2, "expecting ',' delimiter"),
        ('{"question": "a"}\n\n]', 3, 1, "extra data"),
    ],
)
async def test_an_error_in_json_has_a_line_and_a_column(
    http: httpx2.AsyncClient, body: str, line: int, column: int, why: str
) -> None:
    response = await http.post("/api/ask", content=body, headers={"Content-Type": "application/json"})
    check_invalid(response, "body")
    assert response.json()["details"] == {"field": "body", "line": line, "column": column}
    assert response.json()["message"] == f"body: is not JSON at line {line}, column {column}: {why}"


@pytest.mark.parametrize("key", ["\ud800", "k" * 100_000, "\u202e\x00", "a.b", ""])
async def test_whatever_an_unknown_key_is_the_error_can_be_read(http: httpx2.AsyncClient, key: str) -> None:
    content = json.dumps({"question": "What moves water?", key: 1})
    response = await http.post("/api/ask", content=content, headers={"Content-Type": "application/json"})
    assert problem(response) == (400, "VALIDATION_ERROR")
    assert len(response.content) < 1000


def texts(schema: dict[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every text in a schema, by the name of its field."""
    for part in parts(schema):
        if part.get("type") == "string" and not {"enum", "const", "contentMediaType"} & set(part):
            yield name, part
        if "items" in part:
            yield from texts(part["items"], name)
        for inner, field in part.get("properties", {}).items():
            yield from texts(field, inner)


@pytest.mark.parametrize("endpoint", named(ENDPOINTS))
def test_every_text_is_bounded_and_the_page_names_its_limits(endpoint: Endpoint) -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    rows = [line for line in page[page.index("## Limits") :].splitlines() if line.startswith("| ")]
    fields = list(texts(endpoint.body_schema, ""))
    for parameter in endpoint.operation.get("parameters", ()):
        fields += texts(parameter["schema"], parameter["name"])
    for name, schema in fields:
        if schema.get("format") == "uuid" or schema.get("pattern") == f"^(?:{CITATION_ID})$":
            continue
        most = 1000 if schema.get("pattern") == QUESTION else schema["maxLength"]
        row = next(line for line in rows if f"`{name}`" in line and f"{most:,}" in line)
        assert "x-maxWords" not in schema or f"{schema['x-maxWords']:,}" in row
