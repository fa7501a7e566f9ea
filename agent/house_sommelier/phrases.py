"""What the house sommelier says, in six languages, filled in by `answer`.

No amounts of money in the tables: a price in an answer must come from the person or the catalogue.
"""

from collections.abc import Mapping
from typing import Final, get_args

from agent.house_sommelier.lexicon import Language
from agent.house_sommelier.speech import de, en, es, fr, it, nl
from agent.house_sommelier.speech.keys import PhraseKey

_TABLES: Final[Mapping[Language, Mapping[PhraseKey, str]]] = {
    "en": en.SENTENCES,
    "de": de.SENTENCES,
    "fr": fr.SENTENCES,
    "es": es.SENTENCES,
    "it": it.SENTENCES,
    "nl": nl.SENTENCES,
}
KEYS: Final[tuple[PhraseKey, ...]] = get_args(PhraseKey)

PHRASES: Final[Mapping[PhraseKey, Mapping[Language, str]]] = {
    key: {language: table[key] for language, table in _TABLES.items()} for key in KEYS
}


def say(key: PhraseKey, language: Language, **values: str) -> str:
    """One sentence, filled in."""
    return PHRASES[key][language].format(**values)


def as_note(text: str) -> str:
    """A sentence as an aside, in Markdown."""
    return f"_({text})_"
