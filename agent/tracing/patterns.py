"""What masking looks for, as data (`masking.toml`): credentials and personal data. Pure.

One scanner finds where digits stand in a row, however they are grouped; what such a row is, its
digits say: an issuer and a check digit, a sign, a word before it, the shape of a number as people
write it at home. Vintages, prices, dates and ids stay: they are what traces are read for.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from agent import text as linear
from agent.tables import Strict, read_toml
from agent.text import Match, Pattern

FILE: Final = Path(__file__).with_name("masking.toml")
FRAGMENT: Final = linear.pattern(r"<([a-z_]+)>")
SCATTERED: Final = 3
"""Places where figures stand in a long key, at least."""
SHORTEST_CREDENTIAL: Final = 8  # characters, with the word before it


class _Table(Strict):
    trade_names: str
    location_keys: frozenset[str]
    words: Mapping[str, list[str]]
    fragments: Mapping[str, str]
    patterns: Mapping[str, str | list[str]]
    iban_lengths: Mapping[int, str]


@cache
def table() -> _Table:
    """Return what stands in the file."""
    return read_toml(_Table, FILE)


def pattern(name: str) -> Pattern:
    """Return a pattern by its name in the file."""
    return _patterns()[name]


@cache
def _patterns() -> Mapping[str, Pattern]:
    sources = {
        name: each if isinstance(each, str) else f"(?:{'|'.join(each)})"
        for name, each in table().patterns.items()
    }
    return {name: linear.pattern(_filled(source)) for name, source in sources.items()}


def _filled(text: str) -> str:
    parts = {**table().fragments, **{name: "|".join(each) for name, each in table().words.items()}}
    return FRAGMENT.sub(lambda found: _filled(parts[found[1]]), text)


@cache
def _secret_words() -> tuple[str, ...]:
    return (*table().words["password_word"], *table().words["secret_word"][1:])


@cache
def trade_names() -> frozenset[str]:
    """Return the names of people that are words of every other trace."""
    return frozenset(table().trade_names.split())


def without_credentials(text: str) -> str:
    """Mask tokens, keys, passwords that are named as such, and userinfo of addresses."""
    if len(text) < SHORTEST_CREDENTIAL:
        return text
    text = pattern("token").sub(_masked_token, text)
    if "PRIVATE KEY" in text:
        text = pattern("private_key").sub("[token]", text)
    if ":" in text:
        text = pattern("bot_token").sub("[token]", text)
    if "@" in text and "://" in text:
        text = pattern("userinfo").sub("://[token]@", text)
    lowered = text.lower()
    if "bearer" in lowered:
        text = pattern("bearer").sub(_masked_bearer, text)
    if any(map(lowered.__contains__, _secret_words())):
        text = pattern("assigned").sub(_masked_assignment, text)
    return pattern("opaque").sub(_masked_opaque, text)


def is_fresh(text: str, start: int) -> bool:
    r"""Tell whether no word and no id goes on at `start`; an escaped line's end (`\n`) is none.

    ASCII only: where a script writes no spaces, a number may stand right behind a letter.
    """
    before = text[max(0, start - 2) : start]
    in_a_word = before[-1:].isascii() and (before[-1:].isalnum() or before[-1:] == "_")
    return not in_a_word or before in ("\\n", "\\r", "\\t")


@lru_cache(maxsize=1024)
def tells(key: str) -> bool:
    """Tell whether what stands under a key may be a credential, or a place, by the key alone."""
    return bool(_secret_word(key)) or key.lower() in table().location_keys


def mask_of(key: str, value: object, *, personal: bool) -> str:
    """Return the mask of what stands under a key that tells; empty if it is nothing to be hidden.

    `{"api_key": "0fd3..."}` is a credential, `{"latitude": 48.8}` where somebody is.
    """
    if isinstance(value, str) and (word := _secret_word(key)):
        one_word = len(value) >= 6 and not any(map(str.isspace, value))
        alone = one_word and bool(pattern("names_nothing_else").search(key))
        return "[token]" if alone or _is_credential(word, value) else ""
    is_place = personal and key.lower() in table().location_keys
    has_number = isinstance(value, int | float | list | tuple) or any(map(str.isdigit, str(value)))
    return "[location]" if is_place and has_number else ""


def _secret_word(key: str) -> str:
    found = pattern("names_a_secret").search(key)
    return found[0] if found else ""


def _masked_token(found: Match) -> str:
    """The mask of a key; words with hyphens have no capital, and no digits but a year's."""
    start, key = found.start(), found[0]
    written = key == key.lower() and not any(each.isdigit() for each in key[:-4])
    whole = is_fresh(found.string, start) and found.string[start - 1 : start] != "-"
    return "[token]" if whole and not written else key


