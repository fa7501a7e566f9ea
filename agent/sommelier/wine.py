"""The wine vocabulary: canonical values, a wine, and a search of the catalogue.

`wine_fields.toml` declares what the product does with each field of a wine.

The catalogue is in English, so free text in other languages finds little in it. Models must
therefore use canonical values, and imports are mapped to them. A grape, country or region is found
by any of its names in `synonyms.toml`.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from agent.languages import load_languages
from agent.sommelier.wine_fields import wine_fields
from agent.tables import StrictModel, read_toml
from agent.text import fold, pattern, split_words

NameKind = Literal["grapes", "countries", "regions"]


def normalize(name: str) -> str:
    """Return a name without case, accents or punctuation: `Côte-Rôtie` becomes `cote rotie`."""
    return " ".join(split_words(name))


def synonyms(kind: NameKind, name: str) -> tuple[str, ...]:
    """Return all normalized names of a grape, country or region, the canonical one first."""
    name = normalize(name)
    if kind == "countries":
        name = name.removeprefix("the ")
    return _synonyms()[kind].get(name, (name,)) if name else ()


def known_names(kind: NameKind) -> Collection[str]:
    """Return all normalized names of this kind in `synonyms.toml`."""
    return _synonyms()[kind].keys()


def canonical_name(kind: NameKind, name: str) -> str:
    """Return the normalized canonical name: `syrah` for both `Shiraz` and `Syrah`."""
    return next(iter(synonyms(kind, name)), "")


@cache
def _synonyms() -> Mapping[NameKind, Mapping[str, tuple[str, ...]]]:
    file = Path(__file__).with_name("synonyms.toml")
    kinds = read_toml(dict[NameKind, list[tuple[str, ...]]], file)
    return {kind: {name: group for group in kinds[kind] for name in group} for kind in kinds}


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
    """The content of `currencies.toml`.

    `euros` is the value of one unit in euros. `signs` are written before amounts. `words` are
    separated by spaces, as are the codes of the currencies that they may mean.
    """

    euros: dict[Currency, float]
    signs: dict[Currency, str]
    words: dict[str, str]


@cache
def _currencies() -> _Currencies:
    return read_toml(_Currencies, Path(__file__).with_name("currencies.toml"))


def to_euros(amount: float, currency: Currency) -> float:
    """Convert `amount` from `currency` to euros, at rounded rates."""
    return round(amount * _currencies().euros[currency], 2)


def format_money_for_model(amount: float, currency: Currency | None) -> str:
    """Return an amount in the form in which models read it: `€18`, `£17.50`, `CHF 20`.

    Without a currency it is `18`. Users read `format_money` of `agent.formatting`.
    """
    number = f"{amount:.2f}".removesuffix(".00")
    if currency is None:
        return number
    return f"{_currencies().signs.get(currency, f'{currency} ')}{number}"


def parse_currency(text: str) -> Currency | None:
    """Return the currency with this sign or code, or None."""
    signs = {sign: currency for currency, sign in _currencies().signs.items()}
    return signs.get(text) or Currency.__members__.get(text.upper())


@cache
def currencies_by_word() -> Mapping[str, frozenset[Currency]]:
    """Return the currencies that a folded word, sign or code in prose may mean, by the word."""
    by_word = {currency.lower(): frozenset({currency}) for currency in Currency}
    tables = [_currencies().words, *(language.money for language in load_languages().values())]
    for table in tables:
        for codes, words in table.items():
            currencies = frozenset(map(Currency, codes.split()))
            for word in map(fold, words.split()):
                by_word[word] = by_word.get(word, frozenset()) | currencies
    return by_word


Style = StrEnum("Style", "RED WHITE ROSE ORANGE SPARKLING SWEET FORTIFIED ALCOHOL_FREE")
"""The style of a wine; every wine has one at most."""
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
HTTPS_ADDRESS: Final = pattern(
    r"\Ahttps://[^\s/?#@:.<>\"]+(?:\.[^\s/?#@:.<>\"]+)+(?::\d{1,5})?(?:[/?#][^\s<>\"]*)?\z"
)
MAX_ADDRESS_CHARS: Final = 1_000
NON_VEGAN_ALLERGENS: Final = frozenset({Allergen.EGG, Allergen.MILK, Allergen.FISH})
VEGAN_WORD: Final = "vegan"
CELLAR_PREFIX: Final = "own:"
"""The prefix of wine ids in a guest's own cellar; no id in the catalogue has it."""
OfferKind = StrEnum("OfferKind", "BOTTLE HALF MAGNUM LARGE PICCOLO BOX CASE GLASS CARAFE")
"""What is sold, in the order in which the offers of a wine are told."""
OFFER_FACTS: Final = ("price", "currency", "in_stock")
"""The facts of an offer that a wine with a single offer may be given as its own."""


