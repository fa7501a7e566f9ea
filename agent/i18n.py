"""The sentences of the interface, in the language of whom they are said to.

`messages.pot` in `locales` holds each in English by its name, the `messages.po` of a language what
it is there: gettext catalogues, read as they are when a language is first spoken. What a catalogue
does not hold is said in English.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent.text import Match, pattern

if TYPE_CHECKING:
    from babel.messages.catalog import Catalog

LOCALES: Final = Path(__file__).with_name("locales")
ENGLISH: Final = "en"
FAHRENHEIT: Final = "fahrenheit"
_CELSIUS: Final = pattern(
    r"(?P<before>\A|\D)"
    r"(?:(?P<low>\d{1,2})(?P<to> ?[-–—] ?| (?:to|and|bis|und|à|et|a|y|e|tot|en) ))?"
    r"(?P<high>\d{1,2}) ?° ?C\b"
)
_SPOKEN: Final = ContextVar("spoken", default=(ENGLISH, False))
"""The language that is spoken, and whether it was chosen."""


def say(name: str, /, **values: str | float) -> str:
    """Return a sentence in the language that is spoken, with `values` for the words in braces.

    One that depends on a number is chosen by the value `count`. A value stands as it is, whatever
    it holds: who passes on foreign words makes Markdown of them.

    Raises:
        KeyError: there is no such sentence, or a value is missing.
    """
    english, catalogue = _english()[name], _catalogue(spoken())
    if isinstance(english, str):
        sentence = catalogue.pgettext(name, english)
    else:
        sentence = catalogue.npgettext(name, *english, int(values["count"]))
    return sentence.format_map(values)


def say_in(language: str, name: str, /, **values: str | float) -> str:
    """Return a sentence in another language than the one that is spoken; see `say`."""
    with speaking(language):
        return say(name, **values)


def spoken() -> str:
    """Return the code of the language that is spoken now, as in "de"."""
    return _SPOKEN.get()[0]


def is_chosen() -> bool:
    """Whether who is spoken to chose the language that is spoken, whatever they write."""
    return _SPOKEN.get()[1]


def speak(language: str | None, *, is_chosen: bool = False) -> None:
    """Speak a language from now on, in this task and those that it starts.

    Of a code of Telegram, a locale or a header ("pt-br", "de_AT.UTF-8", "fr, en;q=0.7") what counts
    is the first language; one without a catalogue is English.
    """
    code = "".join(takewhile(str.isalpha, (language or "").lower()))
    _SPOKEN.set((code if code in languages() else ENGLISH, is_chosen))


@contextmanager
def speaking(language: str | None) -> Iterator[None]:
    """Speak a language within the block."""
    before = _SPOKEN.get()
    try:
        speak(language)
        yield
    finally:
        _SPOKEN.set(before)


@cache
def languages() -> tuple[str, ...]:
    """Return the codes of the languages that there are catalogues of, English first."""
    return ENGLISH, *sorted(each.name for each in LOCALES.iterdir() if each.is_dir())


def in_fahrenheit(text: str) -> str:
    """Return `text` with its temperatures in °F: `16–18 °C` is `61–64 °F`."""
    return _CELSIUS.sub(_converted, text)


def _converted(found: Match) -> str:
    low, high = (
        each and str(round(int(each) * 9 / 5 + 32)) for each in (found["low"], found["high"])
    )
    degrees = f"{low}{found['to']}{high}" if low else high
    return f"{found['before']}{degrees} °F"


def in_every_language(name: str, /, **values: str | float) -> dict[str, str]:
    """Return what a sentence is in each language."""
    return {language: say_in(language, name, **values) for language in languages()}


@cache
def _english() -> dict[str, str | tuple[str, str]]:
    named = _read(LOCALES / "messages.pot")
    return {each.context: _id(each.id) for each in named if each.context}


def _id(written: str | Sequence[str]) -> str | tuple[str, str]:
    return written if isinstance(written, str) else (written[0], written[1])


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
