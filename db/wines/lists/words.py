"""The words by which lists are understood, in seven languages. They stand in `words.toml`."""

from functools import cache
from pathlib import Path

from agent.tables import read_toml


@cache
def load_words() -> dict[str, dict[str, frozenset[str]]]:
    """Return the tables of `words.toml` by their names.

    A table has sets of normalised words, each by what the words mean: a field or a value.
    """
    file = Path(__file__).with_suffix(".toml")
    return read_toml(dict[str, dict[str, frozenset[str]]], file)
