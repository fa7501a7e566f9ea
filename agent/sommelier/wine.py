"""The wine vocabulary: canonical values, the wine itself, and what may be asked of a catalogue.

Free text in five languages finds little in an English catalogue; canonical values match exactly.
They are therefore what a model must give and what every import maps to. Any of the names of one
grape, country or region (`synonyms.toml`) finds every other.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from agent.tables import StrictModel, WordSet, read_toml
from agent.text import fold, split_words

Kind = Literal["grapes", "countries", "regions"]


def normalize(name: str) -> str:
    """Return the words of a name in one spelling: `Côte-Rôtie` is `cote rotie`."""
    return " ".join(split_words(name))


def synonyms(kind: Kind, name: str) -> tuple[str, ...]:
    """Return all names of a grape, country or region, folded, the canonical one first."""
    one = normalize(name)
    if kind == "countries":
        one = one.removeprefix("the ")
    return _groups()[kind].get(one, (one,)) if one else ()


def known_names(kind: Kind) -> Collection[str]:
    """Return every name that is known, folded."""
    return _groups()[kind].keys()


def canonical_name(kind: Kind, name: str) -> str:
    """Return the canonical name, folded: that of `Shiraz` and of `Syrah` is `syrah`."""
    return next(iter(synonyms(kind, name)), "")


@cache
def _groups() -> Mapping[Kind, Mapping[str, tuple[str, ...]]]:
    file = Path(__file__).with_name("synonyms.toml")
    kinds = read_toml(dict[Kind, list[tuple[str, ...]]], file)
    return {kind: {name: group for group in kinds[kind] for name in group} for kind in kinds}


class Currency(StrEnum):
    """Currencies that prices and price limits may be given in."""

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
    """The content of `currencies.toml`: the rate of every currency."""

    euros: dict[Currency, float]
    signs: dict[Currency, str]
    words: dict[str, str]


@cache
def _currencies() -> _Currencies:
    return read_toml(_Currencies, Path(__file__).with_name("currencies.toml"))


def to_euros(amount: float, currency: Currency) -> float:
    """Return `amount` of `currency` in euros, at rounded rates."""
    return round(amount * _currencies().euros[currency], 2)


def format_money(amount: float, currency: Currency | None) -> str:
    """Write an amount: `€18`, `£17.50`, `CHF 20`, or `18` in a currency that is not known."""
    figure = f"{amount:.2f}".removesuffix(".00")
    if currency is None:
        return figure
    return f"{_currencies().signs.get(currency, f'{currency} ')}{figure}"


def parse_currency(text: str) -> Currency | None:
    """Return the currency that a sign or a code means, None for other texts."""
    signs = {sign: currency for currency, sign in _currencies().signs.items()}
    return signs.get(text) or Currency.__members__.get(text.upper())


@cache
def currencies_by_word() -> Mapping[str, frozenset[Currency]]:
    """Return the currencies that a word, a sign or a code of prose may mean, by that word."""
    named = {
        word: frozenset(map(Currency, codes.split()))
        for codes, listed in _currencies().words.items()
        for word in listed.split()
    }
    return named | {currency.lower(): frozenset({currency}) for currency in Currency}


Style = StrEnum("Style", "RED WHITE ROSE ORANGE SPARKLING SWEET FORTIFIED ALCOHOL_FREE")
"""The style of a wine; every wine has exactly one."""
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
"""The foods that a wine suits. Pairings are data of the catalogue, never a model's guess."""
Allergen = StrEnum("Allergen", "SULPHITES EGG MILK FISH")
"""The allergens that a label must declare, fining agents included."""
NON_VEGAN_ALLERGENS: Final = frozenset({Allergen.EGG, Allergen.MILK, Allergen.FISH})
VEGAN_WORD: Final = "vegan"
AGED_BY_STYLE: Final = frozenset({Style.ROSE, Style.SWEET, Style.FORTIFIED})
"""Styles of which a grape does not tell how long they keep."""
FULL_BODIES: Final = frozenset({Body.MEDIUM_FULL, Body.FULL})
CELLAR_PREFIX: Final = "own:"
"""The prefix of the ids of wines in a guest's own cellar; no wine of a list has it."""


