"""Write the card of a wine: its label, its facts, and the description of a model."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from agent.formatting import (
    country_names,
    format_country,
    format_money,
    format_volume,
    join_or,
)
from agent.i18n import (
    current_language,
    current_locale,
    format_number,
    translate,
)
from agent.languages import ENGLISH
from agent.markdown import escape
from agent.query_reading.names import (
    get_country_name,
    get_display_name,
    get_region_name,
)
from agent.query_reading.request import read_request
from agent.sommelier.attachment import AnyWine, ReadWine
from agent.sommelier.basket import BasketLine, find_offer, format_line
from agent.sommelier.claims import find_asked_allergens, mentions_kind
from agent.sommelier.conversion import (
    MAX_READ_CHARS,
    find_named_currency,
    format_converted,
)
from agent.sommelier.offers import Offer
from agent.sommelier.vocabulary import (
    Allergen,
    Currency,
    OfferKind,
    find_canonical_name,
)
from agent.sommelier.wine import NON_VEGAN_ALLERGENS, VEGAN_WORD, Wine, wine_fields
from agent.text import fold, split_words


def render_wine(
    wine: AnyWine,
    description: str,
    prefix: str = "",
    *,
    user_text: str = "",
    currency: Currency | None = None,
    line: BasketLine | None = None,
) -> str:
    """Return the card of a wine as Markdown, with the facts that `user_text` asks for.

    Prices are also shown in the currency that `user_text` names, or else in `currency`.
    `prefix` stands before the label, such as "1. ". If the guest needs bottles of the wine, `line`
    counts them.
    """
    named_currency = find_named_currency([user_text]) or currency
    facts = [format_facts(wine, named_currency)]
    if isinstance(wine, Wine) and not wine.is_own:
        facts += _format_asked_facts(wine, user_text, line)
    label = escape(get_shown_label(wine))
    lines = [f"**{prefix}{label}**", escape(_join_facts(facts))]
    if line is not None:
        lines.append(escape(format_line(line)))
    lines.append(description)
    return "\n".join(text for text in lines if text)


def _join_facts(facts: Iterable[str]) -> str:
    """Return the facts on one line, without those that are empty."""
    return " · ".join(fact for fact in facts if fact)


def get_shown_label(wine: AnyWine) -> str:
    """Return the label of a wine in the current language.

    The label of a wine without a vintage ends with "NV", which only English readers know. Readers
    of other languages get the title, which has no such mark.
    """
    if isinstance(wine, Wine) and current_language() != ENGLISH:
        return wine.title
    return wine.label


def _format_asked_facts(
    wine: Wine,
    user_text: str,
    line: BasketLine | None,
) -> Iterator[str]:
    """Yield the facts that a card has only if the guest asks for them.

    If the guest needs a number of bottles (`line`), the stock is among them.
    """
    # A card that warns of egg, milk and fish need not add that the wine may not be vegan.
    warns_already = NON_VEGAN_ALLERGENS.issubset(wine.unknown_allergens)
    if asks_for_vegan(user_text) and not warns_already:
        yield translate(f"vegan_{wine.vegan}")
    yield from _format_asked_allergens(wine, user_text)
    if line is not None or mentions_kind("stock", user_text):
        yield _format_stock(wine, line)
    request = read_request(user_text[:MAX_READ_CHARS])
    asked_offer = request.filters.get("offer")
    if asked_offer not in list(OfferKind):
        return
    if find_offer(wine, OfferKind(asked_offer)) is None:
        offer_name = translate(f"offer_{asked_offer}")
        yield translate("offer_missing", offer=offer_name)


def _format_asked_allergens(wine: Wine, user_text: str) -> Iterator[str]:
    """Yield which allergens in a text a wine declares, and which it may contain."""
    declared: list[Allergen] = []
    unknown: list[Allergen] = []
    for allergen in find_asked_allergens(user_text):
        if allergen in wine.unknown_allergens:
            continue  # every card for this guest says so already
        if allergen in wine.allergens:
            declared.append(allergen)
            continue
        if allergen == Allergen.SULPHITES:
            # Nearly all wines contain sulphites, so nobody learns anything from "not known".
            continue
        if not wine.is_known_to_lack(allergen):
            unknown.append(allergen)
    if declared:
        names = ", ".join(_translate_allergens(declared))
        yield translate("allergens_declared", names=names)
    if unknown:
        names = join_or(_translate_allergens(unknown))
        yield translate("allergens_unknown", names=names)


def _format_stock(wine: Wine, line: BasketLine | None) -> str:
    """Return the number in stock, or "" for a sold-out wine, because the card says that anyway."""
    kind = None
    if line is not None:
        kind = line.kind
    offer = find_offer(wine, kind)
    if offer is None or not offer.in_stock:
        return ""
    if offer.stock is None:
        return translate("stock_uncounted")
    count = max(0, offer.stock)
    if line is not None and count < line.count:
        return translate("stock_short", count=count)
    return translate("stock_count", count=count)


def asks_for_vegan(text: str) -> bool:
    """Return whether a text names vegan wines, in any language."""
    words = split_words(text)
    return any(word.startswith(VEGAN_WORD) for word in words)


def format_facts(wine: AnyWine, currency: Currency | None = None) -> str:
    """Return the facts of a wine on one line, such as its origin, price and availability.

    Prices are also shown in `currency`, if they are in another.
    """
    if isinstance(wine, ReadWine):
        return _format_read_facts(wine)
    facts = [
        _format_alcohol(wine),
        _format_origin(wine),
        format_prices(wine, currency),
        _format_unknown_allergens(wine),
        _format_availability(wine),
        *_format_declared_facts(wine),
    ]
    return _join_facts(facts)


def _format_alcohol(wine: AnyWine) -> str:
    """Return that a wine has alcohol, and how much, if the guest must be told so."""
    if not wine.warns_of_alcohol:
        return ""
    strength = wine.facts.abv
    if strength is None:
        return translate("contains_alcohol")
    return translate("contains_alcohol_of", strength=format_number(strength))


def _format_declared_facts(wine: Wine) -> Iterator[str]:
    """Yield the facts of a wine whose fields are declared to be on a card."""
    for name, field in wine_fields().items():
        value = getattr(wine, name)
        if not field.is_on_card or not value:
            continue
        if not isinstance(value, int | float):
            value = wine.field_text(name)
        # A sentence with a number has a singular and a plural, which `count` selects.
        yield translate(f"wine_{name}", value=value, count=value)


def _format_origin(wine: Wine) -> str:
    """Return the appellation or region of a wine, and its country.

    The country is left out if the place has its name: "Vinho de Portugal".
    """
    country = translate_country(wine.country)
    place = wine.appellation or wine.region
    if place == wine.country:
        return country
    place_name = get_region_name(place, current_language())
    names_country = fold(country) in fold(place_name) or wine.country in place
    if country and names_country:
        return place_name
    names = [name for name in (place_name, country) if name]
    return ", ".join(names)


def format_prices(wine: Wine, currency: Currency | None = None) -> str:
    """Return the prices of a wine that is for sale: `49,90 € · half bottle 26,95 €`.

    Offers that are sold out are left out while there are others.
    """
    if wine.is_own:
        return ""
    offers = [offer for offer in wine.offers if offer.in_stock]
    if not offers:
        offers = list(wine.offers)
    kind_counts = Counter(offer.kind for offer in offers)
    prices: list[str] = []
    for offer in offers:
        if offer.price is None:
            continue
        has_several_sizes = kind_counts[offer.kind] > 1
        name = _name_offer(wine, offer, has_several_sizes=has_several_sizes)
        price = format_price(wine, offer)
        converted = format_converted(offer.price, offer.currency, currency)
        prices.append(f"{name} {price}{converted}".lstrip())
    return " · ".join(prices)


def format_price(wine: Wine, offer: Offer) -> str:
    """Return the price of an offer, or "" if it is unknown. A price that is a guide has a `≈`."""
    if offer.price is None:
        return ""
    price = format_money(offer.price, offer.currency)
    if wine.is_sample:
        return f"≈ {price}"
    return price


def _name_offer(
    wine: Wine,
    offer: Offer,
    *,
    has_several_sizes: bool,
) -> str:
    """Return the name of an offer, such as "Magnum", or "0.75 l" for the usual bottle.

    `has_several_sizes` says whether the wine has another offer of this kind. Then the name has the
    size too.
    """
    is_first = offer is wine.offers[0]
    is_usual = is_first and offer.kind is OfferKind.BOTTLE
    parts: list[str] = []
    if not is_usual:
        parts.append(translate(f"offer_{offer.kind}"))
    names_size = is_usual or has_several_sizes
    if offer.size_ml is not None and names_size:
        parts.append(format_volume(offer.size_ml))
    return " ".join(parts)


def _format_availability(wine: Wine) -> str:
    """Return where a wine is, if it is not for sale."""
    if wine.is_own:
        return translate("cellar_own")
    if not wine.in_stock:
        return translate("not_in_stock")
    return ""


def _format_unknown_allergens(wine: AnyWine) -> str:
    """Return which of this guest's allergens the wine may contain, or "" if none."""
    unknown = list(wine.unknown_allergens)
    facts: list[str] = []
    if Allergen.SULPHITES in unknown:
        # "Not known" beside a wine named "No Sulphur Added" would contradict its own label.
        is_unsulphured = mentions_kind("unsulphured", wine.source_text)
        if is_unsulphured:
            unknown.remove(Allergen.SULPHITES)
            facts.append(translate("no_sulphites_added"))
    if unknown:
        names = join_or(_translate_allergens(unknown))
        facts.append(translate("allergens_unknown", names=names))
    return _join_facts(facts)


