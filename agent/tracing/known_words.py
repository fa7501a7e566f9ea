"""What must not be read in a trace because it is known: names of people, configured secrets."""

import json
import re
import unicodedata
from collections.abc import Callable, Collection
from functools import cache, lru_cache
from typing import Final

Change = Callable[[str], str]

MASKS: Final = r"\[(?:email|phone|card|iban|token|name|secret)\]"
SHORTEST_SECRET: Final = 4  # characters; a shorter one would hide half of every text
ID_CHARACTERS: Final = 64

# Scripts without spaces between words: there a name needs no boundary.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
)
_LETTER: Final = f"[^\\W_{_UNSPACED}]"
_FIRST: Final = rf"(?:(?<!{_LETTER})|(?<=\\[nrt]))"  # JSON that was cut off is a text with escapes
_LAST: Final = f"(?!{_LETTER})"
_UNSPACED_LETTER: Final = re.compile(f"[{_UNSPACED}]")
_OF_THE_TRADE: Final = frozenset(
    "rose red white port sherry brandy margaux chablis merlot porto sauvignon basil olive ginger "
    "rosemary sage saffron pepper cherry clementine blanc blanche rosa rosso bianca bianco blanca "
    "blanco rioja grape vine wine may june august".split()
)
"""Names of people that are words of every other trace: such a name counts as it is spelled."""

_WORD: Final = re.compile("[^\\W_](?:[\\w\u0300-\u036f'’-]*[\\w\u0300-\u036f])?")
_SPELLED_OUT: Final = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "å": "aa", "ø": "oe"}
    | {"Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "Å": "Aa", "Ø": "Oe"}
)
_UNDECOMPOSED: Final = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d"}
    | {"Æ": "Ae", "Œ": "Oe", "Ø": "O", "Ł": "L", "Đ": "D"}
)
_ID_BEFORE: Final = re.compile(r"(?<![\w./-])[\w./-]++\Z")
_ID_AFTER: Final = re.compile(r"[\w./-]*")
_ID: Final = re.compile(
    r"[a-z0-9]+(?:-[a-z0-9]+)*-(?:\d{4}|nv)|[a-z0-9]+(?:-[a-z0-9]+){2,}"  # a wine's
    r"|(?![.])[\w./-]*\.(?:md|txt|pdf|html?|csv|json|docx?)"  # a document's
)


def secrets_hidden(secrets: tuple[str, ...]) -> Change:
    """Masks these secrets wherever they stand, as they are and as JSON escapes them."""
    spelled = {each for secret in secrets for each in (secret, json.dumps(secret)[1:-1])}
    needles = sorted((each for each in spelled if len(each) >= SHORTEST_SECRET), key=_longest_first)
    pattern = re.compile("|".join([f"({MASKS})", *map(re.escape, needles)]))

    def change(text: str) -> str:
        if not any(map(text.__contains__, needles)):
            return text
        return pattern.sub(lambda found: found[1] or "[secret]", text)

    return change


@lru_cache(maxsize=256)
def names_hidden(names: tuple[str, ...]) -> Change:
    """Masks these names as whole words. The pattern is made when one of them is seen."""
    loose, exact = _spellings(names)
    needles = {each.lower() for each in (*loose, *exact)}
    pattern = cache(lambda: _name_pattern(loose, exact))

    def change(text: str) -> str:
        if not needles:
            return text
        lowered = text.lower()
        seen = [needle for needle in needles if needle in lowered]
        if not any(_as_a_word(needle).search(lowered) for needle in seen):
            return text
        return pattern().sub(_masked_name, text)

    return change


@lru_cache(maxsize=256)
def _as_a_word(name: str) -> re.Pattern[str]:
    """The name where no letter stands beside it. It begins with what can be searched for fast."""
    escaped = re.escape(name)
    return re.compile(rf"{escaped}(?:(?<!{_LETTER}{escaped})|(?<=\\[nrt]{escaped}))(?!{_LETTER})")


def _spellings(names: Collection[str]) -> tuple[set[str], set[str]]:
    """How the names may be written: in any case, and those that count only as they are.

    Parts of a name of several words count as they are, from 3 letters on, and so does a name that
    is a word of the trade: a guest called Rose does not hide every rosé.
    """
    loose: set[str] = set()
    exact: set[str] = set()
    for name in names:
        words = [each for each in _WORD.findall(name) if any(map(str.isalpha, each))]
        if not words:
            continue
        whole = name[name.index(words[0]) : name.rindex(words[-1]) + len(words[-1])]
        short = len(whole) < 3 and not _UNSPACED_LETTER.search(whole)
        common = whole[0].isupper() and whole.lower() in _OF_THE_TRADE
        (exact if short or common else loose).update({whole} if common else _written(whole))
        if len(words) > 1:
            exact.update(
                each
                for word in words
                if len(word) > 2 and word[0].isupper()
                for each in _written(word)
            )
    return loose, exact


def _written(name: str) -> set[str]:
    """A name with its accents, without them, in either form of Unicode, and as JSON escapes it."""
    composed = unicodedata.normalize("NFC", name)
    plain = unicodedata.normalize("NFKD", composed.translate(_UNDECOMPOSED))
    folded = "".join(each for each in plain if not unicodedata.combining(each))
    spelled = composed.translate(_SPELLED_OUT)
    forms = {name, composed, unicodedata.normalize("NFD", name), folded, spelled}
    forms |= {each.replace("'", "’") for each in forms} | {each.replace("’", "'") for each in forms}
    return forms | {json.dumps(each)[1:-1] for each in forms}


def _name_pattern(loose: Collection[str], exact: Collection[str]) -> re.Pattern[str]:
    any_case = "|".join(map(_bounded, sorted(loose, key=_longest_first))) or "(?!)"
    as_is = "|".join(map(_bounded, sorted(exact, key=_longest_first))) or "(?!)"
    return re.compile(rf"({MASKS})|{_FIRST}@?(?:(?i:{any_case})|{as_is}){_LAST}")


def _bounded(name: str) -> str:
    alone = len(name) == 1 and _UNSPACED_LETTER.match(name)
    return rf"(?<!\w){name}(?!\w)" if alone else re.escape(name)


def _longest_first(text: str) -> tuple[int, str]:
    return -len(text), text


def _masked_name(found: re.Match[str]) -> str:
    return found.group() if found[1] or _in_an_id(found) else "[name]"


def _in_an_id(found: re.Match[str]) -> bool:
    """Whether what was found is a part of a wine's id or of a document's path."""
    start, end = found.span()
    before = _ID_BEFORE.search(found.string[max(0, start - ID_CHARACTERS) : start])
    after = _ID_AFTER.match(found.string[end : end + ID_CHARACTERS])
    whole = (before.group() if before else "") + found.group() + (after.group() if after else "")
    return whole != found.group() and bool(_ID.fullmatch(whole.rstrip(".")))
