"""What import-linter cannot see: a module that is no package, and what importing costs."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAVY = {"openai", "langfuse", "telegram", "sqlalchemy", "alembic", "rich.console"}


def test_importing_the_agent_loads_no_client() -> None:
    code = f"import agent, sys; print(sorted(set(sys.modules) & {HEAVY!r}))"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"


def test_looking_something_up_loads_neither_telegram_nor_the_api() -> None:
    code = (
        "import sys, bot.resources, bot.commands.research;"
        "print({'telegram', 'fastapi', 'openai'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
