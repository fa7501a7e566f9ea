"""The language of a turn, and the sentences of the user interface in this language.

The sentences are gettext catalogues: `languages/messages.pot` has each sentence in English under a
name, and the `messages.po` of a language its translations. `messages_BR.po` beside it has those
that differ in a country. A catalogue is read when its language is first used. A sentence that it
lacks is said in English.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from gettext import GNUTranslations
from io import BytesIO
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agent.languages import ENGLISH, LANGUAGES_FOLDER, language_codes, load_languages

if TYPE_CHECKING:
    from babel.messages.catalog import Catalog, Message

CATALOGUE_FILE: Final = "messages.po"
COUNTRY_CATALOGUE_FILE: Final = "messages_{}.po"
TEMPLATE_FILE: Final = LANGUAGES_FOLDER / "messages.pot"
COUNTRY_CHARS: Final = 2
"""The length of the code of a country in ISO 3166."""
MAX_CODE_CHARS: Final = 3
"""The longest code of a language in ISO 639."""
MAX_CACHED_NUMBERS: Final = 4096


class _TurnLanguage(NamedTuple):
    """The language of a turn.

    `code` is a language with a catalogue. `wanted` is the language that was asked for, which may
    have none.
    """

    code: str = ENGLISH
    wanted: str = ENGLISH
    is_settled: bool = False
    """Whether the whole turn has this language: the user's messages were read before."""
    is_chosen: bool = False
    """Whether the user chose it, so that it overrides the language of their messages."""


class _AppLanguage(NamedTuple):
    """The language and the country of the user's app, such as "pt" and "BR". Either may be ""."""

    code: str = ""
    country: str = ""


_DEFAULT_LANGUAGE: Final = _TurnLanguage()
_LANGUAGE: Final = ContextVar("language", default=_DEFAULT_LANGUAGE)
_UNKNOWN_APP_LANGUAGE: Final = _AppLanguage()
_APP_LANGUAGE: Final = ContextVar("app_language", default=_UNKNOWN_APP_LANGUAGE)


def translate(name: str, /, **values: str | float) -> str:
    """Return the sentence `name` in the current language, with `values` for its placeholders.

    The value `count` selects singular or plural. Numbers are written as the language writes them.
    An id or a year is no quantity, so it must be passed as a string. Values are not escaped:
    callers must escape untrusted text for Markdown.

    Raises:
        KeyError: no sentence has this name, or a value is missing.
    """
    english = _load_english_sentences()[name]
    language = current_language()
    translations = _load_translations(language, country_of_language(language))
    if isinstance(english, str):
        sentence = translations.pgettext(name, english)
    else:
        singular, plural = english
        count = int(values["count"])
        sentence = translations.npgettext(name, singular, plural, count)
    written_values = {key: _write(value) for key, value in values.items()}
    return sentence.format_map(written_values)


def translate_into(language: str, name: str, /, **values: str | float) -> str:
    """Return a sentence in the given language, as `translate` does."""
    with use_language(language):
        return translate(name, **values)


def format_number(value: float) -> str:
    """Return a number as users read it in the current language: `1,234.5`, in German `1.234,5`."""
    return _format_number(value, current_locale())


