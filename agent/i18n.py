"""The sentences of the interface, in the language of the user.

These are gettext catalogues in `locales`: `messages.pot` holds every sentence in English under its
name, and the `messages.po` of a language holds the translations. A catalogue is read when its
language is first used. A sentence that is missing there is returned in English.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from babel.messages.catalog import Catalog

LOCALES: Final = Path(__file__).with_name("locales")
ENGLISH: Final = "en"
_LANGUAGE: Final = ContextVar("language", default=(ENGLISH, False))
"""The current language, and whether the user chose it."""


def translate(name: str, /, **values: str | float) -> str:
    """Return a sentence in the current language, with `values` for the words in braces.

    The value `count` chooses between singular and plural. Values are inserted unescaped: callers
    escape foreign text for Markdown.

    Raises:
        KeyError: there is no sentence of this name, or a value is missing.
    """
    english, catalogue = _english()[name], _catalogue(current_language())
    if isinstance(english, str):
        sentence = catalogue.pgettext(name, english)
    else:
        sentence = catalogue.npgettext(name, english[0], english[1], int(values["count"]))
    return sentence.format_map(values)


def translate_into(language: str, name: str, /, **values: str | float) -> str:
    """Return a sentence in a given language instead of the current one; see `translate`."""
    with use_language(language):
        return translate(name, **values)


def current_language() -> str:
    """Return the code of the current language, such as "de"."""
    return _LANGUAGE.get()[0]


def is_language_chosen() -> bool:
    """Return whether the user chose the current language: it then holds whatever they write in."""
    return _LANGUAGE.get()[1]


def set_language(language: str | None, *, is_chosen: bool = False) -> None:
    """Set the current language of this task and of the tasks that it starts.

    `language` is a code of Telegram, a locale or a header ("pt-br", "de_AT.UTF-8",
    "fr, en;q=0.7"): its first language is used, or English if that has no catalogue.
    """
    code = "".join(takewhile(str.isalpha, (language or "").lower()))
    _LANGUAGE.set((code if code in languages() else ENGLISH, is_chosen))


@contextmanager
def use_language(language: str | None) -> Iterator[None]:
    """Set the current language within the block."""
    before = _LANGUAGE.get()
    try:
        set_language(language)
        yield
    finally:
        _LANGUAGE.set(before)


@cache
def languages() -> tuple[str, ...]:
    """Return the codes of the languages with a catalogue, English first."""
    return ENGLISH, *sorted(folder.name for folder in LOCALES.iterdir() if folder.is_dir())


@cache
def _english() -> Mapping[str, str | Sequence[str]]:
    """Return the English of the sentences by name: one string, or its singular and plural."""
    messages = _read(LOCALES / "messages.pot")
    return {message.context: message.id for message in messages if message.context}


@cache
def _catalogue(language: str) -> NullTranslations:
    if language == ENGLISH:
        return NullTranslations()
    from babel.messages.mofile import write_mo  # noqa: PLC0415 - 25 ms

    compiled = BytesIO()
    write_mo(compiled, _read(LOCALES / language / "LC_MESSAGES" / "messages.po"))
    compiled.seek(0)
    return GNUTranslations(compiled)


def _read(file: Path) -> "Catalog":
    from babel.messages.pofile import read_po  # noqa: PLC0415 - 25 ms

    with file.open("rb") as catalogue:
        return read_po(catalogue, abort_invalid=True)
