"""What leaves the process of a trace: everything, everything but personal data, or no content.

`masks` knows what to hide in a text; here that is done through nested data and through JSON that
stands in a text, which stays valid JSON. Nothing given is changed, and what needs no mask is
shared. Names are those the bot knows; `docs/privacy.md` says what masking cannot do.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final, Literal

from agent.tracing.masks import is_secret, without_credentials, without_personal_data
from agent.tracing.records import SpanRecord, TraceRecord

Content = Literal["full", "masked", "none"]

SHORTEST_SECRET: Final = 4  # characters; a shorter one would hide half of every text
DEEPEST: Final = 60  # levels of nested data; what is deeper is left out
TOO_DEEP: Final = "[nested]"
_LONG: Final = range(1000, 50_000)  # characters of a text that is worth remembering across turns
_PASSES: Final = 4  # a mask may be the end of what stood around it, and so bring more to light

_MASKS: Final = r"\[(?:email|phone|card|iban|token|name|secret)\]"
# Scripts without spaces between words: there a name needs no boundary.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
)
_LETTER: Final = f"[^\\W_{_UNSPACED}]"
_FIRST: Final = rf"(?:(?<!{_LETTER})|(?<=\\[nrt]))"  # JSON that was cut off is a text with escapes
_LAST: Final = f"(?!{_LETTER})"
_UNSPACED_LETTER: Final = re.compile(f"[{_UNSPACED}]")
_WORD: Final = re.compile("[^\\W_](?:[\\w\u0300-\u036f'’-]*[\\w\u0300-\u036f])?")
_SPELLED_OUT: Final = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "ø": "oe", "å": "aa"}
)
_UNDECOMPOSED: Final = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d"})
_ID_CHARACTERS: Final = 64
_ID_BEFORE: Final = re.compile(r"(?<![\w./-])[\w./-]++\Z")
_ID_AFTER: Final = re.compile(r"[\w./-]*")
_ID: Final = re.compile(
    r"[a-z0-9]+(?:-[a-z0-9]+)*-(?:\d{4}|nv)|[a-z0-9]+(?:-[a-z0-9]+){2,}"  # a wine's
    r"|(?![.])[\w./-]*\.(?:md|txt|pdf|html?|csv|json|docx?)"  # a document's
)

Change = Callable[[str], str]


def mask(text: str, names: Collection[str] = (), secrets: Collection[str] = ()) -> str:
    """`text` without e-mail addresses, phone and card numbers, IBANs, tokens, names and secrets.

    Each is replaced by what it was: `[email]`, `[phone]`, `[card]`, `[iban]`, `[token]`, `[name]`,
    `[secret]`. JSON stays valid JSON. Masking twice changes nothing more.
    """
    return Masking("masked", names, secrets).text(text)


def masked_value(
    value: object, names: Collection[str] = (), secrets: Collection[str] = ()
) -> object:
    """JSON-like data with every text in it masked; keys are only rid of what is no name."""
    return Masking("masked", names, secrets).value(value)


def prepared(trace: TraceRecord, content: Content, secrets: Collection[str]) -> TraceRecord:
    """The trace as it may leave: a new one, which shares what needs no mask.

    "full" hides credentials alone; "masked" personal data too; "none" is that without input,
    output and comments.
    """
    masking = Masking(content, trace.names, secrets)
    scores = {
        name: replace(score, comment=_comment(masking, score.comment, content))
        for name, score in trace.scores.items()
    }
    spans = [_prepared(span, masking, content) for span in trace.spans]
    return replace(trace, spans=spans, scores=scores)


def _prepared(span: SpanRecord, masking: "Masking", content: Content) -> SpanRecord:
    shown = content != "none"
    return replace(
        span,
        name=masking.text(span.name),
        input=masking.value(span.input) if shown else None,
        output=masking.value(span.output) if shown else None,
        metadata=masking.mapping(span.metadata),
    )


def _comment(masking: "Masking", comment: str, content: Content) -> str:
    return "" if content == "none" else masking.text(comment)


class Masking:
    """What is masked in one trace. A turn's spans repeat their texts: each is masked once."""

    __slots__ = ("_changes", "_key_changes", "_keys", "_texts")

    def __init__(
        self, content: Content, names: Collection[str], secrets: Collection[str]
    ) -> None:
        forms = _forms_change(content != "full", tuple(secrets))
        self._key_changes = (forms,)
        self._changes = (forms,) if content == "full" else (forms, _names_change(tuple(names)))
        self._texts: dict[str, str] = {}
        self._keys: dict[str, str] = {}

    def text(self, text: str, depth: int = 0) -> str:
        """One text."""
        if (known := self._texts.get(text)) is None:
            known = self._texts[text] = self._settled(text, self._changes, depth)
        return known

    def value(self, value: object, depth: int = 0) -> object:
        """JSON-like data; what is none of it is masked as the text it prints as."""
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, str):
            return self.text(value, depth)
        if isinstance(value, int):
            return self._number(value)
        if depth > DEEPEST:
            return TOO_DEEP
        if isinstance(value, Mapping):
            return self.mapping(value, depth)
        if isinstance(value, list | tuple):
            return self._items(value, depth)
        return self.text(str(value), depth)
