"""Decide in which language a turn is answered.

A user has a usual language: the one that they wrote before, or else that of their app. It stays
unless their own words are clearly in another one. What others wrote never changes it.
"""

from collections.abc import Iterable
from typing import Final

from agent.i18n import (
    current_language,
    is_language_chosen,
    is_language_settled,
    set_language,
)
from agent.query_reading.phrases import detect_language

FORWARDED_HEADER: Final = "[forwarded, written by somebody else]"
"""The line that the bot puts above a forwarded message, for the model."""
QUOTE_MARK: Final = ">"
"""The beginning of a line that the user quotes."""
MAX_DETECTION_CHARS: Final = 1_000
"""How many characters of a message are read to detect its language."""


def settle_language(text: str, usual: str) -> None:
    """Set the language of a turn for all that is said in it.

    `text` is the message of the user, who usually writes in the language `usual`. A language that
    the user chose in the settings stays, whatever they write.
    """
    if is_language_chosen():
        return
    language = find_language([text], usual)
    if is_language_settled() and language == current_language():
        return  # the language of the app may have no catalogue, and is kept for its numbers
    set_language(language, is_settled=True)


def find_language(texts: Iterable[str], usual: str) -> str:
    """Return the language of the last of a user's texts, or that of the one before if in doubt."""
    language = usual
    for text in texts:
        if text.startswith("/"):
            # A stored look-up such as "/find WINE_BAR Lyon" is not written in any language.
            continue
        own_text = remove_words_of_others(text)
        language = detect_language(own_text[:MAX_DETECTION_CHARS], language)
    return language


def remove_words_of_others(text: str) -> str:
    """Return a message without what it forwards or quotes."""
    own_lines: list[str] = []
    for line in text.splitlines():
        if line != FORWARDED_HEADER and not line.startswith(QUOTE_MARK):
            own_lines.append(line)
    return "\n".join(own_lines)
