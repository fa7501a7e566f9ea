"""What import-linter cannot see: a module that is no package, and what importing costs."""

import ast
import inspect
import subprocess
import sys
from collections import Counter, defaultdict
from graphlib import TopologicalSorter
from pathlib import Path
from typing import cast

import grimp
import pytest

from bot.resources import Repositories
from db.engine import Sessions

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        ("agent", "openai langfuse telegram sqlalchemy alembic rich.console"),
        ("bot.__main__", "telegram sqlalchemy pydantic openai httpx"),
        ("bot.console", "fastapi starlette uvicorn"),
        ("bot.resources", "telegram fastapi openai"),
    ],
)
def test_nothing_heavy_is_imported_where_it_is_not_needed(
    modules: str, heavy: str
) -> None:
    code = (
        f"import sys, {modules}; print(sorted(set({heavy.split()}) & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "[]\n"


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = grimp.build_graph("agent", "bot", "db")
    imports = {
        name: graph.find_modules_directly_imported_by(name) for name in graph.modules
    }
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the modules
    packages = defaultdict[str, set[str]](set)
    for name, imported in imports.items():
        packages[package_of(name)] |= {package_of(other) for other in imported} - {
            package_of(name)
        }
    TopologicalSorter(packages).prepare()


def package_of(module: str) -> str:
    """The package of a module in `agent`, `bot` or `db`, or a module that is in none of these."""
    return ".".join(module.split(".")[:2])


def test_the_name_of_a_class_stands_for_one_thing() -> None:
    files = [
        file for room in ("agent", "bot", "db") for file in (ROOT / room).rglob("*.py")
    ]
    trees = [ast.parse(file.read_text("utf-8")) for file in files]
    names = Counter(
        node.name
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    )
    shared = {name for name, count in names.items() if count > 1}
    assert shared <= {"Product"}  # as the exports of two kinds of shops call it


def test_repositories_of_handlers_cannot_write() -> None:
    writes = ("_write(", "_upsert(", "sessions.begin(", "insert_new(", "upsert(")
    sources = {
        name: inspect.getsource(type(repository))
        for name, repository in vars(Repositories(cast("Sessions", None))).items()
    }
    assert len(sources) > 5
    found = {
        name
        for name, source in sources.items()
        if any(call in source for call in writes)
    }
    assert found == set()
