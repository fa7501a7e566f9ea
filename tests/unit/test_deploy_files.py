"""The Dockerfile against the package: nothing here needs Docker."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from config import load_settings

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")


def instructions(kind: str) -> list[str]:
    return re.findall(rf"^{kind} +(.+)$", DOCKERFILE, re.MULTILINE)


def test_the_image_holds_the_whole_package_and_starts_with_its_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    packaged = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    lines = [line.split() for line in instructions("COPY") if "--from" not in line]
    copied = {source for line in lines for source in line[:-1]}
    allowed = {
        line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    }
    assert {*packaged, "pyproject.toml", "README.md", "LICENSE"} <= copied
    assert copied <= allowed
    assert [path for path in copied if not (ROOT / path).exists()] == []
    assert json.loads(instructions("ENTRYPOINT")[0]) == list(
        project["project"]["scripts"]
    )
    assert any("--require-hashes" in line for line in instructions("RUN"))
    assert instructions("USER") == ["sommelier"]
    for name, value in (pair.split("=", 1) for pair in instructions("ENV")[-1].split()):
        monkeypatch.setenv(name, value)
    settings = load_settings(env_file=None)
    assert (
        settings.database_url.get_secret_value()
        == "sqlite+aiosqlite:////data/sommelier.sqlite3"
    )
    assert instructions("EXPOSE") == [str(settings.http_port)]
