"""The frontmatter of a Markdown page: the YAML between the `---` lines at its top."""

import re

import yaml

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C parser is ten times as fast
_ITEM_ENDS = (yaml.ScalarEvent, yaml.AliasEvent, yaml.CollectionEndEvent)
_NULLS = frozenset({"~", "null", "Null", "NULL"})
_MAX_YAML_DEPTH = 50


def split_frontmatter(source: str) -> tuple[str, str]:
    """The YAML between the opening `---` lines, and the source with those lines made blank."""
    match = re.match(r"---[ \t]*\n(?:(.*?)\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", source, re.DOTALL)
    if not match:
        return "", source
    return match.group(1) or "", "\n" * match.group(0).count("\n") + source[match.end() :]


def frontmatter_fields(frontmatter: str) -> dict[str, str]:
    """The top-level string values of the frontmatter, unchanged.

    The YAML is read as a stream of events, and nested values are skipped: a few lines of YAML can expand to
    gigabytes, nest until libyaml crashes or hangs, or contain an invalid date.
    """
    fields: dict[str, str] = {}
    depth, name, expects_name = 0, "", True
    try:
        for event in yaml.parse(frontmatter, _Loader):
            if isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth == 1 and isinstance(event, _ITEM_ENDS):
                text = _scalar_text(event)
                if expects_name:
                    name = text
                elif text:
                    fields[name] = text
                expects_name = not expects_name
            if isinstance(event, yaml.CollectionStartEvent):
                if depth > _MAX_YAML_DEPTH or not (depth or isinstance(event, yaml.MappingStartEvent)):
                    return {}
                depth += 1
    except yaml.YAMLError:
        return {}  # a page with broken frontmatter still has text worth answering from
    return fields


def _scalar_text(event: yaml.Event) -> str:
    """A scalar's text on one line; "" for a nested value or null."""
    if not isinstance(event, yaml.ScalarEvent) or (event.implicit[0] and event.value in _NULLS):
        return ""
    return " ".join(event.value.split())
