"""The vocabulary of wine: names with their synonyms, currencies, and the values of each property.

The catalogue is in English, so free text in other languages finds little in it. Models must
therefore use canonical values, and imports are mapped to them. A grape, country or region is found
by any of its names in `synonyms.toml`.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final, Literal

from agent.languages import load_languages
from agent.tables import StrictModel, read_toml
from agent.text import fold, split_words

NameKind = Literal["grapes", "countries", "regions"]

OAKY: Final = "oaky"
"""The taste of oak, which searches look for by `oak` instead of by text."""
OAKED: Final = (
    "oak",
    "oaky",
    "oaked",
    "barrel",
    "barrels",
    "barrique",
    "barriques",
    "cask",
    "casks",
    "foudre",
    "foudres",
    "wood",
    "vanilla",
)
"""The words in the notes of wines with oak."""
UNOAKED: Final = (
    "no oak",
    "no new oak",
    "no wood",
    "without oak",
    "without wood",
    "not oaky",
    "unoaked",
)
"""The phrases in the notes of wines without oak, which have a word of `OAKED` too."""


def normalize(name: str) -> str:
    """Return a name without case, accents or punctuation: `Côte-Rôtie` becomes `cote rotie`."""
    return " ".join(split_words(name))


def has_phrase(text: str, phrases: Sequence[str]) -> bool:
    """Return whether a text has one of the phrases as whole words.

    The text is normalized, and begins and ends with a space.
    """
    return any(f" {phrase} " in text for phrase in phrases)


def speaks_of_oak(text: str) -> bool:
    """Return whether a text about a wine says that it has oak: "aged in barriques".

    The text is normalized, and begins and ends with a space.
    """
    return has_phrase(text, OAKED) and not has_phrase(text, UNOAKED)


def list_synonyms(kind: NameKind, name: str) -> tuple[str, ...]:
    """Return all normalized names of a grape, country or region, the canonical one first."""
    name = normalize(name)
    if kind == "countries":
        name = name.removeprefix("the ")
    if not name:
        return ()
    return _load_synonyms()[kind].get(name, (name,))


def list_known_names(kind: NameKind) -> Collection[str]:
    """Return all normalized names of this kind in `synonyms.toml`."""
    return _load_synonyms()[kind].keys()


def find_canonical_name(kind: NameKind, name: str) -> str:
    """Return the normalized canonical name: `syrah` for both `Shiraz` and `Syrah`.

    The result is empty if `name` has no letter and no digit.
    """
    names = list_synonyms(kind, name)
    if not names:
        return ""
    return names[0]


@cache
def _load_synonyms() -> Mapping[NameKind, Mapping[str, tuple[str, ...]]]:
    """Return the synonyms of each kind, by each of the names in them."""
    file = Path(__file__).with_name("synonyms.toml")
    groups_by_kind = read_toml(dict[NameKind, list[tuple[str, ...]]], file)
    synonyms_by_kind: dict[NameKind, dict[str, tuple[str, ...]]] = {}
    for kind, groups in groups_by_kind.items():
        by_name: dict[str, tuple[str, ...]] = {}
        for group in groups:
            by_name.update(dict.fromkeys(group, group))
        synonyms_by_kind[kind] = by_name
    return synonyms_by_kind


class Currency(StrEnum):
    """The currencies of prices and price limits."""

    EUR = "EUR"
    USD = "USD"
    GBP = "GBP"
    CHF = "CHF"
    CAD = "CAD"
    AUD = "AUD"
    NZD = "NZD"
    JPY = "JPY"
    SEK = "SEK"
    DKK = "DKK"
    NOK = "NOK"
    PLN = "PLN"
    CZK = "CZK"
    BRL = "BRL"
    ZAR = "ZAR"


class _Currencies(StrictModel):
    """The content of `currencies.toml`."""

    euros: dict[Currency, float]
    """The value of one unit of each currency in euros."""
    signs: dict[Currency, str]
    """The signs that are written before amounts."""
    words: dict[str, str]
    """The words that may mean a currency, by its code, both separated by spaces."""


@cache
def _load_currencies() -> _Currencies:
    return read_toml(_Currencies, Path(__file__).with_name("currencies.toml"))


def to_euros(amount: float, currency: Currency) -> float:
    """Convert `amount` from `currency` to euros, at rounded rates."""
    return round(amount * _load_currencies().euros[currency], 2)


def convert(
    amount: float,
    source: Currency,
    target: Currency,
) -> float:
    """Convert an amount from one currency to another, at rounded rates."""
    euros = _load_currencies().euros
    return amount * euros[source] / euros[target]


def format_money_for_model(amount: float, currency: Currency | None) -> str:
    """Return an amount in the form in which models read it: `€18`, `£17.50`, `CHF 20`.

    Without a currency it is `18`. Users read `format_money` of `agent.formatting`.
    """
    number = f"{amount:.2f}".removesuffix(".00")
    if currency is None:
        return number
    sign = _load_currencies().signs.get(currency, f"{currency} ")
    return f"{sign}{number}"


def parse_currency(text: str) -> Currency | None:
    """Return the currency with this sign or code, or None."""
    for currency, sign in _load_currencies().signs.items():
        if text == sign:
            return currency
    return Currency.__members__.get(text.upper())


@cache
def currencies_by_word() -> Mapping[str, frozenset[Currency]]:
    """Return the currencies that a folded word, sign or code in prose may mean, by the word."""
    by_word: dict[str, set[Currency]] = {}
    for currency in Currency:
        by_word[currency.lower()] = {currency}
    tables: list[Mapping[str, str]] = [_load_currencies().words]
    for language in load_languages().values():
        tables.append(language.money)
    for table in tables:
        for codes, words in table.items():
            currencies = map(Currency, codes.split())
            _add_currencies(by_word, words, tuple(currencies))
    return {word: frozenset(currencies) for word, currencies in by_word.items()}


def _add_currencies(
    by_word: dict[str, set[Currency]],
    words: str,
    currencies: Collection[Currency],
) -> None:
    """Add the currencies that some words, separated by spaces, may mean."""
    for word in words.split():
        by_word.setdefault(fold(word), set()).update(currencies)


Style = StrEnum("Style", "RED WHITE ROSE ORANGE SPARKLING SWEET FORTIFIED ALCOHOL_FREE")
"""The style of a wine. A wine has at most one."""
Colour = StrEnum("Colour", "RED WHITE ROSE ORANGE")
"""The colour in the glass, for styles that come in several."""
Sweetness = StrEnum("Sweetness", "BONE_DRY DRY OFF_DRY MEDIUM SWEET LUSCIOUS")
"""Residual sugar as tasted, driest first."""
Body = StrEnum("Body", "LIGHT MEDIUM_LIGHT MEDIUM MEDIUM_FULL FULL")
"""Weight on the palate, lightest first."""
Level = StrEnum("Level", "NONE LOW MEDIUM HIGH")
"""Strength of acidity or tannin; `none` is for wines without tannin."""
Food = StrEnum(
    "Food",
    "LAMB BEEF PORK VEAL POULTRY DUCK GAME CHARCUTERIE BARBECUE STEW BURGERS FISH OILY_FISH "
    "SHELLFISH OYSTERS SUSHI PASTA PIZZA RISOTTO VEGETABLES SALAD MUSHROOMS TOMATO EGGS SPICY "
    "CURRY ASIAN TAPAS HARD_CHEESE SOFT_CHEESE GOAT_CHEESE BLUE_CHEESE FRUIT_DESSERT "
    "CREAMY_DESSERT CHOCOLATE NUTS APERITIF",
)
"""The foods that a wine suits. Pairings come from the catalogue, never from a model."""
Allergen = StrEnum("Allergen", "SULPHITES EGG MILK FISH")
"""The allergens that a label must declare, fining agents included."""
OfferKind = StrEnum(
    "OfferKind", "BOTTLE HALF MAGNUM LARGE PICCOLO BOX CASE GLASS CARAFE"
)
"""What is sold, in the order in which the offers of a wine are listed."""


def canonicalize(value: object) -> object:
    """Return a value as the vocabulary has it: "Rosé" becomes rose, "Off-Dry" off_dry."""
    if not isinstance(value, str):
        return value
    return fold(value.strip()).replace(" ", "_").replace("-", "_")
