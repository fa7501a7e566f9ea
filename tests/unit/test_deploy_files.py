"""What is written for those who deploy, against the code: nothing here needs Docker."""

import asyncio
import configparser
import json
import re
import subprocess
import sys
import tomllib
from datetime import timedelta
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped, unused-ignore]
from typer.testing import CliRunner

from bot.__main__ import app
from bot.http.server import WEBHOOK_PATH
from bot.metrics import Metrics
from config import Settings, load_settings
from tests.serving import serving

ROOT = Path(__file__).parents[2]
DEPLOY = (ROOT / "docs/deploy.md").read_text("utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]

SETTINGS = {variable.name: variable.value for variable in Settings().variables()}
OF_OTHERS = {
    "PYTHON_IMAGE",
    "POSTGRES_PASSWORD",
    "POSTGRES_USER",
    "POSTGRES_DB",
    "PASSWORD",
    "HOST",
}
CLOSING = timedelta(seconds=4 + 5 * 4)
"""The HTTP server's 4 s, and 5 s each for polling, tracing, Telegram and the database."""

ANSWERED = {
    "POSTGRES_PASSWORD": "abc123",
    "WEBHOOK_URL": "https://bot.example.com",
    "WEBHOOK_SECRET": "0123456789abcdef0123",
}
"""What a person writes into `.env` for `compose.yaml`."""


def instructions(kind: str) -> list[str]:
    return re.findall(rf"^{kind} +(.+)$", DOCKERFILE, re.MULTILINE)


def image_settings() -> dict[str, str]:
    final_stage = instructions("ENV")[-1]
    pairs = dict(pair.split("=", 1) for pair in final_stage.split())
    return {name: value for name, value in pairs.items() if name != "PATH"}


def interpolated(value: str) -> str:
    return re.sub(r"\$\{(\w+)[^}]*\}", lambda found: ANSWERED[found[1]], value)


def copied() -> list[str]:
    lines = [line.split() for line in instructions("COPY") if "--from" not in line]
    return [source for line in lines for source in line[:-1]]


def reaches_the_builder(path: str) -> bool:
    """Docker's rule: the last pattern that fits a path, or a folder above it, decides."""
    ignored = False
    for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!")
        if pattern.startswith("**/"):
            fits = any(fnmatch(part, pattern[3:]) for part in Path(path).parts)
        else:
            above = [str(Path(*Path(path).parts[: n + 1])) for n in range(len(Path(path).parts))]
            fits = any(fnmatch(each, pattern) for each in above)
        if fits:
            ignored = not line.startswith("!")
    return not ignored


def unit() -> configparser.ConfigParser:
    block = re.search(r"```ini\n(.*?)```", DEPLOY, re.DOTALL)
    assert block
    parser = configparser.ConfigParser()
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(block[1])
    return parser


def test_every_variable_that_is_named_is_a_setting() -> None:
    in_backticks = re.findall(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`", DEPLOY)
    assigned = re.findall(r"^#? *([A-Z][A-Z0-9_]+)=", DEPLOY, re.MULTILINE)
    composed = [name for each in SERVICES.values() for name in each.get("environment", {})]
    named = {*in_backticks, *assigned, *composed, *image_settings()}
    assert {"RETENTION_DAYS", "WEBHOOK_SECRET", "HTTP_PORT"} <= named
    assert named - set(SETTINGS) - OF_OTHERS == set()


def test_the_image_starts_with_its_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in image_settings().items():
        monkeypatch.setenv(name, value)
    settings = load_settings(env_file=None)
    assert settings.database.url.get_secret_value() == "sqlite+aiosqlite:////data/sommelier.sqlite3"
    assert instructions("VOLUME") == instructions("WORKDIR")[-1:] == ["/data"]
    assert instructions("EXPOSE") == [str(settings.http.port)]


@pytest.mark.parametrize("service", ["migrate", "bot"])
def test_the_services_settings_are_valid(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (image_settings() | SERVICES[service]["environment"]).items():
        monkeypatch.setenv(name, interpolated(value))
    settings = load_settings(env_file=None)
    url = "postgresql+psycopg://sommelier:abc123@postgres/sommelier"
    assert settings.database.url.get_secret_value() == url
    assert (settings.http.webhook_url, settings.http.port) == ("https://bot.example.com", 8080)


def test_the_bots_wait_for_the_upgrade_of_the_tables() -> None:
    assert SERVICES["bot"]["depends_on"]["migrate"] == {
        "condition": "service_completed_successfully"
    }
    assert SERVICES["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert SERVICES["migrate"]["command"] == ["db", "upgrade"]
    assert "restart" not in SERVICES["migrate"]


def test_every_replica_has_a_port_that_the_load_balancer_knows() -> None:
    (published,) = SERVICES["bot"]["ports"]
    host, ports, inside = published.split(":")
    first, last = map(int, ports.split("-"))
    assert last - first + 1 == SERVICES["bot"]["deploy"]["replicas"] == 2
    assert inside == SERVICES["bot"]["environment"]["HTTP_PORT"] == image_settings()["HTTP_PORT"]
    assert f"reverse_proxy {host}:{first} {host}:{last} {{" in DEPLOY


def test_the_replicas_share_what_telegram_takes() -> None:
    bot = SERVICES["bot"]
    share = int(bot["environment"]["TELEGRAM_MESSAGES_PER_SECOND"])
    assert share * bot["deploy"]["replicas"] == 30
    assert f"\nTELEGRAM_MESSAGES_PER_SECOND={share}\n" in DEPLOY


def test_postgres_keeps_its_data_in_a_volume() -> None:
    (mount,) = SERVICES["postgres"]["volumes"]
    assert mount.split(":")[0] in COMPOSE["volumes"]


def test_what_is_copied_is_there_and_reaches_the_builder() -> None:
    assert [path for path in copied() if not (ROOT / path).exists()] == []
    assert [path for path in copied() if not reaches_the_builder(path)] == []


def test_the_whole_package_is_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    packaged = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    described = [project["project"]["readme"], *project["project"]["license-files"]]
    assert {*packaged, *described, "pyproject.toml"} <= set(copied())
    assert json.loads(instructions("ENTRYPOINT")[0]) == list(project["project"]["scripts"])


@pytest.mark.parametrize(
    "path",
    [".env", ".env.example", ".git/config", "db/.env", "sommelier.sqlite3", "db/my.sqlite3-wal"],
)
def test_no_secret_and_no_data_reaches_the_builder(path: str) -> None:
    assert not reaches_the_builder(path)


def test_the_image_does_not_run_as_root() -> None:
    (user,) = instructions("USER")
    assert re.search(rf"useradd --uid 10001 .*\b{user}\b", DOCKERFILE)


def test_the_locked_requirements_are_installed_by_their_hashes() -> None:
    (install,) = (line for line in instructions("RUN") if "-r " in line)
    assert "--require-hashes" in install
    locked = (ROOT / "requirements/main.txt").read_text("utf-8")
    assert len(re.findall(r"^\S+==", locked, re.MULTILINE)) <= locked.count("--hash=sha256:")


async def test_the_health_check_tells_a_bot_that_answers_from_one_that_does_not() -> None:
    (check,) = re.findall(r"HEALTHCHECK.*?CMD (\[.*\])", DOCKERFILE)
    command = [sys.executable, *json.loads(check)[1:]]

    def healthy(port: int) -> bool:
        environment = {"HTTP_PORT": str(port)}
        ran = subprocess.run(command, env=environment, capture_output=True, check=False)
        return ran.returncode == 0

    async with serving() as running:
        assert await asyncio.to_thread(healthy, running.port)
    assert not await asyncio.to_thread(healthy, running.port)


def test_images_are_named_by_tag_and_digest() -> None:
    bases = [*re.findall(r"^ARG \w+_IMAGE=(.+)$", DOCKERFILE, re.MULTILINE)]
    bases.append(SERVICES["postgres"]["image"])
    named = re.compile(r"\w+:[\d.]+[\w-]*@sha256:[0-9a-f]{64}")
    assert len(bases) == 2
    assert [each for each in bases if not named.fullmatch(each)] == []
    assert {each.split()[0] for each in instructions("FROM")} == {"${PYTHON_IMAGE}"}


def test_the_service_may_touch_its_own_folder_and_the_network_alone() -> None:
    service = unit()["Service"]
    assert (service["UMask"], service["StateDirectoryMode"]) == ("0077", "0700")
    assert (service["CapabilityBoundingSet"], service["AmbientCapabilities"]) == ("", "")
    assert service["SystemCallFilter"] == "@system-service"
    assert service["ProtectSystem"] == "strict"
    for name in ("bot", "migrate"):
        assert SERVICES[name]["cap_drop"] == ["ALL"]
        assert SERVICES[name]["read_only"] is True


def test_whoever_stops_the_bot_waits_for_its_turns_to_end() -> None:
    needed = Settings().updates.shutdown_seconds + CLOSING.total_seconds()
    docker_run = re.search(r"--stop-timeout (\d+)", DEPLOY)
    assert docker_run
    given = (
        unit()["Service"]["TimeoutStopSec"],
        SERVICES["bot"]["stop_grace_period"].removesuffix("s"),
        docker_run[1],
    )
    assert [int(each) >= needed for each in given] == [True, True, True]


def test_systemd_restarts_a_crash_and_not_a_wrong_setting() -> None:
    service = unit()["Service"]
    assert (service["KillSignal"], service["KillMode"]) == ("SIGTERM", "mixed")
    assert (service["Restart"], service["RestartPreventExitStatus"]) == ("always", "2")


def test_every_command_that_is_named_exists() -> None:
    named = set(re.findall(r"(?:bin/|`|\n|bot |sommelier )sommelier ((?:[a-z]+ ?)+)", DEPLOY))
    commands = {tuple(each.split()) for each in named}
    assert {("doctor",), ("run",), ("db", "upgrade"), ("updates", "retry")} <= commands
    unknown = [c for c in commands if CliRunner().invoke(app, [*c[:2], "--help"]).exit_code]
    assert unknown == []


def test_every_metric_that_is_named_is_served() -> None:
    served = set(re.findall(r"^# TYPE (\w+)", Metrics().text().decode(), re.MULTILINE))
    named = set(re.findall(r"`(sommelier_[a-z_]+)", DEPLOY))
    assert len(named) == 8
    assert named - served == set()


def test_every_setting_is_quoted_with_its_default() -> None:
    quoted = re.findall(r"`([A-Z_]+)` \(([\d.]+)\)", DEPLOY)
    assert {name for name, _ in quoted} == {
        "SHUTDOWN_SECONDS",
        "BURST_SECONDS",
        "UPDATE_MAX_TRIES",
        "RETENTION_DAYS",
    }
    for name, value in quoted:
        assert SETTINGS[name] == float(value)


def test_the_webhook_is_where_the_load_balancer_sends_it() -> None:
    assert f"handle {WEBHOOK_PATH} {{" in DEPLOY
    assert f"`POST {WEBHOOK_PATH}`" in DEPLOY


def test_the_files_that_are_linked_exist() -> None:
    for page in (ROOT / "docs/deploy.md", ROOT / "docs/decisions/0002-inbox-and-outbox.md"):
        links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))
        assert [link for link in links if not (page.parent / link).exists()] == []
