"""Types of request fields: the same rules in the published schema and in validation."""

import re
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

_HEX = "[0-9a-fA-F]"
_UUID4 = re.compile(rf"{_HEX}{{8}}-{_HEX}{{4}}-4{_HEX}{{3}}-[89abAB]{_HEX}{{3}}-{_HEX}{{12}}")
# What `str.strip` removes, spelt out: `\s` means other characters in other languages, and clients read our schemas.
_BLANK = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_NAME = re.compile(rf"[^{_BLANK}\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]*[^{_BLANK}\x00-\x1f\x7f])?")


def is_none(value: object) -> bool:
    """For `exclude_if`: such a field is left out where it is None; other fields are null then."""
    return value is None


def _check_surrogates(text: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise PydanticCustomError("unreadable", "is not readable text: half of a surrogate pair stands alone")
    return text


def _strip_nonempty(text: str) -> str:
    if not (trimmed := text.strip()):
        raise PydanticCustomError("empty", "there is nothing in it")
    return trimmed


def _check_question_length(text: str) -> str:
    if (length := len(text)) < 3:
        raise PydanticCustomError("too_short", "should have at least 3 characters")
    if length > 1000:
        raise PydanticCustomError("too_long", "should have at most 1000 characters, has {has}", {"has": length})
    return text


def _max_words(most: int) -> AfterValidator:
    def check(text: str) -> str:
        if (count := len(text.split())) > most:
            values = {"most": most, "has": count}
            raise PydanticCustomError("too_long", "should have at most {most} words, has {has}", values)
        return text

    return AfterValidator(check)


def _check_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise PydanticCustomError("name", "should be one line that neither begins nor ends with a space")
    return text


def _parse_uuid4(value: Any) -> UUID:
    if isinstance(value, UUID) and value.version == 4:
        return value
    if isinstance(value, str) and _UUID4.fullmatch(value.strip()):
        return UUID(value.strip())
    raise PydanticCustomError("uuid4", "should be a UUID of version 4")


def _parse_whole(value: Any) -> int:
    """Only JSON numbers: neither "5" nor true."""
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        raise PydanticCustomError("int_type", "should be a whole number")
    return int(value)


NOT_BLANK = f"[^{_BLANK}]"
"""The pattern of text that is not only whitespace."""

QUESTION = rf"^[{_BLANK}]*{NOT_BLANK}[\s\S]{{1,998}}{NOT_BLANK}[{_BLANK}]*$"
NAME = f"^{_NAME.pattern}$"

_NOT_BLANK_SCHEMA = Field(json_schema_extra={"pattern": NOT_BLANK})

Text = Annotated[str, AfterValidator(_check_surrogates)]

Question = Annotated[
    Text,
    AfterValidator(_strip_nonempty),
    AfterValidator(_check_question_length),
    WithJsonSchema({"type": "string", "pattern": QUESTION}),
]
"""3 to 1000 characters after trimming."""

Query = Annotated[Text, StringConstraints(max_length=32_000), AfterValidator(_strip_nonempty), _NOT_BLANK_SCHEMA]
"""Not blank, at most 32,000 characters."""

ShortQuery = Annotated[Text, AfterValidator(_strip_nonempty), _max_words(500), _NOT_BLANK_SCHEMA]
"""Not blank, at most 500 words."""

Hint = Annotated[Text, _max_words(200)]
"""At most 200 words."""

Selection = Annotated[Text, StringConstraints(max_length=64_000)]

Name = Annotated[
    Text,
    StringConstraints(min_length=1, max_length=100),
    AfterValidator(_check_name),
    Field(json_schema_extra={"pattern": NAME}),
]

Whole = Annotated[int, BeforeValidator(_parse_whole)]

Uuid4 = Annotated[
    UUID,
    BeforeValidator(_parse_uuid4),
    WithJsonSchema({"type": "string", "format": "uuid", "pattern": f"^{_UUID4.pattern}$"}),
]