class Wine(BaseModel):
    """One wine of the catalogue, or of a guest's own cellar. `vintage` is None for an NV wine."""

    model_config = ConfigDict(frozen=True)

    id: str
    producer: str
    name: str
    vintage: int | None = None
    country: str
    region: str = ""
    appellation: str = ""
    grapes: tuple[str, ...] = ()
    style: Style
    colour: Colour | None = None
    sweetness: Sweetness | None = None
    body: Body | None = None
    acidity: Level | None = None
    tannin: Level | None = None
    abv: float | None = None
    price: float | None = None
    currency: Currency = Currency.EUR
    foods: tuple[Food, ...] = ()
    allergens: tuple[Allergen, ...] = ()
    notes: str = ""
    in_stock: bool = True

    @property
    def label(self) -> str:
        """Return producer, name and vintage; a guest's own bottle may just lack its vintage."""
        title = self.name if self.producer in self.name else f"{self.producer} {self.name}"
        unknown = "" if self.id.startswith(CELLAR_PREFIX) else "NV"
        return f"{title} {self.vintage or unknown}".strip()

    @property
    def source_text(self) -> str:
        """Return the words of the catalogue about it."""
        facts = self.model_dump(mode="json", exclude={"id"}, exclude_none=True).values()
        listed = (", ".join(fact) if isinstance(fact, list) else str(fact) for fact in facts)
        return "\n".join([self.label, *listed])

    @property
    def vegan(self) -> Literal["yes", "no", "unknown"]:
        """Tell whether the wine is vegan, as far as its notes and its allergens say."""
        if not NON_VEGAN_ALLERGENS.isdisjoint(self.allergens):
            return "no"
        return "yes" if VEGAN_WORD in split_words(f"{self.name} {self.notes}") else "unknown"

    @property
    def facts(self) -> "Wine":
        """Return the wine itself; a `ReadWine` returns the wine of the catalogue."""
        return self

    @property
    def prices(self) -> tuple[float, ...]:
        """Return its prices; of a wine that was read there may be several."""
        return () if self.price is None else (self.price,)

    @property
    def price_in_euros(self) -> float | None:
        """Return the indicative price in euros, None when no price is known."""
        return None if self.price is None else to_euros(self.price, self.currency)


Range = tuple[int, int]


class _Serving(StrictModel):
    """The content of `serving.toml`: years after the vintage, and degrees Celsius."""

    sources: list[str]
    reds: WordSet
    names: dict[str, Range]
    grapes: dict[str, Range]
    styles: dict[Style, Range]
    degrees: dict[Style, Range]
    degrees_if_full: dict[Style, Range]


@cache
def _serving() -> _Serving:
    return read_toml(_Serving, Path(__file__).with_name("serving.toml"))


def drinking_years(wine: Wine) -> Range | None:
    """Return from and until which year a wine is at its best; None without vintage or style."""
    if not (wine.vintage and wine.style):  # a wine that was read may lack its style
        return None
    tables, style = _serving(), wine.style
    places = {} if style is Style.ROSE else tables.names  # rosé is drunk young
    known = places | ({} if style in AGED_BY_STYLE else tables.grapes)
    skipped = tables.reds if style is Style.WHITE else ()
    facts = f"{wine.label} {wine.region} {wine.appellation} {' '.join(wine.grapes[:1])}"
    label = f" {normalize(facts)} "
    found = (known[name] for name in known if f" {name} " in label and name not in skipped)
    begin, end = next(found, tables.styles[style])
    return wine.vintage + begin, wine.vintage + end


def serving_advice(wine: Wine) -> dict[str, str]:
    """Return what a guest asks next of a wine: how warm to serve it, and when to drink it."""
    tables = _serving()
    full = tables.degrees_if_full if wine.body in FULL_BODIES else {}
    low, high = full.get(wine.style) or tables.degrees[wine.style]
    years = drinking_years(wine)
    best = {"usually_best": f"{years[0]}-{years[1]}"} if years else {}
    return {"serve": f"{low}-{high} °C"} | best


