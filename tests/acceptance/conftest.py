"""What the tests of the command line have beside a machine: the web around it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import empty_home
from tests.doubles.web import Web


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, stocked: Path) -> dict[str, str]:
    """A machine that is shared by the tests of a module, on which the first start has been."""
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(stocked, home / "data")
    return empty_home(home)


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server
