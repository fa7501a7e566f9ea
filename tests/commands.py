"""The command line: machines for it, and `sommelier` in a process of its own or in this one."""

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
    """The environment of an empty machine: no settings, no data, an empty home."""
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
    """A data folder as the first start leaves it; made once for all workers: it takes a while."""
    with together(tmp_path_factory, "stocked") as shared:
        if not (shared / "stocked").exists():
            (shared / "stocking").mkdir()
            done = sommelier("documents", "list", environment=empty_home(shared / "stocking"))
            assert done.returncode == 0, done.stderr
            (shared / "stocking").rename(shared / "stocked")
    return shared / "stocked" / "data"


@pytest.fixture
def environment(tmp_path: Path, stocked: Path) -> dict[str, str]:
    """A machine of this test alone, on which the first start has been."""
    shutil.copytree(stocked, tmp_path / "data")
    return empty_home(tmp_path)


@pytest.fixture
def empty_environment(tmp_path: Path) -> dict[str, str]:
    return empty_home(tmp_path)


def sommelier(
    *arguments: str, environment: Mapping[str, str], **settings: str
) -> CompletedProcess[str]:
    """`sommelier` with these arguments in a process of its own, when it has ended."""
    with Process(*arguments, environment={**environment, **settings}) as process:
        status = process.wait()
    return CompletedProcess(arguments, status, process.shown, process.said)


@contextmanager
def own_logging() -> Iterator[None]:
    """What a command sets up for its process is undone at the end."""
    root = logging.getLogger()
    loggers = [root, *map(logging.getLogger, NOISY_LOGGERS)]
    handlers, levels = root.handlers, [logger.level for logger in loggers]
    root.handlers = []
    try:
        yield
    finally:
        root.handlers = handlers
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def sommelier_eval(*arguments: str) -> tuple[int, dict[str, Any], str]:
    """The exit status, what `--save` wrote, and standard error; raises what no one foresaw."""
    saved, here = Path("saved.json").absolute(), {"HOME": str(Path.cwd())}
    done = sommelier_here("eval", *arguments, "--save", str(saved), environment=here)
    written = json.loads(saved.read_text()) if saved.exists() else {}
    return done.returncode, written, done.stderr


def sommelier_here(
    *arguments: str, environment: Mapping[str, str], said: str | None = None, **settings: str
) -> CompletedProcess[str]:
    """As `sommelier`, but in this process, more than a second sooner; `said` is its input."""
    with (
        own_logging(),
        own_process(["sommelier", *arguments], environment["HOME"]),
        CliRunner().isolation(said, env={**environment, **settings}) as (shown, told, _),
    ):
        status = exit_status()
        sys.stdout.flush()
        sys.stderr.flush()
        return CompletedProcess(
            sys.argv, status, shown.getvalue().decode(), told.getvalue().decode()
        )


def exit_status() -> int:
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@contextmanager
def own_process(command: list[str], folder: str) -> Iterator[None]:
    """As if this process had been started with this command in this folder."""
    before, on_interrupt = sys.argv, signal.getsignal(signal.SIGINT)
    sys.argv = command
    try:
        with chdir(folder):
            yield
    finally:
        sys.argv = before
        signal.signal(signal.SIGINT, on_interrupt)
