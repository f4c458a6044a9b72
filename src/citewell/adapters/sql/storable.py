"""Text that every database takes: PostgreSQL refuses NUL, and no encoding has a lone surrogate."""

import re

_REFUSED = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """The text with U+FFFD, the mark for what could not be read, where it cannot be stored."""
    return _REFUSED.sub("\ufffd", text)


def storable_json(value: object) -> object:
    """The same for every string in what JSON can say, names included."""
    match value:
        case str():
            return storable(value)
        case dict():
            return {storable(str(name)): storable_json(one) for name, one in value.items()}
        case list() | tuple():
            return [storable_json(one) for one in value]
        case _:
            return value
