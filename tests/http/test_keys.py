"""A key works in two headers and nowhere else, and never appears in a log or response."""

import ast
import asyncio
import inspect
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from citewell import api_keys, wiring
from citewell.http import auth
from tests.conftest import Citewell, serving, settings_for
from tests.http.conftest import DEFAULT, events, ingest_folder, made_key, problem, running
from tests.http.protected_server import (
    QUESTION,
    ProtectedServer,
    block_embedder,
    headers,
    open_protected_server,
    wait_until_running,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
async def guarded(home: Path, docs: Path) -> AsyncIterator[ProtectedServer]:
    settings = settings_for(home, embedder="hashing", heartbeat_seconds=0.05)
    async with open_protected_server(settings, docs) as guarded:
        yield guarded


async def test_a_header_that_is_no_key_is_refused_whatever_it_is(guarded: ProtectedServer) -> None:
    key = guarded.key
    for value in ("", "Bearer", "Bearer ", key, f"Basic {key}", f"Bearer {key} {key}", f"Bearer {key},",
                  f"Bearer,{key}", f"Bearer {key[:-1]}", f"Bearer {key}0", f"Bearer {key.upper()}",
                  "Bearer " + "x" * 60_000, "Bearer cw_" + "٣" * 16 + "_" + "0" * 64,
                  "Bearer \xff\xfe", "Bearer a\x00b"):  # fmt: skip
        sent = [(b"authorization", value.encode("utf-8", "surrogateescape"))]
        assert problem(await guarded.http.post("/api/ask", json=QUESTION, headers=sent))[0] == 401, value[:100]
    for value in (f"bearer {key}", f"BEARER  {key} "):
        assert (await guarded.http.post("/api/ask", json=QUESTION, headers={"Authorization": value})).is_success
    behind_a_proxy = {"Authorization": "Basic dXNlcjpwYXNz", "X-API-Key": key}
    assert (await guarded.http.post("/api/ask", json=QUESTION, headers=behind_a_proxy)).is_success


async def test_a_second_header_of_the_same_name_is_not_overlooked(guarded: ProtectedServer) -> None:
    other = await made_key(guarded.stores)
    for name, first, second in [
        ("x-api-key", guarded.key, other),
        ("authorization", *[f"Bearer {one}" for one in (guarded.key, other)]),
    ]:
        for pair in ((first, second), (second, first)):
            sent = [(name.encode(), one.encode()) for one in pair]
            assert problem(await guarded.http.get("/metrics", headers=sent)) == (401, "UNAUTHORIZED")


async def test_a_key_in_an_address_opens_nothing(guarded: ProtectedServer) -> None:
    """URLs are logged, stored and forwarded by proxies, so a key in one is refused."""
    for name in ("key", "api_key", "token", "access_token", "X-API-Key", "authorization", "Authorization"):
        for value in (guarded.key, f"Bearer {guarded.key}"):
            refused = await guarded.http.get("/metrics", params={name: value})
            assert problem(refused) == (401, "UNAUTHORIZED")
    cookie = {"Cookie": f"key={guarded.key}; authorization={guarded.key}"}
    assert problem(await guarded.http.get("/metrics", headers=cookie)) == (401, "UNAUTHORIZED")


@pytest.mark.parametrize("path", ["/chat/stream", "/api/v1/chat/stream"])
async def test_a_stream_ends_when_its_key_is_revoked(guarded: ProtectedServer, path: str) -> None:
    block_embedder(guarded.http)
    body: dict[str, Any] = (
        {"query": "Why?"} if path == "/chat/stream" else {"projectId": str(DEFAULT.id), "message": "Why?"}
    )
    key = await made_key(guarded.stores)
    listening = asyncio.create_task(guarded.http.post(path, json=body, headers=headers(key)))
    await wait_until_running(guarded.http, 1)
    await asyncio.sleep(0.2)
    assert not listening.done()
    identity = api_keys.key_id(key)
    assert identity
    assert await guarded.stores.keys.revoke(identity)
    last = events((await asyncio.wait_for(listening, 5)).text)[-1]
    assert last["done"]
    assert last["error"]["error_code"] == "UNAUTHORIZED"
    await wait_until_running(guarded.http, 0)


async def test_the_last_key_that_is_revoked_does_not_open_the_server_again(guarded: ProtectedServer) -> None:
    assert (await guarded.ask()).status_code == 200
    identity = api_keys.key_id(guarded.key)
    assert identity
    await guarded.stores.keys.revoke(identity)
    assert problem(await guarded.ask()) == (401, "UNAUTHORIZED"), "from its next request on"
    await asyncio.sleep(1.1)  # for so long it is remembered whether there are keys
    assert problem(await guarded.http.post("/api/ask", json=QUESTION)) == (401, "UNAUTHORIZED")


async def test_the_first_key_shuts_a_server_that_runs(home: Path, docs: Path) -> None:
    settings = settings_for(home, embedder="hashing")
    await asyncio.to_thread(ingest_folder, settings, docs)
    async with running(settings) as http, wiring.open_stores(settings) as stores:
        assert (await http.post("/api/ask", json=QUESTION)).status_code == 200
        key = await made_key(stores)
        await asyncio.sleep(1.1)
        assert problem(await http.post("/api/ask", json=QUESTION)) == (401, "UNAUTHORIZED")
        assert (await http.post("/api/ask", json=QUESTION, headers=headers(key))).status_code == 200


def test_beyond_this_machine_it_serves_only_with_a_key(citewell: Citewell, home: Path) -> None:
    for host in ("0.0.0.0", "::"):
        refused = citewell("serve", "--host", host, "--port", "0")
        assert refused.returncode == 1
        assert f"refusing to listen on {host}" in refused.stderr
        assert "citewell keys create" in refused.stderr
        assert "Traceback" not in refused.stderr
    key = citewell("keys", "create", "first").stdout.strip()
    citewell("keys", "revoke", key)
    assert citewell("serve", "--host", "0.0.0.0", "--port", "0").returncode == 1, "a revoked key guards nothing"


def test_with_a_key_it_serves_anywhere_and_tells_nobody_the_key(citewell: Citewell, home: Path) -> None:
    """Everything that can go wrong with a key goes wrong here; then the logs and responses are searched for it."""
    key = citewell("keys", "create", "first", "--scope", "admin").stdout.strip()
    revoked = citewell("keys", "create", "second").stdout.strip()
    citewell("keys", "revoke", revoked)
    forged = key[:-4] + "0000"
    told = ""
    server = serving(home, CITEWELL_LOG_LEVEL="debug", CITEWELL_EMBEDDER="hashing", CITEWELL_HOST="0.0.0.0")
    with server as address, httpx2.Client(base_url=address.replace("0.0.0.0", "127.0.0.1")) as http:
        assert http.get("/api/v1/projects", headers=headers(key)).status_code == 200
        assert http.get("/api/v1/projects").status_code == 401
        for one in (key, revoked, forged):
            for sent in (headers(one), headers(one, "x-api-key"), {"X-API-Key": f"{one}0"}, {"X-Request-ID": one},
                         {"Authorization": f"Basic {one}"}, {"Origin": one}, {"Content-Type": one},
                         {"Host": one}):  # fmt: skip
                for method, path in (
                    ("GET", f"/history/{one}"),
                    ("GET", f"/api/v1/projects?key={one}"),
                    ("GET", f"/%0a{one}"),
                    ("POST", "/api/ask"),
                    ("POST", f"/api/v1/projects/{one}/documents"),
                ):
                    told += http.request(method, path, headers=sent).text
            told += http.post("/chat", json={"session_id": one}, headers=headers(key)).text
            told += http.post("/chat", json={"query": "x", "session_id": one}, headers=headers(key)).text
    for one in (key, revoked, forged):
        secret = one.rpartition("_")[2]
        assert secret not in server.log
        assert secret not in told.replace(f"requests from {one} are not allowed", ""), "but to who sent it"
    assert "Traceback" not in server.log
    assert all(line[:2].isdigit() for line in server.log.splitlines()), "nobody writes a line of its own into the log"


def test_secrets_are_compared_in_constant_time() -> None:
    """The time of a refusal must not tell how close a guess was, so no code compares a secret with `==`."""
    assert "hmac.compare_digest" in inspect.getsource(api_keys.key_matches)
    assert "api_keys.key_matches(token, digest)" in inspect.getsource(auth)
    for module in (api_keys, auth):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Compare):
                words = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                assert not words & {"token", "digest", "kept", "text", "secret"}, ast.unparse(node)
