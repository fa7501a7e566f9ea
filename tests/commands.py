"""Run `sommelier` in a subprocess or in this process, with an isolated environment."""

import json
import logging
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from typer.testing import CliRunner

from bot.__main__ import main
from bot.commands.output import NOISY_LOGGERS
from tests.databases import together
from tests.processes import Process

ROOT = Path(__file__).parents[1]


def empty_home(home: Path) -> dict[str, str]:
    """Return an environment without settings and data, with an empty home."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "PYTHONPATH": str(ROOT),
        "SSL_CERT_DIR": str(home),
        "LLM_LOCAL_PORTS": "none",
    }


@pytest.fixture(scope="session")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder that a first start has filled. It is slow, so all workers share it."""
    with together(tmp_path_factory, "stocked") as shared:
        if not (shared / "stocked").exists():
            (shared / "stocking").mkdir()
            done = sommelier(
                "documents", "list", environment=empty_home(shared / "stocking")
            )
            assert done.returncode == 0, done.stderr
            (shared / "stocking").rename(shared / "stocked")
    return shared / "stocked" / "data"


@pytest.fixture
def environment(tmp_path: Path, stocked: Path) -> dict[str, str]:
    """Return an environment of this test, in which a first start has filled the data folder."""
    shutil.copytree(stocked, tmp_path / "data")
    return empty_home(tmp_path)


@pytest.fixture
def empty_environment(tmp_path: Path) -> dict[str, str]:
    return empty_home(tmp_path)


def sommelier(
    *arguments: str, environment: Mapping[str, str], **settings: str
) -> CompletedProcess[str]:
    """Run `sommelier` with these arguments in a subprocess, and return the result."""
    with Process(*arguments, environment={**environment, **settings}) as process:
        status = process.wait()
    return CompletedProcess(arguments, status, process.shown, process.said)


@contextmanager
def isolated_logging() -> Iterator[None]:
    """Undo the changes of a command to logging when the block ends."""
    root = logging.getLogger()
    loggers = [root, *map(logging.getLogger, NOISY_LOGGERS)]
    handlers = root.handlers
    levels = [logger.level for logger in loggers]
    root.handlers = []
    try:
        yield
    finally:
        root.handlers = handlers
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def sommelier_eval(*arguments: str) -> tuple[int, dict[str, Any], str]:
    """Run `sommelier eval`; return the exit status, the file of `--save`, and standard error."""
    file = Path("saved.json").absolute()
    environment = {"HOME": str(Path.cwd())}
    done = sommelier_here(
        "eval", *arguments, "--save", str(file), environment=environment
    )
    results = json.loads(file.read_text()) if file.exists() else {}
    return done.returncode, results, done.stderr


def sommelier_here(
    *arguments: str,
    environment: Mapping[str, str],
    typed: str | None = None,
    **settings: str,
) -> CompletedProcess[str]:
    """Run `sommelier` in this process, which is faster; `typed` is its standard input."""
    with (
        isolated_logging(),
        isolated_process(["sommelier", *arguments], environment["HOME"]),
        CliRunner().isolation(typed, env={**environment, **settings}) as (
            stdout,
            stderr,
            _,
        ),
    ):
        status = run_main()
        sys.stdout.flush()
        sys.stderr.flush()
        return CompletedProcess(
            sys.argv, status, stdout.getvalue().decode(), stderr.getvalue().decode()
        )


def run_main() -> int:
    """Run the command line, and return its exit status."""
    try:
        main()
    except SystemExit as error:
        return int(error.code or 0)
    return 0


@contextmanager
def isolated_process(command: list[str], folder: str) -> Iterator[None]:
    """Run the block as if this process had been started with a command in a folder."""
    previous_argv = sys.argv
    previous_handler = signal.getsignal(signal.SIGINT)
    sys.argv = command
    try:
        with chdir(folder):
            yield
    finally:
        sys.argv = previous_argv
        signal.signal(signal.SIGINT, previous_handler)