class Offer(BaseModel):
    """A way in which a wine can be had, such as by the glass.

    `size_ml` is None if it is the usual one of its kind or unknown, `stock` None if nobody counts.
    `stock` is a number of offers (bottles, cases, glasses); some shops sell on at 0.
    """

    model_config = ConfigDict(frozen=True)

    kind: OfferKind = OfferKind.BOTTLE
    size_ml: int | None = Field(None, ge=1, le=100_000)
    price: float | None = Field(None, ge=0)
    currency: Currency = Currency.EUR
    stock: int | None = None
    in_stock: bool = True

    def __str__(self) -> str:
        """Return the facts that an answer may tell, such as `half 375 ml 26.95 EUR`."""
        size = "" if self.size_ml is None else f" {self.size_ml} ml"
        price = "" if self.price is None else f" {self.price} {self.currency}"
        return f"{self.kind}{size}{price}"

    @property
    def price_in_euros(self) -> float | None:
        """Return the price in euros at rounded rates, or None if it is unknown."""
        return None if self.price is None else to_euros(self.price, self.currency)


def _check_address(address: str) -> str:
    """Return an address unchanged.

    Raises:
        ValueError: it does not begin with https, or Telegram would refuse it under a message.
    """
    if address and (len(address) > MAX_ADDRESS_CHARS or not HTTPS_ADDRESS.match(address)):
        raise ValueError("is not an address like https://shop.example/barolo, the https included")
    return address


Address = Annotated[str, AfterValidator(_check_address)]
"""The https address of a page or a picture; it may be empty."""


def _sort_offers(offers: tuple[Offer, ...]) -> tuple[Offer, ...]:
    """Return offers in the order of their kinds."""
    order = list(OfferKind)
    return tuple(sorted(offers, key=lambda offer: order.index(offer.kind)))


class Wine(BaseModel):
    """A wine of the catalogue or of a guest's own cellar.

    Each field is declared in `wine_fields.toml`. `vintage` is None for a non-vintage wine, and in a
    guest's cellar for an unknown vintage. `style` is None if the list that it came from does not
    tell it.

    `offers` are in the order of `OfferKind`: a bottle is the first. The price of the first is the
    price of the wine; a search for another kind returns wines with that offer first. A wine that is
    sold by the bottle only may be given by its `price`, `currency` and `in_stock`.

    `is_sample` marks the wines of the starter list, whose prices are indicative.

    `allergens` are those that a label declares. That one is not among them does not mean that the
    wine is free of it. A search for a guest who avoids allergens sets `unknown_allergens`: those of
    them that the wine may contain, for all that is known.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    producer: str
    name: str
    vintage: int | None = None
    country: str
    region: str = ""
    appellation: str = ""
    grapes: tuple[str, ...] = ()
    style: Style | None = None
    colour: Colour | None = None
    sweetness: Sweetness | None = None
    body: Body | None = None
    acidity: Level | None = None
    tannin: Level | None = None
    abv: float | None = None
    offers: Annotated[tuple[Offer, ...], AfterValidator(_sort_offers)] = Field(
        (Offer(),), min_length=1
    )
    foods: tuple[Food, ...] = ()
    allergens: tuple[Allergen, ...] = ()
    notes: str = ""
    notes_language: str = "en"
    link: Address = ""
    image: Address = ""
    is_sample: bool = False
    unknown_allergens: tuple[Allergen, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _offer_one_bottle(cls, data: Any) -> Any:
        """Make an offer of the facts of a wine that is given without `offers`."""
        if not isinstance(data, Mapping) or "offers" in data:
            return data
        facts = {name: data[name] for name in OFFER_FACTS if name in data}
        return {**data, "offers": [facts]} if facts else data

    def with_first_offer(self, kind: OfferKind) -> "Wine | None":
        """Return the wine with an offer of this kind first, one in stock; None without one."""
        first = next(
            (offer for offer in self.offers if offer.kind is kind and offer.in_stock), None
        )
        if first is None:
            return None
        others = (offer for offer in self.offers if offer is not first)
        return self.model_copy(update={"offers": (first, *others)})

    @property
    def price(self) -> float | None:
        """Return the price of the first offer; None if it is unknown."""
        return self.offers[0].price

    @property
    def currency(self) -> Currency:
        """Return the currency of the first offer."""
        return self.offers[0].currency

    @property
    def in_stock(self) -> bool:
        """Return whether the wine can be had in any way."""
        return any(offer.in_stock for offer in self.offers)

    @property
    def label(self) -> str:
        """Return producer, name and vintage; `NV` marks non-vintage wines of the catalogue."""
        title = self.name if self.producer in self.name else f"{self.producer} {self.name}"
        no_vintage = "" if self.is_own else "NV"
        return f"{title} {self.vintage or no_vintage}".strip()

    @property
    def is_own(self) -> bool:
        """Return whether the wine is in a guest's own cellar."""
        return self.id.startswith(CELLAR_PREFIX)

    @property
    def source_text(self) -> str:
        """Return what an answer may say of the wine: its label and the fields that are evidence."""
        names = [name for name, field in wine_fields().items() if field.is_evidence]
        return "\n".join([self.label, *filter(None, map(self.field_text, names))])

    @property
    def links(self) -> tuple[str, ...]:
        """Return no addresses: an answer names a wine by its id, and its card is made by code."""
        return ()

    def field_text(self, name: str) -> str:
        """Return the value of a field as text; it is empty if the value is unknown."""
        value = getattr(self, name)
        if value is None:
            return ""
        return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)

    @property
    def vegan(self) -> Literal["yes", "no", "unknown"]:
        """Return whether the wine is vegan, according to its name, notes and allergens."""
        if not NON_VEGAN_ALLERGENS.isdisjoint(self.allergens):
            return "no"
        words = split_words(f"{self.name} {self.notes}")
        if VEGAN_WORD not in words:
            return "unknown"
        word_before = words[words.index(VEGAN_WORD) - 1] if words[0] != VEGAN_WORD else ""
        return "no" if word_before in {"not", "non"} else "yes"

    def is_known_to_lack(self, allergen: Allergen) -> bool:
        """Return whether the wine is known to be free of an allergen: a vegan one, of most."""
        return self.vegan == "yes" and allergen in NON_VEGAN_ALLERGENS

    @property
    def facts(self) -> "Wine":
        """Return the wine itself; `ReadWine.facts` returns the wine of the catalogue."""
        return self

    @property
    def prices(self) -> tuple[float, ...]:
        """Return the known prices of all offers."""
        return tuple(offer.price for offer in self.offers if offer.price is not None)

    @property
    def price_in_euros(self) -> float | None:
        """Return the price in euros at rounded rates, or None if it is unknown."""
        return self.offers[0].price_in_euros


