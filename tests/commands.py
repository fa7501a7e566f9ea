"""`sommelier` in this process, with its logging kept apart from that of the tests."""

import logging
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from subprocess import CompletedProcess

from typer.testing import CliRunner

from bot.__main__ import app, main
from bot.logs import LOUD

COMMAND = "sommelier"


@contextmanager
def own_logging() -> Iterator[None]:
    """What a command sets up for its process is undone at the end."""
    root = logging.getLogger()
    loggers = [root, *map(logging.getLogger, LOUD)]
    handlers, levels = root.handlers, [logger.level for logger in loggers]
    root.handlers = []
    try:
        yield
    finally:
        root.handlers = handlers
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def sommelier_eval(*arguments: str) -> tuple[int, str, str]:
    """The exit status, what was shown, and what was said beside it; raises what no one foresaw."""
    with own_logging():
        ran = CliRunner().invoke(app, ["eval", *arguments])
    if ran.exception and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return ran.exit_code, ran.stdout, ran.stderr


def sommelier_here(
    *arguments: str, environment: Mapping[str, str], **settings: str
) -> CompletedProcess[str]:
    """As `tests.acceptance.command.sommelier`, but in this process: more than a second sooner."""
    with (
        own_logging(),
        own_process([COMMAND, *arguments], environment["HOME"]),
        CliRunner().isolation(env={**environment, **settings}) as (shown, said, _),
    ):
        status = exit_status()
        sys.stdout.flush()
        sys.stderr.flush()
        return CompletedProcess(
            sys.argv, status, shown.getvalue().decode(), said.getvalue().decode()
        )


def exit_status() -> int:
    """The exit status of the command line that this process was started with."""
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
