"""Hooks of schemathesis, loaded by SCHEMATHESIS_HOOKS: what the OpenAPI document cannot express."""

from itertools import count
from typing import Any
from uuid import UUID

import schemathesis

from citewell.models import DEFAULT_PROJECT, Project

_numbers = count()
_DEFAULT = str(Project.named(DEFAULT_PROJECT).id)


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: "schemathesis.Case[Any]", kwargs: dict[str, Any]) -> None:
    """Keep the default project, and make each Idempotency-Key unique: a schema cannot express either."""
    if case.method == "DELETE" and case.path_parameters.get("project_id") == _DEFAULT:
        case.path_parameters["project_id"] = str(UUID(int=next(_numbers)))
    if case.headers and 1 <= len(key := str(case.headers.get("Idempotency-Key", ""))) <= 255:
        case.headers["Idempotency-Key"] = f"{next(_numbers)}-{key}"[:255]


@schemathesis.check
def only_what_was_foreseen(
    context: schemathesis.CheckContext, response: schemathesis.Response, case: "schemathesis.Case[Any]"
) -> None:
    """Only an empty project may answer with a status above 499."""
    if response.status_code >= 500:
        assert response.status_code == 503, response.text
        assert response.json()["error_code"] == "EMPTY_KNOWLEDGE_BASE", response.text
