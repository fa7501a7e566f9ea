"""The words by which lists are understood, in seven languages: `words.toml`."""

from functools import cache
from pathlib import Path

from agent.tables import read_toml


@cache
def words() -> dict[str, dict[str, frozenset[str]]]:
    """Return the tables of `words.toml`: normalised names and words by field or value."""
    file = Path(__file__).with_suffix(".toml")
    return read_toml(dict[str, dict[str, frozenset[str]]], file)
