"""Every pattern that meets text from outside takes linear time: steps counted at n and at 2n."""

import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from types import ModuleType

import pytest

from tests.steps import superlinear

ROOMS = ("agent.text", "agent.documents", "agent.places", "agent.sommelier", "db.documents")


def _modules(name: str) -> Iterator[ModuleType]:
    module = importlib.import_module(name)
    yield module
    for found in pkgutil.iter_modules(getattr(module, "__path__", []), f"{name}."):
        yield from _modules(found.name)


def _patterns(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _patterns(each)
    elif isinstance(value, Mapping):
        for each in list(value.values()):
            yield from _patterns(each)


FOUND = {
    (name, each.pattern): each
    for room in ROOMS
    for module in _modules(room)
    for name, value in vars(module).items()
    for each in _patterns(value)
}


@pytest.mark.parametrize("pattern", FOUND.values(), ids=[name for name, _ in FOUND])
def test_a_pattern_takes_linear_time(pattern: re.Pattern[str]) -> None:
    assert superlinear(pattern) is None
