"""What all request bodies share: unknown keys are refused, and errors are explained in plain English."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

_MAX_FIELD_CHARACTERS = 100
# By pydantic's type of an error; the validators of `fields.py` and `Request` write their own messages.
_MESSAGES = {
    "missing": "is required",
    "string_type": "should be text",
    "string_too_short": "should have {min_length:,} or more characters",
    "string_too_long": "should have at most {max_length:,} characters",
    "int_type": "should be a whole number",
    "int_parsing": "should be a whole number",
    "int_parsing_size": "should be a whole number with fewer digits",
    "int_from_float": "should be a whole number",
    "bool_type": "should be true or false",
    "bool_parsing": "should be true or false",
    "greater_than_equal": "should be at least {ge:,}",
    "less_than_equal": "should be at most {le:,}",
    "literal_error": "should be {expected}",
    "list_type": "should be a list",
    "too_short": "should have {min_length:,} or more entries",
    "too_long": "should have at most {max_length:,} entries, has {actual_length:,}",
    "model_type": "should be an object",
    "model_attributes_type": "should be an object",
    "dict_type": "should be an object",
    "value_error": "should be a file",  # only FastAPI's UploadFile raises it
}


class Request(BaseModel):
    """A request body, or an object in one. A key that it does not know is an error that names the known ones.

    Responses are no such thing: a newer server may send more than a client knows.
    """

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        message = "there is no such field; the fields are {known}"
        error = PydanticCustomError("unknown_key", message, {"known": ", ".join(cls.model_fields)})
        unknown = [
            InitErrorDetails(type=error, loc=(str(key),), input=value[key])
            for key in value
            if key not in cls.model_fields
        ]
        if unknown:
            raise ValidationError.from_exception_data(cls.__name__, unknown)
        return value


def explain(error: ErrorDetails, path: tuple[int | str, ...]) -> tuple[str, str]:
    """The field with this path, as "filters.section", and what is wrong with it. Without a path it is the body."""
    name = ".".join(map(str, path))[:_MAX_FIELD_CHARACTERS]
    field = "".join(character if character.isprintable() else "\ufffd" for character in name) or "body"
    template = _MESSAGES.get(error["type"])
    message = template.format(**error.get("ctx", {})) if template else error["msg"].removeprefix("Input ")
    return field, f"{field}: {message}"
