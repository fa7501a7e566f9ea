"""What leaves the process of a trace: everything, everything but personal data, or no content.

`patterns` finds what is told by its form; here it is hidden, with the names that the bot knows and
the secrets it has, through nested data and through JSON that stands in a text, which stays valid.
Nothing given is changed, and what needs no mask is shared. `docs/privacy.md` says what masking
cannot do.
"""

import json
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import is_
from typing import Final, Literal

from agent.engine.span import TraceRecord
from agent.text import Match, escape, fold, pattern
from agent.tracing.patterns import (
    is_place,
    mask_of,
    tells,
    trade_names,
    without_credentials,
    without_personal_data,
)

Content = Literal["full", "masked", "none"]
Change = Callable[[str], str]

MASKS: Final = pattern(r"\[(?:email|phone|card|iban|location|token|name|secret)\]|\\[nrt]")
"""What is hidden; and the escapes of JSON that was cut off, behind which a name may begin."""
ID_CHARACTERS: Final = 64
SHORTEST: Final = 8  # characters of a secret
LONG_WORD: Final = 16  # characters of one that is letters alone

# In scripts that write no spaces between words, a name needs no boundary.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
)
_LETTER: Final = (
    r"[\p{Latin}\p{Greek}\p{Cyrillic}\p{Armenian}\p{Georgian}\p{Hebrew}\p{Arabic}\p{Devanagari}"
    r"\p{Bengali}\p{Tamil}\p{Telugu}\p{Ethiopic}\p{N}]"
)
_UNSPACED_LETTER: Final = pattern(f"[{_UNSPACED}]")
_WORD: Final = pattern("[\\p{L}\\p{N}](?:[\\w\u0300-\u036f'’-]*[\\w\u0300-\u036f])?")
_SPELLED_OUT: Final = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "å": "aa", "ø": "oe"}
    | {"Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "Å": "Aa", "Ø": "Oe"}
)
_ID_BEFORE: Final = pattern(r"[\w./-]+\Z")
_ID_AFTER: Final = pattern(r"[\w./-]*")
_ID: Final = pattern(
    r"(?:[a-z0-9]+(?:-[a-z0-9]+)*-(?:\d{4}|nv)|[a-z0-9]+(?:-[a-z0-9]+){2,}"  # a wine's
    r"|[\w/-][\w./-]*\.(?:md|txt|pdf|html?|csv|json|docx?))"  # a document's
)

DEEPEST: Final = 60  # levels of nested data; what is deeper is left out
TOO_DEEP: Final = "[nested]"
LONGEST_KEY: Final = 32  # characters at its end, which tell what stands under it
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
_DISGUISED: Final = pattern("[\u00ad\u2000-\u200d\u205f\u2060\u3000\ufeff\uff01-\uff5e]")
_HIDING_ESCAPE: Final = pattern(r"\\[^nrt]")  # the patterns know an escaped line's end


def mask(text: str, names: Collection[str] = (), secrets: Collection[str] = ()) -> str:
    """Mask what is personal or secret in a text, each by what it was.

    `[email]`, `[phone]`, `[card]`, `[iban]`, `[location]`, `[token]`, `[name]`, `[secret]`. JSON
    stays valid JSON. Masking twice changes nothing more.
    """
    return Masking("masked", names, secrets).text(text)


