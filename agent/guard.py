"""What comes in is cleaned and watched: a message is data, whatever it says."""

import re
import unicodedata
from typing import Final

MAX_MESSAGE_CHARS: Final = 8000
KEPT_CONTROLS: Final = frozenset("\n\t")
OVERRIDE: Final = (
    r"ignor\w*|disregard|forget|override|vergi(?:ss|ß|sst|ßt)|vergessen|missachte\w*|"
    r"oubli\w*|olvid\w*|dimentic\w*|negeer|vergeet"
)
"""To ignore or forget, as orders say it in the six languages."""

INSTRUCTIONS: Final = (
    r"instru[ck]\w*|rules?|prompts?|anweisung\w*|regeln|vorgaben|consignes?|règles|reglas|regole|"
    r"istruzion\w*|aanwijzing\w*|regels|everything above|alles oben|tout ce qui précède"
)
SUSPICIOUS: Final = {
    "instruction_override": re.compile(rf"\b(?:{OVERRIDE})\b.{{0,40}}\b(?:{INSTRUCTIONS})\b", re.S),
    "prompt_probe": re.compile(
        r"\bsystem[- ]?prompt|\byour (?:initial )?instructions\b|\bdeveloper (?:mode|message)\b|"
        r"\b(?:deine|ihre) (?:ursprünglichen )?anweisungen\b|"
        r"\b(?:tes|vos) (?:instructions|consignes)\b|"
        r"\b(?:tus|sus) instrucciones\b|\bje instructies\b|\ble tue istruzioni\b"
    ),
    "role_play": re.compile(
        r"\byou are now\b|\bdu bist (?:jetzt|nun)\b|\btu es (?:maintenant|désormais)\b|"
        r"\b(?:ahora eres|ora sei)\b|\bje bent nu\b|^[^\S\n]*+(?:system|assistant)\s*+:",
        re.M,
    ),
}
"""Patterns of folded text: a hint for those who read traces, no wall. Code holds what matters."""


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
    folded = unicodedata.normalize("NFKC", message).lower()
    visible = "".join(each for each in folded if unicodedata.category(each) != "Cf")
    return [name for name, pattern in SUSPICIOUS.items() if pattern.search(visible)]
