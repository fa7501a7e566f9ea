"""The card of a wine: its label and the facts that code writes beside a description."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache

from agent.formatting import country_names, format_country, format_money, format_volume
from agent.i18n import current_language, current_locale, translate
from agent.languages import ENGLISH
from agent.markdown import escape
from agent.query_reading.names import get_display_name, get_region_name
from agent.sommelier.attachment import AnyWine, ReadWine
from agent.sommelier.conversion import find_named_currency, format_converted
from agent.sommelier.vocabulary import Currency, OfferKind, canonical_name
from agent.sommelier.wine import VEGAN_WORD, Offer, Wine, wine_fields
from agent.text import split_words


def render_wine(wine: AnyWine, description: str, number: str = "", *, user_text: str = "") -> str:
    """Return a wine as Markdown. If `user_text` asks for vegan wines, state whether it is vegan."""
    facts = format_facts(wine, find_named_currency([user_text]))
    if any(word.startswith(VEGAN_WORD) for word in split_words(user_text)):
        facts = f"{facts} · {translate(f'vegan_{wine.facts.vegan}')}"
    lines = [f"**{number}{escape(wine.label)}**", escape(facts), description]
    return "\n".join(filter(None, lines))


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
    return ", ".join(filter(None, (get_region_name(place, current_language()), country)))


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
        if part:
            parts.append(part + format_converted(offer, currency))
    return " · ".join(parts)


def _format_offer(wine: Wine, offer: Offer, *, has_size: bool) -> str:
    """Return what is on offer and its price; the first bottle of a wine is only its price."""
    if offer.price is None:
        return ""
    price = format_money(offer.price, offer.currency)
    if wine.is_sample:
        price = f"≈ {price}"
    if offer is wine.offers[0] and offer.kind is OfferKind.BOTTLE:
        return price
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
    names = [get_display_name("allergen", (name,), current_language())
             for name in wine.unknown_allergens]  # fmt: skip
    return translate("allergens_unknown", names=", ".join(names)) if names else ""


def _format_read_facts(wine: ReadWine) -> str:
    """Return the source of a read wine, how sure the reading is, its prices, and our price."""
    facts = [translate("of_list" if wine.is_listed else "of_label")]
    if wine.sure != "certain":
        facts.append(translate(f"read_{wine.sure}"))
    facts.append(wine.region)
    if wine.price is not None:
        facts.append(format_money(wine.price, wine.currency))
    if wine.glass_price is not None:
        facts.append(translate("by_the_glass", price=format_money(wine.glass_price, wine.currency)))
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
