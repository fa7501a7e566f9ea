"""Money, dates, sizes and countries as users read them in their language. Babel formats them.

`format_number` is in `agent.i18n`. For a model, money always has the same plain form, which
`format_money_for_model` in `agent.sommelier.vocabulary` makes.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from typing import Final

from agent.i18n import current_locale, translate
from agent.text import fold

MAX_CACHED_AMOUNTS: Final = 4096
CENTS: Final = 100
MILLILITRES: Final = 1_000
"""The millilitres in a litre."""


def format_money(amount: float, currency: str | None) -> str:
    """Return an amount as users read it: `€18`, `CHF 17.50`, in German `16,50 €`.

    `currency` is an ISO 4217 code, or None if the currency is unknown. A whole amount has no
    decimals.
    """
    return _format_money(amount, currency, current_locale())


def format_money_range(
    low: float,
    high: float,
    currency: str | None,
) -> str:
    """Return two amounts as a range: `€10–20`, in German `10–20 €`."""
    first = format_money(low, currency)
    last = format_money(high, currency)
    if currency is None:
        return f"{first}–{last}"
    sign = _format_sign(currency)
    if first.endswith(sign) and last.endswith(sign):
        first = first.removesuffix(sign).rstrip()
    else:
        last = last.removeprefix(sign).lstrip()
    return f"{first}–{last}"


def _format_sign(currency: str) -> str:
    """Return the sign of a currency in the current locale, or its code."""
    from babel import Locale  # noqa: PLC0415 - 25 ms

    signs = Locale.parse(current_locale()).currency_symbols
    sign: str = signs.get(currency, currency)
    return sign


@lru_cache(maxsize=MAX_CACHED_AMOUNTS)
def _format_money(
    amount: float,
    currency: str | None,
    locale: str,
) -> str:
    from babel.numbers import format_currency, format_decimal  # noqa: PLC0415 - 25 ms

    pattern = "#,##0.00"
    if currency is not None:
        pattern = _find_money_pattern(currency, locale)
    is_whole = round(amount * CENTS) % CENTS == 0
    if is_whole:
        pattern = pattern.replace("0.00", "0")
    if currency is None:
        return format_decimal(amount, pattern, locale)
    return format_currency(amount, currency, pattern, locale, currency_digits=False)


def _find_money_pattern(currency: str, locale: str) -> str:
    """Return CLDR's pattern of an amount with two decimals, in which `¤` is the currency."""
    from babel import Locale  # noqa: PLC0415 - 25 ms

    cldr = Locale.parse(locale)
    pattern: str = cldr.currency_formats["standard"].pattern
    symbol = cldr.currency_symbols.get(currency, currency)
    # Babel does not apply CLDR's rule "currencySpacing": `CHF 20` has a space, `€20` has none.
    if symbol[-1:].isalpha():
        pattern = pattern.replace("¤#", "¤\u00a0#")
    return pattern


def format_date(day: date) -> str:
    """Return a day: `Nov 28`, in German `28. Nov.`.

    The year is added if it is not the current one.
    """
    from babel.dates import format_skeleton  # noqa: PLC0415 - 25 ms

    skeleton = "yMMMd"
    if day.year == datetime.now(UTC).year:
        skeleton = "MMMd"
    locale = current_locale()
    written: str = format_skeleton(skeleton, day, locale=locale)
    return written


def format_volume(size_ml: int) -> str:
    """Return the size of a bottle or glass: `375 mL`, `1.5 L`, in German `1,5 l`."""
    from babel.units import format_unit  # noqa: PLC0415 - 25 ms

    unit = "volume-milliliter"
    size = float(size_ml)
    if size_ml >= MILLILITRES:
        unit = "volume-liter"
        size = size_ml / MILLILITRES
    locale = current_locale()
    written: str = format_unit(size, unit, "short", locale=locale)
    return written


def format_duration(minutes: int) -> str:
    """Return hours and minutes: `3 hr 20 min`, in German `3 Std. 20 Min.`."""
    from babel.units import format_unit  # noqa: PLC0415 - 25 ms

    locale = current_locale()
    hours, rest = divmod(minutes, 60)
    written: str = format_unit(rest, "duration-minute", "short", locale=locale)
    if hours:
        written_hours = format_unit(hours, "duration-hour", "short", locale=locale)
        written = f"{written_hours} {written}"
    return written


def format_country(code: str) -> str:
    """Return the name of a country (ISO 3166), or the code if CLDR does not know it."""
    return country_names(current_locale()).get(code, code)


@cache
def country_names(locale: str) -> Mapping[str, str]:
    """Return the names of all countries in a locale of CLDR, by their ISO 3166 codes."""
    from babel import Locale  # noqa: PLC0415 - 25 ms

    return dict(Locale.parse(locale).territories)


@cache
def month_names(language: str) -> frozenset[str]:
    """Return the folded names of the months in a language."""
    from babel import Locale  # noqa: PLC0415 - 25 ms

    months = Locale.parse(language).months
    full_names = months["format"]["wide"]
    return frozenset(map(fold, full_names.values()))


def format_language(code: str) -> str:
    """Return the name of a language (ISO 639) as it stands in a sentence, or else its code."""
    from babel import Locale  # noqa: PLC0415 - 25 ms

    names = Locale.parse(current_locale()).languages
    name: str = names.get(code, code)
    return name


def join_or(names: Iterable[str]) -> str:
    """Return the names joined as in "red, white or rosé", or "" if there are none."""
    distinct = dict.fromkeys(filter(None, names))
    if len(distinct) < 2:
        return "".join(distinct)
    *others, last = distinct
    listed = ", ".join(others)
    return f"{listed} {translate('fallback_or')} {last}"
