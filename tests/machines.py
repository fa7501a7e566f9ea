"""Machines for the command line: an empty one, and one on which the first start has been."""

import os
import shutil
from pathlib import Path

import pytest

from tests.acceptance.command import sommelier
from tests.workers import together

ROOT = Path(__file__).parents[1]


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
    """An empty machine of this test alone."""
    return empty_home(tmp_path)
