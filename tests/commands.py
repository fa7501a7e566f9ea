"""`sommelier` in this process, with its logging kept apart from that of the tests."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager

from typer.testing import CliRunner

from bot.__main__ import app
from bot.logs import LOUD


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


def sommelier_here(*arguments: str, environment: Mapping[str, str]) -> tuple[int, str, str]:
    """The same for any command on a machine of this environment; a second sooner than a process."""
    with own_logging(), chdir(environment["HOME"]):
        ran = CliRunner().invoke(app, list(arguments), env=environment)
    if ran.exception and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return ran.exit_code, ran.stdout, ran.stderr
