"""Types of request fields: the same rules in the published schema and in validation."""

import re
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from citewell.models import CITATION_ID, URL_PREFIX

_HEX = "[0-9a-fA-F]"
_UUID = re.compile(rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}")
_UUID4 = re.compile(rf"{_HEX}{{8}}-{_HEX}{{4}}-4{_HEX}{{3}}-[89abAB]{_HEX}{{3}}-{_HEX}{{12}}")
# What `str.strip` removes, spelt out: `\s` means other characters in other languages, and clients read our schemas.
_BLANK = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# What nobody sees either: control and format characters, soft hyphen, Hangul fillers, variation selectors, a blank
# Braille cell. Those beyond \uffff are written as they are, since languages disagree about how to escape them.
_INVISIBLE = (
    r"\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_NAME = re.compile(rf"[^{_BLANK}\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]*[^{_BLANK}\x00-\x1f\x7f])?")

NOT_BLANK = f"[^{_BLANK}{_INVISIBLE}]"
"""The pattern of text in which something can be seen."""

_VISIBLE = re.compile(NOT_BLANK)

QUESTION = rf"^[{_BLANK}]*[^{_BLANK}][\s\S]{{1,998}}[^{_BLANK}][{_BLANK}]*$"
NAME = f"^{_NAME.pattern}$"


def is_none(value: object) -> bool:
    """For `exclude_if`: such a field is left out where it is None; other fields are null then."""
    return value is None


@dataclass(frozen=True, slots=True)
class Limit:
    """How long a text may be, in characters and, where it is given, in words."""

    characters: int
    words: int | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        words = {"x-maxWords": self.words} if self.words else {}
        return {**handler(schema), "maxLength": self.characters, **words}

    def _check(self, text: str) -> str:
        most = (
            f"{self.words:,} words and {self.characters:,} characters"
            if self.words
            else f"{self.characters:,} characters"
        )
        if len(text) > self.characters:
            raise _too_long(most, f"{len(text):,} characters" if self.words else f"{len(text):,}")
        if self.words and (count := len(text.split())) > self.words:
            raise _too_long(most, f"{count:,} words")
        return text


def _too_long(most: str, has: str) -> PydanticCustomError:
    return PydanticCustomError("text_too_long", "should have at most {most}, has {has}", {"most": most, "has": has})


def _check_surrogates(text: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise PydanticCustomError("unreadable", "is not readable text: half of a surrogate pair stands alone")
    return text


def _strip_nonempty(text: str) -> str:
    if not _VISIBLE.search(text):
        raise PydanticCustomError("empty", "should not be empty")
    return text.strip()


def _check_not_blank(text: str) -> str:
    if not _VISIBLE.search(text):
        raise PydanticCustomError("blank", "should not be blank; leave it out instead")
    return text


def _check_question_length(text: str) -> str:
    if (length := len(text)) < 3:
        raise PydanticCustomError("text_too_short", "should have at least 3 characters")
    if length > 1000:
        raise _too_long("1,000 characters", f"{length:,}")
    return text


def _check_name(text: str) -> str:
    if not _VISIBLE.search(text):
        raise PydanticCustomError("empty", "should not be empty")
    if not _NAME.fullmatch(text):
        raise PydanticCustomError("name", "should be one line that neither begins nor ends with a space")
    return text


def _check_url_prefix(text: str) -> str:
    if not URL_PREFIX.fullmatch(text):
        likeness = "should be a URL like https://example.org/docs or a path like /docs, with spaces written as %20"
        raise PydanticCustomError("url_prefix", likeness)
    return text


_CITATION_ID_FORM = "should be the id of a chunk (64 characters, each 0 to 9 or a to f), or of a document stored whole"


def _check_citation_id(text: str) -> str:
    if not re.fullmatch(CITATION_ID, text):
        raise PydanticCustomError("citation_id", _CITATION_ID_FORM)
    return text


def parse_uuid4(value: object) -> UUID | None:
    """A UUID of version 4 in its usual form, in capitals or not; None for anything else."""
    uuid = _parse_uuid(value)
    return uuid if uuid and _UUID4.fullmatch(str(uuid)) else None


def _parse_uuid(value: object) -> UUID | None:
    if isinstance(value, UUID):
        return value
    return UUID(value) if isinstance(value, str) and _UUID.fullmatch(value) else None


def _check_uuid(value: object) -> UUID:
    if uuid := _parse_uuid(value):
        return uuid
    raise PydanticCustomError("uuid", "should be a UUID, like 2369c456-6c49-5e11-8418-43a18a4fa2d6")


def _check_uuid4(value: object) -> UUID:
    if uuid := parse_uuid4(value):
        return uuid
    raise PydanticCustomError("uuid", "should be a UUID of version 4, like 9f3b1c52-6d0e-4d7a-8a55-2f1c0b7e4a90")


def _parse_whole(value: Any) -> int:
    """Only JSON numbers: neither "5" nor true."""
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        raise PydanticCustomError("int_type", "should be a whole number")
    return int(value)


_NOT_BLANK_SCHEMA = Field(json_schema_extra={"pattern": NOT_BLANK})
_NOT_BLANK = AfterValidator(_check_not_blank)

Text = Annotated[str, AfterValidator(_check_surrogates)]

Question = Annotated[
    Text,
    AfterValidator(_strip_nonempty),
    AfterValidator(_check_question_length),
    WithJsonSchema({"type": "string", "pattern": QUESTION, "allOf": [{"pattern": NOT_BLANK}]}),
]
"""3 to 1000 characters after trimming."""

Query = Annotated[Text, Limit(32_000), AfterValidator(_strip_nonempty), _NOT_BLANK_SCHEMA]
"""Not blank."""

ShortQuery = Annotated[Text, Limit(8_000, words=500), AfterValidator(_strip_nonempty), _NOT_BLANK_SCHEMA]
"""Not blank."""

Hint = Annotated[Text, Limit(4_000, words=200), _NOT_BLANK, _NOT_BLANK_SCHEMA]

Selection = Annotated[Text, Limit(64_000), _NOT_BLANK, _NOT_BLANK_SCHEMA]

HistoryText = Annotated[Text, Limit(64_000)]

CitedText = Annotated[Text, Limit(200_000)]

UrlPrefix = Annotated[
    Text,
    Limit(2_000),
    AfterValidator(_check_url_prefix),
    Field(json_schema_extra={"pattern": f"^{URL_PREFIX.pattern}$"}),
]

SectionName = Annotated[Text, Limit(1_000), _NOT_BLANK, _NOT_BLANK_SCHEMA]

Name = Annotated[
    Text,
    Limit(100),
    AfterValidator(_check_name),
    Field(json_schema_extra={"minLength": 1, "pattern": NAME, "allOf": [{"pattern": NOT_BLANK}]}),
]

Whole = Annotated[int, BeforeValidator(_parse_whole)]

CitationId = Annotated[
    str, AfterValidator(_check_citation_id), Field(json_schema_extra={"pattern": f"^(?:{CITATION_ID})$"})
]

Uuid = Annotated[UUID, BeforeValidator(_check_uuid), WithJsonSchema({"type": "string", "format": "uuid"})]
"""With hyphens, in capitals or not; neither in braces nor as a URN."""

Uuid4 = Annotated[
    UUID,
    BeforeValidator(_check_uuid4),
    WithJsonSchema({"type": "string", "format": "uuid", "pattern": f"^{_UUID4.pattern}$"}),
]
