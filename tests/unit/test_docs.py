"""What the docs name is there: paths, links, commands and settings."""

import re
from pathlib import Path

from typer.testing import CliRunner

from bot.__main__ import app
from config import Settings

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / ".env.example"]
HISTORY = {"CHANGELOG.md"}
"""Pages that also name what is gone."""
PLACES = ("agent", "bot", "db", "docs", "migrations", "tests", "benchmarks", "requirements")
PATH = re.compile(rf"`((?:{'|'.join(PLACES)})/[\w./-]*)`")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")
COMMAND = re.compile(r"(?:bin/|`|\n|\$ )sommelier ((?:[a-z]+ ?)+)")
VARIABLE = re.compile(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)[`=]")
OF_OTHERS = {"PYTHON_IMAGE", "POSTGRES_PASSWORD"}


def test_what_the_docs_name_is_there() -> None:
    settings = {name.upper() for name in Settings.model_fields} | OF_OTHERS
    missing: list[tuple[str, str]] = []
    for page in PAGES:
        text = page.read_text("utf-8")
        gone = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
        if page.name not in HISTORY:
            gone += [path for path in PATH.findall(text) if not (ROOT / path).exists()]
            gone += sorted(set(VARIABLE.findall(text)) - settings)
            commands = {tuple(command.split()[:2]) for command in COMMAND.findall(text)}
            gone += [" ".join(command) for command in commands if not exists(command)]
        missing += [(page.name, name) for name in gone]
    assert missing == []


def exists(command: tuple[str, ...]) -> bool:
    """Tell if the command line has a command, which may have arguments."""
    return CliRunner().invoke(app, [*command, "--help"]).exit_code == 0