def _translate_allergens(allergens: Sequence[Allergen]) -> list[str]:
    """Return the names of allergens in the current language."""
    language = current_language()
    names: list[str] = []
    for allergen in allergens:
        names.append(get_display_name("allergen", (allergen,), language))
    return names


def _format_read_facts(wine: ReadWine) -> str:
    """Return the source of a read wine, how sure the reading is, its prices, and our price."""
    source_name = "of_label"
    if wine.is_listed:
        source_name = "of_list"
    facts = [_format_alcohol(wine), translate(source_name)]
    if wine.sure != "certain":
        facts.append(translate(f"read_{wine.sure}"))
    facts.append(wine.region)
    if wine.price is not None:
        facts.append(format_money(wine.price, wine.currency))
    if wine.glass_price is not None:
        glass_price = format_money(wine.glass_price, wine.currency)
        facts.append(translate("by_the_glass", price=glass_price))
    if wine.is_listed and wine.known:
        our_price = format_prices(wine.known)
        if our_price:
            facts.append(translate("in_cellar", price=our_price))
    facts.append(_format_unknown_allergens(wine))
    return _join_facts(facts)


def translate_country(country: str) -> str:
    """Return the name of a country in the current language, or unchanged if it is unknown."""
    # Not `current_language`, because countries have names in more languages than our texts.
    language, _, _ = current_locale().partition("_")
    if language == ENGLISH:
        return country  # the catalogue has the English names
    usual_name = get_country_name(country, language)
    if usual_name:
        return usual_name
    name = find_canonical_name("countries", country)
    if name == "england":  # CLDR has a name for the United Kingdom only
        return translate("england")
    code = _country_codes().get(name)
    if code is None:
        return country
    return format_country(code)


def translate_place(place: str) -> str:
    """Return the name of a region or of a country in the current language."""
    name = get_region_name(place, current_language())
    if name == place:
        return translate_country(place)
    return name


@cache
def _country_codes() -> Mapping[str, str]:
    """Return the codes of countries (ISO 3166) by their canonical names."""
    codes: dict[str, str] = {}
    for code, name in country_names(ENGLISH).items():
        codes[find_canonical_name("countries", name)] = code
    return codes
