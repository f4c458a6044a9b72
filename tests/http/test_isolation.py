"""Nobody gets at what is another's: every door is tried, with every kind of key that is wrong for it.

A door without a row in `DOORS` or `OPEN` fails: whoever adds one says here who may use it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.routing import iter_route_contexts

from citewell import wiring
from citewell.http.app import create_app
from citewell.http.auth import GuardedRoute
from citewell.models import Evaluation, Project
from citewell.settings import Settings
from tests.conftest import ready, settings_for
from tests.http.conftest import DEFAULT, events, made_key, problem, running, take_in
from tests.http.protected_server import headers

pytestmark = pytest.mark.anyio

OURS, THEIRS = Project.named("ours"), Project.named("theirs")
QUESTION = "What should I do before the first start?"
SECRET = "casing"  # stands in every document that is ours, and in nothing of theirs
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")

OPEN = {
    ("GET", "/"),
    ("GET", "/chat"),
    ("GET", "/chat.js"),
    ("GET", "/library"),
    ("GET", "/library.js"),
    ("GET", "/widget.js"),
    ("GET", "/widget/math.js"),
    ("GET", "/widget/{language}.json"),
    ("GET", "/page.css"),
    ("GET", "/icon.svg"),
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
    ("GET", "/docs.css"),
}


@dataclass(frozen=True)
class Visit:
    """How to use a door with ids of ours. `outsider` is what the admin key of another project gets there."""

    scope: str
    outsider: int
    json: dict[str, Any] | None = None
    file: tuple[str, bytes] | None = None
    params: dict[str, str] | None = None


DOORS = {
    ("POST", "/api/ask"): Visit("ask", 404, {"question": QUESTION}),
    ("POST", "/api/ask/stream"): Visit("ask", 404, {"question": QUESTION}),
    ("POST", "/api/query"): Visit("ask", 404, {"query": QUESTION}),
    ("POST", "/chat"): Visit("ask", 404, {"query": QUESTION, "session_id": "{session}"}),
    ("POST", "/chat/stream"): Visit("ask", 404, {"query": QUESTION, "session_id": "{session}"}),
    ("POST", "/api/v1/feedback"): Visit("ask", 404, {"session_id": "{session}", "request_id": "{said}", "vote": "up"}),
    ("GET", "/history/{session_id}"): Visit("ask", 404),
    ("DELETE", "/history/{session_id}"): Visit("ask", 404),
    ("POST", "/api/v1/chat"): Visit("ask", 404, {"projectId": str(OURS.id), "message": QUESTION}),
    ("POST", "/api/v1/chat/stream"): Visit("ask", 404, {"projectId": str(OURS.id), "message": QUESTION}),
    ("POST", "/api/v1/citations/verify"): Visit("ask", 404, {"projectId": str(OURS.id), "ids": ["{chunk}"]}),
    ("GET", "/api/v1/citations/{chunk_id}"): Visit("ask", 404, params={"project_id": str(OURS.id)}),
    ("GET", "/api/v1/welcome"): Visit("ask", 404, params={"project_id": str(OURS.id)}),
    ("POST", "/api/v1/search"): Visit("admin", 404, {"projectId": str(OURS.id), "query": QUESTION}),
    ("GET", "/metrics"): Visit("admin", 401),
    ("POST", "/api/v1/projects"): Visit("admin", 401, {"name": "ours"}),
    ("GET", "/api/v1/projects"): Visit("admin", 200),
    ("GET", "/api/v1/projects/{project_id}"): Visit("admin", 404),
    ("GET", "/api/v1/projects/{project_id}/gaps"): Visit("admin", 404),
    ("DELETE", "/api/v1/projects/{project_id}/gaps"): Visit("admin", 404),
    ("GET", "/api/v1/projects/{project_id}/feedback"): Visit("admin", 404),
    ("GET", "/api/v1/projects/{project_id}/evaluation"): Visit("admin", 404),
    ("GET", "/api/v1/projects/{project_id}/ingests"): Visit("admin", 404),
    ("GET", "/api/v1/projects/{project_id}/documents"): Visit("admin", 404),
    ("GET", "/api/v1/documents/{document_id}"): Visit("admin", 404),
    ("GET", "/api/v1/documents/{document_id}/chunks/{index}"): Visit("admin", 404),
    ("POST", "/api/v1/projects/{project_id}/documents"): Visit("admin", 404, file=("new.md", b"# New\n\nWords.\n")),
    ("DELETE", "/api/v1/projects/{project_id}/documents/{document_id}"): Visit("admin", 404),
    ("DELETE", "/api/v1/projects/{project_id}"): Visit("admin", 401),
}


@dataclass
class House:
    """A server with two projects and somebody's session, and keys to it."""

    http: httpx2.AsyncClient
    keys: dict[str, str]
    ids: dict[str, str] = field(default_factory=dict)

    async def visit(
        self, door: tuple[str, str], key: str | None, *, header: str = "bearer", **other: str
    ) -> httpx2.Response:
        """Use a door with the ids of ours, or with others, and the key of this name."""
        sent = {} if key is None else headers(self.keys[key], header)
        return await self.use(door, sent, **other)

    async def use(self, door: tuple[str, str], sent: dict[str, str], **other: str) -> httpx2.Response:
        method, path = door
        visit = DOORS[door]
        ids = self.ids | other
        body = {name: _filled(value, ids) for name, value in visit.json.items()} if visit.json else None
        files = {"file": visit.file} if visit.file else None
        return await self.http.request(
            method, path.format(**ids), params=visit.params, json=body, files=files, headers=sent
        )

    async def everything(self) -> dict[str, object]:
        """All that there is to change, as the one who may see all sees it."""
        sent = headers(self.keys["root"])
        seen: dict[str, object] = {}
        for project in (DEFAULT, OURS, THEIRS):
            path = f"/api/v1/projects/{project.id}"
            seen[path] = (await self.http.get(path, headers=sent)).json()
            for part in ("gaps", "feedback", "evaluation", "ingests"):
                seen[f"{path}/{part}"] = (await self.http.get(f"{path}/{part}", headers=sent)).json()
            listed = (await self.http.get(f"{path}/documents", headers=sent)).json()
            seen[f"{path}/documents"] = listed
            for document in listed["documents"]:
                path = f"/api/v1/documents/{document['documentId']}?text=true"
                seen[path] = (await self.http.get(path, headers=sent)).json()
        for path in (f"/history/{self.ids['session_id']}", "/api/v1/projects"):
            seen[path] = (await self.http.get(path, headers=sent)).json()
        return seen


