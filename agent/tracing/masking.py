"""What leaves the process of a trace: everything, everything but personal data, or no content.

`masks` knows what to hide in a text; here that is done through nested data and through JSON that
stands in a text, which stays valid JSON. Nothing given is changed, and what needs no mask is
shared. Names are those the bot knows; `docs/privacy.md` says what masking cannot do.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from operator import is_
from typing import Final, Literal

from agent.tracing.credentials import is_secret, without_credentials
from agent.tracing.known_words import Change, names_hidden, secrets_hidden
from agent.tracing.masks import without_personal_data
from agent.tracing.records import SpanRecord, TraceRecord

Content = Literal["full", "masked", "none"]

DEEPEST: Final = 60  # levels of nested data; what is deeper is left out
TOO_DEEP: Final = "[nested]"
SHORT: Final = 40  # characters: words shorter than this are remembered across turns
LONG: Final = range(1000, 50_000)  # and texts of this length, prompts among them
PASSES: Final = 4  # where a mask ends what stood around it, more may come to light
SHORTEST_CARD: Final = 10**12
LONGEST_CARD: Final = 10**19
_TO_PLAIN: Final = {
    **dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff")),
    **{wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)},
    **dict.fromkeys([*range(0x2000, 0x200B), 0x205F, 0x3000], " "),
}
_DISGUISED: Final = re.compile("[\u00ad\u2000-\u200d\u205f\u2060\u3000\ufeff\uff01-\uff5e]")
_HIDING_ESCAPE: Final = re.compile(r"\\[^nrt]")  # the patterns know an escaped line's end


def mask(text: str, names: Collection[str] = (), secrets: Collection[str] = ()) -> str:
    """`text` without e-mail addresses, phone and card numbers, IBANs, tokens, names and secrets.

    Each is replaced by what it was: `[email]`, `[phone]`, `[card]`, `[iban]`, `[token]`, `[name]`,
    `[secret]`. JSON stays valid JSON. Masking twice changes nothing more.
    """
    return Masking("masked", names, secrets).text(text)


def prepared(trace: TraceRecord, content: Content, secrets: Collection[str]) -> TraceRecord:
    """The trace as it may leave: a new one, which shares what needs no mask.

    "full" hides credentials alone; "masked" personal data too; "none" is that without input,
    output and comments. The names are used up: they are not in it.
    """
    masking = Masking(content, trace.names, secrets)
    scores = {
        name: replace(score, comment=_comment(masking, score.comment, content))
        for name, score in trace.scores.items()
    }
    spans = [_prepared(span, masking, content) for span in trace.spans]
    return replace(trace, names=(), spans=spans, scores=scores)


def _prepared(span: SpanRecord, masking: "Masking", content: Content) -> SpanRecord:
    shown = content != "none"
    return replace(
        span,
        name=masking.text(span.name),
        input=masking.value(span.input) if shown else None,
        output=masking.value(span.output) if shown else None,
        metadata=dict(masking.mapping(span.metadata)),
    )


def _comment(masking: "Masking", comment: str, content: Content) -> str:
    return "" if content == "none" else masking.text(comment)


class Masking:
    """What is masked in one trace. A turn's spans repeat their texts: each is masked once."""

    __slots__ = ("_forms", "_mappings", "_names", "_texts")

    def __init__(self, content: Content, names: Collection[str], secrets: Collection[str]) -> None:
        self._forms = _forms(content != "full", tuple(secrets))
        self._names = names_hidden(() if content == "full" else tuple(names))
        self._texts: dict[str, str] = {}
        self._mappings: dict[int, tuple[Mapping[str, object], Mapping[str, object]]] = {}

    def text(self, text: str, depth: int = 0) -> str:
        """One text; in one that is JSON, each of its texts and numbers."""
        if (known := self._texts.get(text)) is None:
            known = self._texts[text] = self._masked(text, depth)
        return text if known == text else known  # an equal text may be another object

    def value(self, value: object, depth: int = 0) -> object:
        """JSON-like data; anything else as the text it prints as."""
        if isinstance(value, str):
            return self.text(value, depth)
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, int):
            return self._number(value)
        return TOO_DEEP if depth > DEEPEST else self._nested(value, depth)

    def mapping(self, value: Mapping[str, object], depth: int = 0) -> Mapping[str, object]:
        """An object; its keys may hold names, for "rose" is a key, but nothing else.

        It is kept beside what became of it, so that no other object gets its id.
        """
        if known := self._mappings.get(id(value)):
            return known[1]
        masked = {self._key(key): self._entry(key, each, depth + 1) for key, each in value.items()}
        same = masked.keys() == value.keys() and all(masked[key] is value[key] for key in masked)
        self._mappings[id(value)] = value, value if same else masked
        return self._mappings[id(value)][1]

    def _nested(self, value: object, depth: int) -> object:
        if isinstance(value, Mapping):
            return self.mapping(value, depth)
        if not isinstance(value, list | tuple):
            return self.text(str(value), depth)
        masked = [self.value(each, depth + 1) for each in value]
        return value if all(map(is_, masked, value)) else masked

    def _entry(self, key: object, value: object, depth: int) -> object:
        if isinstance(key, str) and isinstance(value, str) and is_secret(key, value):
            return "[token]"
        return self.value(value, depth)

    def _key(self, key: str) -> str:
        return self._forms(key) if isinstance(key, str) else key

    def _number(self, value: int) -> int | str:
        if not SHORTEST_CARD <= value <= LONGEST_CARD:
            return value
        digits = str(value)
        masked = self.text(digits)
        return value if masked == digits else masked

    def _masked(self, text: str, depth: int) -> str:
        masked = self._hidden(text)
        if masked == text and not ("\\" in text and _HIDING_ESCAPE.search(text)):
            return text
        if depth <= DEEPEST and (data := _json(text)) is not None:
            return self._masked_json(text, data, depth + 1)
        for _ in range(PASSES):
            before, masked = masked, self._hidden(masked)
            if masked == before:
                break
        return masked

    def _hidden(self, text: str) -> str:
        """What is to be hidden, found also where letters between are invisible, or wide."""
        plain = text if text.isascii() else _plain(text)
        masked = self._names(self._forms(plain))
        return text if masked == plain else masked

    def _masked_json(self, text: str, data: object, depth: int) -> str:
        masked = self.value(data, depth)
        if masked is data:
            return text
        return json.dumps(masked, ensure_ascii=text.isascii() or "\\u" in text)


def _plain(text: str) -> str:
    return text.translate(_TO_PLAIN) if _DISGUISED.search(text) else text


def _json(text: str) -> object:
    """The data of a text that is an object, an array or a string; None if it is none of them."""
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@lru_cache(maxsize=8)
def _forms(personal: bool, secrets: tuple[str, ...]) -> Change:
    """Masks what is known by its form, and the secrets.

    Prompts, keys and the words of the trace itself come back in every turn: they are remembered.
    """
    hide_secrets = secrets_hidden(secrets)

    def change(text: str) -> str:
        text = without_credentials(hide_secrets(text))
        return without_personal_data(text) if personal else text

    word, prompt = lru_cache(maxsize=1024)(change), lru_cache(maxsize=64)(change)

    def changed(text: str) -> str:
        if len(text) < SHORT:
            return word(text)
        return prompt(text) if len(text) in LONG else change(text)

    return changed
