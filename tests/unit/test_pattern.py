"""Patterns match like `re`, but in linear time."""

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
def test_matches_are_those_of_re(source: str, text: str) -> None:
    re2_pattern, re_pattern = pattern(source), re.compile(source)

    assert [
        (match.span(), match.groups())
        for match in re2_pattern.finditer(text)
        if match[0]
    ] == [
        (match.span(), match.groups())
        for match in re_pattern.finditer(text)
        if match[0]
    ]
    for name in ("match", "search"):
        actual, expected = (
            getattr(re2_pattern, name)(text),
            getattr(re_pattern, name)(text),
        )
        assert (actual and actual.span()) == (expected and expected.span())


@given(text=st.text())
def test_an_escaped_text_matches_itself(text: str) -> None:
    assert pattern(escape_pattern(text)).fullmatch(text)


def test_every_pattern_of_the_product_compiles() -> None:
    patterns: list[Pattern] = []
    for package in ("agent", "bot", "db"):
        for info in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if not info.name.endswith("__main__"):
                values = vars(importlib.import_module(info.name)).values()
                patterns += [value for value in values if isinstance(value, Pattern)]
    assert len(patterns) > 50
    for compiled in patterns:
        compiled.search("a")