def _masked_opaque(found: Match) -> str:
    """The mask of letters and figures without order; what is named has figures in few places."""
    run = found[0]
    is_mixed = run not in (run.lower(), run.upper())
    scattered = len(pattern("figures").findall(run)) >= SCATTERED
    return "[token]" if is_mixed and scattered and is_fresh(found.string, found.start()) else run


def _masked_bearer(found: Match) -> str:
    word, value = found.groups()
    opaque = len(value) >= 20 or any(each.isdigit() for each in value)
    return f"{word}[token]" if opaque else found[0]


def _masked_assignment(found: Match) -> str:
    before, value = found.groups()
    first, more, rest = value.partition("&")  # as in an address, where another may follow
    if more and _is_credential(before, first):
        return f"{before}[token]{more}{rest}"
    return f"{before}[token]" if _is_credential(before, value) else found[0]


def _is_credential(word: str, value: str) -> bool:
    """After a word for a password anything with a digit; after others only what nobody reads."""
    if not any(each.isdigit() for each in value):
        return False
    if pattern("password").search(word):
        return len(value) >= 6
    if pattern("hexadecimal").fullmatch(value):
        return True
    if not pattern("base64").fullmatch(value) or pattern("file_name").fullmatch(value):
        return False
    mixed = value not in (value.lower(), value.upper())
    return mixed or bool(pattern("scattered").fullmatch(value))


_MOST_GROUPS: Final = 8
_DIGITS_ALIKE: Final = bytes.maketrans(b"0123456789", b"0" * 10)
_FOREIGN_DIGITS: Final = {
    zero + value: str(value) for zero in (0x660, 0x6F0, 0x966, 0xFF10) for value in range(10)
}
_ALIKE: Final = str.maketrans("\u00a0\u202f\u2010\u2011\u2013", "  ---")
_NEAR: Final = {*" ./-\u00a0\u202f\u2010\u2011\u2013)(", ") ", ")-", " (", "-(", ".("}


class Group(NamedTuple):
    """Digits in one piece, where they stand, and what stands between them and those before."""

    digits: str
    start: int
    end: int
    gap: str


Taken = tuple[int, int]
"""Where a number begins (a sign or a bracket may belong to it), and how many groups it has."""
Take = Callable[[str, Sequence[Group]], Taken | None]
"""Tells whether a number begins with the first of these groups, which are `_MOST_GROUPS` or
fewer of a row."""


def without_personal_data(text: str) -> str:
    """Mask e-mail addresses, coordinates, IBANs, card and phone numbers by what they are."""
    if "@" in text or "%40" in text:
        text = pattern("email").sub("[email]", text)
    plain = text if text.isascii() else text.translate(_FOREIGN_DIGITS)
    masked = pattern("card_printed").sub(_masked_printed, _without_places(plain))
    if has_long_number(masked):
        masked = pattern("iban").sub(_masked_iban, masked)
        masked = _masked_rows(masked, _card, "[card]")
        masked = _masked_rows(masked, _phone, "[phone]")
    return text if masked == plain else masked


def has_long_number(text: str) -> bool:
    """Tell whether 7 digits stand in a row, but for what may stand between a number's groups."""
    digits = text.encode("ascii", "ignore").translate(_DIGITS_ALIKE, b" ()-./|\t\r\n")
    return b"0000000" in digits


def _without_places(text: str) -> str:
    if pattern("decimals").search(text):
        text = pattern("location_pair").sub(_masked_pair, text)
        text = pattern("location_named").sub(_masked_named, text)
    if "°" in text:
        text = pattern("location_degrees").sub("[location]", text)
    return pattern("location_code").sub("[location]", text) if "+" in text else text


def _masked_pair(found: Match) -> str:
    if not _may_begin(found.string, found.start(), "", ".,"):
        return found[0]
    numbers, behind = found.groups()[:2], found.string[found.end() :][:1]
    latitude, longitude = (abs(float(each.replace(",", "."))) for each in numbers)
    on_earth = 2 < max(latitude, longitude) <= 180 and latitude <= 90  # not two scores
    if not on_earth or all(map(pattern("month_of_a_year").fullmatch, numbers)):
        return found[0]
    return f"[location]{found[3] if behind.isalpha() else ''}"


