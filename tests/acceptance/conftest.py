"""What the tests of the command line have: an empty machine, and the web around it."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.command import sommelier
from tests.doubles.web import Web

ROOT = Path(__file__).parents[2]


def empty_home(home: Path) -> dict[str, str]:
    """The environment of an empty machine: no settings, no data, an empty home."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "PYTHONPATH": str(ROOT),
    }


@pytest.fixture(scope="session")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder as the first start leaves it; made once for all workers: it takes a while."""
    # Workers have folders of their own below that of the session.
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with (shared / "stocked.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "stocked").exists():
            (shared / "stocking").mkdir()
            done = sommelier("wines", "count", environment=empty_home(shared / "stocking"))
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
    """An empty machine of this test alone."""
    return empty_home(tmp_path)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A machine that is shared by the tests of a module, with the starter documents."""
    return empty_home(tmp_path_factory.mktemp("home"))


@pytest.fixture
def web() -> Iterator[Web]:
    """A place search and an embedding source."""
    with Web() as server:
        yield server
