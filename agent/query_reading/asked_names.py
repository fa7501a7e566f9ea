"""Read which wine a message asks for by its name: "do you have X?", "X 2018".

The catalogue knows more names than the tables, so this returns words to look up there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agent import size_limits
from agent.language import all_common_words
from agent.query_reading.phrases import Phrase, detect_language, find_phrases
from agent.query_reading.prices import read_price
from agent.query_reading.tokens import Token, tokenize
from agent.text import fold

MAX_BARE_WORDS: Final = 6
"""A longer message that does not ask for stock is not just a name."""
MIN_NAME_LETTERS: Final = 3
YEAR_DIGITS: Final = 4
NAME_FIELDS: Final = frozenset({"grapes", "regions", "countries"})
"""The fields of phrases that name a wine, or a part of its name."""
BARE_ROLES: Final = frozenset({"wine"})
"""The roles that the phrases of a name may have."""
WISH_FIELDS: Final = frozenset({"dish", "order", "offer", "usual_max_price"})
"""The fields of phrases that describe a wish rather than a wine."""


@dataclass(frozen=True, slots=True)
class AskedName:
    """A wine that is asked for.

    `name` has all words that may be part of its name, `unknown` those of them that the tables do
    not know. `asks_for_stock` is False for a message that only seems to be a name.
    """

    name: str
    unknown: str
    asks_for_stock: bool


def read_asked_name(text: str, default_language: str) -> AskedName | None:
    """Return the wine that a message asks for by its name, or None if it asks for none."""
    text = text[: size_limits.MESSAGE_CHARS]
    language = detect_language(text, default_language)
    tokens = tokenize(text)
    phrases = find_phrases(tokens, language)
    price, _ = read_price(tokens, phrases)
    if price or any(not WISH_FIELDS.isdisjoint(phrase.meanings) for phrase in phrases):
        return None
    asks_for_stock = any(phrase.has_role("have") for phrase in phrases)
    named = _named_tokens(tokens, phrases)
    unknown = _unknown_tokens(named, tokens, phrases)
    has_known_name = any(not NAME_FIELDS.isdisjoint(phrase.meanings) for phrase in phrases)
    if not unknown and not (asks_for_stock and has_known_name):
        return None
    if not asks_for_stock and not _is_bare(tokens, phrases):
        return None
    return AskedName(_join(named), _join(unknown), asks_for_stock)


def _is_bare(tokens: Sequence[Token], phrases: Sequence[Phrase]) -> bool:
    """Return whether a message seems to be just a name: it is short, and asks and says nothing."""
    words = [token for token in tokens if token.is_alphanumeric]
    roles = {role for phrase in phrases for role in phrase.values("role")}
    return len(words) <= MAX_BARE_WORDS and roles <= BARE_ROLES


def _named_tokens(tokens: Sequence[Token], phrases: Sequence[Phrase]) -> list[Token]:
    """Return the words that may be part of a name: those that are not only grammar."""
    grammar: set[int] = set()
    for phrase in phrases:
        if phrase.meanings.keys() == {"role"}:
            grammar.update(phrase.indices)
    return [
        token
        for index, token in enumerate(tokens)
        if index not in grammar and token.is_alphanumeric
    ]


def _unknown_tokens(
    named: Sequence[Token], tokens: Sequence[Token], phrases: Sequence[Phrase]
) -> list[Token]:
    """Return the words of a name that no table has, and its year."""
    known = {token for phrase in phrases for token in tokens[phrase.start : phrase.end]}
    return [token for token in named if token not in known and _may_be_name(token)]


def _may_be_name(token: Token) -> bool:
    if token.written.isdecimal():
        return len(token.written) == YEAR_DIGITS
    is_common = fold(token.written) in all_common_words()
    return len(token.written) >= MIN_NAME_LETTERS and not is_common


def _join(tokens: Sequence[Token]) -> str:
    return " ".join(token.written for token in tokens)
