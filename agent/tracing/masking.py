"""Mask personal data and secrets before a trace is stored or anything is sent to Langfuse.

A mask names the kind of data: `[email]`, `[phone]`, `[card]`, `[iban]`, `[location]`, `[name]`,
`[secret]`. `docs/admin.md` says what masking cannot do.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Literal
from urllib.parse import quote

from agent.text import Match, Pattern, escape_pattern, pattern, strip_unstorable
from agent.tracing.records import TraceRecord

Content = Literal["full", "masked", "none"]
"""Texts in traces: all except secrets, all except personal data and secrets, or none."""

MAX_DEPTH: Final = 60  # levels of nested data; deeper levels are left out
MIN_SECRET_CHARS: Final = 8  # 16 of letters alone, for a key may be "ollama"
MIN_ANY_CASE_CHARS: Final = 5  # of shorter names, "rose" and "may" are words
MAX_MASKED_CHARS: Final = 100_000  # of one text
MAX_JUDGED: Final = 30  # runs of digits in one text
MAX_TRIES: Final = 20  # of the search for a phone number

LETTERS: Final = r"\p{Latin}\p{Greek}\p{Cyrillic}\d"
"""The letters of scripts that write spaces between words."""
BEFORE: Final = rf"(^|\\[nrt]|[^{LETTERS}])"
BEFORE_NUMBER: Final = rf"(^|\\[nrt]|[^{LETTERS}_.,/-])"
BEHIND: Final = rf"($|[^{LETTERS}])"
WORD: Final = pattern(r"[\w'’-]+")
NUMBER: Final = pattern(r"\d+")
EMAIL: Final = pattern(r"[\w\u0300-\u036f.+-]+(?:@|%40)(?:[\w-]+\.)+\p{L}[\w-]+")
LOCATION: Final = pattern(r"(-?\d{1,2}\.\d{4,})\s?[,;]\s?(-?\d{1,3}\.\d{4,})")
DIGITS: Final = pattern(r"\d(?:[\s()./|_,-]{0,3}\d){6}")
IBAN: Final = r"[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]){11,30}"
CARD: Final = r"\d{13,19}|\d{4,}(?:[\s./|_-]\d{4,6}){2,}"
PHONE: Final = r"[+(]{0,2}\d{1,3}(?: ?\()?(?:[ )./\u00a0-]{0,2}\d){6,18}"
COUNTRIES: Final = (None, *"DE FR IT GB NL AT CH BE ES US PT".split())  # None: with a prefix


@dataclass(frozen=True, slots=True)
class Masking:
    """Mask texts and nested data. Masking twice changes nothing more.

    `secrets` are the credentials of the settings, `names` those of the users of a conversation.
    With the content "full" only secrets are hidden.
    """

    content: Content = "masked"
    secrets: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def text(self, text: str) -> str:
        """Return a text masked, without characters that no database stores."""
        if len(text) > MAX_MASKED_CHARS:
            text = f"{text[:MAX_MASKED_CHARS]}[cut: {len(text)} characters in all]"
        text = strip_unstorable(text)
        for secret in _spelled(self.secrets):
            text = text.replace(secret, "[secret]")
        if self.content == "full":
            return text
        text = _without_forms(text)
        if names := _names_pattern(self.names):
            text = _replaced(names, lambda found: f"{found[1]}[name]{found[2]}", text)
        return text

    def words(self, text: str) -> str:
        """Return the masked text of a user, or "" if the content is "none"."""
        return "" if self.content == "none" else self.text(text)

    def value(self, value: object, depth: int = 0) -> object:
        """Return JSON-like data with every text masked; other objects become masked strings."""
        if value is None or isinstance(value, bool | int | float):
            return value
        if depth > MAX_DEPTH:
            return "[nested]"
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item, depth + 1) for item in value]
        return self.text(str(value))

    def trace(self, trace: TraceRecord) -> TraceRecord:
        """Return a trace masked, and without the names of its users.

        With the content "none", or if the trace is hidden, it has no inputs, outputs and comments.
        """
        masking = replace(self, names=trace.names)
        shown = self.content != "none" and not trace.is_hidden
        spans = [
            replace(
                span,
                name=masking.text(span.name),
                # A server may name the model as it likes; numbers in it are dates and sizes.
                model=span.model and replace(self, content="full").text(span.model),
                input=masking.value(span.input) if shown else None,
                output=masking.value(span.output) if shown else None,
                # Why an answer is invalid, or a request failed, may quote what was said.
                metadata={
                    masking.text(key): masking.value(value)
                    for key, value in span.metadata.items()
                    if shown or key not in {"reason", "cause"}
                },
            )
            for span in trace.spans
        ]
        scores = {
            name: replace(score, comment=masking.text(score.comment) if shown else "")
            for name, score in trace.scores.items()
        }
        tags = tuple(map(masking.text, trace.tags))
        return replace(trace, names=(), tags=tags, spans=spans, scores=scores)


@lru_cache(maxsize=512)
def _without_forms(text: str) -> str:
    """Mask data recognised by its form. Cached, because texts recur in later requests and turns."""
    if "@" in text or "%40" in text:
        text = EMAIL.sub("[email]", text)
    if DIGITS.search(text):
        text = LOCATION.sub(_masked_location, text)
        for form, number_in, mask in NUMBER_RULES:
            number_mask = _NumberMask(number_in, mask)
            text = _replaced(form, number_mask.replace, text)
    return text


def _masked_location(found: Match) -> str:
    """Mask coordinates, but not two scores."""
    return "[location]" if any(abs(float(part)) > 2 for part in found.groups()) else found[0]


def _replaced(form: Pattern, new: Callable[[Match], str], text: str) -> str:
    """Replace all matches, also those that share a character with the one before."""
    while (replaced := form.sub(new, text)) != text:
        text = replaced
    return text


@dataclass(slots=True)
class _NumberMask:
    """Masks the valid numbers of one kind in a text.

    After `MAX_JUDGED` runs of digits every further one is masked: to judge one takes milliseconds.
    """

    number_in: Callable[[str], str]
    mask: str
    judged: dict[str, str] = field(default_factory=dict)

    def replace(self, found: Match) -> str:
        """Mask a number; other digits may precede or follow it."""
        before, row, behind = found.groups()
        if row not in self.judged:
            if len(self.judged) >= MAX_JUDGED:
                return f"{before}{self.mask}{behind}"
            self.judged[row] = self.number_in(row)
        number = self.judged[row]
        return before + row.replace(number, self.mask, 1) + behind if number else found[0]


def _iban_in(written: str) -> str:
    """Return the IBAN (ISO 13616, modulo 97) with which a text begins; "" if there is none."""
    groups = written.split(" ")
    for count in range(len(groups), 0, -1):
        signs = "".join(groups[:count])
        moved = "".join(str(int(sign, 36)) for sign in signs[4:] + signs[:4])
        if int(moved) % 97 == 1:
            return " ".join(groups[:count])
    return ""


def _card_in(written: str) -> str:
    """Return the number of a card in one, three or four groups of digits; "" if there is none."""
    groups = [found.span() for found in NUMBER.finditer(written)]
    for count in (1, 3, 4):
        for (start, _), (_, end) in zip(groups, groups[count - 1 :], strict=False):
            digits = [int(sign) for sign in written[start:end] if sign.isdigit()]
            # Each second digit is doubled in the sum (Luhn).
            doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
            is_right = (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
            if is_right and 13 <= len(digits) <= 19 and digits[0] in (3, 4, 5, 6):
                return written[start:end]
    return ""


@lru_cache(maxsize=4096)
def _phone_in(written: str) -> str:
    """Return the phone number within digits that look like one; "" if there is none."""
    import phonenumbers  # noqa: PLC0415 - only where something looks like one

    strict = phonenumbers.Leniency.STRICT_GROUPING  # other groups look like prices and years
    for country in COUNTRIES:
        for found in phonenumbers.PhoneNumberMatcher(written, country, strict, MAX_TRIES):
            return str(found.raw_string)
    return ""


NUMBER_RULES: Final = tuple(
    (pattern(f"{BEFORE_NUMBER}({form}){BEHIND}"), number_in, mask)
    for form, number_in, mask in (
        (IBAN, _iban_in, "[iban]"),
        (CARD, _card_in, "[card]"),
        (PHONE, _phone_in, "[phone]"),
    )
)


@lru_cache(maxsize=8)
def _spelled(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Return the secrets that appear nowhere by chance, plain and as JSON escapes them."""
    spelled = {
        spelling
        for secret in secrets
        if len(secret) >= MIN_SECRET_CHARS * (1 + secret.isalpha())
        for spelling in (secret, json.dumps(secret)[1:-1], quote(secret, safe=""))
    }
    return tuple(sorted(spelled, key=len, reverse=True))


@lru_cache(maxsize=256)
def _names_pattern(names: tuple[str, ...]) -> Pattern | None:
    """Return a pattern of the names and of their parts, but for the word in the mask."""
    parts = [WORD.findall(name) for name in names]
    words = {word for found in parts for word in (" ".join(found), *found)}
    spelled = [
        f"(?i:{escape_pattern(word)})"
        if len(word) >= MIN_ANY_CASE_CHARS
        else f"{escape_pattern(word)}|{escape_pattern(word.upper())}"
        for word in sorted(words, key=len, reverse=True)
        if len(word) > 1 and any(map(str.isalpha, word)) and word.lower() != "name"
    ]
    return pattern(f"{BEFORE}@?(?:{'|'.join(spelled)}){BEHIND}") if spelled else None
