"""Personal data in a text, found by its form: e-mail addresses, cards, IBANs, phone numbers.

Every pattern reads a text in linear time: what repeats is bounded or gives nothing back, and can
begin only where it could not have begun before. Where a form is ambiguous, the rule is written
beside its pattern. Vintages, prices, dates and ids stay: they are what traces are read for.
"""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from agent.tracing.credentials import FRESH

_EMAIL: Final = re.compile(
    "(?<![\\w.%+\u0300-\u036f-])[\\w.%+\u0300-\u036f-]++@(?:[\\w-]++\\.)+[^\\W\\d_][\\w-]++"
)
_EMAIL_IN_AN_ADDRESS: Final = re.compile(
    r"(?i)(?<![\w.+-])[\w.+-]++%40(?:[a-z0-9-]++\.)+[a-z][a-z0-9-]++"
)

# What stands between the groups of a number, beside nothing: never a comma, never a line's end.
_GAP: Final = r"[ .\-\u00a0\u202f\u2010\u2011\u2013]"
_LOOSE_GAP: Final = r"[ ()/.\-\u00a0\u202f\u2010\u2011\u2013]"
_ALONE: Final = r"(?![A-Za-z0-9_]|\.\d)"
# In one piece any number is taken that passes the check; groups must be a card's, and begin as a
# card does, so that four vintages are not a card.
_CARD: Final = re.compile(
    rf"""{FRESH}(?<!\d\.)(?:
        [2-9]\d{{12,18}}
      | (?:[3-69]\d{{3}}|2[2-7]\d\d)
        (?:{_GAP}\d{{4}}){{2}}(?:{_GAP}\d{{4}}(?:{_GAP}?\d{{1,3}})?|{_GAP}\d)
      | (?:[3-69]\d{{3}}|2[2-7]\d\d)(?:{_GAP}\d{{4}}){{3}}
      | [3-69]\d{{7}}{_GAP}\d{{8}}
      | 3\d{{3}}{_GAP}\d{{6}}{_GAP}\d{{4,5}}
    ){_ALONE}""",
    re.VERBOSE,
)
_IBAN: Final = re.compile(rf"{FRESH}[A-Za-z]{{2}}\d\d(?:[ \u00a0-]?[A-Za-z0-9]){{11,30}}")
_IBAN_LENGTHS: Final = {
    country: int(length)
    for length, countries in (
        pair.split(":")
        for pair in (
            "15:NO 16:BE 18:DK,FO,FI,GL,NL,SD 19:MK,SI 20:AT,BA,EE,KZ,LT,LU,MN,XK 21:CH,HR,LI,LV "
            "22:BG,BH,CR,DE,GB,GE,IE,ME,RS,VA 23:AE,GI,IL,IQ,OM,SO,TL "
            "24:AD,CZ,ES,MD,PK,RO,SA,SE,SK,TN,VG 25:LY,PT,ST 26:IS,TR "
            "27:BI,DJ,FR,GR,IT,MC,MR,SM 28:AL,AZ,BY,CY,DO,GT,HU,LB,NI,PL,SV "
            "29:BR,EG,PS,QA,UA 30:JO,KW,MU 31:MT,SC 32:LC 33:RU"
        ).split()
    )
    for country in countries.split(",")
}

