"""Filters and facts in words: what was searched for, and why a wine suits it. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from agent.house_sommelier.exclusions import NOTHING_EXCLUDED, Exclusions
from agent.house_sommelier.lexicon import Language, Meaning, names
from agent.house_sommelier.phrases import say
from agent.sommelier.wine import Style, WineQuery

_SYMBOLS: Final = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥"}
_AND: Final[dict[Language, str]] = {
    "en": "and",
    "de": "und",
    "fr": "et",
    "es": "y",
    "it": "e",
    "nl": "en",
}
_OR: Final[dict[Language, str]] = {
    "en": "or",
    "de": "oder",
    "fr": "ou",
    "es": "o",
    "it": "o",
    "nl": "of",
}
_STYLES_EN: Final = {"rose": "rosé", "alcohol_free": "alcohol-free"}
_SWEETNESS: Final[Mapping[str, Mapping[Language, str]]] = {
    "bone_dry": {"en": "bone-dry", "de": "knochentrocken", "fr": "très sec", "es": "muy seco",
                 "it": "molto secco", "nl": "kurkdroog"},
    "dry": {"en": "dry", "de": "trocken", "fr": "sec", "es": "seco", "it": "secco", "nl": "droog"},
    "off_dry": {"en": "off-dry", "de": "halbtrocken", "fr": "demi-sec", "es": "semiseco",
                "it": "abboccato", "nl": "halfdroog"},
    "medium": {"en": "medium-sweet", "de": "lieblich", "fr": "moelleux", "es": "semidulce",
               "it": "amabile", "nl": "halfzoet"},
    "sweet": {"en": "sweet", "de": "süß", "fr": "doux", "es": "dulce", "it": "dolce", "nl": "zoet"},
    "luscious": {"en": "luscious", "de": "edelsüß", "fr": "liquoreux", "es": "muy dulce",
                 "it": "molto dolce", "nl": "edelzoet"},
}  # fmt: skip
_SWEET_WINE: Final[Mapping[Language, str]] = {
    "en": "sweet wine",
    "de": "Süßwein",
    "fr": "vin doux",
    "es": "vino dulce",
    "it": "vino dolce",
    "nl": "zoete wijn",
}
_NAMED: Final = ("countries", "grapes", "hue", "regions", "styles")
_GROUPED_BODIES: Final = (("light", "medium_light"), ("medium",), ("medium_full", "full"))


def listed(words: Iterable[str], joint: str) -> str:
    """`a, b and c`."""
    *first, last = list(words) or [""]
    return f"{', '.join(first)} {joint} {last}" if first else last


def both(words: Iterable[str], language: Language) -> str:
    """The words joined with "and"."""
    return listed(words, _AND[language])


def money(amount: float, currency: str) -> str:
    """`€25`, `£17.50`, `CHF 30`."""
    number = f"{amount:.0f}" if amount == int(amount) else f"{amount:.2f}"
    symbol = _SYMBOLS.get(currency)
    return f"{symbol}{number}" if symbol else f"{currency} {number}"


def in_words(field: str, values: Sequence[str], language: Language) -> list[str]:
    """What `language` calls these values together, or else one by one; ids as a last resort."""
    named = names(language)
    together = named.get(Meaning(field, tuple(values)))
    if together:
        return [together]
    return [named.get(Meaning(field, (value,)), value.replace("_", " ")) for value in values]


def price_in_words(query: WineQuery, language: Language, stated: Collection[float]) -> str:
    """The price limits, empty if there are none.

    Only amounts the person `stated` are named: one worked out from "cheap" would read like a price
    that nobody gave.
    """
    low, high = query.min_price, query.max_price
    if low is None and high is None:
        return ""
    code = query.currency.value
    if low is not None and high is not None:
        middle = (low + high) / 2
        if low in stated and high in stated:
            return f"{money(low, code)}–{money(high, code)}"
        return say("around", language, price=money(middle, code)) if middle in stated else ""
    if high is not None:
        named = say("up_to", language, price=money(high, code))
        return named if high in stated else say("low_price", language)
    return _at_least(low or 0.0, code, language, stated)


def _at_least(low: float, code: str, language: Language, stated: Collection[float]) -> str:
    named = say("at_least", language, price=money(low, code))
    return named if low in stated else say("high_price", language)


def criteria(
    query: WineQuery,
    language: Language,
    *,
    dishes: Sequence[str] = (),
    stated: Collection[float] = (),
    without: Exclusions = NOTHING_EXCLUDED,
) -> str:
    """All filters of a query as a phrase, and what it must be `without`.

    `dishes` are the foods in the person's own words, `stated` the numbers the person wrote.
    """
    foods = dishes or in_words("foods", query.foods, language)
    if language == "en":
        price = price_in_words(query, "en", stated)
        wanted = _english(query, listed(foods, "and") if foods else "", price)
        return ", ".join(filter(None, (wanted, _left_out(without, "en"))))
    parts = [
        listed(_kinds(query, language), _OR[language]),
        *_taste(query, language),
        listed(origins_in_words(query, language), _OR[language]),
        price_in_words(query, language, stated),
        both(foods, language),
        "" if query.max_abv is None else f"≤ {query.max_abv:g} % vol",
        query.text,
        _left_out(without, language, in_words("allergen", query.without_allergens, language)),
    ]
    return ", ".join(part for part in parts if part)


def origins_in_words(query: WineQuery, language: Language) -> list[str]:
    """The grapes, regions and countries of a query as `language` calls them."""
    places = [
        *in_words("regions", query.regions, language),
        *in_words("countries", query.countries, language),
    ]
    return [*query.grapes, *places]


def country_in_words(country: str, language: Language) -> str:
    """What `language` calls a country; its English name if nothing else is known."""
    return country if language == "en" else in_words("countries", (country,), language)[0]


def exclusions_in_words(without: Exclusions, language: Language) -> list[str]:
    """What is ruled out as `language` calls it, in a fixed order."""
    pairs = sorted(pair for pair in without.pairs if pair[0] in _NAMED)
    return [in_words(field, (value,), language)[0] for field, value in pairs]


def _left_out(without: Exclusions, language: Language, allergens: Sequence[str] = ()) -> str:
    names = [*allergens, *exclusions_in_words(without, language)]
    return say("leaving_out", language, names=listed(names, _OR[language])) if names else ""


def _kinds(query: WineQuery, language: Language) -> list[str]:
    kinds = (*query.styles, *query.colours)
    return [word for kind in kinds for word in in_words(_field_of(kind), (kind,), language)]


def _field_of(kind: str) -> str:
    return "hue" if kind in ("red", "white", "rose", "orange") else "styles"


def _taste(query: WineQuery, language: Language) -> list[str]:
    sweetness = in_words("sweetness", query.sweetness, language)
    return [*sweetness, *in_words("bodies", query.bodies, language)]


def _english(query: WineQuery, foods: str, price: str) -> str:
    adjectives = [
        listed(in_words("sweetness", query.sweetness, "en"), "or"),
        listed(in_words("bodies", query.bodies, "en"), "or"),
        listed((_STYLES_EN.get(style, style) for style in query.styles), "or"),
        listed((_STYLES_EN.get(colour, colour) for colour in query.colours), "or"),
    ]
    return " ".join(filter(None, [*adjectives, "wines", *_english_details(query, foods, price)]))


def _english_details(query: WineQuery, foods: str, price: str) -> list[str]:
    places = listed((*query.regions, *query.countries), "or")
    without = listed(in_words("allergen", query.without_allergens, "en"), "or")
    return [
        f"made from {listed(query.grapes, 'or')}" if query.grapes else "",
        f"from {places}" if places else "",
        f"at {price}" if "–" in price else price,
        "" if query.max_abv is None else f"with at most {query.max_abv:g} % alcohol",
        "" if query.min_abv is None else f"with at least {query.min_abv:g} % alcohol",
        f"without {without}" if without else "",
        f"for {foods}" if foods else "",
        f"(matching “{query.text}” first)" if query.text else "",
    ]


def sweetness_in_words(sweetness: str, language: Language) -> str:
    """What `language` calls one step of sweetness; empty for one nobody knows."""
    return _SWEETNESS.get(sweetness, {}).get(language, "")


def body_in_words(body: str, language: Language) -> str:
    """The weight of a wine as an adjective; empty for a body nobody knows."""
    group = next((group for group in _GROUPED_BODIES if body in group), None)
    return names(language).get(Meaning("bodies", group), "") if group else ""


def style_in_words(style: str, language: Language) -> str:
    """What `language` calls a style; empty for one nobody knows."""
    if style not in tuple(Style):
        return ""
    if style == Style.SWEET:
        return _SWEET_WINE[language]
    return in_words(_field_of(style), (style,), language)[0]


def style_in_english(style: str) -> str:
    """`red`, `rosé`, `sparkling wine`; `wine` for a style nobody knows."""
    if style in ("red", "white"):
        return style
    if style not in tuple(Style):
        return "wine"
    return "rosé" if style == "rose" else f"{_STYLES_EN.get(style, style)} wine"
