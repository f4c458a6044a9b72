"""A page's place in its site: the title of its part, from its folders, and its URL on the built site.

Follows what Docusaurus does with Markdown (numbered folders, `_category_` files, slugs) and Sphinx with
reStructuredText. Knows file names and `_category_` files, never a document's text.
"""

import json
import re
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import yaml

_NUMBER_PREFIX = re.compile(r"^\d+\s*[-_.]+\s*(?=[^-_.\s])")
_DATE_PREFIX = re.compile(r"^\d+[-_.]\d+")  # a date or a version, not a position in the sidebar


def part_of(root: Path | None, path: str) -> str:
    """The folders above a page as a sidebar shows them: "Body and senses > Touch"."""
    folders = PurePosixPath(path).parent.parts
    if root is None:  # an upload: its path names no folder on this machine
        return " > ".join(map(_to_words, folders))
    return " > ".join(_folder_label(root.joinpath(*folders[: depth + 1])) for depth in range(len(folders)))


def title_of(path: str) -> str:
    """`03-motion/02_whole-body.md` -> "Whole body"; an index page has the title of its folder."""
    pure = PurePosixPath(path)
    index = pure.stem.lower() in ("index", "readme") and pure.parent.name
    return _to_words(pure.parent.name if index else pure.stem)


def url_of(base_url: str, path: str, *, slug: str = "") -> str:
    """The URL of a document on the built site, as the site generator makes it from path and slug."""
    pure = PurePosixPath(path)
    match pure.suffix.lower():
        case ".md" | ".mdx":
            route = _docusaurus_route(pure, slug)
        case ".rst":
            route = pure.with_suffix(".html").as_posix()
        case _:
            route = pure.as_posix()
    return f"{base_url.rstrip('/')}/{quote(route)}"


def _docusaurus_route(path: PurePosixPath, slug: str) -> str:
    if slug.startswith("/"):
        return slug.strip("/")
    folders = [_without_number(folder) for folder in path.parent.parts]
    name = _without_number(path.stem)
    if slug:
        return "/".join([*folders, slug.strip("/")])
    index = name.lower() in ("index", "readme") or (folders and name.lower() == folders[-1].lower())
    return "/".join(folders if index else [*folders, name])


def _without_number(name: str) -> str:
    return name if _DATE_PREFIX.match(name) else _NUMBER_PREFIX.sub("", name)


def _to_words(name: str) -> str:
    words = re.sub(r"[-_\s]+", " ", _without_number(name)).strip()
    return words[:1].upper() + words[1:] if words else name


@lru_cache(maxsize=4096)
def _folder_label(folder: Path) -> str:
    """The label in the folder's `_category_` file, else its name in words."""
    for name in ("_category_.json", "_category_.yml", "_category_.yaml"):
        try:
            text = (folder / name).read_text(encoding="utf-8")
            fields: Any = json.loads(text) if name.endswith("json") else yaml.safe_load(text)
        except (OSError, ValueError, yaml.YAMLError):
            continue
        if isinstance(fields, dict) and isinstance(fields.get("label"), str):
            return str(fields["label"])
    return _to_words(folder.name)
