"""The card of a wine: its label and the facts that code writes beside a description."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from agent.formatting import (
    country_names,
    format_country,
    format_money,
    format_volume,
    join_or,
)
from agent.i18n import current_language, current_locale, translate
from agent.languages import ENGLISH
from agent.markdown import escape
from agent.query_reading.names import get_display_name, get_region_name
from agent.query_reading.request import read_request
from agent.sommelier.attachment import AnyWine, ReadWine
from agent.sommelier.basket import BasketLine, find_offer, format_line
from agent.sommelier.claims import find_asked_allergens, mentions_kind
from agent.sommelier.conversion import (
    MAX_READ_CHARS,
    find_named_currency,
    format_converted,
)
from agent.sommelier.vocabulary import Allergen, Currency, OfferKind, canonical_name
from agent.sommelier.wine import VEGAN_WORD, Offer, Wine, wine_fields
from agent.text import split_words


def render_wine(
    wine: AnyWine,
    description: str,
    number: str = "",
    *,
    user_text: str = "",
    line: BasketLine | None = None,
) -> str:
    """Return a wine as Markdown, with what `user_text` asks for and the bottles of a basket."""
    facts = [format_facts(wine, find_named_currency([user_text]))]
    if isinstance(wine, Wine) and not wine.is_own:
        facts += _format_asked_facts(wine, user_text, line)
    sums = format_line(line) if line else ""
    label = f"**{number}{escape(get_shown_label(wine))}**"
    lines = [label, escape(" · ".join(filter(None, facts))), escape(sums), description]
    return "\n".join(filter(None, lines))


def get_shown_label(wine: AnyWine) -> str:
    """Return what a wine is called in the current language; only English says "NV"."""
    if isinstance(wine, Wine) and current_language() != ENGLISH:
        return wine.title
    return wine.label


def _format_asked_facts(
    wine: Wine, user_text: str, line: BasketLine | None
) -> Iterator[str]:
    """Yield the facts that a card has only if the guest asked for them, or counts bottles."""
    if asks_for_vegan(user_text):
        yield translate(f"vegan_{wine.vegan}")
    asked = [
        name
        for name in find_asked_allergens(user_text)
        if name not in wine.unknown_allergens
    ]
    yield _format_asked_allergens(wine, asked)
    if line is not None or mentions_kind("stock", user_text):
        yield _format_stock(wine, line)
    kind = read_request(user_text[:MAX_READ_CHARS]).filters.get("offer")
    if kind in [*OfferKind] and find_offer(wine, OfferKind(str(kind))) is None:
        yield translate("offer_missing", offer=translate(f"offer_{kind}"))


def _format_asked_allergens(wine: Wine, asked: Sequence[Allergen]) -> str:
    """Return which of the allergens a wine declares, and of which nothing is known."""
    declared = [name for name in asked if name in wine.allergens]
    unknown = [
        name
        for name in asked
        if name not in declared and not wine.is_known_to_lack(name)
    ]
    parts: list[str] = []
    if declared:
        parts.append(
            translate("allergens_declared", names=", ".join(_allergen_names(declared)))
        )
    if unknown:
        parts.append(
            translate("allergens_unknown", names=join_or(_allergen_names(unknown)))
        )
    return " · ".join(parts)


def _format_stock(wine: Wine, line: BasketLine | None) -> str:
    """Return how many are in stock; nothing if the wine is sold out, which the card says anyway."""
    offer = find_offer(wine, line.kind) if line else wine.offers[0]
    if offer is None or not offer.in_stock:
        return ""
    if offer.stock is None:
        return translate("stock_uncounted")
    is_short = line is not None and offer.stock < line.count
    count = max(0, offer.stock)
    return translate("stock_short" if is_short else "stock_count", count=count)


def asks_for_vegan(text: str) -> bool:
    """Return whether a text names vegan wines, in any language."""
    return any(word.startswith(VEGAN_WORD) for word in split_words(text))


def format_facts(wine: AnyWine, currency: Currency | None = None) -> str:
    """Return the facts of a wine on one line, such as its origin, price and availability.

    Prices are also shown in `currency`, if they are in another.
    """
    if isinstance(wine, ReadWine):
        return _format_read_facts(wine)
    facts = [
        _format_origin(wine),
        format_prices(wine, currency),
        _format_unknown_allergens(wine),
        _format_availability(wine),
        *_format_declared_facts(wine),
    ]
    return " · ".join(filter(None, facts))


def _format_declared_facts(wine: Wine) -> Iterator[str]:
    """Yield what the fields that are declared to be on a card tell of a wine."""
    for name, field in wine_fields().items():
        value = getattr(wine, name)
        if field.is_on_card and value:
            shown = value if isinstance(value, int | float) else wine.field_text(name)
            yield translate(f"wine_{name}", value=shown, count=shown)


def _format_origin(wine: Wine) -> str:
    """Return the appellation or region of a wine, and its country."""
    place, country = wine.appellation or wine.region, translate_country(wine.country)
    if place == wine.country:
        return country
    return ", ".join(
        filter(None, (get_region_name(place, current_language()), country))
    )


def format_prices(wine: Wine, currency: Currency | None = None) -> str:
    """Return the prices of a wine that is for sale: `49,90 € · half bottle 26,95 €`.

    Offers that are sold out are left out while there are others.
    """
    if wine.is_own:
        return ""
    offers = [offer for offer in wine.offers if offer.in_stock] or list(wine.offers)
    kinds = Counter(offer.kind for offer in offers)
    parts: list[str] = []
    for offer in offers:
        part = _format_offer(wine, offer, has_size=kinds[offer.kind] > 1)
        if part and offer.price is not None:
            parts.append(part + format_converted(offer.price, offer.currency, currency))
    return " · ".join(parts)


def _format_offer(wine: Wine, offer: Offer, *, has_size: bool) -> str:
    """Return what is on offer and its price; the first bottle of a wine is only its price."""
    if offer.price is None:
        return ""
    price = format_money(offer.price, offer.currency)
    if wine.is_sample:
        price = f"≈ {price}"
    if offer is wine.offers[0] and offer.kind is OfferKind.BOTTLE:
        if offer.size_ml is None:
            return price
        return f"{format_volume(offer.size_ml)} {price}"
    parts = [translate(f"offer_{offer.kind}")]
    if has_size and offer.size_ml is not None:
        parts.append(format_volume(offer.size_ml))
    return " ".join((*parts, price))


def _format_availability(wine: Wine) -> str:
    """Return where a wine is, if it is not for sale."""
    if wine.is_own:
        return translate("cellar_own")
    return "" if wine.in_stock else translate("not_in_stock")


def _format_unknown_allergens(wine: AnyWine) -> str:
    """Return which allergens of this guest the wine may contain; empty if none."""
    names = wine.unknown_allergens
    return (
        translate("allergens_unknown", names=join_or(_allergen_names(names)))
        if names
        else ""
    )


def _allergen_names(allergens: Sequence[Allergen]) -> list[str]:
    language = current_language()
    return [get_display_name("allergen", (name,), language) for name in allergens]


def _format_read_facts(wine: ReadWine) -> str:
    """Return the source of a read wine, how sure the reading is, its prices, and our price."""
    facts = [translate("of_list" if wine.is_listed else "of_label")]
    if wine.sure != "certain":
        facts.append(translate(f"read_{wine.sure}"))
    facts.append(wine.region)
    if wine.price is not None:
        facts.append(format_money(wine.price, wine.currency))
    if wine.glass_price is not None:
        facts.append(
            translate(
                "by_the_glass", price=format_money(wine.glass_price, wine.currency)
            )
        )
    our_price = format_prices(wine.known) if wine.is_listed and wine.known else ""
    if our_price:
        facts.append(translate("in_cellar", price=our_price))
    facts.append(_format_unknown_allergens(wine))
    return " · ".join(filter(None, facts))


def translate_country(country: str) -> str:
    """Return the name of a country in the current language, or unchanged if it is unknown."""
    if current_locale().startswith(ENGLISH):  # as the catalogue writes it
        return country
    name = canonical_name("countries", country)
    if name == "england":  # CLDR names the United Kingdom only
        return translate("england")
    code = _country_codes().get(name)
    return format_country(code) if code else country


def translate_place(place: str) -> str:
    """Return the name of a region or of a country in the current language."""
    name = get_region_name(place, current_language())
    return translate_country(place) if name == place else name


@cache
def _country_codes() -> Mapping[str, str]:
    """Return the codes of countries (ISO 3166) by their canonical names."""
    names = country_names(ENGLISH).items()
    return {canonical_name("countries", name): code for code, name in names}
