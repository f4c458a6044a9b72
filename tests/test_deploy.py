"""The files in `deploy/` agree with the project: commands, options, ports, variables, paths, packages and probes."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.routing import iter_route_contexts

from citewell.cli import main
from citewell.http.app import create_app
from citewell.settings import Settings, variable
from tests.conftest import settings_for

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
VARIABLES = {variable(name): name for name in Settings.model_fields}
FORM_BYTES = 100_000  # what the server allows a form around its file

Instruction = tuple[str, str]


def instructions(text: str) -> list[Instruction]:
    """The instructions of a Dockerfile with their arguments, lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in joined.splitlines() if line.strip()]


def words(argument: str) -> list[str]:
    """An argument in either form, the JSON list or the shell's words."""
    given: list[str] = json.loads(argument) if argument.startswith("[") else shlex.split(argument)
    return given


DOCKERFILE = instructions((DEPLOY / "Dockerfile").read_text(encoding="utf-8"))
IMAGE = DOCKERFILE[max(index for index, (name, _) in enumerate(DOCKERFILE) if name == "FROM") :]  # the last stage
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
MANIFESTS: list[dict[str, Any]] = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))


def of(name: str, stage: list[Instruction] = DOCKERFILE) -> list[str]:
    return [argument for one, argument in stage if one == name]


def image_variables() -> dict[str, str]:
    pairs = (pair.partition("=") for argument in of("ENV", IMAGE) for pair in shlex.split(argument))
    return {name: value for name, _, value in pairs}


def manifests(kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in MANIFESTS if one["kind"] == kind}


def containers() -> dict[str, dict[str, Any]]:
    """The container of each Deployment."""
    return {
        name: container
        for name, one in manifests("Deployment").items()
        for container in one["spec"]["template"]["spec"]["containers"]
    }


def commands() -> Iterator[list[str]]:
    """Whatever the containers run, without `citewell`."""
    assert words(of("ENTRYPOINT", IMAGE)[0]) == ["citewell"]
    yield words(of("CMD", IMAGE)[0])
    yield from (SERVICES[name]["command"] for name in ("api", "worker"))
    yield from (container["args"] for container in containers().values())


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    app = create_app(settings_for(tmp_path_factory.mktemp("home"), embedder="hashing"))
    return {one.path or "" for one in iter_route_contexts(app.routes) if "GET" in (one.methods or ())}


# The image


def test_every_command_exists_with_its_options() -> None:
    found = list(commands())
    assert len(found) == 5
    for name, *options in found:
        command = main.commands[name]
        known = {option for parameter in command.params for option in parameter.opts}
        assert set(options) <= known, name


def test_nothing_that_the_image_copies_is_missing_or_ignored() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert "*" in lines
    copied = {source for argument in of("COPY") if "--from=" not in argument for source in argument.split()[:-1]}
    assert {source.removeprefix("./") for source in copied} == allowed
    assert all((ROOT / source).exists() for source in allowed)


def test_what_the_package_is_built_from_is_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    copied = {source for argument in of("COPY") for source in argument.split()[:-1]}
    needed = {
        project["readme"],
        *(name.partition("/")[0] for name in project["license-files"]),
        "pyproject.toml",
        "src",
    }
    assert needed <= copied


def test_every_package_is_pinned_by_hash_and_nothing_else_is_installed() -> None:
    installs = [argument for argument in of("RUN") if "install" in argument and "pip" in argument]
    assert len(installs) == 2
    packages, ours = installs
    (lock,) = re.findall(r"--require-hashes -r (\S+)", packages)
    assert {"--no-deps", "--no-build-isolation", "."} <= set(ours.split())
    requirements = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", "")
    assert "://" not in requirements
    for line in requirements.splitlines():
        assert re.fullmatch(r"[\w.\[\],-]+==\S+( ; [^#]+?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*", line), line


def test_the_image_has_all_that_a_setting_can_ask_for() -> None:
    extras: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    (server,) = extras["server"]
    in_image = set(re.findall(r"[\w-]+", server.partition("[")[2]))
    assert in_image == set(extras) - {"build", "dev", "server"}
    lock = (ROOT / "requirements-server.lock").read_text(encoding="utf-8")
    tested = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    for name in sorted(in_image | {"build"}):
        for requirement in extras[name]:
            distribution = re.match(r"[\w.-]+", requirement)
            assert distribution
            pinned = rf"^{re.escape(distribution[0])}==(\S+)"
            assert re.findall(pinned, lock, re.MULTILINE), f"run `make lock`: {distribution[0]}"
            assert set(re.findall(pinned, lock, re.MULTILINE)) == set(re.findall(pinned, tested, re.MULTILINE))


def test_the_image_runs_as_a_user_who_is_not_root_and_writes_to_one_folder() -> None:
    (user,) = of("USER", IMAGE)
    assert all(int(part) >= 10_000 for part in user.split(":"))
    home = image_variables()["CITEWELL_HOME"]
    assert of("VOLUME", IMAGE) == [home]
    assert f"install -d -m 0700 -o citewell -g citewell {home}" in of("RUN", IMAGE)[0]
    assert f"--uid {user.partition(':')[0]} " in of("RUN", IMAGE)[0]


