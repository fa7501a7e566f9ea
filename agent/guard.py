"""What comes in is cleaned and watched: a message is data, whatever it says."""

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from agent.text import LANGUAGES

MAX_MESSAGE_CHARS: Final = 8000
KEPT_CONTROLS: Final = frozenset("\n\t")
FILE: Final = Path(__file__).with_suffix(".toml")
SPOKEN_ROLE: Final = r"^[^\S\n]*+(?:system|assistant)\s*+:"

Patterns = Annotated[list[str], Field(min_length=1)]


class Suspicious(BaseModel):
    """What an attempt to steer the model looks like in one language: parts of patterns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ignore: Patterns
    instructions: Patterns
    prompt: Patterns
    role: Patterns


@cache
def suspicious() -> Mapping[str, re.Pattern[str]]:
    """Read the patterns of folded text, once: a hint for those who read traces, no wall.

    Raises:
        ValidationError: the file is not as it must be.
    """
    written = tomllib.loads(FILE.read_text("utf-8"))
    found = [Suspicious.model_validate(written.pop(language)) for language in LANGUAGES]

    def any_of(name: str) -> str:
        return "|".join(each for words in found for each in getattr(words, name))

    ignored = rf"\b(?:{any_of('ignore')})\b.{{0,40}}\b(?:{any_of('instructions')})\b"
    return {
        "instruction_override": re.compile(ignored, re.DOTALL),
        "prompt_probe": re.compile(rf"\b(?:{any_of('prompt')})\b"),
        "role_play": re.compile(rf"\b(?:{any_of('role')})\b|{SPOKEN_ROLE}", re.MULTILINE),
    }


def clean(message: str) -> str:
    """Make a message without control and other invisible characters, of bounded length."""
    visible = (
        character
        for character in message[:MAX_MESSAGE_CHARS]
        if character in KEPT_CONTROLS or unicodedata.category(character) not in {"Cc", "Cs", "Co"}
    )
    return "".join(visible).strip()


def security_flags(message: str) -> list[str]:
    """Name what in a message looks like an attempt to steer the model; for the trace only."""
    folded = unicodedata.normalize("NFKC", message).lower()
    visible = "".join(each for each in folded if unicodedata.category(each) != "Cf")
    return [name for name, pattern in suspicious().items() if pattern.search(visible)]
