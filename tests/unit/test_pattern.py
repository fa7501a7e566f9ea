"""Patterns: written and found as with `re`, in linear time."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.text import Pattern, escape_pattern, pattern

ROOT = Path(__file__).parents[2]

SOURCES = (
    r"c[\w'-]t", r"\S+(?:\s|\Z)", r"(?i)(?P<one>é)|(b)", r"(?m)^a", r"(?s)a.b", r"\Aa|b\Z",
    r"[\x00]", r"[^\w\s]", r"\u00e9\w", r"\w(\u20ac|\Z)",
)  # fmt: skip
TEXTS = st.text("aAbcétxX01 \n.,!?'-€。葡\x00\u00a0\x85_", max_size=30)


@pytest.mark.parametrize("source", SOURCES)
@given(text=TEXTS)
def test_finds_what_re_finds(source: str, text: str) -> None:
    ours, theirs = pattern(source), re.compile(source)

    assert [(found.span(), found.groups()) for found in ours.finditer(text) if found[0]] == [
        (found.span(), found.groups()) for found in theirs.finditer(text) if found[0]
    ]
    for name in ("match", "search"):
        one, other = getattr(ours, name)(text), getattr(theirs, name)(text)
        assert (one and one.span()) == (other and other.span())


@given(text=st.text())
def test_an_escaped_text_finds_itself(text: str) -> None:
    assert pattern(escape_pattern(text)).fullmatch(text)


def test_every_pattern_of_the_product_can_be_made() -> None:
    patterns: list[Pattern] = []
    for package in ("agent", "bot", "db"):
        for found in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if not found.name.endswith("__main__"):
                module = importlib.import_module(found.name)
                patterns += [made for made in vars(module).values() if isinstance(made, Pattern)]
    assert len(patterns) > 50
    for made in patterns:
        made.search("a")