def wine_record(wine: Wine) -> dict[str, Any]:
    """Return the known facts of a wine for a model, without what goes without saying."""
    places = (wine.appellation, wine.region, wine.country)
    declared = [name for name in wine.allergens if name != Allergen.SULPHITES]
    composed = {
        "name": wine.label,
        "from": ", ".join(dict.fromkeys(filter(None, places))),
        "grapes": ", ".join(wine.grapes),
        "colour": wine.colour if str(wine.colour) != wine.style else None,
        "price": None if wine.price is None else format_money_for_model(wine.price, wine.currency),
        "offers": _describe_offers(wine),
        "foods": ", ".join(wine.foods),
        "allergens": ", ".join(declared) if wine.allergens else "unknown",
    }
    record = dict[str, Any]()
    for name, field in wine_fields().items():
        value = getattr(wine, name)
        if field.model and value != field.unsaid:
            record[field.model] = composed.get(field.model, value)
    record["vegan"] = wine.vegan
    if wine.unknown_allergens:
        record["may_contain"] = ", ".join(wine.unknown_allergens)
    return {name: value for name, value in record.items() if value not in (None, "")}


def _describe_offers(wine: Wine) -> list[str] | None:
    """Return what a model is told of the offers; None if there is only a bottle, and no count."""
    first, *others = wine.offers
    if first.kind is OfferKind.BOTTLE and first.stock is None and not others:
        return None
    return [_describe_offer(offer) for offer in wine.offers]


def _describe_offer(offer: Offer) -> str:
    """Return an offer as a model is told it: `half, 375 ml, €26.95, in stock: 3`."""
    facts: list[str] = [offer.kind]
    if offer.size_ml is not None:
        facts.append(f"{offer.size_ml} ml")
    if offer.price is not None:
        facts.append(format_money_for_model(offer.price, offer.currency))
    if not offer.in_stock:
        facts.append("sold out")
    else:
        facts.append("in stock" if offer.stock is None else f"in stock: {offer.stock}")
    return ", ".join(facts)


def canonicalize(value: object) -> object:
    """Write a value as the vocabulary does: "Rosé" becomes rose, "Off-Dry" off_dry."""
    if not isinstance(value, str):
        return value
    return fold(value.strip()).replace(" ", "_").replace("-", "_")