def _filled(value: object, ids: dict[str, str]) -> object:
    match value:
        case list():
            return [_filled(one, ids) for one in value]
        case str() if value.startswith("{"):
            return value.format(**ids)
        case _:
            return value


def doors() -> Iterator[tuple[str, str, object]]:
    """Method, path and route of everything that the application answers to, whoever included it."""
    for context in iter_route_contexts(create_app(Settings()).routes):
        for method in context.methods or {"ANY"}:
            yield method, context.path or "", context.original_route


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    database_url = ready(request.getfixturevalue("postgres_server")) if request.param == "postgresql" else None
    folder = tmp_path_factory.mktemp(request.param)
    settings = settings_for(folder / "home", database_url=database_url, embedder="hashing")
    ours, theirs = folder / "ours", folder / "theirs"
    for place, text in ((ours, f"Fill the {SECRET} with water before the first start."), (theirs, "A valve leaks.")):
        place.mkdir()
        (place / "pumps.md").write_text(f"# Pumps\n\n{text}\n")
    take_in(settings, ours)
    take_in(settings, ours, project=OURS.name)
    take_in(settings, theirs, project=THEIRS.name)
    return settings


@pytest.fixture(scope="module")
async def house(settings: Settings) -> AsyncIterator[House]:
    async with opened(settings) as house:
        yield house


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[House]:
    async with wiring.open_stores(settings) as keeping:
        keys = {
            "root": await made_key(keeping, scope="admin"),
            "widget": await made_key(keeping, scope="ask", project=DEFAULT),
            "neighbour": await made_key(keeping, scope="ask", project=DEFAULT),
            "ours": await made_key(keeping, scope="admin", project=OURS),
            "theirs": await made_key(keeping, scope="admin", project=THEIRS),
            "their widget": await made_key(keeping, scope="ask", project=THEIRS),
            "revoked": await made_key(keeping, scope="admin", revoked=True),
        }
        await keeping.gaps.record(OURS.id, f"What is a {SECRET} made of?")
        for project in (DEFAULT, OURS, THEIRS):
            await keeping.evaluations.save(project.id, Evaluation(datetime.now(UTC), 7, {}))
    keys["forged"] = keys["root"][:-1] + ("0" if keys["root"][-1] != "0" else "1")
    async with running(settings) as http:
        house = House(http, keys)
        said = (await http.post("/chat", json={"query": QUESTION}, headers=headers(keys["widget"]))).json()
        root = headers(keys["root"])
        (document,) = (await http.get(f"/api/v1/projects/{OURS.id}/documents", headers=root)).json()["documents"]
        chunk = (await http.get(f"/api/v1/documents/{document['documentId']}/chunks/0", headers=root)).json()
        house.ids = {
            "language": "de",
            "session": said["session_id"],
            "session_id": said["session_id"],
            "said": said["metadata"]["request_id"],
            "project_id": str(OURS.id),
            "document_id": document["documentId"],
            "index": "0",
            "chunk": chunk["id"],
            "chunk_id": chunk["id"],
        }
        yield house


