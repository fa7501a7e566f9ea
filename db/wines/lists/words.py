"""The words of `words.toml`, by which lists are understood, in seven languages."""

from functools import cache
from pathlib import Path

from agent.tables import read_toml

WordTable = dict[str, frozenset[str]]
"""Sets of normalised words, each by what its words mean: a field or a value."""


@cache
def load_words() -> dict[str, WordTable]:
    """Return the tables of `words.toml` by their names."""
    file = Path(__file__).with_suffix(".toml")
    return read_toml(dict[str, WordTable], file)
