"""One process per SQLite file: a second one would take the first one's turns for interrupted."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class AlreadyRunning(Exception):
    """Another process answers people from this database; stop it first."""


@contextmanager
def only_one(database_url: str) -> Iterator[None]:
    """Hold the lock of an SQLite file; Postgres is made for several processes.

    Raises:
        AlreadyRunning: another process holds it.
    """
    scheme, _, rest = database_url.partition("://")
    if not scheme.startswith("sqlite"):
        yield
        return
    path = Path(rest.removeprefix("/")).expanduser()
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(
                f"Another process answers people from {path}; stop it first, or use Postgres "
                "to run several."
            ) from None
        yield
