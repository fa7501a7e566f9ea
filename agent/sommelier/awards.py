"""Find the praise of critics and juries in a sentence that no source supports.

A critic's name in an affirmed sentence about wines is a claim, with or without a score: "Parker
adores it". So is a medal, and that few bottles are left in a language without a table of claims.
The names and words are those of all languages in `languages/`.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final

from agent.languages import load_languages
from agent.sommelier.claim_phrases import (
    WordedText,
    compile_phrases,
    detect_claim_phrases,
    fold_words,
)
from agent.sommelier.claims import Claim, is_affirmed
from agent.sommelier.grounding import Grounds
from agent.text import Pattern

ORDINARY_CRITICS: Final = frozenset({"decanter", "enthusiast"})
"""The names of critics that are more often a word. They count beside a number (`figures.py`)."""


def find_unfounded_awards(sentence: str, grounds: Grounds) -> Iterator[Claim]:
    """Yield the critics and medals of a sentence that no source has.

    In a language without a table of claims, a denial is not recognised. "I do not know Parker"
    would be a claim there, so critics are left out.
    """
    if not grounds.wines or not is_affirmed(sentence):
        return
    rows = ["medals", "few_bottles"]
    if detect_claim_phrases(sentence) is not None:
        rows.append("critics")
    words = WordedText(sentence)
    for row in rows:
        for match in _load_row(row).finditer(words.folded):
            quote = words.quote(match)
            if row == "critics" and not _is_name_of_critic(quote):
                continue
            if not _is_in_sources(row, match[0], grounds):
                yield Claim(row, quote)


def _is_name_of_critic(quote: str) -> bool:
    """Return whether words are the name of a critic: "Parker", but not a decanter."""
    name = fold_words(quote).strip()
    return quote[0].isupper() and name not in ORDINARY_CRITICS


def _is_in_sources(row: str, words: str, grounds: Grounds) -> bool:
    """Return whether a source has a critic's name, or speaks of a medal in any language."""
    texts = [wine.source_text for wine in grounds.wines]
    for text in (*texts, *grounds.texts):
        folded = fold_words(text)
        if words in folded:
            return True
        if row == "medals" and _load_row(row).search(folded):
            return True
    return False


@cache
def _load_row(row: str) -> Pattern:
    """Return the pattern of the phrases that all languages have in a row."""
    languages = load_languages().values()
    phrases = [getattr(language, row) for language in languages]
    return compile_phrases(",".join(filter(None, phrases)))