def test_every_door_has_a_rule_here_and_there() -> None:
    found = {(method, path): route for method, path, route in doors()}
    assert set(found) == OPEN | set(DOORS), "say in DOORS or OPEN who may use a new door"
    for door, route in found.items():
        assert isinstance(route, GuardedRoute), door
        said = (route.openapi_extra or {})["x-scope"]
        assert said == ("open" if door in OPEN else DOORS[door].scope), door


@pytest.mark.parametrize("key", [None, "revoked", "forged"])
@pytest.mark.parametrize("header", ["bearer", "x-api-key"])
async def test_without_a_key_that_holds_no_guarded_door_opens(house: House, key: str | None, header: str) -> None:
    before = await house.everything()
    for door in DOORS:
        assert problem(await house.visit(door, key, header=header)) == (401, "UNAUTHORIZED"), door
    assert await house.everything() == before


@pytest.mark.parametrize("header", ["bearer", "x-api-key"])
async def test_a_key_of_another_project_gets_nothing_with_ids_of_ours(house: House, header: str) -> None:
    before = await house.everything()
    for door, visit in DOORS.items():
        for key in ("theirs", "their widget"):
            response = await house.visit(door, key, header=header)
            assert SECRET not in response.text, door
            assert "ours" not in response.text, door
            if visit.scope == "admin" and key == "their widget":
                assert problem(response) == (401, "UNAUTHORIZED"), door
            elif visit.outsider == 200:
                assert response.status_code == 200, door
            else:
                assert problem(response)[0] == visit.outsider, door
    assert await house.everything() == before


async def test_a_document_of_ours_is_not_reached_by_way_of_their_project(house: House) -> None:
    before = await house.everything()
    delete = ("DELETE", "/api/v1/projects/{project_id}/documents/{document_id}")
    gone = await house.visit(delete, "theirs", project_id=str(THEIRS.id))
    assert problem(gone) == (404, "NOT_FOUND")
    verify = await house.http.post(
        "/api/v1/citations/verify",
        json={"projectId": str(THEIRS.id), "ids": [house.ids["chunk"]], "answer": f"So [{house.ids['chunk']}]."},
        headers=headers(house.keys["theirs"]),
    )
    assert verify.json() == {"citations": [{"id": house.ids["chunk"], "status": "unknown", "now": None}]}
    for key in ("theirs", "their widget", "root"):
        address = f"/api/v1/citations/{house.ids['chunk']}?project_id={THEIRS.id}"
        assert problem(await house.http.get(address, headers=headers(house.keys[key]))) == (404, "NOT_FOUND")
    assert await house.everything() == before


