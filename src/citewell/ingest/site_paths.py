"""Where a page stands in its book: the part its folders name, and the address the built site gives it.

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

_NUMBERED = re.compile(r"^\d+\s*[-_.]+\s*(?=[^-_.\s])")
_DATED = re.compile(r"^\d+[-_.]\d+")  # a date or a version is a name, not a position


def part_of(root: Path | None, path: str) -> str:
    """The folders above a page as a sidebar shows them: "Body and senses > Touch"."""
    folders = PurePosixPath(path).parent.parts
    if root is None:  # a client's path, which is not looked for on this machine
        return " > ".join(map(_spoken, folders))
    return " > ".join(_folder_label(root.joinpath(*folders[: depth + 1])) for depth in range(len(folders)))


def title_of(path: str) -> str:
    """`03-motion/02_whole-body.md` -> "Whole body"; an index page is called after its folder."""
    pure = PurePosixPath(path)
    index = pure.stem.lower() in ("index", "readme") and pure.parent.name
    return _spoken(pure.parent.name if index else pure.stem)


def url_of(base_url: str, path: str, *, slug: str = "") -> str:
    """The live page of a document: what the site generator makes of its path and slug."""
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
    folders = [_unnumbered(folder) for folder in path.parent.parts]
    name = _unnumbered(path.stem)
    if slug:
        return "/".join([*folders, slug.strip("/")])
    index = name.lower() in ("index", "readme") or (folders and name.lower() == folders[-1].lower())
    return "/".join(folders if index else [*folders, name])


def _unnumbered(name: str) -> str:
    return name if _DATED.match(name) else _NUMBERED.sub("", name)


def _spoken(name: str) -> str:
    words = re.sub(r"[-_\s]+", " ", _unnumbered(name)).strip()
    return words[:1].upper() + words[1:] if words else name


@lru_cache(maxsize=4096)
def _folder_label(folder: Path) -> str:
    """What the folder's `_category_` file calls it, else its name in words."""
    for name in ("_category_.json", "_category_.yml", "_category_.yaml"):
        try:
            text = (folder / name).read_text(encoding="utf-8")
            fields: Any = json.loads(text) if name.endswith("json") else yaml.safe_load(text)
        except (OSError, ValueError, yaml.YAMLError):
            continue
        if isinstance(fields, dict) and isinstance(fields.get("label"), str):
            return str(fields["label"])
    return _spoken(folder.name)