def _masked_named(found: Match) -> str:
    return f"{found[1]}[location]"


def _masked_rows(text: str, take: Take, mask: str) -> str:
    """`text` with `mask` for each number that `take` finds in its rows of digits."""
    parts, done = list[str](), 0
    for row in pattern("row").finditer(text):
        groups = _groups(row)
        at = 0
        while at < len(groups):
            taken = take(text, groups[at : at + _MOST_GROUPS])
            if taken is None:
                at += 1
                continue
            start, count = taken
            parts += text[done:start], mask
            at += count
            done = groups[at - 1].end
    return "".join([*parts, text[done:]]) if parts else text


def _groups(row: Match) -> list[Group]:
    groups, before = list[Group](), row.start()
    for found in pattern("digits").finditer(row[0]):
        start, end = row.start() + found.start(), row.start() + found.end()
        groups.append(Group(found[0], start, end, row.string[before:start]))
        before = end
    return groups


def _masked_iban(found: Match) -> str:
    """The mask for an IBAN of its country's length with right check digits, and what follows."""
    text = found[0]
    length = _iban_lengths().get(text[:2].upper(), 0)
    places = [at for at, each in enumerate(text) if each.isalnum()]
    if not length or len(places) < length or not is_fresh(found.string, found.start()):
        return text
    end = places[length - 1] + 1
    code = "".join(text[at] for at in places[:length])
    number = "".join(str(int(each, 36)) for each in code[4:] + code[:4])
    whole = not found.string[found.start() + end :][:1].isalnum()
    return f"[iban]{text[end:]}" if whole and int(number) % 97 == 1 else text


@cache
def _iban_lengths() -> Mapping[str, int]:
    lengths = table().iban_lengths
    return {country: length for length, each in lengths.items() for country in each.split()}


def _card(text: str, groups: Sequence[Group]) -> Taken | None:
    """A card's number, however it is split, and the three digits of its code behind it."""
    first, digits, found = groups[0], "", 0
    if first.gap == "." or not is_fresh(text, first.start):
        return None
    for count, group in enumerate(groups, 1):
        digits += group.digits
        if len(digits) > 19:
            break
        if _is_card(digits) and not pattern("card_goes_on").match(text[group.end : group.end + 2]):
            found = count
        if len(group.digits) < 4:
            break
    if found and found < len(groups) and len(groups[found].digits) == 3:
        found += _is_alone(text, groups[found].end)
    return (first.start, found) if found else None


def _masked_printed(found: Match) -> str:
    text, (start, end) = found.string, found.span()
    begins = _may_begin(text, start, "_,;:·") and text[start - 1 : start] != "."
    ends = not pattern("printed_goes_on").match(text[end : end + 2])
    return (
        "[card]"
        if begins and ends and _is_card("".join(filter(str.isdigit, found[0])))
        else found[0]
    )


def is_place(numbers: Sequence[object]) -> bool:
    """Tell whether these are a latitude and a longitude, and perhaps a height."""
    if not (2 <= len(numbers) <= 3 and all(isinstance(each, float) for each in numbers)):
        return False
    return _without_places(f"{numbers[0]}, {numbers[1]}") == "[location]"


def _is_card(digits: str) -> bool:
    if not (13 <= len(digits) <= 19 and pattern("card").fullmatch(digits)):
        return False
    odd, even = digits[-1::-2], digits[-2::-2]
    return (sum(map(int, odd)) + sum(sum(divmod(2 * int(each), 10)) for each in even)) % 10 == 0


def _phone(text: str, groups: Sequence[Group]) -> Taken | None:
    line = next((at for at, group in enumerate(groups) if at and "\n" in group.gap), len(groups))
    for take in (_international, _called, _national, _local):
        if taken := take(text, groups[:line]):
            return taken
    return None


def _international(text: str, groups: Sequence[Group]) -> Taken | None:
    """A number behind a + or 00: 7 to 15 digits."""
    first = groups[0]
    before = text[max(0, first.start - 4) : first.start]
    sign = pattern("plus").search(before) if "+" in before else None
    start = first.start - len(sign[0]) if sign else first.start
    zeros = 0 if sign else 2
    country = "".join(group.digits for group in groups[:2])[zeros : zeros + 1]
    if not (sign or first.digits.startswith("00")) or country in ("", "0"):
        return None
    count = _counted(text, groups, range(7 + zeros, 16 + zeros))
    return (start, count) if count and _may_begin(text, start, ".:/-", "+") else None