async def test_a_conversation_lives_in_the_project_it_is_asked_in(house: House) -> None:
    root, ours, theirs = headers(house.keys["root"]), {"project_id": str(OURS.id)}, {"project_id": str(THEIRS.id)}
    said = (await house.http.post("/chat", params=ours, json={"query": QUESTION}, headers=root)).json()
    again = {"query": QUESTION, "session_id": said["session_id"]}
    streamed = await house.http.post("/chat/stream", params=ours, json=again, headers=root)
    assert SECRET in said["answer"] == events(streamed.text)[-1]["response"]["answer"]
    address = f"/history/{said['session_id']}"
    for elsewhere in ({}, theirs):
        assert problem(await house.http.post("/chat", params=elsewhere, json=again, headers=root))[0] == 404
        assert (await house.http.delete(address, params=elsewhere, headers=root)).status_code == 204
        assert (await house.http.get(address, params=elsewhere, headers=root)).json()["total_entries"] == 0
    assert (await house.http.get(address, params=ours, headers=root)).json()["total_entries"] == 2
    await house.http.delete(address, params=ours, headers=root)
    assert (await house.http.get(address, params=ours, headers=root)).json()["total_entries"] == 0


async def test_a_key_talks_in_its_own_project_and_in_no_other(house: House) -> None:
    sent, session = headers(house.keys["their widget"]), house.ids["session_id"]
    for method, path in DOORS:
        if path in ("/chat", "/chat/stream", "/history/{session_id}"):
            body = {"query": QUESTION} if method == "POST" else None
            for project, status in ((THEIRS, 204 if method == "DELETE" else 200), (OURS, 404), (DEFAULT, 404)):
                address = f"{path.format(session_id=session)}?project_id={project.id}"
                response = await house.http.request(method, address, json=body, headers=sent)
                assert response.status_code == status, (method, path, project.name)
                assert SECRET not in response.text
            odd = await house.http.request(method, f"{path.format(session_id=session)}?project_id=1", json=body)
            assert odd.status_code == 401, "who has no key is told nothing else"
            odd = await house.http.request(
                method, f"{path.format(session_id=session)}?project_id=1", json=body, headers=sent
            )
            assert problem(odd) == (400, "VALIDATION_ERROR")


async def test_a_reader_is_welcomed_to_projects_that_the_key_opens(house: House) -> None:
    for key, asked, chosen, names in (
        ("root", None, "default", ["default", "ours", "theirs"]),
        ("root", THEIRS, "theirs", ["default", "ours", "theirs"]),
        ("theirs", None, "theirs", ["theirs"]),
        ("their widget", None, "theirs", ["theirs"]),
        ("their widget", THEIRS, "theirs", ["theirs"]),
        ("widget", None, "default", ["default"]),
    ):
        params = {"project_id": str(asked.id)} if asked else {}
        told = await house.http.get("/api/v1/welcome", params=params, headers=headers(house.keys[key]))
        assert told.json()["project"]["name"] == chosen
        assert [one["name"] for one in told.json()["projects"]] == names
        assert told.json()["documents"] == 1


async def test_a_list_of_projects_shows_those_the_key_opens(house: House) -> None:
    for key, names in (("theirs", ["theirs"]), ("ours", ["ours"]), ("root", ["default", "ours", "theirs"])):
        listed = (await house.visit(("GET", "/api/v1/projects"), key)).json()["projects"]
        assert [one["name"] for one in listed] == names


async def test_a_session_of_somebody_else_gives_nothing(house: House) -> None:
    """Not even to another key of the same project, unless it may see all of it."""
    before = await house.everything()
    session = house.ids["session"]
    history = await house.visit(("GET", "/history/{session_id}"), "neighbour")
    assert history.json() == {"session_id": session, "entries": [], "total_entries": 0}
    for door in (("POST", "/chat"), ("POST", "/chat/stream"), ("POST", "/api/v1/feedback")):
        assert problem(await house.visit(door, "neighbour")) == (404, "NOT_FOUND"), door
    assert (await house.visit(("DELETE", "/history/{session_id}"), "neighbour")).status_code == 204
    assert await house.everything() == before
    mine = await house.visit(("GET", "/history/{session_id}"), "widget")
    assert mine.json()["total_entries"] == 1


