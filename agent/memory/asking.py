"""What a person asks of what is remembered of them: to be shown it, or to be forgotten. Pure."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal

from agent.tables import read_toml
from agent.text import Pattern, of_words, spaced, words

Asked = Literal["forget", "export", "privacy", "taste", "cellar", "agree"]
LONGEST: Final = 200
"""Characters of a message that asks for it and for nothing else."""


def asked_of_memory(text: str) -> Asked | None:
    """Tell what a message, in any language, asks of what is remembered; None for any other."""
    if len(text) > LONGEST:
        return None
    said = spaced(words(text))
    return next((what for what, pattern in _patterns().items() if pattern.search(said)), None)


@cache
def _patterns() -> Mapping[Asked, Pattern]:
    written = read_toml(dict[Asked, list[str]], Path(__file__).with_suffix(".toml"))
    return {
        what: of_words("|".join(f"(?:{each})" for each in any_of))
        for what, any_of in written.items()
    }