def prepared(trace: TraceRecord, content: Content, secrets: Collection[str]) -> TraceRecord:
    """Make the trace as it may leave: a new one, which shares what needs no mask.

    "full" hides credentials alone; "masked" personal data too; "none", and a trace that is hidden,
    is that without input, output and comments. The names are used up: they are not in it.
    """
    masking = Masking(content, trace.names, secrets)
    shown = content != "none" and not trace.is_hidden
    spans = [
        replace(
            span,
            name=masking.text(span.name),
            input=masking.value(span.input) if shown else None,
            output=masking.value(span.output) if shown else None,
            # Why an answer is invalid may say what stands in it.
            metadata={
                key: value
                for key, value in masking.mapping(span.metadata).items()
                if shown or key != "reason"
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


class Masking:
    """What is masked in one trace. A turn's spans repeat their texts: each is masked once."""

    __slots__ = ("_mappings", "_names", "_personal", "_secrets", "_texts")

    def __init__(self, content: Content, names: Collection[str], secrets: Collection[str]) -> None:
        self._personal = content != "full"
        self._secrets = tuple(secrets)
        self._names = names_hidden(tuple(names) if self._personal else ())
        self._texts: dict[str, str] = {}
        self._mappings: dict[int, tuple[Mapping[str, object], Mapping[str, object]]] = {}

    def text(self, text: str, depth: int = 0) -> str:
        """Mask one text; in one that is JSON, each of its texts and numbers."""
        if (known := self._texts.get(text)) is None:
            known = self._texts[text] = self._masked(text, depth)
        return text if known == text else known  # an equal text may be another object

    def value(self, value: object, depth: int = 0) -> object:
        """Mask JSON-like data; anything else as the text it prints as."""
        if isinstance(value, str):
            return self.text(value, depth)
        if value is None or isinstance(value, int | float):
            is_long = isinstance(value, int) and SHORTEST_CARD <= value <= LONGEST_CARD
            return self._number(value) if is_long else value
        if depth > DEEPEST:
            return TOO_DEEP
        if isinstance(value, Mapping):
            return self.mapping(value, depth)
        if not isinstance(value, list | tuple):
            return self.text(str(value), depth)
        return self._listed(value, depth)

    def mapping(self, value: Mapping[str, object], depth: int = 0) -> Mapping[str, object]:
        """Mask an object; its keys may hold names, for "rose" is a key, but nothing else.

        It is kept beside what became of it, so that no other object gets its id.
        """
        if known := self._mappings.get(id(value)):
            return known[1]
        masked, same = dict[str, object](), True
        for key, each in value.items():
            shown, end = key, key[-LONGEST_KEY:] if isinstance(key, str) else ""
            if end:
                shown = (_word if len(key) < SHORT else _formed)(key, self._personal, self._secrets)
            hidden = mask_of(end, each, personal=self._personal) if tells(end) else ""
            masked[shown] = hidden or self.value(each, depth + 1)
            same = same and shown == key and masked[shown] is each
        self._mappings[id(value)] = value, value if same else masked
        return self._mappings[id(value)][1]

    def _listed(self, values: Sequence[object], depth: int) -> object:
        if self._personal and is_place(values):
            return "[location]"
        masked = [self.value(each, depth + 1) for each in values]
        return values if all(map(is_, masked, values)) else masked

    def _number(self, value: float | None) -> object:
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
        formed = _word if len(plain) < SHORT else _prompt if len(plain) in LONG else _formed
        masked = self._names(formed(plain, self._personal, self._secrets))
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


def _formed(text: str, personal: bool, secrets: tuple[str, ...]) -> str:
    """A text without the secrets, and without what is known by its form."""
    for needle in _needles(secrets):
        text = text.replace(needle, "[secret]")
    text = without_credentials(text)
    return without_personal_data(text) if personal else text


# Prompts, keys and the words of the trace itself come back in every turn: they are remembered.
_word, _prompt = lru_cache(maxsize=1024)(_formed), lru_cache(maxsize=64)(_formed)


@lru_cache(maxsize=8)
def _needles(secrets: tuple[str, ...]) -> list[str]:
    """What secrets look like, as they are and as JSON escapes them.

    One that may stand anywhere by chance (a key that is "x", or "ollama") is none: it would hide
    words, and every reader would know which.
    """
    hidden = [each for each in secrets if len(each) >= (LONG_WORD if each.isalpha() else SHORTEST)]
    spelled = {each for secret in hidden for each in (secret, json.dumps(secret)[1:-1])}
    return sorted(spelled, key=_longest_first)


@lru_cache(maxsize=256)
def names_hidden(names: tuple[str, ...]) -> Change:
    """Mask these names as whole words. The pattern is compiled when one of them is seen."""
    loose, exact = _spellings(names)
    needles = {each.lower() for each in (*loose, *exact)}
    any_case, as_is = (
        "|".join(map(escape, sorted(each, key=_longest_first))) or r"[^\x00-\x{10FFFF}]"
        for each in (loose, exact)
    )
    named = pattern(f"(?<!{_LETTER})@?(?:(?i:{any_case})|{as_is})(?!{_LETTER})")

    def change(text: str) -> str:
        lowered = text.lower()
        if not any(map(lowered.__contains__, needles)):
            return text
        parts, done = list[str](), 0
        for kept in MASKS.finditer(text):
            parts += named.sub(_masked_name, text[done : kept.start()]), kept[0]
            done = kept.end()
        return "".join([*parts, named.sub(_masked_name, text[done:])])

    return change


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
        common = whole[0].isupper() and whole.lower() in trade_names()
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
    folded = "".join(fold(each).capitalize() if each.isupper() else fold(each) for each in composed)
    spelled = composed.translate(_SPELLED_OUT)
    forms = {name, composed, unicodedata.normalize("NFD", name), folded, spelled}
    forms |= {each.replace("'", "’") for each in forms} | {each.replace("’", "'") for each in forms}
    return forms | {json.dumps(each)[1:-1] for each in forms}


def _longest_first(text: str) -> tuple[int, str]:
    return -len(text), text


def _masked_name(found: Match) -> str:
    return found[0] if _in_an_id(found) or _in_a_word(found) else "[name]"


def _in_a_word(found: Match) -> bool:
    """Whether a name of one letter, of a script without spaces, stands amid others."""
    start, end = found.span()
    beside = found.string[max(0, start - 1) : start] + found.string[end : end + 1]
    one = end - start == 1 and _UNSPACED_LETTER.match(found[0])
    return bool(one and any(each.isalnum() or each == "_" for each in beside))


def _in_an_id(found: Match) -> bool:
    """Whether what was found is a part of a wine's id or of a document's path."""
    start, end = found.span()
    before = _ID_BEFORE.search(found.string[max(0, start - ID_CHARACTERS) : start])
    after = _ID_AFTER.match(found.string[end : end + ID_CHARACTERS])
    whole = (before[0] if before else "") + found[0] + (after[0] if after else "")
    return whole != found[0] and bool(_ID.fullmatch(whole.rstrip(".")))
