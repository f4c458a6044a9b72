"""Whether parsing loses text or splits code, on every docs site and document folder of a data folder.

    python benchmarks/quality/sites.py DATA

For each folder below DATA/docs and DATA/pdf: files, chunks, tokens, errors, code blocks in and out, chunks with
unbalanced fences, and markup left in prose. It only parses; nothing is embedded.
"""

import argparse
import asyncio
import re
from pathlib import Path

from citewell import wiring
from citewell.errors import UnreadableFile
from citewell.ingest.chunk import count_tokens
from citewell.ingest.parse import parse, read_bytes
from citewell.ingest.read_ahead import read_ahead
from citewell.ingest.walk import walk
from citewell.models import Chunk, Project
from citewell.settings import Settings

FENCE = re.compile(r"^[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)*(`{3,}|~{3,})", re.MULTILINE)
MARKUP = {
    "import line": re.compile(r"^import .+ from ['\"]", re.MULTILINE),
    "JSX tag": re.compile(r"</?[A-Z]\w*[\s/>]"),
    "frontmatter key": re.compile(r"\A---\n|^(?:sidebar_\w+|hide_title|pagination_\w+):", re.MULTILINE),
    "admonition mark": re.compile(r"^[ \t]*(?::::|///)", re.MULTILINE),
    "directive": re.compile(r"^\.\. [\w:-]+::", re.MULTILINE),
}


def prose_of(text: str) -> str:
    """A text without code: markup in code is intended."""
    text = re.sub(
        r"^([ \t>]*(?:[-*+\d.)]+[ \t]+)*)(`{3,}|~{3,}).*?(?:^[ \t>]*\2`*~*[ \t]*$|\Z)", "", text, flags=re.M | re.S
    )
    text = re.sub(r"^(?: {4}|\t).*$", "", text, flags=re.M)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", text, flags=re.S)


def has_unbalanced_fence(chunk: Chunk) -> bool:
    opened = ""
    for match in FENCE.finditer(chunk.text):
        mark = match[1]
        if not opened:
            opened = mark
        elif mark[0] == opened[0] and len(mark) >= len(opened):
            opened = ""
    return bool(opened)


async def report(name: str, folder: Path) -> None:
    found = walk([folder])
    files, errors = found.files, found.errors
    chunks: list[Chunk] = []
    code_in = code_out = uncovered = 0
    async for file, read in read_ahead(files, project=Project.named(name), recipe=wiring.ingest_recipe(Settings())):
        if isinstance(read, UnreadableFile):
            errors.append(f"{file.path}: {read}")
            continue
        chunks += read.chunks
        text = read.document.text
        manuscript = parse(file.path, read_bytes(file.location))
        spans = [(chunk.start, chunk.end) for chunk in read.chunks]
        for block in manuscript.blocks:
            if block.kind == "code" and text[block.start : block.end].strip():
                code_in += 1
                end = block.start + len(text[block.start : block.end].rstrip())
                code_out += any(start <= block.start and end <= stop for start, stop in spans)
        covered = bytearray(len(text))
        for start, stop in spans:
            covered[start:stop] = b"\1" * (stop - start)
        uncovered += sum(not done and not mark.isspace() for done, mark in zip(covered, text, strict=True))
    markup = {
        what: sum(bool(pattern.search(prose_of(chunk.text))) for chunk in chunks) for what, pattern in MARKUP.items()
    }
    tokens = sum(count_tokens(chunk.text) for chunk in chunks)
    summary = ", ".join(f"{count} {what}" for what, count in markup.items() if count) or "nothing"
    print(
        f"{name:24} {len(files):4} files {len(chunks):5} chunks {tokens:8} tokens "
        f"{len(errors):3} errors  code {code_in}/{code_out}  unbalanced {sum(map(has_unbalanced_fence, chunks))}  "
        f"uncovered characters {uncovered}  left over: {summary}"
    )
    for error in errors:
        print(f"    {error}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    for folder in sorted([*data.glob("docs/*/"), *data.glob("pdf/*/")]):
        asyncio.run(report(folder.name, folder))


if __name__ == "__main__":
    main()
