"""What the docs name is there: paths, links, commands, settings, identifiers and tables."""

import ast
import csv
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from typer.testing import CliRunner

from bot.__main__ import app
from config import Settings
from db.models import Base

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / ".env.example"]
HISTORY = {"CHANGELOG.md"}
"""Pages that also name what is gone."""
PLACES = (
    "agent",
    "bot",
    "db",
    "docs",
    "migrations",
    "tests",
    "benchmarks",
    "requirements",
)
PATH = re.compile(rf"`((?:{'|'.join(PLACES)})/[\w./-]*)`")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")
COMMAND = re.compile(r"(?:bin/|`|\n|\$ )sommelier ((?:[a-z]+ ?)+)")
VARIABLE = re.compile(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)[`=]")
OF_OTHERS = {"PYTHON_IMAGE", "POSTGRES_PASSWORD", "TEST_POSTGRES_URL"}
SOURCES = (
    "*.py",
    "*.toml",
    "*.html",
    "*.jsonl",
    "*.yaml",
    "*.service",
    "*.pot",
    "Makefile",
)
SOURCE_FOLDERS = (
    "agent",
    "bot",
    "db",
    "migrations",
    "tests",
    "benchmarks",
    "languages",
    "deploy",
)
FENCED = re.compile(r"```.*?```", re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
WORD = re.compile(r"[A-Za-z]\w*")
NAME = re.compile(
    r"(?<![\w/-])"
    r"(?:[a-z]\w*_\w+|[A-Z][a-z]+(?:[A-Z]\w*)+|[A-Za-z]\w*(?=\())"
    r"(?![\w/-])"
)
"""What is certainly a name of code: `snake_case`, `CamelCase`, `called()`."""
MEMBER = re.compile(r"\b([A-Z]\w+)(?:\([^()]*\))?\.([a-z]\w*)")
"""A class and its member: `Stop.ask`, `Stop().ask()`."""
TABLE = re.compile(r"\btables? `\[*([a-z_.]+)\]*`|`([a-z_.]+)` tables?\b")
ANCHOR = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")
NAMES_OF_OTHERS = {
    "HTTPXRequest",
    "AIORateLimiter",
    "num_ctx",
    "pg_dump",
    "MyDeps",
    "your_bot",
}
"""Names of other programs, and of what a reader makes."""


def test_files_that_the_docs_name_exist() -> None:
    settings = {name.upper() for name in Settings.model_fields} | OF_OTHERS
    missing: list[tuple[str, str]] = []
    for page in PAGES:
        text = page.read_text("utf-8")
        gone = [
            link for link in LINK.findall(text) if not (page.parent / link).exists()
        ]
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


def test_the_tests_of_the_source_documents_rules_are_there() -> None:
    page = (ROOT / "docs/decisions/0015-the-source-documents.md").read_text("utf-8")
    sources = "\n".join(
        file.read_text("utf-8") for file in (ROOT / "tests").rglob("test_*.py")
    )
    named = set(re.findall(r"`(test_\w+)`", page))
    assert sorted(name for name in named if f"def {name}(" not in sources) == []
    rows = [line for line in page.splitlines() if line.startswith("| R-")]
    for row in rows:  # the test of a rule names it
        rule = row[2:7].replace("-", "").lower()
        assert f"test_{rule}" in row or f"_{rule}" in row
    assert {row[2:7] for row in rows} == {f"R-00{number}" for number in range(1, 8)}


def test_the_docs_count_what_comes_with_the_bot_as_it_is() -> None:
    with (ROOT / "db/starter/wines.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    wines = len({row["id"] for row in rows})  # a row is an offer
    countries = len({row["country"] for row in rows})
    articles = len([*ROOT.glob("db/starter/documents/**/*.md")])
    conversations = ROOT / "agent/evals/conversations.jsonl"
    played = len(conversations.read_text("utf-8").splitlines())
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert f"{wines} wines from {countries} countries" in readme
    assert f"{articles} articles" in readme
    assert f"{played} conversations" in readme
    page = (ROOT / "docs/wines-and-documents.md").read_text("utf-8")
    assert (
        f"has {wines} wines with indicative prices (≈) and {articles} articles" in page
    )


def read_sources() -> Mapping[Path, str]:
    folders = [ROOT / folder for folder in SOURCE_FOLDERS]
    files = [
        file for folder in folders for glob in SOURCES for file in folder.rglob(glob)
    ]
    files += [file for glob in SOURCES for file in ROOT.glob(glob)]
    return {file: file.read_text("utf-8") for file in files if file != Path(__file__)}


def read_page(page: Path) -> str:
    return FENCED.sub("", page.read_text("utf-8"))


def test_every_name_of_code_in_the_docs_is_in_the_code() -> None:
    sources = read_sources()
    known = {
        word for text in sources.values() for word in WORD.findall(text)
    } | NAMES_OF_OTHERS
    known |= {word for file in sources for word in WORD.findall(file.name)}
    members = find_members(sources)
    missing: list[tuple[str, str]] = []
    for page in PAGES:
        if page.name in HISTORY:
            continue
        for code in CODE.findall(read_page(page)):
            missing += [
                (page.name, name) for name in NAME.findall(code) if name not in known
            ]
            missing += [
                (page.name, code)
                for owner, member in MEMBER.findall(code)
                if owner in members and member not in members[owner]
            ]
    assert missing == []


def find_members(sources: Mapping[Path, str]) -> Mapping[str, set[str]]:
    """Return the names of the members of each class, inherited ones included, by its name."""
    members: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for file, text in sources.items():
        if file.suffix != ".py":
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                members.setdefault(node.name, set()).update(member_names(node))
                names = {base.id for base in node.bases if isinstance(base, ast.Name)}
                bases.setdefault(node.name, set()).update(names)
    inherited = {name: set(own) for name, own in members.items()}
    for _ in range(4):  # no class here has more ancestors
        for name, parents in bases.items():
            for parent in parents:
                inherited[name] |= inherited.get(parent, set())
    return inherited


def member_names(node: ast.ClassDef) -> Iterator[str]:
    """Yield the names of the methods and attributes of a class, those of `self` included."""
    for child in ast.walk(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child.name
        elif isinstance(child, ast.Name | ast.Attribute) and isinstance(
            child.ctx, ast.Store
        ):
            yield child.id if isinstance(child, ast.Name) else child.attr


def test_every_table_that_the_docs_name_is_there() -> None:
    known = set(Base.metadata.tables)
    for file in [*ROOT.glob("*.toml"), *ROOT.glob("[abdlm]*/**/*.toml")]:
        known |= set(tomllib.loads(file.read_text("utf-8")))
    missing: list[tuple[str, str]] = []
    for page in PAGES:
        named = [one or other for one, other in TABLE.findall(read_page(page))]
        missing += [
            (page.name, name) for name in named if name.split(".")[0] not in known
        ]
    assert missing == []


def test_every_heading_that_the_docs_link_to_is_there() -> None:
    missing: list[tuple[str, str]] = []
    for page in PAGES:
        for path, anchor in ANCHOR.findall(page.read_text("utf-8")):
            target = page.parent / path if path else page
            headings = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.MULTILINE)
            anchors = {
                re.sub(r"[^\w -]", "", name.lower()).replace(" ", "-")
                for name in headings
            }
            if anchor not in anchors:
                missing.append((page.name, f"{path}#{anchor}"))
    assert missing == []
