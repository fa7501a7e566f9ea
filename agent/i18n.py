"""Translations of the user interface.

The gettext catalogues are in `locales`: `messages.pot` has every sentence in English under a name,
and each `messages.po` has its translations into one language. A catalogue is read when its language
is first used. Missing translations fall back to English.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

LOCALES: Final = Path(__file__).with_name("locales")
ENGLISH: Final = "en"
REGION_CHARS: Final = 2
_LANGUAGE: Final = ContextVar("language", default=(ENGLISH, False))
"""The current language, and whether the user chose it explicitly."""
_APP_LANGUAGE: Final = ContextVar("app_language", default=("", ""))
"""The language of the user's app and its country, as "pt" and "BR" of "pt-br"; empty if unknown."""


def translate(name: str, /, **values: str | float) -> str:
    """Return the sentence `name` in the current language, with `values` for its placeholders.

    The value `count` selects singular or plural. Values are not escaped: callers must escape
    untrusted text for Markdown.

    Raises:
        KeyError: no sentence has this name, or a value is missing.
    """
    language = current_language()
    sentence: str | Sequence[str] = _sentences(language).get(name) or _sentences(ENGLISH)[name]
    if not isinstance(sentence, str):
        from babel import Locale  # noqa: PLC0415 - 25 ms

        is_one = Locale(language).plural_form(int(values["count"])) == "one"
        sentence = sentence[0 if is_one else 1]
    return sentence.format_map(values)


def translate_into(language: str, name: str, /, **values: str | float) -> str:
    """Return a sentence in the given language; see `translate`."""
    with use_language(language):
        return translate(name, **values)


def current_language() -> str:
    """Return the code of the current language, such as "de"."""
    return _LANGUAGE.get()[0]


def app_language() -> str:
    """Return the language of the user's app, in whatever language they write; may be empty."""
    return _APP_LANGUAGE.get()[0]


def current_region() -> str:
    """Return the country in the language code of the user's app: "BR" of "pt-br"; may be empty."""
    return _APP_LANGUAGE.get()[1]


def set_app_language(code: str | None) -> None:
    """Set the language of the user's app, for this task and the tasks it starts, by its code."""
    language, _, rest = (code or "").replace("_", "-").partition("-")
    region = "".join(takewhile(str.isalpha, rest)).upper()
    known = language if language in languages() else ""
    _APP_LANGUAGE.set((known, region if len(region) == REGION_CHARS else ""))


def is_language_chosen() -> bool:
    """Return whether the user chose the language, so that it overrides that of their messages."""
    return _LANGUAGE.get()[1]


def set_language(language: str | None, *, is_chosen: bool = False) -> None:
    """Set the current language of this task and of the tasks it starts.

    `language` is a Telegram language code ("pt-br"), a locale ("de_AT.UTF-8") or the value of an
    Accept-Language header ("fr, en;q=0.7"), whose first language counts. A language without a
    catalogue falls back to English.
    """
    code = "".join(takewhile(str.isalpha, (language or "").lower()))
    _LANGUAGE.set((code if code in languages() else ENGLISH, is_chosen))


@contextmanager
def use_language(language: str | None) -> Iterator[None]:
    """Set the current language within a `with` block."""
    previous = _LANGUAGE.get()
    try:
        set_language(language)
        yield
    finally:
        _LANGUAGE.set(previous)


@cache
def languages() -> tuple[str, ...]:
    """Return the codes of the languages with a catalogue, English first."""
    return ENGLISH, *sorted(folder.name for folder in LOCALES.iterdir() if folder.is_dir())


@cache
def _sentences(language: str) -> Mapping[str, Any]:
    """Return the sentences of a language by name: a string, or a pair of singular and plural."""
    from babel.messages.pofile import read_po  # noqa: PLC0415 - 25 ms

    file = LOCALES / "messages.pot"
    if language != ENGLISH:
        file = LOCALES / language / "LC_MESSAGES" / "messages.po"
    with file.open("rb") as opened:
        messages = read_po(opened, abort_invalid=True)
    return {
        message.context: message.id if language == ENGLISH else message.string
        for message in messages
        if message.context
    }