def _write(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return format_number(value)


@lru_cache(maxsize=MAX_CACHED_NUMBERS)
def _format_number(value: float, locale: str) -> str:
    from babel.numbers import format_decimal  # noqa: PLC0415 - 25 ms

    return format_decimal(value, locale=locale)


def current_language() -> str:
    """Return the code of the current language, such as "de". This language has a catalogue."""
    return _LANGUAGE.get().code


def current_locale() -> str:
    """Return the CLDR locale of this turn, in which numbers and names of countries are written.

    The locale is the language that was asked for, even without a catalogue ("ja"), and its country
    if the user's app names one ("pt_BR").
    """
    wanted = _LANGUAGE.get().wanted
    return _find_locale(wanted, country_of_language(wanted))


@lru_cache(maxsize=1024)
def _find_locale(language: str, country: str) -> str:
    """Return the locale of CLDR for a language and a country, which may be "", or else English."""
    from babel.localedata import exists  # noqa: PLC0415 - 25 ms

    locales = [f"{language}_{country}"]
    entry = load_languages().get(language)
    if entry is not None:
        locales.append(entry.locale)
    locales.append(language)
    for locale in locales:
        if exists(locale):
            return locale
    return ENGLISH


def app_language() -> str:
    """Return the language of the user's app, or "". The user may write in another language."""
    return _APP_LANGUAGE.get().code


def app_country() -> str:
    """Return the country in the language code of the user's app, such as "BR" of "pt-br", or ""."""
    return _APP_LANGUAGE.get().country


def country_of_language(language: str) -> str:
    """Return the country of the user's app if the app is in this language, or ""."""
    app = _APP_LANGUAGE.get()
    if app.code != language:
        return ""
    return app.country


def set_app_language(code: str | None) -> None:
    """Set the language of the user's app, for this task and the tasks it starts.

    `code` is a language code of Telegram, such as "pt-br".
    """
    text = code or ""
    _, _, rest = text.replace("_", "-").partition("-")
    country = "".join(takewhile(str.isalpha, rest)).upper()
    if len(country) != COUNTRY_CHARS or not country.isascii():
        country = ""
    _APP_LANGUAGE.set(_AppLanguage(_read_code(text), country))


def is_language_chosen() -> bool:
    """Return whether the user chose the language, which then overrides that of their messages."""
    return _LANGUAGE.get().is_chosen


def is_language_settled() -> bool:
    """Return whether the whole turn has the current language."""
    return _LANGUAGE.get().is_settled


def set_language(
    language: str | None,
    *,
    is_settled: bool = False,
    is_chosen: bool = False,
) -> None:
    """Set the current language of this task and of the tasks it starts.

    `language` is a Telegram language code ("pt-br"), a locale ("de_AT.UTF-8") or the value of an
    Accept-Language header ("fr, en;q=0.7"), whose first language counts. A language without a
    catalogue falls back to English. A chosen language is settled too.
    """
    wanted = _read_code(language) or ENGLISH
    code = wanted
    if wanted not in languages():
        code = ENGLISH
    is_settled = is_settled or is_chosen
    _LANGUAGE.set(_TurnLanguage(code, wanted, is_settled, is_chosen))


def _read_code(text: str | None) -> str:
    """Return the code at the beginning of a language code, a locale or a header, or ""."""
    lowered = (text or "").lower()
    code = "".join(takewhile(str.isalpha, lowered))
    if len(code) > MAX_CODE_CHARS or not code.isascii():
        return ""
    return code


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
    codes = [ENGLISH]
    for code in language_codes():
        if code != ENGLISH and _find_catalogue_file(code).exists():
            codes.append(code)
    return tuple(codes)


def _find_catalogue_file(language: str) -> Path:
    return LANGUAGES_FOLDER / language / CATALOGUE_FILE


@cache
def _load_english_sentences() -> Mapping[str, str | tuple[str, str]]:
    """Return the English of each sentence by its name: a string, or its singular and plural."""
    sentences: dict[str, str | tuple[str, str]] = {}
    for message in _read_catalogue(TEMPLATE_FILE):
        if not message.context:  # the header
            continue
        if isinstance(message.id, str):
            sentences[message.context] = message.id
        else:
            singular, plural = message.id
            sentences[message.context] = singular, plural
    return sentences


@cache
def _load_translations(language: str, country: str = "") -> GNUTranslations:
    """Return the translations into a language. Those that differ in a country come first."""
    if language == ENGLISH:
        return read_translations(TEMPLATE_FILE)
    if not country:
        return read_translations(_find_catalogue_file(language))
    general = _load_translations(language)
    file_name = COUNTRY_CATALOGUE_FILE.format(country)
    country_file = LANGUAGES_FOLDER / language / file_name
    if not country_file.exists():
        return general
    of_country = read_translations(country_file)
    of_country.add_fallback(general)
    return of_country


def read_translations(file: Path) -> GNUTranslations:
    """Return the translations of a catalogue. A sentence that lacks one of its forms stays English.

    Raises:
        OSError: the file cannot be read.
        PoFileError: the file is not a catalogue.
    """
    from babel.messages.mofile import write_mo  # noqa: PLC0415 - 25 ms

    catalogue = _read_catalogue(file)
    for message in list(catalogue):
        if message.id and not _is_translated(message):
            catalogue.delete(message.id, message.context)
    compiled = BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return GNUTranslations(compiled)


def _read_catalogue(file: Path) -> "Catalog":
    from babel.messages.pofile import read_po  # noqa: PLC0415 - 25 ms

    with file.open("rb") as opened:
        return read_po(opened, abort_invalid=True)


def _is_translated(message: "Message") -> bool:
    """Return whether a message has a translation in each of its forms."""
    if isinstance(message.string, tuple | list):
        return all(message.string)
    return bool(message.string)
