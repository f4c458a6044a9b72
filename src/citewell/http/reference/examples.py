"""Real requests and what they were answered: made by asking the example book, kept in `examples.json`.

`make docs` asks again and writes the file; `/openapi.json` and `/docs` show what is in it.
"""

import json
import shlex
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from pydantic import BaseModel, Field

SERVER = "http://localhost:8000"


class Sent(BaseModel):
    """A request to a door, apart from its method and address, which the door has."""

    path: dict[str, str | int] = Field(default_factory=dict)
    query: dict[str, str | int | bool] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    body: dict[str, Any] | None = None
    file: dict[str, str] | None = Field(None, description="Names and texts of what is uploaded.")

    def address(self, template: str) -> str:
        query = {name: str(value).lower() if isinstance(value, bool) else value for name, value in self.query.items()}
        return template.format(**self.path) + (f"?{urlencode(query)}" if query else "")

    def curl(self, method: str, template: str) -> str:
        """The same request as a line for a shell; a long one goes on in the next line."""
        parts = ["curl", "-sN" if template.endswith("/stream") else "-s"]
        if method == "DELETE":
            parts += ["-X", method]
        line = " ".join([*parts, shlex.quote(SERVER + self.address(template))])
        told = [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in self.headers.items()]
        if self.body is not None:
            # What curl says by itself with -d is that a form is sent.
            told += ["-H 'Content-Type: application/json'"]
            told += [f"-d {shlex.quote(json.dumps(self.body, ensure_ascii=False))}"]
        told += [f"-F file=@{shlex.quote(name)}" for name in self.file or {}]
        return " \\\n  ".join([line, *told])


class Example(BaseModel):
    sent: Sent
    status: int
    answered: Any = Field(None, description="JSON, or the text of what is not JSON; nothing where nothing came back.")


class Examples(BaseModel):
    """By the operation's id; and of errors, by status and code, what any door may say."""

    doors: dict[str, Example] = Field(default_factory=dict)
    errors: dict[str, dict[str, Any]] = Field(default_factory=dict)


@cache
def examples() -> Examples:
    kept = files("citewell").joinpath("http", "reference", "examples.json")
    return Examples.model_validate_json(kept.read_bytes())
