"""Personal data and credentials in a text, found by their form or by the word before them. Pure.

The patterns are data: `masking.toml`. Where a form is ambiguous, a rule here says what ends it.
Vintages, prices, dates and ids stay: they are what traces are read for.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

FILE: Final = Path(__file__).with_name("masking.toml")
FRAGMENT: Final = re.compile(r"<([a-z_]+)>")
SHORTEST_CREDENTIAL: Final = 8  # characters, with the word before it

_FILE_NAME_OR_ID: Final = re.compile(r"\w|-\w|\.[A-Za-z]")
_DATE: Final = re.compile(r"\(?0\d[ ./-]{1,3}(?:\d\d?[ ./-]{1,3})?(?:19|20)\d\d(?!\d)")
_TIME: Final = re.compile(r"(?:[01]\d|2[0-3])[0-5]\d")
_GROUP: Final = re.compile(r"\d+")
_HEX: Final = re.compile(r"\A[0-9a-fA-F]{16,}\Z")
_BASE64: Final = re.compile(r"\A(?!.*\.[a-z]{2,4}\Z)[A-Za-z0-9+/_.~-]{16,}={0,2}\Z")  # not a file
_SCATTERED: Final = re.compile(r"\A(?:[A-Za-z]*+\d++){3}[A-Za-z0-9]*\Z")  # digits, as in no name
_DIGITS_ALIKE: Final = bytes.maketrans(b"0123456789", b"0" * 10)
_FOREIGN_DIGIT: Final = re.compile("[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\uff10-\uff19]")
_FOREIGN_DIGITS: Final = {
    zero + value: str(value) for zero in (0x660, 0x6F0, 0x966, 0xFF10) for value in range(10)
}


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    trade_names: str
    token_hints: str
    words: Mapping[str, list[str]]
    fragments: Mapping[str, str]
    patterns: Mapping[str, str]
    iban_lengths: Mapping[int, str]


@cache
def _file() -> _File:
    return _File.model_validate(tomllib.loads(FILE.read_text(encoding="utf-8")))


@cache
def _pattern(name: str) -> re.Pattern[str]:
    text = _filled(_file().patterns[name])
    return re.compile(text, re.VERBOSE if "\n" in text else 0)


def _filled(text: str) -> str:
    parts = {**_file().fragments, **{name: "|".join(each) for name, each in _file().words.items()}}
    return FRAGMENT.sub(lambda found: _filled(parts[found[1]]), text)


@cache
def _assigned_words() -> Mapping[str, re.Pattern[str]]:
    """One for each word: a pattern that begins with a fixed text is searched for fast."""
    words = _filled("<secret_word>").split("|")
    return {word: re.compile(word + _filled("<is><value>")) for word in words}


@cache
def _token_hints() -> tuple[str, ...]:
    return tuple(_file().token_hints.split())


@cache
def _iban_lengths() -> Mapping[str, int]:
    lengths = _file().iban_lengths
    return {country: length for length, each in lengths.items() for country in each.split()}


@cache
def trade_names() -> frozenset[str]:
    """Return the names of people that are words of every other trace."""
    return frozenset(_file().trade_names.split())


def without_personal_data(text: str) -> str:
    """Mask e-mail addresses, IBANs, card and phone numbers by what they are."""
    if "@" in text:
        text = _pattern("email").sub("[email]", text)
    if "%40" in text:
        text = _pattern("email_in_an_address").sub("[email]", text)
    if not has_long_number(text):
        return text
    plain = text if text.isascii() else text.translate(_FOREIGN_DIGITS)
    masked = _replaced(plain, "iban", _iban_end, "[iban]")
    masked = _replaced(masked, "card", _card_end, "[card]")
    masked = _replaced(masked, "phone", re.Match.end, "[phone]")
    masked = _replaced(masked, "phone_national", _national_end, "[phone]")
    masked = _pattern("phone_called").sub(_masked_called, masked)
    masked = _replaced(masked, "phone_local", _local_end, "[phone]")
    return text if masked == plain else masked


def has_long_number(text: str) -> bool:
    """Tell whether 7 digits stand in a row, but for what may stand between a number's groups."""
    digits = text.encode("ascii", "ignore").translate(_DIGITS_ALIKE, b" ()-./")
    return b"0000000" in digits or (not text.isascii() and bool(_FOREIGN_DIGIT.search(text)))


def without_credentials(text: str) -> str:
    """Mask tokens, keys, passwords that are named as such, and userinfo of addresses."""
    if len(text) < SHORTEST_CREDENTIAL:
        return text
    if any(map(text.__contains__, _token_hints())):
        text = _pattern("token").sub("[token]", text)
    if "PRIVATE KEY-" in text:
        text = _pattern("private_key").sub("[token]", text)
    if ":" in text and _pattern("bot_token_end").search(text):
        text = _pattern("bot_token").sub("[token]", text)
    if "@" in text and "://" in text:
        text = _pattern("userinfo").sub("[token]@", text)
    lowered = text.lower()
    if "bearer" in lowered:
        text = _pattern("bearer").sub(_masked_bearer, text)
    if (":" in text or "=" in text) and any(
        word in lowered and is_.search(lowered) for word, is_ in _assigned_words().items()
    ):
        text = _pattern("assigned").sub(_masked_assignment, text)
    if _pattern("password").search(lowered):
        text = _pattern("told").sub(_masked_assignment, text)
    return text