def _called(text: str, groups: Sequence[Group]) -> Taken | None:
    """A number behind "tel" and the like: 7 to 13 digits."""
    first = groups[0]
    before = text[max(0, first.start - 24) : first.start]
    by_a_word = before.rstrip(" \u00a0.:#")[-1:].isalpha()
    if not (by_a_word and pattern("phone_called").search(before)):
        return None
    count = _counted(text, groups, range(7, 14))
    return (first.start, count) if count else None


def _counted(text: str, groups: Sequence[Group], lengths: range) -> int:
    """How many groups make a number of such a length, the longest; 0 if none do."""
    total = counted = 0
    for count, group in enumerate(groups, 1):
        total += len(group.digits)
        if total in lengths and _is_alone(text, group.end):
            counted = count
    return counted


def _national(text: str, groups: Sequence[Group]) -> Taken | None:
    """A number with a leading 0: as many groups as make 8 to 13 digits, none in brackets."""
    first = groups[0]
    bracket = next((at for at, group in enumerate(groups) if at and "(" in group.gap), len(groups))
    groups = groups[:bracket]
    start = first.start - (text[first.start - 1 : first.start] == "(")
    begins = pattern("national").fullmatch(first.digits) and _may_begin(text, start, ".:-", "/")
    if not begins or pattern("date").match(text[start : start + 16]):
        return None
    if len(groups) != 5 and all(len(group.digits) == 2 for group in groups):
        return None
    for count in range(len(groups), 0, -1):
        taken = [group.digits for group in groups[:count]]
        long_enough = 8 <= sum(map(len, taken)) <= 13
        end = groups[count - 1].end
        if long_enough and _is_national(taken, len(groups)) and _is_alone(text, end):
            return None if pattern("file_ending").match(text[end : end + 2]) else (start, count)
    return None


def _is_national(groups: list[str], in_a_row: int) -> bool:
    """Not hours (0930-1730), not a list of numbers.

    Pairs alone are a number only if they are five, as in France, and no series.
    """
    if any(len(group) < 2 for group in groups):
        return False
    if len(groups) == 2 and all(pattern("time").fullmatch(group) for group in groups):
        return False
    if any(len(group) > 2 for group in groups):
        return True
    steps = {int(after) - int(before) for before, after in pairwise(groups)}
    return len(groups) == in_a_row == 5 and len(steps) > 1


def _local(text: str, groups: Sequence[Group]) -> Taken | None:
    """A number as it is written at home, beside no other number. Round ones are amounts."""
    far = (at for at in range(1, len(groups)) if groups[at].gap not in _NEAR)
    count = next(far, len(groups))
    if not 9 <= sum(len(group.digits) for group in groups[:count]) <= 13:
        return None
    start, end = groups[0].start, groups[count - 1].end
    bracket = text[start - 1 : start] == "("
    written = text[start - bracket : end].translate(_ALIKE)
    if bracket and text[end : end + 1] == ")":
        bracket, written = False, written[1:]
    if not pattern("phone_local").fullmatch(written) or _are_amounts(groups[:count]):
        return None
    begins = _may_begin(text, start - bracket, " .,:/-", "+#.,-")
    alone = _is_alone(text, end) and not pattern("next_number").match(text[end : end + 2])
    return (start - bracket, count) if begins and alone else None


def _are_amounts(groups: Sequence[Group]) -> bool:
    """Whether all groups are round or years, or two of them years."""
    numbers = [group.digits for group in groups]
    years = [each for each in numbers if pattern("year").fullmatch(each)]
    amounts = [each for each in numbers if int(each[-9:]) % (5 if len(each) <= 3 else 100) == 0]
    if len(numbers) == 1:
        return numbers[0].endswith("000")
    return len(years) > 1 or all(each in years or each in amounts for each in numbers)


def _may_begin(text: str, start: int, joining: str, barred: str = "") -> bool:
    """Whether a number may begin: not within a word, not behind a digit and one of `joining`."""
    before = text[max(0, start - 2) : start]
    joined = len(before) == 2 and before[0].isdigit() and before[1] in joining
    in_an_id = len(before) == 2 and before[0].isalpha() and before[1] == "-"
    return is_fresh(text, start) and not joined and not in_an_id and before[-1:] not in {*barred}


def _is_alone(text: str, end: int) -> bool:
    """Whether what ends is not the beginning of a word or of an id."""
    return not pattern("goes_on").match(text[end : end + 2])
