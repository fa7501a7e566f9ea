"""What the workers of one test run share, each being a process of its own."""

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "alone")


@cache
def run_id() -> str:
    """The same for all workers of this run, and for no other run."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid.uuid4().hex)[:12]


@contextmanager
def together(tmp_path_factory: pytest.TempPathFactory, what: str) -> Iterator[Path]:
    """The folder that all workers share; one worker at a time is in here for the same `what`."""
    folder = tmp_path_factory.getbasetemp()
    # Workers have folders of their own below that of the session.
    if WORKER != "alone":
        folder = folder.parent
    with (folder / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
