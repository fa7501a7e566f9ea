"""Logging to standard error, in which no bot token and no secret is ever written."""

import logging
import re
from collections.abc import Sequence
from typing import Final

TOKEN: Final = re.compile(r"\b\d+:[\w-]{20,}|(?<=/bot)\d+:[\w-]+")
HIDDEN: Final = "[hidden]"
LOUD: Final = ("httpx", "httpx2", "httpcore", "httpcore2", "telegram", "alembic", "openai")
"""Loggers that say too much at INFO; those of HTTP clients write whole URLs, tokens included."""


class RedactingFormatter(logging.Formatter):
    """Hides bot tokens and the given secrets, in messages and tracebacks alike."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._secrets = [secret for secret in secrets if secret]

    def format(self, record: logging.LogRecord) -> str:
        """The whole record as text, without what must not be read."""
        text = super().format(record)
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return TOKEN.sub(HIDDEN, text)


def configure_logging(level: str, secrets: Sequence[str] = ()) -> None:
    """Log from `level` up to standard error; replaces what was configured before."""
    handler = logging.StreamHandler()
    handler.setFormatter(RedactingFormatter(secrets))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in LOUD:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))
    # What it mends in a file is no news, and what it cannot read is reported by name.
    logging.getLogger("pypdf").setLevel(logging.ERROR)
