"""What every endpoint says about an answer is declared once and filled once."""

from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from citewell.http.app import create_app
from citewell.http.rendering import fill_fields, render_answer_fields
from citewell.models import Answer
from citewell.schemas import ask, chat, query
from citewell.schemas.answer import AnswerFields, RatedAnswerFields
from citewell.schemas.v1 import chat as v1
from citewell.settings import Settings

ANSWER = Answer((), 0.5, "full", "a model", (), notice="No language model was available.")
RESPONSES = [
    ask.AskResponse,
    ask.StreamChunk,
    query.QueryResponse,
    chat.ChatResponse,
    chat.HistoryEntry,
    v1.ChatResponse,
]


def schemas_with(field: str) -> Iterator[str]:
    schemas = create_app(Settings.model_validate({"database_url": None})).openapi()["components"]["schemas"]
    return (name for name, schema in schemas.items() if field in schema.get("properties", {}))


@pytest.mark.parametrize("field", AnswerFields.model_fields)
def test_no_response_shows_a_field_of_an_answer_that_it_does_not_inherit(field: str) -> None:
    expected = {"AskResponse", "StreamChunk", "QueryResponse", "ChatResponse", "HistoryEntry", "V1ChatResponse"}
    assert set(schemas_with(field)) == expected
    for response in RESPONSES:
        assert issubclass(response, AnswerFields)
        assert field not in response.__annotations__, f"{response.__name__} declares {field} again"


@pytest.mark.parametrize("response", RESPONSES)
def test_one_function_fills_every_response_that_shows_an_answer(response: type[BaseModel]) -> None:
    fields = render_answer_fields(ANSWER)
    assert fields.model_fields_set == set(RatedAnswerFields.model_fields), "every field is rendered"
    filled = fill_fields(response.model_construct(), fields)
    shared = set(RatedAnswerFields.model_fields) & set(response.model_fields)
    assert {name: getattr(filled, name) for name in shared} == {name: getattr(fields, name) for name in shared}


def test_a_field_is_stored_and_read_back_by_no_list_of_names() -> None:
    class WithFreshness(RatedAnswerFields):
        freshness: str | None = None

    class Response(WithFreshness):
        answer: str

    rendered = WithFreshness(notice="Old.", freshness="today").model_dump(mode="json")
    restored = fill_fields(Response(answer="Yes."), WithFreshness.model_validate(rendered | {"mode": "full"}))
    assert (restored.freshness, restored.notice) == ("today", "Old.")
