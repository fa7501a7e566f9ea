"""Mask personal data and credentials before a trace is stored or anything is sent to Langfuse.

A mask tells what it hides: `[email]`, `[phone]`, `[card]`, `[iban]`, `[location]`, `[token]`,
`[name]`, `[secret]`. `docs/admin.md` says what masking cannot do.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Final, Literal

from agent.text import Match, Pattern, escape, pattern
from agent.tracing.records import TraceRecord

Content = Literal["full", "masked", "none"]
"""The words of users and models that traces show: all but credentials, no personal data, none."""

MAX_DEPTH: Final = 60  # levels of nested data; deeper levels are left out
TOO_DEEP: Final = "[nested]"
MIN_SECRET_CHARS: Final = 8  # 16 of letters alone, for a key may be "ollama"
MIN_NAME_CHARS: Final = 2
UNSPACED: Final = "\u0e00"  # where scripts begin that write no spaces between words
TRADE_WORDS: Final = frozenset(
    "rose rosé red white port sherry brandy margaux chablis merlot basil olive ginger rosemary "
    "sage saffron pepper cherry blanc rosa rosso bianca bianco blanca rioja may june".split()
)
WORD: Final = pattern(r"[\w'’-]+")
MAX_CACHED_CHARS: Final = 50_000  # of a text whose masks are remembered

TOKENS: Final = (
    pattern(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*-----END [A-Z ]*PRIVATE KEY-----"),
    pattern(r"\d{6,12}:[A-Za-z0-9_-]{30,}"),  # of a Telegram bot
    pattern(
        r"\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|hf|gsk|npm|xox[abprs]|AKIA|AIza)"
        r"[_-]?[A-Za-z0-9_-]{16,}"
    ),
    pattern(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"),  # a JSON Web Token
)
CREDENTIALS: Final = (
    pattern(r"((?i:bearer|basic) )[\w.+/=-]{16,}"),
    pattern(r"(://)[^\s/@:]+:[^\s/]+(@)"),
    pattern(
        r"((?i:password|passwort|mot de passe|contraseña|(?:api|access|secret)[_ -]?key|secret"
        r"|token)\"?\s?(?:[:=]|is)\s?\"?)[^\s\"&,]*\d[^\s\"&,]*"
    ),
)
"""The words before a credential stay, so a reader sees what was hidden."""

EMAIL: Final = pattern(r"[\w\u0300-\u036f.+-]+(?:@|%40)(?:[\w-]+\.)+\p{L}[\w-]+")
LOCATION: Final = pattern(r"(-?\d{1,2}\.\d{4,})\s?[,;]\s?(-?\d{1,3}\.\d{4,})")
DIGITS: Final = pattern(r"\d(?:[\s()./|_,-]{0,3}\d){6}")
IBAN: Final = pattern(r"(?i)[a-z]{2}\d{2}(?: ?[a-z0-9]){11,30}")
CARD: Final = pattern(r"\d(?:[\s./|_-]{0,3}\d){12,22}")
PHONE: Final = pattern(r"[+(]{0,2}\d{1,3}(?: ?\()?(?:[ )./\u00a0-]{0,2}\d){6,18}")
NATIONAL: Final = pattern(
    r"(?:1[ -])?\(?\d{3}\)?[ .-]?\d{3}[ .-]?\d{4}|\d{3} \d{7}"
    r"|\d{3} (?:\d{3} \d{2}[1-9]|\d{2} \d{2} \d{2})|\d{8}[1-9]"
)
"""Phone numbers that begin with no 0; other groupings look like prices and years."""
DATES: Final = pattern(r"(?:\d{2}[./-]){1,2}\d{4}.*|\d{4}-\d{4}|\d{2}(?:[ .-]\d{2}){1,3}")
WITH_ZERO: Final = ("DE", "FR", "IT", "GB", "NL", "AT", "CH", "BE")
WITHOUT_ZERO: Final = ("ES", "IT", "US", "PT")
"""The countries whose phone numbers are found without a prefix."""


class Masking:
    """Mask texts and nested data. Masking twice changes nothing more.

    `names` are those of the users of a conversation, `secrets` the credentials of the settings.
    With the content "full" only credentials are hidden.
    """

    def __init__(
        self, content: Content, names: Collection[str] = (), secrets: Collection[str] = ()
    ) -> None:
        self._personal = content != "full"
        self._secrets = _needles(tuple(secrets))
        self._names = _names_pattern(tuple(names)) if self._personal else None

    def text(self, text: str) -> str:
        """Return a text masked; if it is JSON, with each of its texts masked."""
        if text[:1] not in ("{", "[") or (data := _json(text)) is None:
            return self._masked(text)
        masked = self.value(data)
        return text if masked == data else json.dumps(masked, ensure_ascii=False)

    def value(self, value: object, depth: int = 0) -> object:
        """Return JSON-like data with every text masked; anything else as the text it prints as."""
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, str | int):
            masked = self.text(str(value))
            return value if masked == str(value) else masked
        if depth > MAX_DEPTH:
            return TOO_DEEP
        if isinstance(value, Mapping):
            return {
                self.text(key) if isinstance(key, str) else key: self.value(item, depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(item, depth + 1) for item in value]
        return self.text(str(value))

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        mask_forms = _cached if len(text) <= MAX_CACHED_CHARS else _without_forms
        text = mask_forms(text, self._personal)
        return self._names.sub(_masked_name, text) if self._names else text


def mask(text: str, names: Collection[str] = (), secrets: Collection[str] = ()) -> str:
    """Return a text without personal data and credentials."""
    return Masking("masked", names, secrets).text(text)


def masked_trace(trace: TraceRecord, content: Content, secrets: Collection[str]) -> TraceRecord:
    """Return a trace masked, and without the names of its users.

    With the content "none", or if the trace is hidden, it has no inputs, outputs and comments.
    """
    masking = Masking(content, trace.names, secrets)
    shown = content != "none" and not trace.is_hidden
    spans = [
        replace(
            span,
            name=masking.text(span.name),
            input=masking.value(span.input) if shown else None,
            output=masking.value(span.output) if shown else None,
            # The reason why an answer is invalid may quote it.
            metadata={
                masking.text(key): masking.value(value)
                for key, value in span.metadata.items()
                if shown or key != "reason"
            },
        )
        for span in trace.spans
    ]
    scores = {
        name: replace(score, comment=masking.text(score.comment) if shown else "")
        for name, score in trace.scores.items()
    }
    return replace(
        trace, names=(), tags=tuple(map(masking.text, trace.tags)), spans=spans, scores=scores
    )


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _without_forms(text: str, personal: bool) -> str:
    """Mask all that is known by its form."""
    for token in TOKENS:
        text = token.sub(_masked_token, text)
    for credential in CREDENTIALS:
        text = credential.sub(_announced, text)
    if personal and ("@" in text or "%40" in text):
        text = EMAIL.sub("[email]", text)
    if not personal or not DIGITS.search(text):
        return text
    text = LOCATION.sub(_masked_location, text)
    for number, is_valid, hidden in NUMBERS:
        text = number.sub(partial(_masked_number, is_valid, hidden), text)
    return text


_cached: Final = lru_cache(maxsize=512)(_without_forms)
"""Prompts, keys and names of spans are masked again in every turn."""


def _masked_token(found: Match) -> str:
    """Mask a key, but not words with hyphens: no capital, and no digits but those of a year."""
    key = found[0]
    are_words = key == key.lower() and not any(map(str.isdigit, key[:-4]))
    return key if are_words else "[token]"


def _announced(found: Match) -> str:
    before, *after = found.groups()
    return f"{before}[token]{''.join(after)}"


def _masked_location(found: Match) -> str:
    """Mask coordinates, but not two scores."""
    return "[location]" if any(abs(float(part)) > 2 for part in found.groups()) else found[0]


def _masked_number(is_valid: Callable[[str], bool], hidden: str, found: Match) -> str:
    """Mask the first valid number in a row of groups, as long as it is, unless it is in a word."""
    row, text, start = found[0], found.string, found.start()
    for begin in (at for at in range(len(row)) if at == 0 or not row[at - 1].isalnum()):
        at = start + begin
        if _is_in_word(text, at - 1) or (text[at - 1 : at] in {*"_.,/-"} and at):
            continue
        ends = range(len(row), begin + 6, -1)
        for end in ends[:1] if hidden == "[phone]" else ends:
            is_whole = row[end - 1].isalnum() and not _is_in_word(text, start + end)
            if is_whole and is_valid(row[begin:end]):
                return row[:begin] + hidden + row[end:]
    return row


def _is_in_word(text: str, at: int) -> bool:
    """Return whether the character at a place continues a word.

    Escaped line ends do not, nor do scripts without spaces.
    """
    sign = text[at : at + 1] if at >= 0 else ""
    is_escape = sign in ("n", "r", "t") and text[at - 1 : at] == "\\"
    return sign.isalnum() and sign < UNSPACED and not is_escape


def _is_iban(written: str) -> bool:
    """Check the remainder by 97 of an IBAN (ISO 13616): its letters count as 10 to 35."""
    signs = "".join(written.split())
    moved = signs[4:] + signs[:4]
    return signs[:2].isalpha() and int("".join(str(int(sign, 36)) for sign in moved)) % 97 == 1


def _is_card(written: str) -> bool:
    """Check the sum of a card's digits, in which each second one is doubled (Luhn)."""
    digits = [int(sign) for sign in written if sign.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    is_right = (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
    return is_right and 13 <= len(digits) <= 19 and digits[0] in (3, 4, 5, 6)


@lru_cache(maxsize=4096)
def _is_phone(written: str) -> bool:
    import phonenumbers  # noqa: PLC0415 - only where something looks like one

    regions: tuple[str | None, ...] = (None,)
    if written.startswith("00"):
        written = f"+{written[2:]}"
    elif written.startswith(("0", "(0")):
        regions = () if DATES.fullmatch(written) else WITH_ZERO
    elif "+" not in written:
        regions = WITHOUT_ZERO if NATIONAL.fullmatch(written) else ()
    for region in regions:
        try:
            if phonenumbers.is_valid_number(phonenumbers.parse(written, region)):
                return True
        except phonenumbers.NumberParseException:
            continue
    return False


NUMBERS: Final = (
    (IBAN, _is_iban, "[iban]"),
    (CARD, _is_card, "[card]"),
    (PHONE, _is_phone, "[phone]"),
)


@lru_cache(maxsize=8)
def _needles(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Return the secrets that appear nowhere by chance, plain and as JSON escapes them."""
    hidden = [
        secret for secret in secrets if len(secret) >= MIN_SECRET_CHARS * (1 + secret.isalpha())
    ]
    spelled = {spelling for secret in hidden for spelling in (secret, json.dumps(secret)[1:-1])}
    return tuple(sorted(spelled, key=len, reverse=True))


@lru_cache(maxsize=256)
def _names_pattern(names: tuple[str, ...]) -> Pattern | None:
    """Return a pattern of the names and of their parts, in any case."""
    parts = [WORD.findall(name) for name in names]
    words = {word for found in parts for word in (" ".join(found), *found)}
    spelled = {
        word for word in words if len(word) >= MIN_NAME_CHARS and any(map(str.isalpha, word))
    }
    either = "|".join(map(escape, sorted(spelled, key=len, reverse=True)))
    return pattern(f"(?i)@?(?:{either})") if spelled else None


def _masked_name(found: Match) -> str:
    """Mask a name that is a word of its own.

    In lower case it is no name if it is short, a word of the trade, or part of a wine's id.
    """
    text, (start, end) = found.string, found.span()
    follows = not found[0].startswith("@") and _is_in_word(text, start - 1)
    is_within = (follows or _is_in_word(text, end)) and found[0] < UNSPACED
    is_small = found[0] == found[0].lower() != found[0].upper()
    beside = text[start - 1 : start] + text[end : end + 1]
    is_word = len(found[0]) < 3 or found[0] in TRADE_WORDS or not {*beside}.isdisjoint("-.")
    return found[0] if is_within or (is_small and is_word) else "[name]"
