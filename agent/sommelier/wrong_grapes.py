"""Find grapes that a description gives to a wine of other grapes.

"A briny, lemony Chenin" is wrong of a Muscadet. Beside a word of comparison ("like a Riesling") or
a dish ("coq au riesling") a grape is not the wine's own. Places are not read, because no table
tells that Chianti lies in Tuscany.
"""

from collections.abc import Sequence
from typing import Final

from agent.i18n import current_language
from agent.query_reading.phrases import Phrase, detect_language, find_phrases
from agent.query_reading.tokens import Token, tokenize
from agent.sommelier.attachment import AnyWine
from agent.sommelier.claim_phrases import (
    ClaimPhrases,
    detect_claim_phrases,
    fold_words,
)
from agent.sommelier.grounding import Grounds
from agent.sommelier.sommelier_prompts import WINE_PLACEHOLDER
from agent.sommelier.vocabulary import list_synonyms

DISHES: Final = frozenset({"dish"})
WORDS_BEFORE: Final = 5
"""How far before a grape a word of comparison stands: "like a rather young Riesling"."""
WORDS_AFTER: Final = 2
"""How far behind a grape it stands: "in the Riesling style"."""


def find_wrong_grapes(sentence: str, wine: AnyWine, grounds: Grounds) -> list[str]:
    """Return the grapes that a sentence gives to a wine, and that are not its own.

    A grape in another source or in a message of the guest passes, because the sentence may speak of
    that. If the grapes of the wine are not known, every grape passes.
    """
    text = WINE_PLACEHOLDER.sub(", ", sentence)
    table = detect_claim_phrases(text)
    if table is None or table.deny(text) or not wine.facts.grapes:
        return []
    reader = _GrapeReader(text, table)
    wine_texts = [wine.source_text, *wine.facts.grapes]
    known_texts = [*wine_texts, *grounds.texts, *grounds.user_texts]
    known = "".join(map(fold_words, known_texts))
    wrong: list[str] = []
    for phrase in reader.find_grapes():
        written = reader.write(phrase.start, phrase.end)
        names = [written]
        for grape in phrase.values("grapes"):
            names += list_synonyms("grapes", grape)
        if not any(fold_words(name) in known for name in names):
            wrong.append(written)
    return wrong


class _GrapeReader:
    """The grapes of a sentence, and the words around them."""

    def __init__(self, text: str, table: ClaimPhrases) -> None:
        language = detect_language(text, current_language())
        self._tokens: Sequence[Token] = tokenize(text)
        self._phrases = find_phrases(self._tokens, language)
        self._table = table

    def find_grapes(self) -> list[Phrase]:
        """Return the grapes that are beside no dish and no word of comparison."""
        grapes: list[Phrase] = []
        for phrase in self._phrases:
            is_grape = bool(phrase.values("grapes")) and not phrase.is_compound
            is_apart = not self._is_beside_dish(phrase)
            if is_grape and is_apart and not self._is_compared(phrase):
                grapes.append(phrase)
        return grapes

    def write(self, start: int, end: int) -> str:
        """Return the words of the tokens from `start` to before `end`."""
        tokens = self._tokens[max(start, 0) : end]
        return " ".join(token.written for token in tokens)

    def _is_compared(self, phrase: Phrase) -> bool:
        before = self.write(phrase.start - WORDS_BEFORE, phrase.start)
        after = self.write(phrase.end, phrase.end + WORDS_AFTER)
        has_before = self._table.has("comparisons", before)
        return has_before or self._table.has("comparisons", after)

    def _is_beside_dish(self, phrase: Phrase) -> bool:
        for other in self._phrases:
            touches = other.end == phrase.start or other.start == phrase.end
            if touches and other.has_field(DISHES):
                return True
        return phrase.has_field(DISHES)
