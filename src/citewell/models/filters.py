"""Filters of a search."""

import re
from dataclasses import dataclass

from citewell.errors import BadFilter

# Blank, control and other invisible characters; a URL has them percent-encoded, if at all.
_BLANK = r"\x00-\x20\x7f-\xa0\xad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
_HOST = rf"(?:[^{_BLANK}/?#@:\[\]]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{{1,5}})?"
URL_PREFIX = re.compile(rf"(?:/(?:[^{_BLANK}/][^{_BLANK}]*)?|https?://{_HOST}(?:[/?#][^{_BLANK}]*)?)")
"""An absolute URL with a host, or a path from `/`."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Limits a search to certain chunks. All filters that are set must match."""

    source_url_prefix: str | None = None
    """A prefix of the live page's URL: an absolute URL, or a path from `/` on any host.

    Documents without a URL match `/` and their own path.
    """
    section: str | None = None
    """The innermost heading, exactly."""
    chapter: str | None = None
    """The document's title, exactly."""
    path: str | None = None
    """One file, or, with `/` at the end, all files in a folder."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value: str | None = getattr(self, name)
            if value is not None and not value.strip():
                raise BadFilter(f"the filter {name} is empty; leave it out, or say what to narrow the search to")
            if value is not None and any("\ud800" <= character <= "\udfff" for character in value):
                raise BadFilter(f"the filter {name} is not readable text: {value[:200]!a}")
        if (prefix := self.source_url_prefix) and not URL_PREFIX.fullmatch(prefix):
            raise BadFilter(
                f"the URL prefix {prefix[:200]!r} should be a URL like https://example.org/docs or a path like /docs, "
                "with spaces written as %20"
            )

    def __bool__(self) -> bool:
        return any(getattr(self, name) is not None for name in self.__slots__)

    def __str__(self) -> str:
        """As a reader sees it: "section “Calibration”, docs/robots/"."""
        parts = [
            f"section “{self.section}”" if self.section else "",
            f"chapter “{self.chapter}”" if self.chapter else "",
            self.path or "",
            f"pages under {self.source_url_prefix}" if self.source_url_prefix else "",
        ]
        return ", ".join(part for part in parts if part)


NO_FILTERS = Filters()
