"""Mask personal data and secrets before a trace is stored or anything is sent to Langfuse.

A mask names the kind of data: `[email]`, `[phone]`, `[card]`, `[iban]`, `[location]`, `[name]`,
`[secret]`. `docs/admin.md` says what masking cannot do.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Literal
from urllib.parse import quote

from agent.text import Match, Pattern, escape_pattern, pattern, strip_unstorable
from agent.tracing.records import ScoreRecord, SpanRecord, TraceRecord

Content = Literal["full", "masked", "none"]
"""Texts in traces: all except secrets, all except personal data and secrets, or none."""

MAX_DEPTH: Final = 60
"""The levels of nested data that are masked. Deeper levels are left out."""
MAX_MASKED_CHARS: Final = 100_000
"""The part of a text that is masked. The rest is left out."""
MIN_SECRET_CHARS: Final = 8
"""A shorter secret would be masked within other words."""
MIN_WORD_SECRET_CHARS: Final = 16
"""The shortest secret of letters alone. A short word as a key ("ollama") would be masked
everywhere."""
MIN_ANY_CASE_CHARS: Final = 5
"""A shorter name is masked only as it is written and in capitals: "rose" and "may" are words."""
MAX_JUDGED: Final = 30
"""The most different candidates of a text that are examined."""
MAX_TRIES: Final = 20
"""The most tries of the search for a phone number."""
WORDS_IN_METADATA: Final = {"reason", "cause"}
"""The metadata with the reason of an error, which may quote what was said."""

WORD_CHARS: Final = r"\p{Latin}\p{Greek}\p{Cyrillic}\d"
"""Digits, and the letters of scripts that write spaces between words."""
BEFORE: Final = rf"(^|\\[nrt]|[^{WORD_CHARS}])"
r"""What stands before a word: the beginning, a line end or tab as JSON escapes it ("\n"), or a
character that is no part of a word."""
BEFORE_NUMBER: Final = rf"(^|\\[nrt]|[^{WORD_CHARS}_.,/-])"
"""The same before a number, which must not be the end of an id, a path or a longer number."""
BEHIND: Final = rf"($|[^{WORD_CHARS}])"
WORD: Final = pattern(r"[\w'’-]+")
DIGIT_RUN: Final = pattern(r"\d+")
SEVEN_DIGITS: Final = pattern(r"\d(?:[\s()./|_,-]{0,3}\d){6}")
"""The fewest digits of the number of a card, an account or a phone: "030 123-45"."""
EMAIL: Final = pattern(r"[\w\u0300-\u036f.+-]+(?:@|%40)(?:[\w-]+\.)+\p{L}[\w-]+")
LOCATION: Final = pattern(r"(-?\d{1,2}\.\d{4,})\s?[,;]\s?(-?\d{1,3}\.\d{4,})")
"""A latitude and a longitude: "48.8584, 2.2945"."""
# Texts that look like the number of an account ("DE89 3704 0044 0532 0130 00"), of a card
# ("4111 1111 1111 1111") or of a phone ("+49 (30) 1234-567").
IBAN: Final = r"[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]){11,30}"
CARD: Final = r"\d{13,19}|\d{4,}(?:[\s./|_-]\d{4,6}){2,}"
PHONE: Final = r"[+(]{0,2}\d{1,3}(?: ?\()?(?:[ )./\u00a0-]{0,2}\d){6,18}"
COUNTRIES: Final = (
    None,  # a number with the prefix of its country
    "DE",
    "FR",
    "IT",
    "GB",
    "NL",
    "AT",
    "CH",
    "BE",
    "ES",
    "US",
    "PT",
)
"""The countries with phone numbers that are recognised."""


@dataclass(frozen=True, slots=True)
class Masking:
    """Masks texts and nested data. A masked text does not change if it is masked again.

    `secrets` are the credentials of the settings, `names` those of the users of a conversation.
    With the content "full" only secrets are hidden.
    """

    content: Content = "masked"
    secrets: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def mask_text(self, text: str) -> str:
        """Return a masked text, without characters that a database cannot store."""
        text = self._hide_secrets(text)
        if self.content == "full":
            return text
        text = _mask_by_form(text)
        names_rule = _make_names_rule(self.names)
        if names_rule is not None:
            text = names_rule.mask_all(text)
        return text

    def mask_words(self, text: str) -> str:
        """Return the masked text of a user, or "" if the content is "none"."""
        if self.content == "none":
            return ""
        return self.mask_text(text)

    def mask_value(self, value: object, depth: int = 0) -> Any:
        """Return JSON-like data with every text masked. Other objects become masked strings.

        `depth` is the number of levels above the data.
        """
        if value is None or isinstance(value, bool | int | float):
            return value
        if depth > MAX_DEPTH:
            return "[nested]"
        if isinstance(value, Mapping):
            masked: dict[str, Any] = {}
            for key, item in value.items():
                masked_key = self.mask_text(str(key))
                masked[masked_key] = self.mask_value(item, depth + 1)
            return masked
        if isinstance(value, list | tuple):
            return [self.mask_value(item, depth + 1) for item in value]
        return self.mask_text(str(value))

    def mask_trace(self, trace: TraceRecord) -> TraceRecord:
        """Return a trace masked, and without the names of its users.

        With the content "none", or if the trace is hidden, it has no inputs, outputs and comments.
        """
        masking = replace(self, names=trace.names)
        if trace.is_hidden:
            masking = replace(masking, content="none")
        scores: dict[str, ScoreRecord] = {}
        for name, score in trace.scores.items():
            comment = masking.mask_words(score.comment)
            scores[name] = replace(score, comment=comment)
        return replace(
            trace,
            names=(),
            tags=tuple(masking.mask_text(tag) for tag in trace.tags),
            spans=[masking._mask_span(span) for span in trace.spans],
            scores=scores,
        )

    def _mask_span(self, span: SpanRecord) -> SpanRecord:
        if self.content == "none":
            span = _remove_words(span)
        model = span.model
        if model:
            # A server may give a model any name. The numbers in it are dates and sizes.
            model = self._hide_secrets(model)
        return replace(
            span,
            name=self.mask_text(span.name),
            model=model,
            input=self.mask_value(span.input),
            output=self.mask_value(span.output),
            metadata=self.mask_value(span.metadata),
        )

    def _hide_secrets(self, text: str) -> str:
        """Return a text without secrets, cut, and without characters that cannot be stored."""
        if len(text) > MAX_MASKED_CHARS:
            text = f"{text[:MAX_MASKED_CHARS]}[cut: {len(text)} characters in all]"
        text = strip_unstorable(text)
        for secret in _spell_secrets(self.secrets):
            text = text.replace(secret, "[secret]")
        return text


def _remove_words(span: SpanRecord) -> SpanRecord:
    """Return a span without its input and output, and without what may quote them."""
    metadata = dict(span.metadata)
    for key in WORDS_IN_METADATA:
        metadata.pop(key, None)
    return replace(span, input=None, output=None, metadata=metadata)


@lru_cache(maxsize=512)
def _mask_by_form(text: str) -> str:
    """Mask data recognised by its form. This is cached, because texts recur in later requests."""
    if "@" in text or "%40" in text:
        text = EMAIL.sub("[email]", text)
    if SEVEN_DIGITS.search(text):
        text = LOCATION.sub(_mask_location, text)
        for rule in NUMBER_RULES:
            text = rule.mask_all(text)
    return text


def _mask_location(found: Match) -> str:
    latitude, longitude = map(float, found.groups())
    are_scores = abs(latitude) <= 2 and abs(longitude) <= 2  # such as "0.8134, 1.2057"
    if are_scores:
        return found[0]
    return "[location]"


@dataclass(frozen=True, slots=True)
class Rule:
    """Masks data of one kind.

    `form` is the pattern of what looks like the data. The groups of the pattern are the text before
    the data, the data, and the text after it. `find` returns the part of the second group that is
    to be masked, or "" if it only looks like the data.
    """

    form: Pattern
    find: Callable[[str], str]
    mask: str

    def mask_all(self, text: str) -> str:
        """Mask all data of this kind in a text.

        After `MAX_JUDGED` different candidates, all others are masked, because judging one may take
        milliseconds.
        """
        judged: dict[str, str] = {}

        def judge(candidate: str) -> str:
            """Return the part to mask of a text that looks like data of this kind."""
            if candidate not in judged:
                if len(judged) >= MAX_JUDGED:
                    return candidate
                judged[candidate] = self.find(candidate)
            return judged[candidate]

        def mask_one(match: Match) -> str:
            before, candidate, behind = match.groups()
            data = judge(candidate)
            if not data:
                return match[0]
            masked = candidate.replace(data, self.mask, 1)
            return f"{before}{masked}{behind}"

        # Data directly behind a match is not found at once, because both share the character
        # between them.
        masked_text = self.form.sub(mask_one, text)
        while masked_text != text:
            text = masked_text
            masked_text = self.form.sub(mask_one, text)
        return text


def _find_iban(text: str) -> str:
    """Return the IBAN (ISO 13616, modulo 97) with which a text begins, or ""."""
    groups = text.split(" ")
    for count in range(len(groups), 0, -1):
        first_groups = groups[:count]
        if _is_iban("".join(first_groups)):
            return " ".join(first_groups)
    return ""


def _is_iban(signs: str) -> bool:
    # The country and the check digits are moved to the end.
    moved = signs[4:] + signs[:4]
    # "A" is 10, "Z" is 35.
    digits = [str(int(sign, 36)) for sign in moved]
    return int("".join(digits)) % 97 == 1


def _find_card(text: str) -> str:
    """Return the number of a card in one, three or four groups of digits, or ""."""
    groups = [match.span() for match in DIGIT_RUN.finditer(text)]
    for count in (1, 3, 4):
        for first in range(len(groups) - count + 1):
            start, _ = groups[first]
            _, end = groups[first + count - 1]
            number = text[start:end]
            if _is_card(number):
                return number
    return ""


def _is_card(number: str) -> bool:
    digits = [int(sign) for sign in number if sign.isdigit()]
    if not 13 <= len(digits) <= 19:
        return False
    if digits[0] not in (3, 4, 5, 6):  # no large issuer has cards with such numbers
        return False
    # Luhn's rule: from the right, every second digit is doubled, and then all digits are added up.
    total = 0
    for position, digit in enumerate(reversed(digits)):
        if position % 2 == 0:
            total += digit
        else:
            tens, ones = divmod(2 * digit, 10)
            total += tens + ones
    return total % 10 == 0


@lru_cache(maxsize=4096)
def _find_phone(text: str) -> str:
    """Return the phone number in a run of digits that looks like one, or ""."""
    import phonenumbers  # noqa: PLC0415 - only where something looks like one

    # Digits in groups that are unusual for phone numbers may be prices and years.
    strict = phonenumbers.Leniency.STRICT_GROUPING
    for country in COUNTRIES:
        matches = phonenumbers.PhoneNumberMatcher(text, country, strict, MAX_TRIES)
        for match in matches:
            return str(match.raw_string)
    return ""


def _make_number_rule(
    form: str,
    find: Callable[[str], str],
    mask: str,
) -> Rule:
    number = pattern(f"{BEFORE_NUMBER}({form}){BEHIND}")
    return Rule(number, find, mask)


NUMBER_RULES: Final = (
    _make_number_rule(IBAN, _find_iban, "[iban]"),
    _make_number_rule(CARD, _find_card, "[card]"),
    _make_number_rule(PHONE, _find_phone, "[phone]"),
)


@lru_cache(maxsize=8)
def _spell_secrets(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Return the long enough secrets, unchanged and as JSON and URLs escape them."""
    spellings: set[str] = set()
    for secret in secrets:
        min_chars = MIN_SECRET_CHARS
        if secret.isalpha():
            min_chars = MIN_WORD_SECRET_CHARS
        if len(secret) < min_chars:
            continue
        as_json = json.dumps(secret)[1:-1]  # without quotation marks
        in_url = quote(secret, safe="")
        spellings.update((secret, as_json, in_url))
    # A longer spelling may contain a shorter one.
    return tuple(sorted(spellings, key=len, reverse=True))


@lru_cache(maxsize=256)
def _make_names_rule(names: tuple[str, ...]) -> Rule | None:
    """Return a rule for the names and their parts, or None if there is nothing to mask."""
    words: set[str] = set()
    for name in names:
        parts = WORD.findall(name)
        words.update(parts)
        words.add(" ".join(parts))
    spellings: list[str] = []
    for word in sorted(words, key=len, reverse=True):
        has_letters = any(map(str.isalpha, word))
        is_in_mask = word.lower() == "name"
        if len(word) < 2 or not has_letters or is_in_mask:
            continue
        escaped = escape_pattern(word)
        if len(word) >= MIN_ANY_CASE_CHARS:
            spellings.append(f"(?i:{escaped})")
        else:
            spellings += [escaped, escape_pattern(word.upper())]
    if not spellings:
        return None
    any_spelling = "|".join(spellings)
    form = pattern(f"{BEFORE}(@?(?:{any_spelling})){BEHIND}")
    return Rule(form, str, "[name]")  # `str` returns all that was found
