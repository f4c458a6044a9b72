"""The API reference is correct: the OpenAPI document, its examples, and the page `/docs`."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args

import httpx2
import jsonschema_rs
import pytest

from citewell.http.app import create_app
from citewell.http.reference.examples import examples
from citewell.http.reference.openapi import operations
from citewell.schemas.errors import ErrorCode
from citewell.settings import Settings
from tests.conftest import settings_for
from tests.http.conftest import running

ROOT = Path(__file__).parents[3]
SERVED: dict[str, Any] = create_app(Settings.model_validate({"database_url": None})).openapi()
ENDPOINTS = [pytest.param(path, one, id=one["operationId"]) for _, path, one in operations(SERVED)]


def fits(value: object, schema: dict[str, Any]) -> bool:
    """Whether a value is valid for a schema of the document."""
    whole = {**schema, "components": SERVED["components"]}
    return jsonschema_rs.Draft202012Validator(whole).is_valid(value)


def test_the_checked_in_openapi_document_is_what_is_served() -> None:
    kept = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    assert kept == SERVED, "run `make docs`"


@pytest.mark.parametrize(("path", "endpoint"), ENDPOINTS)
def test_every_endpoint_has_a_real_example_that_fits_its_schemas(path: str, endpoint: dict[str, Any]) -> None:
    example = examples().endpoints[endpoint["operationId"]]
    for parameter in endpoint.get("parameters", ()):
        for shown in parameter.get("examples", {}).values():
            assert fits(shown["value"], parameter["schema"]), parameter["name"]
    if example.request.body is not None:
        schema = endpoint["requestBody"]["content"]["application/json"]["schema"]
        assert fits(example.request.body, schema)
        assert not fits([example.request.body], schema), "a schema that takes anything would prove nothing"
    response = endpoint["responses"][str(example.status)]
    for kind, content in response.get("content", {}).items():
        if kind == "text/event-stream":
            told = [json.loads(line[6:]) for line in example.response.splitlines() if line]
            assert all(fits(event, content["x-event"]) for event in told)
            assert told[-1]["done"] is True
        elif kind == "application/json":
            assert fits(example.response, content["schema"])


@pytest.mark.parametrize(("path", "endpoint"), ENDPOINTS)
def test_every_endpoint_says_who_may_call_and_what_it_answers(path: str, endpoint: dict[str, Any]) -> None:
    assert endpoint["summary"].endswith(".")
    assert set(endpoint["tags"]) <= {tag["name"] for tag in SERVED["tags"]}
    schemes = {name for scheme in endpoint["security"] for name in scheme}
    assert schemes == (set() if endpoint["x-scope"] == "open" else set(SERVED["components"]["securitySchemes"]))
    has_key = any(one["name"] == "Idempotency-Key" for one in endpoint.get("parameters", ()))
    assert ("422" in endpoint["responses"]) == has_key, "what is not valid is a 400 here"
    for response in endpoint["responses"].values():
        told = SERVED["components"]["responses"][response["$ref"][-3:]] if "$ref" in response else response
        assert "X-Request-ID" in told["headers"]


def test_every_error_code_is_told_with_its_status() -> None:
    told = SERVED["components"]["responses"]
    assert sorted(code for one in told.values() for code in one["x-codes"]) == sorted(get_args(ErrorCode))
    assert set(examples().errors) == {"400", "401", "404", "405", "413", "415", "422", "429", "503"}
    for status, problems in examples().errors.items():
        for code, problem in problems.items():
            assert code == problem["error_code"]
            assert code in told[status]["x-codes"]
            assert fits(problem, {"$ref": "#/components/schemas/ErrorResponse"})
    assert "Retry-After" in told["429"]["headers"]


class _Seen(HTMLParser):
    """What a browser would load, run and link to, and the text it would show."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.text = ""
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        self.ids.add(said.get("id", ""))
        self.inline += [name for name in said if name == "style" or name.startswith("on")]
        if tag == "a":
            self.links.append(said["href"])
        elif found := said.get("src") or said.get("href"):
            self.loads.append(found)
        elif tag in ("script", "style"):
            self.inline.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.anyio
async def test_the_page_for_people_shows_every_endpoint_and_loads_nothing_from_elsewhere(home: Path) -> None:
    async with running(settings_for(home)) as http:
        response: httpx2.Response = await http.get("/docs")
        style = await http.get("/docs.css")
        served = await http.get("/openapi.json")
    assert served.json() == SERVED
    assert response.headers["content-type"].startswith("text/html")
    assert response.headers["content-security-policy"].startswith("default-src 'none'; style-src 'self';")
    assert style.headers["content-type"].startswith("text/css")
    assert not re.search(r"url\(|@import", style.text)
    page = _Seen()
    page.feed(response.text)
    assert page.loads == ["/docs.css"]
    assert page.inline == []
    assert {link[1:] for link in page.links if link.startswith("#")} <= page.ids
    for method, path, endpoint in operations(SERVED):
        assert endpoint["operationId"] in page.ids
        assert f"{method}{path}" in page.text
        example = examples().endpoints[endpoint["operationId"]]
        assert example.request.curl(method, path) in page.text
        if isinstance(example.response, dict):
            assert json.dumps(example.response, indent=2, ensure_ascii=False) in page.text
