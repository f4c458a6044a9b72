"""What clients may write in a field: the same rules in the schema that is published and in the check that is made."""

import re
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

_HEX = "[0-9a-fA-F]"
_UUID4 = re.compile(rf"{_HEX}{{8}}-{_HEX}{{4}}-4{_HEX}{{3}}-[89abAB]{_HEX}{{3}}-{_HEX}{{12}}")
# What `str.strip` takes away, spelt out: `\s` means other characters in other languages, and clients read our schemas.
_BLANK = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_NAME = re.compile(rf"[^{_BLANK}\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]*[^{_BLANK}\x00-\x1f\x7f])?")


def unsaid(value: object) -> bool:
    """For fields that are left out where there is nothing to say; all others are null then."""
    return value is None


def _readable(text: str) -> str:
    if any("\ud800" <= mark <= "\udfff" for mark in text):
        raise PydanticCustomError("unreadable", "is not readable text: half of a surrogate pair stands alone")
    return text


def _something(text: str) -> str:
    if not (trimmed := text.strip()):
        raise PydanticCustomError("empty", "there is nothing in it")
    return trimmed


def _question(text: str) -> str:
    if (has := len(text)) < 3:
        raise PydanticCustomError("too_short", "should have at least 3 characters")
    if has > 1000:
        raise PydanticCustomError("too_long", "should have at most 1000 characters, has {has}", {"has": has})
    return text


def _at_most(most: int) -> AfterValidator:
    def check(text: str) -> str:
        if (has := len(text.split())) > most:
            told = {"most": most, "has": has}
            raise PydanticCustomError("too_long", "should have at most {most} words, has {has}", told)
        return text

    return AfterValidator(check)


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise PydanticCustomError("name", "should be one line that neither begins nor ends with a space")
    return text


def _uuid4(value: Any) -> UUID:
    if isinstance(value, UUID) and value.version == 4:
        return value
    if isinstance(value, str) and _UUID4.fullmatch(value.strip()):
        return UUID(value.strip())
    raise PydanticCustomError("uuid4", "should be a UUID of version 4")


def _whole(value: Any) -> int:
    """JSON's numbers only: neither "5" nor true is one."""
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        raise PydanticCustomError("int_type", "should be a whole number")
    return int(value)


SOMETHING = f"[^{_BLANK}]"
"""The pattern of text that is not only blanks."""

QUESTION = rf"^[{_BLANK}]*{SOMETHING}[\s\S]{{1,998}}{SOMETHING}[{_BLANK}]*$"
NAME = f"^{_NAME.pattern}$"

_SOMETHING = Field(json_schema_extra={"pattern": SOMETHING})

Text = Annotated[str, AfterValidator(_readable)]

Question = Annotated[
    Text,
    AfterValidator(_something),
    AfterValidator(_question),
    WithJsonSchema({"type": "string", "pattern": QUESTION}),
]
"""3 to 1000 characters after trimming."""

Query = Annotated[Text, StringConstraints(max_length=32_000), AfterValidator(_something), _SOMETHING]
"""Something, in at most 32,000 characters."""

ShortQuery = Annotated[Text, AfterValidator(_something), _at_most(500), _SOMETHING]
"""Something, in at most 500 words."""

Hint = Annotated[Text, _at_most(200)]
"""At most 200 words."""

Selection = Annotated[Text, StringConstraints(max_length=64_000)]

Name = Annotated[
    Text,
    StringConstraints(min_length=1, max_length=100),
    AfterValidator(_name),
    Field(json_schema_extra={"pattern": NAME}),
]

Whole = Annotated[int, BeforeValidator(_whole)]

Uuid4 = Annotated[
    UUID,
    BeforeValidator(_uuid4),
    WithJsonSchema({"type": "string", "format": "uuid", "pattern": f"^{_UUID4.pattern}$"}),
]
