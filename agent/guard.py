"""What comes in is cleaned and watched: a message is data, whatever it says."""

import re
import unicodedata
from typing import Final

MAX_MESSAGE_CHARS: Final = 8000
KEPT_CONTROLS: Final = frozenset("\n\t")
SUSPICIOUS: Final = {
    "instruction_override": re.compile(
        r"\b(ignore|disregard|forget|override)\b.{0,40}\b(instructions?|rules?|prompts?)\b",
        re.IGNORECASE | re.DOTALL,
    ),
    "prompt_probe": re.compile(
        r"\b(system prompt|your (initial )?instructions|developer (mode|message))\b", re.IGNORECASE
    ),
    "role_play": re.compile(r"\byou are now\b|^\s*(system|assistant)\s*:", re.IGNORECASE | re.M),
}


def clean(message: str) -> str:
    """A message without control and other invisible characters, of bounded length."""
    visible = (
        character
        for character in message[:MAX_MESSAGE_CHARS]
        if character in KEPT_CONTROLS or unicodedata.category(character) not in {"Cc", "Cs", "Co"}
    )
    return "".join(visible).strip()


def security_flags(message: str) -> list[str]:
    """What in a message looks like an attempt to steer the model; for the trace only."""
    return [name for name, pattern in SUSPICIOUS.items() if pattern.search(message)]