def _to_list(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


T = TypeVar("T")
Canonical = Annotated[T, BeforeValidator(canonicalize)]
ListOf = Annotated[tuple[T, ...], BeforeValidator(_to_list)]
"""A list of values; small models write a single value for a list of one."""
ShortText = Annotated[str, Field(max_length=200)]
NameList = Annotated[ListOf[ShortText], Field(max_length=12)]
SearchOrder = Literal["match", "cheapest", "dearest"]
"""The order of the wines in a search result."""

SOFT_FILTERS: Final = (
    *("styles", "colours", "sweetness", "bodies", "tannins", "acidities", "foods"),
    *("grapes", "countries", "regions", "min_abv", "max_abv"),
)
"""Filters that may rank wines instead of excluding them; prices and `without_…` only exclude."""


class WineQuery(BaseModel):
    """A search of the catalogue; prices are per bottle, abv in % vol.

    A filter excludes wines, unless `soft` names it: then wines that meet it come first. `text` only
    ranks. `order` may rank by price instead, with wines without a price last. `like` is the id of a
    wine and finds other wines, the most similar first; an unknown id finds none. `name` finds wines
    by their names, sold out ones last. `offer` is what is wanted instead of a bottle: it must be in
    stock, and prices are its prices.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    styles: ListOf[Canonical[Style]] = Field((), max_length=8)
    alcohol_free: bool | None = Field(None, description="Of these styles, without alcohol.")
    colours: ListOf[Canonical[Colour]] = Field((), max_length=4, description="Of rose bubbles.")
    sweetness: ListOf[Canonical[Sweetness]] = Field((), max_length=6)
    bodies: ListOf[Canonical[Body]] = Field((), max_length=5)
    tannins: ListOf[Canonical[Level]] = Field((), max_length=4)
    acidities: ListOf[Canonical[Level]] = Field((), max_length=4)
    foods: ListOf[Canonical[Food]] = Field(
        (), max_length=12, description="Dishes; more matches first."
    )
    grapes: NameList = ()
    countries: NameList = ()
    regions: NameList = Field((), description="Or appellations.")
    min_price: float | None = None
    max_price: float | None = Field(None, description="At most; `below`: less.")
    below: float | None = None
    around: float | None = Field(None, description="'About 60', or a gift.")
    currency: Currency = Currency.EUR
    min_abv: float | None = None
    max_abv: float | None = None
    oak: bool | None = Field(None, description="With, or without.")
    vegan: bool | None = Field(None, description="Not what is known not to be.")
    without_allergens: ListOf[Canonical[Allergen]] = Field((), max_length=4)
    without_styles: ListOf[Canonical[Style]] = Field((), max_length=8)
    without_grapes: NameList = ()
    without_countries: NameList = ()
    without_regions: NameList = ()
    not_ids: ListOf[ShortText] = Field((), max_length=100, description="To leave out.")
    in_stock_only: SkipJsonSchema[bool] = True
    offer: Canonical[OfferKind] | None = Field(None, description="Other than a bottle.")
    text: str = Field("", max_length=300, description="'smoky', an estate's style.")
    name: ShortText = Field(
        "", description="Asked 'do you have X?': producer, name, vintage; finds sold out ones too."
    )
    order: Canonical[SearchOrder] = Field("match", description="With `text`: its matches first.")
    like: ShortText = ""
    limit: int = Field(6, ge=1, le=12)
    soft: SkipJsonSchema[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, data: object) -> object:
        """Remove nulls, which small models write for absent filters."""
        if not isinstance(data, Mapping):
            return data
        return {name: value for name, value in data.items() if value is not None}

    @property
    def price_limits(self) -> tuple[float | None, ...]:
        """Return the limits of the price, None for each absent one."""
        return self.min_price, self.max_price, self.below, self.around


class WineSearchResult(BaseModel):
    """The result of a search.

    `relax` maps the name of a filter to the number of wines that would be found without it; it is
    empty if at least three wines were found. `unmet_filters` maps the id of a wine to the names of
    the soft filters that it does not meet. `closest` are wines whose names come closest to a name
    that no wine has.
    """

    model_config = ConfigDict(frozen=True)

    wines: tuple[Wine, ...] = ()
    total: int = 0
    relax: Mapping[str, int] = Field(default_factory=dict)
    unmet_filters: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    closest: tuple[Wine, ...] = ()


class Catalogue(Protocol):
    """The wines that may be recommended."""

    async def search(self, query: WineQuery) -> WineSearchResult:
        """Find wines that pass every filter of `query`, best match first."""

    async def get(self, wine_ids: Sequence[str]) -> list[Wine]:
        """Return the wines with these ids, in the order asked; unknown ids are left out."""
