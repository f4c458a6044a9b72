"""Real requests and their responses, recorded with the example book in `examples.json`.

`make docs` records them again; `/openapi.json` and `/docs` show them.
"""

import json
import shlex
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from pydantic import BaseModel, Field

SERVER = "http://localhost:8000"


class ExampleRequest(BaseModel):
    """A request, apart from its method and path, which the endpoint has."""

    path: dict[str, str | int] = Field(default_factory=dict)
    query: dict[str, str | int | bool] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    body: dict[str, Any] | None = None
    file: dict[str, str] | None = Field(None, description="Names and texts of the files that are uploaded.")

    def address(self, template: str) -> str:
        """The path with its parameters and query."""
        query = {name: str(value).lower() if isinstance(value, bool) else value for name, value in self.query.items()}
        return template.format(**self.path) + (f"?{urlencode(query)}" if query else "")

    def curl(self, method: str, template: str) -> str:
        """The request as a shell command, a long one on several lines."""
        parts = ["curl", "-sN" if template.endswith("/stream") else "-s"]
        if method == "DELETE":
            parts += ["-X", method]
        line = " ".join([*parts, shlex.quote(SERVER + self.address(template))])
        options = [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in self.headers.items()]
        if self.body is not None:
            # By itself curl -d sends the content type of a form.
            options += ["-H 'Content-Type: application/json'"]
            options += [f"-d {shlex.quote(json.dumps(self.body, ensure_ascii=False))}"]
        options += [f"-F file=@{shlex.quote(name)}" for name in self.file or {}]
        return " \\\n  ".join([line, *options])


class Example(BaseModel):
    """A request and its response."""

    request: ExampleRequest
    status: int
    response: Any = Field(None, description="JSON, or the text of what is not JSON; None where there is no body.")


class Examples(BaseModel):
    """Of endpoints by the operation's id; of errors by status and error code."""

    endpoints: dict[str, Example] = Field(default_factory=dict)
    errors: dict[str, dict[str, Any]] = Field(default_factory=dict)


@cache
def examples() -> Examples:
    """All examples; the file is read once."""
    file = files("citewell").joinpath("http", "reference", "examples.json")
    return Examples.model_validate_json(file.read_bytes())
