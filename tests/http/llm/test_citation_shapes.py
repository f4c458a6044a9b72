"""However an LLM writes a citation, a reader sees the id of a source, and nothing that was made up."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.llm import Says
from tests.http.llm.server import ASK, PUMP, RAM, STREAMS, V1, WELL, saying, streamed, told, writing

pytestmark = pytest.mark.anyio

INVENTED = [
    "[chunk_docid_5]",
    "[308b9271]",
    "[doc1:chunk-5]",
    "[123e4567-e89b-42d3-a456-426614174000:chunk-6]",
    "[02-proprioception.mdx]",
    "【77】",
    "【4:0†source】",
    "[^77]",
    "(source 77)",
    "(Source: The Pump Handbook)",
    "([308b9271], [77])",
    "[[nowhere.md]]",
    "**[nowhere.md]**",
    "[https://evil.example/pumps]",
    f"[{'a1' * 32}]",
]

NAMED = [
    "[{id}]",
    "[{short_id}]",
    "[{document_id}]",
    "[{document_id}:chunk-{index}]",
    "[chunk_{document_id}_{index}]",
    "[{file}]",
    "[/{file}]",
    "[{file}, chunk {index}]",
    "【{number}】",
    "【{number}†source】",
    "[^{number}]",
    "[[{number}]]",
    "(source {number})",
    "(source: {file})",
    "(source: {title})",
]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_citation_that_was_made_up_is_removed_whatever_its_shape(pages: Path, stream: bool) -> None:
    text = " ".join(f"{RAM} {shape}. {RAM}. {shape}\n\n- {RAM} {shape}, [{{0}}]\n\n" for shape in INVENTED)
    async with writing(pages, saying(lambda at: text.format(at(RAM)))) as (http, _):
        if stream:
            body = (await streamed(http, STREAMS[2]))[-1]["response"]
        else:
            body = await told(http, V1)
    _check(body)
    assert "nowhere" not in body["response"]
    assert "source" not in body["response"].casefold()
    assert "evil" not in body["response"]
    assert "*" not in body["response"]


@pytest.mark.parametrize("shape", NAMED)
async def test_a_citation_that_names_a_given_passage_is_one_whatever_its_shape(pages: Path, shape: str) -> None:
    known: dict[str, Any] = {}
    async with writing(
        pages, WELL, saying(lambda at: f"{RAM} {shape.format(**known, number=at(RAM))}. {PUMP} [{at(PUMP)}].")
    ) as (http, _):
        ram = next(source for source in (await told(http, V1))["sources"] if source["source"] == "rams.md")
        known |= {
            "id": ram["id"],
            "short_id": ram["id"][:8],
            "document_id": ram["documentId"],
            "index": ram["chunkIndex"],
            "file": ram["source"],
            "title": "Rams",
        }
        body = await told(http, V1)
    _check(body)
    assert body["response"].startswith(f"{RAM} [{ram['id']}]. {PUMP} [")


async def test_what_only_looks_like_a_citation_is_shown(pages: Path) -> None:
    kept = "- [x] Press [Enter] or [F5] with `water[1]` and [optional] care, in [0, 1) (see below), `[chunk_docid_5]`"
    answer = saying(lambda at: f"{PUMP} [{at(PUMP)}].\n\n{kept} [{at(PUMP)}].\n")
    async with writing(pages, answer, unsupported="show") as (http, _):
        body = await told(http, ASK)
    assert body["answer"].rstrip() == f"{PUMP} [1].\n\n{kept} [1]."


async def test_a_citation_leaves_no_asterisks_of_emphasis_behind(pages: Path) -> None:
    answer = saying(lambda at: f"{PUMP} **[{at(PUMP)}]**.\n\n- **[{at(RAM)}] {RAM}**\n")
    async with writing(pages, answer) as (http, _):
        body = await told(http, ASK)
    assert body["answer"] == f"{PUMP} [1].\n\n- **[2] {RAM}**"


async def test_a_citation_after_the_full_stop_belongs_to_its_sentence(pages: Path) -> None:
    async with writing(pages, Says(f"{RAM}. [rams.md] {PUMP}. (source: Pumps)")) as (http, _):
        body = await told(http, ASK)
    assert body["answer"] == f"{RAM} [1]. {PUMP} [2]."
    assert [one["verdict"] for one in body["support"]] == ["supported", "supported"]


def _check(body: dict[str, Any]) -> None:
    """Every bracket is the id of a source; nothing dangles and no blank is doubled."""
    response, ids = body["response"], {source["id"] for source in body["sources"]}
    assert ids
    assert set(re.findall(r"[\[【［(（](.*?)[\]】］)）]", response)) == ids
    assert not re.search(r"[\[【［(（]\s*[\]】］)）]|\S {2,}| [.,;]|†", response), response
