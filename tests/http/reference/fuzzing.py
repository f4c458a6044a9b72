"""What schemathesis is told of our doors beside their OpenAPI document; it loads this by SCHEMATHESIS_HOOKS."""

from itertools import count
from typing import Any
from uuid import UUID

import schemathesis

from citewell.models import DEFAULT_PROJECT, Project

_numbers = count()
_DEFAULT = str(Project.named(DEFAULT_PROJECT).id)


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: "schemathesis.Case[Any]", kwargs: dict[str, Any]) -> None:
    """Spare what would end the game. A schema cannot say that a word is for one request, or that a project stays."""
    if case.method == "DELETE" and case.path_parameters.get("project_id") == _DEFAULT:
        case.path_parameters["project_id"] = str(UUID(int=next(_numbers)))
    if case.headers and 1 <= len(key := str(case.headers.get("Idempotency-Key", ""))) <= 255:
        case.headers["Idempotency-Key"] = f"{next(_numbers)}-{key}"[:255]


@schemathesis.check
def only_what_was_foreseen(
    context: schemathesis.CheckContext, response: schemathesis.Response, case: "schemathesis.Case[Any]"
) -> None:
    """A project in which nothing is yet is the one reason to answer with more than 499."""
    if response.status_code >= 500:
        assert response.status_code == 503, response.text
        assert response.json()["error_code"] == "EMPTY_KNOWLEDGE_BASE", response.text
