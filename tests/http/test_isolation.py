"""No key reaches another project's data: every endpoint is called with every kind of wrong key.

An endpoint without a row in `ENDPOINTS` or `OPEN` fails: whoever adds one says here who may use it.
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
from citewell.http.route import GuardedRoute
from citewell.models import Evaluation, Project
from citewell.settings import Settings
from tests.conftest import ready, settings_for
from tests.http.conftest import DEFAULT, events, ingest_folder, made_key, problem, running
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
    ("GET", "/logo"),
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
    ("GET", "/docs.css"),
}


@dataclass(frozen=True)
class Visit:
    """How to call an endpoint with our ids. `outsider` is the status that another project's admin key gets."""

    scope: str
    outsider: int
    json: dict[str, Any] | None = None
    file: tuple[str, bytes] | None = None
    params: dict[str, str] | None = None


ENDPOINTS = {
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
class TwoProjects:
    """A server with two projects, a session and several keys."""

    http: httpx2.AsyncClient
    keys: dict[str, str]
    ids: dict[str, str] = field(default_factory=dict)

    async def visit(
        self, endpoint: tuple[str, str], key: str | None, *, header: str = "bearer", **other: str
    ) -> httpx2.Response:
        """Call an endpoint with our ids, or with other ones, and the key of this name."""
        sent = {} if key is None else headers(self.keys[key], header)
        return await self.use(endpoint, sent, **other)

    async def use(self, endpoint: tuple[str, str], sent: dict[str, str], **other: str) -> httpx2.Response:
        method, path = endpoint
        visit = ENDPOINTS[endpoint]
        ids = self.ids | other
        body = {name: _fill_ids(value, ids) for name, value in visit.json.items()} if visit.json else None
        files = {"file": visit.file} if visit.file else None
        return await self.http.request(
            method, path.format(**ids), params=visit.params, json=body, files=files, headers=sent
        )

    async def everything(self) -> dict[str, object]:
        """Everything that a request could change, read with the admin key of all projects."""
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


def _fill_ids(value: object, ids: dict[str, str]) -> object:
    match value:
        case list():
            return [_fill_ids(one, ids) for one in value]
        case str() if value.startswith("{"):
            return value.format(**ids)
        case _:
            return value


def endpoints() -> Iterator[tuple[str, str, object]]:
    """Method, path and route of every endpoint of the application."""
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
    ingest_folder(settings, ours)
    ingest_folder(settings, ours, project=OURS.name)
    ingest_folder(settings, theirs, project=THEIRS.name)
    return settings


@pytest.fixture(scope="module")
async def server(settings: Settings) -> AsyncIterator[TwoProjects]:
    async with open_two_projects(settings) as server:
        yield server


@asynccontextmanager
async def open_two_projects(settings: Settings) -> AsyncIterator[TwoProjects]:
    async with wiring.open_stores(settings) as stores:
        keys = {
            "root": await made_key(stores, scope="admin"),
            "widget": await made_key(stores, scope="ask", project=DEFAULT),
            "neighbour": await made_key(stores, scope="ask", project=DEFAULT),
            "ours": await made_key(stores, scope="admin", project=OURS),
            "theirs": await made_key(stores, scope="admin", project=THEIRS),
            "their widget": await made_key(stores, scope="ask", project=THEIRS),
            "revoked": await made_key(stores, scope="admin", revoked=True),
        }
        await stores.gaps.record(OURS.id, f"What is a {SECRET} made of?")
        for project in (DEFAULT, OURS, THEIRS):
            await stores.evaluations.save(project.id, Evaluation(datetime.now(UTC), 7, {}))
    keys["forged"] = keys["root"][:-1] + ("0" if keys["root"][-1] != "0" else "1")
    async with running(settings) as http:
        server = TwoProjects(http, keys)
        body = (await http.post("/chat", json={"query": QUESTION}, headers=headers(keys["widget"]))).json()
        root = headers(keys["root"])
        (document,) = (await http.get(f"/api/v1/projects/{OURS.id}/documents", headers=root)).json()["documents"]
        chunk = (await http.get(f"/api/v1/documents/{document['documentId']}/chunks/0", headers=root)).json()
        server.ids = {
            "language": "de",
            "session": body["session_id"],
            "session_id": body["session_id"],
            "said": body["metadata"]["request_id"],
            "project_id": str(OURS.id),
            "document_id": document["documentId"],
            "index": "0",
            "chunk": chunk["id"],
            "chunk_id": chunk["id"],
        }
        yield server


def test_every_endpoint_has_a_rule_here_and_there() -> None:
    found = {(method, path): route for method, path, route in endpoints()}
    assert set(found) == OPEN | set(ENDPOINTS), "say in ENDPOINTS or OPEN who may use a new endpoint"
    for endpoint, route in found.items():
        assert isinstance(route, GuardedRoute), endpoint
        said = (route.openapi_extra or {})["x-scope"]
        assert said == ("open" if endpoint in OPEN else ENDPOINTS[endpoint].scope), endpoint


@pytest.mark.parametrize("key", [None, "revoked", "forged"])
@pytest.mark.parametrize("header", ["bearer", "x-api-key"])
async def test_without_a_valid_key_no_guarded_endpoint_answers(
    server: TwoProjects, key: str | None, header: str
) -> None:
    before = await server.everything()
    for endpoint in ENDPOINTS:
        assert problem(await server.visit(endpoint, key, header=header)) == (401, "UNAUTHORIZED"), endpoint
    assert await server.everything() == before


@pytest.mark.parametrize("header", ["bearer", "x-api-key"])
async def test_a_key_of_another_project_gets_nothing_with_ids_of_ours(server: TwoProjects, header: str) -> None:
    before = await server.everything()
    for endpoint, visit in ENDPOINTS.items():
        for key in ("theirs", "their widget"):
            response = await server.visit(endpoint, key, header=header)
            assert SECRET not in response.text, endpoint
            assert "ours" not in response.text, endpoint
            if visit.scope == "admin" and key == "their widget":
                assert problem(response) == (401, "UNAUTHORIZED"), endpoint
            elif visit.outsider == 200:
                assert response.status_code == 200, endpoint
            else:
                assert problem(response)[0] == visit.outsider, endpoint
    assert await server.everything() == before


async def test_a_document_of_ours_is_not_reached_by_way_of_their_project(server: TwoProjects) -> None:
    before = await server.everything()
    delete = ("DELETE", "/api/v1/projects/{project_id}/documents/{document_id}")
    gone = await server.visit(delete, "theirs", project_id=str(THEIRS.id))
    assert problem(gone) == (404, "NOT_FOUND")
    verify = await server.http.post(
        "/api/v1/citations/verify",
        json={"projectId": str(THEIRS.id), "ids": [server.ids["chunk"]], "answer": f"So [{server.ids['chunk']}]."},
        headers=headers(server.keys["theirs"]),
    )
    assert verify.json() == {"citations": [{"id": server.ids["chunk"], "status": "unknown", "now": None}]}
    for key in ("theirs", "their widget", "root"):
        address = f"/api/v1/citations/{server.ids['chunk']}?project_id={THEIRS.id}"
        assert problem(await server.http.get(address, headers=headers(server.keys[key]))) == (404, "NOT_FOUND")
    assert await server.everything() == before


async def test_a_conversation_lives_in_the_project_it_is_asked_in(server: TwoProjects) -> None:
    root, ours, theirs = headers(server.keys["root"]), {"project_id": str(OURS.id)}, {"project_id": str(THEIRS.id)}
    body = (await server.http.post("/chat", params=ours, json={"query": QUESTION}, headers=root)).json()
    again = {"query": QUESTION, "session_id": body["session_id"]}
    streamed = await server.http.post("/chat/stream", params=ours, json=again, headers=root)
    assert SECRET in body["answer"] == events(streamed.text)[-1]["response"]["answer"]
    address = f"/history/{body['session_id']}"
    for elsewhere in ({}, theirs):
        assert problem(await server.http.post("/chat", params=elsewhere, json=again, headers=root))[0] == 404
        assert (await server.http.delete(address, params=elsewhere, headers=root)).status_code == 204
        assert (await server.http.get(address, params=elsewhere, headers=root)).json()["total_entries"] == 0
    assert (await server.http.get(address, params=ours, headers=root)).json()["total_entries"] == 2
    await server.http.delete(address, params=ours, headers=root)
    assert (await server.http.get(address, params=ours, headers=root)).json()["total_entries"] == 0


async def test_a_key_talks_in_its_own_project_and_in_no_other(server: TwoProjects) -> None:
    sent, session = headers(server.keys["their widget"]), server.ids["session_id"]
    for method, path in ENDPOINTS:
        if path in ("/chat", "/chat/stream", "/history/{session_id}"):
            body = {"query": QUESTION} if method == "POST" else None
            for project, status in ((THEIRS, 204 if method == "DELETE" else 200), (OURS, 404), (DEFAULT, 404)):
                address = f"{path.format(session_id=session)}?project_id={project.id}"
                response = await server.http.request(method, address, json=body, headers=sent)
                assert response.status_code == status, (method, path, project.name)
                assert SECRET not in response.text
            odd = await server.http.request(method, f"{path.format(session_id=session)}?project_id=1", json=body)
            assert odd.status_code == 401, "who has no key is told nothing else"
            odd = await server.http.request(
                method, f"{path.format(session_id=session)}?project_id=1", json=body, headers=sent
            )
            assert problem(odd) == (400, "VALIDATION_ERROR")


async def test_a_reader_is_welcomed_to_projects_that_the_key_opens(server: TwoProjects) -> None:
    for key, asked, chosen, names in (
        ("root", None, "default", ["default", "ours", "theirs"]),
        ("root", THEIRS, "theirs", ["default", "ours", "theirs"]),
        ("theirs", None, "theirs", ["theirs"]),
        ("their widget", None, "theirs", ["theirs"]),
        ("their widget", THEIRS, "theirs", ["theirs"]),
        ("widget", None, "default", ["default"]),
    ):
        params = {"project_id": str(asked.id)} if asked else {}
        response = await server.http.get("/api/v1/welcome", params=params, headers=headers(server.keys[key]))
        assert response.json()["project"]["name"] == chosen
        assert [project["name"] for project in response.json()["projects"]] == names
        assert response.json()["documents"] == 1


async def test_a_list_of_projects_shows_those_the_key_opens(server: TwoProjects) -> None:
    for key, names in (("theirs", ["theirs"]), ("ours", ["ours"]), ("root", ["default", "ours", "theirs"])):
        listed = (await server.visit(("GET", "/api/v1/projects"), key)).json()["projects"]
        assert [one["name"] for one in listed] == names


async def test_a_session_of_somebody_else_gives_nothing(server: TwoProjects) -> None:
    """Not even to another key of the same project, unless it may see all of it."""
    before = await server.everything()
    session = server.ids["session"]
    history = await server.visit(("GET", "/history/{session_id}"), "neighbour")
    assert history.json() == {"session_id": session, "entries": [], "total_entries": 0}
    for endpoint in (("POST", "/chat"), ("POST", "/chat/stream"), ("POST", "/api/v1/feedback")):
        assert problem(await server.visit(endpoint, "neighbour")) == (404, "NOT_FOUND"), endpoint
    assert (await server.visit(("DELETE", "/history/{session_id}"), "neighbour")).status_code == 204
    assert await server.everything() == before
    mine = await server.visit(("GET", "/history/{session_id}"), "widget")
    assert mine.json()["total_entries"] == 1


async def test_what_a_key_asked_once_is_not_told_to_another(server: TwoProjects) -> None:
    """An Idempotency-Key belongs to one API key: the same text sent with another key is another one."""
    again = {"Idempotency-Key": "order-1"}
    first, second = [
        (await server.http.post("/chat", json={"query": QUESTION}, headers=headers(server.keys[key]) | again)).json()
        for key in ("widget", "neighbour")
    ]
    assert first["session_id"] != second["session_id"]


async def test_a_widget_s_key_can_ask_and_nothing_else(server: TwoProjects) -> None:
    for endpoint, visit in ENDPOINTS.items():
        response = await server.visit(endpoint, "widget", project_id=str(DEFAULT.id))
        if visit.scope == "admin":
            assert problem(response) == (401, "UNAUTHORIZED"), endpoint
    own = {"projectId": str(DEFAULT.id)}
    said = headers(server.keys["widget"])
    for path, body in (
        ("/api/v1/chat", own | {"message": QUESTION}),
        ("/api/v1/citations/verify", own | {"ids": [server.ids["chunk"]]}),
        ("/api/query", {"query": QUESTION}),
        ("/chat", {"query": QUESTION}),
    ):
        assert (await server.http.post(path, json=body, headers=said)).status_code == 200, path
    streamed = await server.http.post("/api/ask/stream", json={"question": QUESTION}, headers=said)
    assert SECRET in "".join(event["content"] for event in events(streamed.text))


async def test_the_way_a_key_is_sent_makes_no_difference(server: TwoProjects) -> None:
    for endpoint in ENDPOINTS:
        if endpoint[0] == "GET" or endpoint[1].startswith("/api/ask"):
            for key in ("root", "theirs", "widget"):
                by_bearer, by_header = [
                    await server.visit(endpoint, key, header=one) for one in ("bearer", "x-api-key")
                ]
                assert by_bearer.status_code == by_header.status_code, endpoint


async def test_two_keys_at_once_are_one_too_many(server: TwoProjects) -> None:
    for endpoint in ENDPOINTS:
        both = headers(server.keys["widget"]) | headers(server.keys["root"], "x-api-key")
        assert problem(await server.use(endpoint, both)) == (401, "UNAUTHORIZED"), endpoint
        both = headers(server.keys["root"]) | headers(server.keys["revoked"], "x-api-key")
        assert problem(await server.use(endpoint, both)) == (401, "UNAUTHORIZED"), endpoint
    same = headers(server.keys["root"]) | headers(server.keys["root"], "x-api-key")
    assert (await server.use(("GET", "/metrics"), same)).status_code == 200


async def test_no_other_method_is_answered(server: TwoProjects) -> None:
    known = OPEN | set(ENDPOINTS)
    for path in sorted({path for _, path in known}):
        allowed = {method for method, one in known if one == path}
        if "GET" in allowed:
            allowed.add("HEAD")
            without_key = await server.http.head(path.format(**server.ids))
            assert (without_key.status_code == 401) == (("GET", path) not in OPEN), path
        for method in METHODS:
            if method in allowed:
                continue
            for key in (None, "root"):
                sent = {} if key is None else headers(server.keys[key])
                refused = await server.http.request(method, path.format(**server.ids), headers=sent)
                assert refused.status_code == 405, (method, path)
                assert set(refused.headers["allow"].split(", ")) == allowed, path


async def test_every_endpoint_answers_its_owner(settings: Settings) -> None:
    """The same calls as above with a valid key: otherwise the refusals would prove nothing."""
    async with open_two_projects(settings) as server:
        await _use_all(server)
    await asyncio.to_thread(ingest_folder, settings, Path(settings.home.parent, "ours"), project=OURS.name)


async def _use_all(server: TwoProjects) -> None:
    for endpoint, visit in ENDPOINTS.items():
        response = await server.visit(endpoint, "root")
        assert response.is_success, (endpoint, response.text)
        if "/stream" in endpoint[1]:
            assert "error" not in events(response.text)[-1], endpoint
        if visit.json and response.content and "name" not in visit.json:
            assert SECRET in response.text, endpoint
    assert problem(await server.visit(("GET", "/api/v1/projects/{project_id}"), "root")) == (404, "NOT_FOUND")
    projects = (await server.visit(("GET", "/api/v1/projects"), "root")).json()["projects"]
    assert [project["name"] for project in projects] == ["default", "theirs"]
    assert problem(await server.visit(("GET", "/api/v1/projects"), "ours")) == (401, "UNAUTHORIZED"), (
        "the key of a project goes with it"
    )