async def test_what_a_key_asked_once_is_not_told_to_another(house: House) -> None:
    """An Idempotency-Key is somebody's own word: the same word of another key is another."""
    again = {"Idempotency-Key": "order-1"}
    first, second = [
        (await house.http.post("/chat", json={"query": QUESTION}, headers=headers(house.keys[key]) | again)).json()
        for key in ("widget", "neighbour")
    ]
    assert first["session_id"] != second["session_id"]


async def test_a_widget_s_key_can_ask_and_nothing_else(house: House) -> None:
    for door, visit in DOORS.items():
        response = await house.visit(door, "widget", project_id=str(DEFAULT.id))
        if visit.scope == "admin":
            assert problem(response) == (401, "UNAUTHORIZED"), door
    own = {"projectId": str(DEFAULT.id)}
    said = headers(house.keys["widget"])
    for path, body in (
        ("/api/v1/chat", own | {"message": QUESTION}),
        ("/api/v1/citations/verify", own | {"ids": [house.ids["chunk"]]}),
        ("/api/query", {"query": QUESTION}),
        ("/chat", {"query": QUESTION}),
    ):
        assert (await house.http.post(path, json=body, headers=said)).status_code == 200, path
    streamed = await house.http.post("/api/ask/stream", json={"question": QUESTION}, headers=said)
    assert SECRET in "".join(event["content"] for event in events(streamed.text))


async def test_the_way_a_key_is_sent_makes_no_difference(house: House) -> None:
    for door in DOORS:
        if door[0] == "GET" or door[1].startswith("/api/ask"):
            for key in ("root", "theirs", "widget"):
                by_bearer, by_header = [await house.visit(door, key, header=one) for one in ("bearer", "x-api-key")]
                assert by_bearer.status_code == by_header.status_code, door


async def test_two_keys_at_once_are_one_too_many(house: House) -> None:
    for door in DOORS:
        both = headers(house.keys["widget"]) | headers(house.keys["root"], "x-api-key")
        assert problem(await house.use(door, both)) == (401, "UNAUTHORIZED"), door
        both = headers(house.keys["root"]) | headers(house.keys["revoked"], "x-api-key")
        assert problem(await house.use(door, both)) == (401, "UNAUTHORIZED"), door
    same = headers(house.keys["root"]) | headers(house.keys["root"], "x-api-key")
    assert (await house.use(("GET", "/metrics"), same)).status_code == 200


async def test_no_other_method_opens_a_door(house: House) -> None:
    known = OPEN | set(DOORS)
    for path in sorted({path for _, path in known}):
        allowed = {method for method, one in known if one == path}
        for method in METHODS:
            if method in allowed:
                continue
            for key in (None, "root"):
                sent = {} if key is None else headers(house.keys[key])
                refused = await house.http.request(method, path.format(**house.ids), headers=sent)
                assert refused.status_code == 405, (method, path)
                assert set(refused.headers["allow"].split(", ")) == allowed, path


async def test_to_whom_they_belong_the_doors_open(settings: Settings) -> None:
    """The same calls as above, with a key that may: else their refusals would mean nothing."""
    async with opened(settings) as house:
        await _use_all(house)
    await asyncio.to_thread(take_in, settings, Path(settings.home.parent, "ours"), project=OURS.name)


async def _use_all(house: House) -> None:
    for door, visit in DOORS.items():
        response = await house.visit(door, "root")
        assert response.is_success, (door, response.text)
        if "/stream" in door[1]:
            assert "error" not in events(response.text)[-1], door
        if visit.json and response.content and "name" not in visit.json:
            assert SECRET in response.text, door
    assert problem(await house.visit(("GET", "/api/v1/projects/{project_id}"), "root")) == (404, "NOT_FOUND")
    kept = (await house.visit(("GET", "/api/v1/projects"), "root")).json()["projects"]
    assert [one["name"] for one in kept] == ["default", "theirs"]
    assert problem(await house.visit(("GET", "/api/v1/projects"), "ours")) == (401, "UNAUTHORIZED"), (
        "the key of a project goes with it"
    )