def is_secret(key: str, value: str) -> bool:
    """Tell whether `value`, under such a key, is a credential: `{"api_key": "0fd3..."}`."""
    word = _secret_word(key[-32:])
    if not word:
        return False
    one_word = len(value) >= 6 and not any(map(str.isspace, value))
    return _is_credential(word, value) or (one_word and _names_nothing_else(key[-32:]))


@lru_cache(maxsize=1024)
def _names_nothing_else(key: str) -> bool:
    return bool(_pattern("names_nothing_else").search(key))


@lru_cache(maxsize=1024)
def _secret_word(key: str) -> str:
    found = _pattern("names_a_secret").search(key)
    return found.group() if found else ""


def _masked_bearer(found: re.Match[str]) -> str:
    word, value = found.groups()
    opaque = len(value) >= 20 or any(each.isdigit() for each in value)
    return f"{word}[token]" if opaque else found.group()


def _masked_assignment(found: re.Match[str]) -> str:
    before, value = found.groups()
    first, more, rest = value.partition("&")  # as in an address, where another may follow
    if more and _is_credential(before, first):
        return f"{before}[token]{more}{rest}"
    return f"{before}[token]" if _is_credential(before, value) else found.group()


def _is_credential(word: str, value: str) -> bool:
    """After a word for a password anything with a digit; after others only what nobody reads."""
    if not any(each.isdigit() for each in value):
        return False
    if _pattern("password").search(word):
        return len(value) >= 6
    if _HEX.match(value):
        return True
    mixed = value not in (value.lower(), value.upper())
    return bool(_BASE64.match(value) and (mixed or _SCATTERED.match(value)))


def _masked_called(found: re.Match[str]) -> str:
    return found.group()[: found.start(1) - found.start()] + "[phone]"


def _replaced(text: str, name: str, end_of: Callable[[re.Match[str]], int], mask: str) -> str:
    """`text` with `mask` for what is found, up to `end_of` it; 0 there: it was something else."""
    parts: list[str] = []
    done = at = 0
    pattern = _pattern(name)
    while found := pattern.search(text, at):
        if end := end_of(found):
            parts += text[done : found.start()], mask
            done = at = end
        else:
            at = found.start() + 1
    return "".join([*parts, text[done:]]) if parts else text


def _iban_end(found: re.Match[str]) -> int:
    """Where the IBAN ends, by its country's length and its check digits."""
    length = _iban_lengths().get(found.group()[:2].upper(), 0)
    places = [at for at, each in enumerate(found.group()) if each.isalnum()]
    if not length or len(places) < length:
        return 0
    end = found.start() + places[length - 1] + 1
    if found.string[end : end + 1].isalnum():
        return 0
    code = "".join(found.group()[at] for at in places[:length])
    number = "".join(str(int(each, 36)) for each in code[4:] + code[:4])
    return end if int(number) % 97 == 1 else 0


def _card_end(found: re.Match[str]) -> int:
    """Where the card's number ends; three digits behind it may be its code."""
    groups = list(_GROUP.finditer(found.group()))
    for count in (len(groups), len(groups) - 1):
        digits = "".join(group.group() for group in groups[:count])
        if 13 <= len(digits) <= 19 and _passes_luhn(digits):
            return found.start() + groups[-1].end()
    return 0


def _passes_luhn(digits: str) -> bool:
    odd, even = digits[-1::-2], digits[-2::-2]
    return (sum(map(int, odd)) + sum(sum(divmod(2 * int(each), 10)) for each in even)) % 10 == 0


def _local_end(found: re.Match[str]) -> int:
    """Where the number ends; round ones are amounts."""
    groups = _GROUP.findall(found.group())
    is_round = all(int(group) % 5 == 0 for group in groups) and (
        len(groups) > 1 or found.group().endswith("000")
    )
    return 0 if is_round else found.end()


def _national_end(found: re.Match[str]) -> int:
    """Where a number with a leading 0 ends: as many groups as make 8 to 13 digits."""
    if _DATE.match(found.group()):
        return 0
    groups = list(_GROUP.finditer(found.group()))
    if len(groups) != 5 and all(len(group.group()) == 2 for group in groups):
        return 0
    for count in range(len(groups), 0, -1):
        end = found.start() + groups[count - 1].end()
        taken = [group.group() for group in groups[:count]]
        if (
            8 <= sum(map(len, taken)) <= 13
            and _is_national(taken, len(groups))
            and not _FILE_NAME_OR_ID.match(found.string, end)
        ):
            return end
    return 0


def _is_national(groups: list[str], in_a_row: int) -> bool:
    """Not hours (0930-1730), not a list of numbers.

    Pairs alone are a number only if they are five, as in France, and no series.
    """
    if any(len(group) < 2 for group in groups):
        return False
    if len(groups) == 2 and all(_TIME.fullmatch(group) for group in groups):
        return False
    if any(len(group) > 2 for group in groups):
        return True
    steps = {int(after) - int(before) for before, after in pairwise(groups)}
    return len(groups) == in_a_row == 5 and len(steps) > 1