_PHONE_WORD: Final = (
    "tel|tél|telephone|téléphone|telefon|telefono|teléfono|telefone|phone|mobile|mobil|móvil|handy|"
    "cell|cellulare|whatsapp|тел|телефон|電話|电话|전화"
)
_PHONE: Final = re.compile(
    rf"""{FRESH}(?<!\+)(?<!\d[.:/-])(?:
        (?:\+[ ]?|00[ ]?)\(?[1-9](?:{_LOOSE_GAP}{{0,3}}\d){{6,14}}
      | (?:[18][ .-]?)?\([2-9]\d\d\)[ ]?\d{{3}}[ .-]?\d\d[ .-]?\d\d
      | (?<![A-Za-z]-)(?:1[-.])?[2-9]\d\d([-.])[2-9]\d\d\1\d{{4}}
    )(?![A-Za-z0-9_]|-\w)""",
    re.VERBOSE,
)
_CALLED: Final = re.compile(
    rf"(?i)(?:(?<![^\W_])|(?<=\\[nrt]))(?:{_PHONE_WORD})(?:\.?:?|#)[ \u00a0]{{0,2}}"
    rf"(\d(?:{_LOOSE_GAP}{{0,2}}\d){{6,12}})(?![A-Za-z0-9_]|-\w)"
)
_NATIONAL: Final = re.compile(
    rf"{FRESH}(?<!/)(?<!\d[.:-])(?<![A-Za-z]-)\(?0[1-9]\d{{0,12}}+"
    rf"(?:{_LOOSE_GAP}{{1,3}}\d{{1,12}}+){{0,7}}"
)
# Numbers as they are written at home, without a leading 0: groups as no prices are, beside no other
# number. As one piece 9 to 12 digits; a time in seconds begins with a 1.
_SPACE: Final = "[ \u00a0\u202f]"
_LOCAL: Final = re.compile(
    rf"""{FRESH}(?<!\d[ .,:/-])(?<![+(#.,-])(?:
        [2-9]\d\d{_SPACE}\d{{3}}{_SPACE}\d{{4}}
      | [2-9]\d\d{_SPACE}\d{{7}}
      | [679]\d\d(?:{_SPACE}\d\d){{3}}
      | [5-9]\d\d{_SPACE}\d{{3}}{_SPACE}\d{{3}}
      | [78][ -]9\d\d[ -]\d{{3}}[ -]\d\d[ -]\d\d
      | [5-9]\d{{8}} | [2-9]\d{{9,11}} | 1[2-9]\d{{9}}
    )(?![ .,:/-]?\d|[A-Za-z0-9_]|-\w)""",
    re.VERBOSE,
)
_FILE_NAME_OR_ID: Final = re.compile(r"\w|-\w|\.[A-Za-z]")
_DATE: Final = re.compile(r"\(?0\d[ ./-]{1,3}(?:\d\d?[ ./-]{1,3})?(?:19|20)\d\d(?!\d)")
_TIME: Final = re.compile(r"(?:[01]\d|2[0-3])[0-5]\d")
_GROUP: Final = re.compile(r"\d+")

_DIGITS_ALIKE: Final = bytes.maketrans(b"0123456789", b"0" * 10)
_FOREIGN_DIGIT: Final = re.compile("[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\uff10-\uff19]")
_FOREIGN_DIGITS: Final = {
    zero + value: str(value) for zero in (0x660, 0x6F0, 0x966, 0xFF10) for value in range(10)
}


def without_personal_data(text: str) -> str:
    """E-mail addresses, IBANs, card and phone numbers are masked by what they are."""
    if "@" in text:
        text = _EMAIL.sub("[email]", text)
    if "%40" in text:
        text = _EMAIL_IN_AN_ADDRESS.sub("[email]", text)
    if not has_long_number(text):
        return text
    plain = text if text.isascii() else text.translate(_FOREIGN_DIGITS)
    masked = _replaced(plain, _IBAN, _iban_end, "[iban]")
    masked = _replaced(masked, _CARD, _card_end, "[card]")
    masked = _replaced(masked, _PHONE, _phone_end, "[phone]")
    masked = _replaced(masked, _NATIONAL, _national_end, "[phone]")
    masked = _CALLED.sub(_masked_called, masked)
    masked = _replaced(masked, _LOCAL, _local_end, "[phone]")
    return text if masked == plain else masked


def has_long_number(text: str) -> bool:
    """Whether 7 digits stand in a row, but for what may stand between the groups of a number."""
    digits = text.encode("ascii", "ignore").translate(_DIGITS_ALIKE, b" ()-./")
    return b"0000000" in digits or (not text.isascii() and bool(_FOREIGN_DIGIT.search(text)))


def _masked_called(found: re.Match[str]) -> str:
    return found.group()[: found.start(1) - found.start()] + "[phone]"


def _replaced(
    text: str, pattern: re.Pattern[str], end_of: Callable[[re.Match[str]], int], mask: str
) -> str:
    """`text` with `mask` for what is found, up to `end_of` it; 0 there: it was something else."""
    parts: list[str] = []
    done = at = 0
    while found := pattern.search(text, at):
        if end := end_of(found):
            parts += text[done : found.start()], mask
            done = at = end
        else:
            at = found.start() + 1
    return "".join([*parts, text[done:]]) if parts else text


def _iban_end(found: re.Match[str]) -> int:
    """Where the IBAN ends, by its country's length and its check digits."""
    length = _IBAN_LENGTHS.get(found.group()[:2].upper(), 0)
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


def _phone_end(found: re.Match[str]) -> int:
    return found.end()


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