def wine_record(wine: Wine) -> dict[str, Any]:
    """Return the known facts of a wine for a model, each once and without defaults."""
    places = (wine.appellation, wine.region, wine.country)
    declared = [name for name in wine.allergens if name != Allergen.SULPHITES]
    known = {
        "wine_id": wine.id,
        "name": wine.label,
        "from": ", ".join(dict.fromkeys(filter(None, places))),
        "grapes": ", ".join(wine.grapes),
        "style": wine.style,
        "colour": wine.colour if str(wine.colour) != wine.style else None,
        "sweetness": wine.sweetness if wine.sweetness != Sweetness.DRY else None,
        "body": wine.body,
        "acidity": wine.acidity,
        "tannin": wine.tannin if wine.tannin != Level.NONE else None,
        "abv": wine.abv,
        "price": None if wine.price is None else format_money(wine.price, wine.currency),
        "foods": ", ".join(wine.foods),
        "allergens": ", ".join(declared) if wine.allergens else "unknown",
        "vegan": wine.vegan,
        "notes": wine.notes,
        "in_stock": None if wine.in_stock else False,
    }
    return {name: value for name, value in known.items() if value not in (None, "")}


def canonicalize(value: object) -> object:
    """Spell a value as the vocabulary does: "Rosé" is rose, "Off-Dry" is off_dry."""
    if not isinstance(value, str):
        return value
    return fold(value.strip()).replace(" ", "_").replace("-", "_")


def _listed(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


T = TypeVar("T")
Canonical = Annotated[T, BeforeValidator(canonicalize)]
ListOf = Annotated[tuple[T, ...], BeforeValidator(_listed)]
"""Values as small models write them: in any spelling, and one where a list is due."""
ShortText = Annotated[str, Field(max_length=200)]
NameList = Annotated[ListOf[ShortText], Field(max_length=12)]
SearchOrder = Literal["match", "cheapest", "dearest"]
"""The order of the wines in a search."""

SOFT_FILTERS: Final = (
    *("styles", "colours", "sweetness", "bodies", "tannins", "acidities", "foods"),
    *("grapes", "countries", "regions", "min_abv", "max_abv"),
)
"""Filters that may rank instead of exclude; prices and what is left out always exclude."""


class WineQuery(BaseModel):
    """A search of the catalogue; prices are per bottle, abv in % vol.

    A filter excludes, unless `soft` names it: then wines that meet it come first. `text` only
    ranks. `order` ranks by price instead, wines without a price last. `like`, the id of a wine,
    finds others, most like it first; none if it is unknown.
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
    text: str = Field("", max_length=300, description="'smoky', a producer, a name.")
    order: Canonical[SearchOrder] = Field("match", description="With `text`: its matches first.")
    like: ShortText = ""
    limit: int = Field(6, ge=1, le=12)
    soft: SkipJsonSchema[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, data: object) -> object:
        """Leave out null, which small models write for a filter that is not given."""
        if not isinstance(data, Mapping):
            return data
        return {name: value for name, value in data.items() if value is not None}

    @property
    def price_limits(self) -> tuple[float | None, ...]:
        """Return all that is said of the price."""
        return self.min_price, self.max_price, self.below, self.around


class WineSearchResult(BaseModel):
    """The result of a search.

    `relax` maps the name of a filter to the number of wines that would be found without it; it is
    empty if at least three wines were found. `unmet_filters` maps the id of a wine to the names of
    the soft filters that it does not meet.
    """

    model_config = ConfigDict(frozen=True)

    wines: tuple[Wine, ...] = ()
    total: int = 0
    relax: Mapping[str, int] = Field(default_factory=dict)
    unmet_filters: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)


class Catalogue(Protocol):
    """The wines that exist here. Nothing else may be recommended."""

    async def search(self, query: WineQuery) -> WineSearchResult:
        """Find wines that pass every filter of `query`, best match first."""

    async def get(self, wine_ids: Sequence[str]) -> list[Wine]:
        """Return the wines with these ids, in the order asked; unknown ids are left out."""