def test_the_image_listens_where_it_says_and_is_probed_there(paths: set[str]) -> None:
    variables = image_variables()
    assert (variables["CITEWELL_HOST"], variables["CITEWELL_PORT"]) == ("0.0.0.0", "8000")
    assert of("EXPOSE", IMAGE) == [variables["CITEWELL_PORT"]]
    (check,) = of("HEALTHCHECK", IMAGE)
    program = json.loads(check[check.index("[") :])[-1]
    compile(program, "HEALTHCHECK", "exec")
    (probed,) = re.findall(r"'GET', '([^']+)'", program)
    assert probed in paths
    assert "CITEWELL_PORT" in program


def test_both_stages_start_from_the_same_plain_image_with_a_python_that_will_do() -> None:
    bases = {argument.split()[0] for argument in of("FROM")}
    assert len(bases) == 1
    found = re.fullmatch(r"python:3\.(\d+)-slim", bases.pop())
    assert found
    assert int(found[1]) >= 11


# Variables


NOT_OURS = {"PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}


def test_every_variable_is_a_setting_with_a_valid_value() -> None:
    given: list[dict[str, str]] = [
        image_variables(),
        SERVICES["api"]["environment"],
        SERVICES["worker"]["environment"],
        manifests("ConfigMap")["citewell"]["data"],
        manifests("Secret")["citewell"]["stringData"],
    ]
    for values in given:
        assert set(values) <= VARIABLES.keys() | NOT_OURS
        ours = {VARIABLES[name]: filled(value) for name, value in values.items() if name not in NOT_OURS}
        Settings.model_validate({name: value for name, value in ours.items() if value})


def filled(value: str) -> str:
    """What Compose makes of a value where the environment has nothing: the default after ":-"."""
    return re.sub(r"\$\{\w+(?::-([^}]*)|[^}]*)\}", r"\1", value)


def test_every_process_has_the_same_database_and_index() -> None:
    for names in (SERVICES["api"]["environment"], SERVICES["worker"]["environment"]):
        assert {"DATABASE_URL", "QDRANT_URL", "QDRANT_API_KEY"} <= set(names)
    assert {"DATABASE_URL", "QDRANT_URL"} <= set(manifests("Secret")["citewell"]["stringData"])
    for container in containers().values():
        assert container["envFrom"] == [{"configMapRef": {"name": "citewell"}}, {"secretRef": {"name": "citewell"}}]


def test_uploads_have_one_limit_everywhere() -> None:
    limit = Settings.model_fields["max_upload_bytes"].default
    assert SERVICES["api"]["environment"]["CITEWELL_MAX_UPLOAD_BYTES"] == str(limit)
    assert manifests("ConfigMap")["citewell"]["data"]["CITEWELL_MAX_UPLOAD_BYTES"] == str(limit)
    nginx = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    caddy = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
    assert re.findall(r"client_max_body_size (\d+);", nginx) == [str(limit + FORM_BYTES)]
    assert re.findall(r"max_size (\d+)\n", caddy) == [str(limit + FORM_BYTES)]


def test_streams_are_alive_for_the_proxies() -> None:
    interval = Settings.model_fields["heartbeat_seconds"].default
    nginx = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    (seconds,) = re.findall(r"proxy_read_timeout (\d+)s;", nginx)
    assert int(seconds) > 3 * interval


# Compose


def test_compose_s_containers_are_locked_down() -> None:
    for name in ("api", "worker"):
        service = SERVICES[name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["tmpfs"] == ["/tmp"]
        assert service["build"] == {"context": "..", "dockerfile": "deploy/Dockerfile"}
    assert SERVICES["worker"]["healthcheck"] == {"disable": True}


def test_compose_waits_for_healthy_stores_and_publishes_nothing_to_others() -> None:
    for name in ("api", "worker"):
        assert SERVICES[name]["depends_on"] == {
            store: {"condition": "service_healthy"} for store in ("database", "qdrant")
        }
    for store in ("database", "qdrant"):
        assert SERVICES[store]["healthcheck"]["test"][0] == "CMD"
        assert "ports" not in SERVICES[store]
    for port in SERVICES["api"]["ports"]:
        address, _, inside = port.split(":")
        assert (address, inside) == ("127.0.0.1", image_variables()["CITEWELL_PORT"])
    used = {volume.partition(":")[0] for one in SERVICES.values() for volume in one.get("volumes", [])}
    assert used == set(COMPOSE["volumes"])


def test_compose_reaches_its_own_services_with_secrets_that_have_no_default() -> None:
    environment = SERVICES["api"]["environment"]
    assert "@database/" in environment["DATABASE_URL"]
    assert environment["QDRANT_URL"] == "http://qdrant:6333"
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    for secret in ("POSTGRES_PASSWORD", "QDRANT_API_KEY"):
        assert set(re.findall(rf"\$\{{{secret}(..)", text)) == {":?"}
    database = SERVICES["database"]["environment"]
    assert f"//{database['POSTGRES_USER']}:" in environment["DATABASE_URL"]
    assert environment["DATABASE_URL"].endswith(f"/{database['POSTGRES_DB']}")


def test_images_have_plain_names_and_versions() -> None:
    own = {"citewell"}
    images = {one["image"] for one in SERVICES.values()} | {one["image"] for one in containers().values()}
    for image in images - own:
        name, _, version = image.partition(":")
        assert re.fullmatch(r"[a-z0-9-]+(/[a-z0-9-]+)?", name), image  # no host
        assert re.search(r"\d", version), image
    (qdrant,) = (image for image in images if image.startswith("qdrant/"))
    numbers = re.findall(r"\d+", qdrant)
    assert (int(numbers[0]), int(numbers[1])) >= (1, 19), "the oldest that has what the index needs"


# Kubernetes


def test_the_probes_ask_endpoints_that_exist(paths: set[str]) -> None:
    api = containers()["citewell-api"]
    (port,) = api["ports"]
    assert str(port["containerPort"]) == image_variables()["CITEWELL_PORT"]
    asked = {probe: api[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {one["path"] for one in asked.values()} <= paths
    assert {one["port"] for one in asked.values()} == {port["name"]}
    assert asked["readinessProbe"]["path"] == "/ready"
    # A database that is down is no reason to restart every server.
    assert asked["livenessProbe"]["path"] not in ("/ready", "/health")


def test_pods_may_do_little() -> None:
    volumes = of("VOLUME", IMAGE)
    for name, deployment in manifests("Deployment").items():
        pod = deployment["spec"]["template"]["spec"]
        user, group = (int(part) for part in of("USER", IMAGE)[0].split(":"))
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False, "the service is called citewell: CITEWELL_PORT would be its address"
        context = pod["securityContext"]
        assert (context["runAsNonRoot"], context["runAsUser"], context["fsGroup"]) == (True, user, group)
        container = containers()[name]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert [mount["mountPath"] for mount in container["volumeMounts"]] == [*volumes, "/tmp"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}
        assert pod["terminationGracePeriodSeconds"] >= 20


def test_the_service_and_the_disruption_budget_mean_the_servers() -> None:
    deployments = manifests("Deployment")
    labels = deployments["citewell-api"]["spec"]["template"]["metadata"]["labels"]
    service = manifests("Service")["citewell"]["spec"]
    budget = manifests("PodDisruptionBudget")["citewell-api"]["spec"]
    assert service["selector"] == budget["selector"]["matchLabels"] == labels
    assert deployments["citewell-worker"]["spec"]["template"]["metadata"]["labels"] != labels
    assert service["ports"][0]["targetPort"] == containers()["citewell-api"]["ports"][0]["name"]
    assert deployments["citewell-api"]["spec"]["replicas"] > budget["maxUnavailable"]
    for deployment in deployments.values():
        spec = deployment["spec"]
        assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]


# The sizing guide

SIZES = {"core hours": 1.0, "MB": 1e6, "GB": 1e9, "TB": 1e12, "million": 1e6, "billion": 1e9}


def test_the_sizing_guide_s_tables_follow_from_its_formulas() -> None:
    page = (ROOT / "docs" / "sizing.md").read_text(encoding="utf-8")
    w, d, t, payload, m = 4.5, 384, 150, 6000, 16
    parts = {
        "4·w·d": 4 * w * d, "w·d": w * d, "w·d/8": w * d / 8, "8·m": 8 * m, "8·t": 8 * t, "500 + 4·t": 500 + 4 * t,
        "P": payload,
    }  # fmt: skip
    shown = dict(re.findall(r"^\| [^|]+ \| `([^`]+)` \| ([\d,]+) \|$", page, re.MULTILINE))
    assert {formula: float(value.replace(",", "")) for formula, value in shown.items()} == parts
    vectors, graph, words, indexes = parts["4·w·d"], parts["8·m"], parts["8·t"], parts["500 + 4·t"]
    each = (
        vectors,
        parts["w·d"] + graph + words + indexes,
        vectors + parts["w·d"] + graph + words + indexes + payload,
        vectors + 2 * 2400 + 2800,
        1 / 5 / 3600,
        257_382 / 838,
    )
    rows = [row for row in page.splitlines() if re.match(r"\| [\d,]{6,} \|", row)]
    assert len(rows) == 4
    for row in rows:
        chunks, *values = [cell.strip() for cell in row.strip("|").split("|")]
        for value, one in zip(values, each, strict=True):
            number, _, unit = value.partition(" ")
            claimed = float(number.replace(",", "")) * SIZES[unit]
            assert claimed == pytest.approx(int(chunks.replace(",", "")) * one, rel=0.04), (row, value)


# The checks themselves


def test_the_reader_of_dockerfiles_joins_lines_and_drops_comments() -> None:
    text = "# a\nFROM x AS y\nRUN a && \\\n    b\n# c\nENV A=1 \\\n    B=2\n"
    assert instructions(text) == [("FROM", "x AS y"), ("RUN", "a && b"), ("ENV", "A=1 B=2")]
