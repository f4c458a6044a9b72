"""Filters of a search."""

from dataclasses import dataclass

from citewell.errors import BadFilter


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
                raise BadFilter(f"the filter {name} is not readable text: {value!a}")
        if (prefix := self.source_url_prefix) and not prefix.startswith(("/", "http://", "https://")):
            raise BadFilter(f"the URL prefix {prefix!r} must begin with https://, http:// or /")

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
