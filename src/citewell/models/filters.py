"""What a search is narrowed to."""

from dataclasses import dataclass

from citewell.errors import BadFilter


@dataclass(frozen=True, slots=True)
class Filters:
    """What a search is narrowed to; nothing, unless said. All that is said must hold."""

    source_url_prefix: str | None = None
    """How the live page's address begins: an absolute URL, or a path from `/`, whatever the host.

    Documents that were ingested without an address answer to `/` and their own path.
    """
    section: str | None = None
    """The innermost heading, exactly."""
    chapter: str | None = None
    """The document's title, exactly."""
    path: str | None = None
    """One file, or with `/` at its end everything in a folder."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value: str | None = getattr(self, name)
            if value is not None and not value.strip():
                raise BadFilter(f"the filter {name} is empty; leave it out, or say what to narrow the search to")
            if value is not None and any("\ud800" <= mark <= "\udfff" for mark in value):
                raise BadFilter(f"the filter {name} is not readable text: {value!a}")
        if (prefix := self.source_url_prefix) and not prefix.startswith(("/", "http://", "https://")):
            raise BadFilter(f"the URL prefix {prefix!r} must begin with https://, http:// or /")

    def __bool__(self) -> bool:
        return any(getattr(self, name) is not None for name in self.__slots__)

    def __str__(self) -> str:
        """In a reader's words: "section “Calibration”, docs/robots/"."""
        parts = [
            f"section “{self.section}”" if self.section else "",
            f"chapter “{self.chapter}”" if self.chapter else "",
            self.path or "",
            f"pages under {self.source_url_prefix}" if self.source_url_prefix else "",
        ]
        return ", ".join(part for part in parts if part)


NO_FILTERS = Filters()
