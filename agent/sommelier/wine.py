"""The wine vocabulary: canonical values, the wine itself, and what may be asked of a catalogue.

Free text in five languages finds little in an English catalogue; canonical values match exactly.
They are therefore what a model must give and what every import maps to.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent.sommelier.money import Currency, in_euros


class Style(StrEnum):
    """What kind of wine it is; each wine has exactly one."""

    RED = "red"
    WHITE = "white"
    ROSE = "rose"
    ORANGE = "orange"
    SPARKLING = "sparkling"
    SWEET = "sweet"
    FORTIFIED = "fortified"
    ALCOHOL_FREE = "alcohol_free"


class Colour(StrEnum):
    """The colour in the glass, for styles that come in several."""

    RED = "red"
    WHITE = "white"
    ROSE = "rose"
    ORANGE = "orange"


class Sweetness(StrEnum):
    """Residual sugar as tasted, driest first."""

    BONE_DRY = "bone_dry"
    DRY = "dry"
    OFF_DRY = "off_dry"
    MEDIUM = "medium"
    SWEET = "sweet"
    LUSCIOUS = "luscious"


class Body(StrEnum):
    """Weight on the palate, lightest first."""

    LIGHT = "light"
    MEDIUM_LIGHT = "medium_light"
    MEDIUM = "medium"
    MEDIUM_FULL = "medium_full"
    FULL = "full"


class Level(StrEnum):
    """Strength of acidity or tannin; `none` is for wines without tannin."""

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Food(StrEnum):
    """What a wine suits. Pairings are data of the catalogue, never a model's guess."""

    LAMB = "lamb"
    BEEF = "beef"
    PORK = "pork"
    VEAL = "veal"
    POULTRY = "poultry"
    DUCK = "duck"
    GAME = "game"
    CHARCUTERIE = "charcuterie"
    BARBECUE = "barbecue"
    STEW = "stew"
    BURGERS = "burgers"
    FISH = "fish"
    OILY_FISH = "oily_fish"
    SHELLFISH = "shellfish"
    OYSTERS = "oysters"
    SUSHI = "sushi"
    PASTA = "pasta"
    PIZZA = "pizza"
    RISOTTO = "risotto"
    VEGETABLES = "vegetables"
    SALAD = "salad"
    MUSHROOMS = "mushrooms"
    TOMATO = "tomato"
    EGGS = "eggs"
    SPICY = "spicy"
    CURRY = "curry"
    ASIAN = "asian"
    TAPAS = "tapas"
    HARD_CHEESE = "hard_cheese"
    SOFT_CHEESE = "soft_cheese"
    GOAT_CHEESE = "goat_cheese"
    BLUE_CHEESE = "blue_cheese"
    FRUIT_DESSERT = "fruit_dessert"
    CREAMY_DESSERT = "creamy_dessert"
    CHOCOLATE = "chocolate"
    NUTS = "nuts"
    APERITIF = "aperitif"


class Allergen(StrEnum):
    """What a label must declare; fining agents count."""

    SULPHITES = "sulphites"
    EGG = "egg"
    MILK = "milk"
    FISH = "fish"


class Wine(BaseModel):
    """One wine of the catalogue. `vintage` is None for a non-vintage (NV) wine."""

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
        """Producer, name and vintage, as a person would say it."""
        title = self.name if self.producer in self.name else f"{self.producer} {self.name}"
        return f"{title} {self.vintage or 'NV'}"

    @property
    def price_in_euros(self) -> float | None:
        """The indicative price in euros, None when no price is known."""
        return None if self.price is None else in_euros(self.price, self.currency)


Text = Annotated[str, Field(max_length=200)]

Order = Literal["match", "cheapest", "dearest"]
"""What comes first in a search."""


class WineQuery(BaseModel):
    """What to search the catalogue for.

    Hard filters exclude; `text` only ranks what the filters let through. `order` ranks by price
    instead, wines without a price last.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    styles: tuple[Style, ...] = Field(
        default=(), max_length=8, description="Any of these styles. A red wine is 'red'."
    )
    colours: tuple[Colour, ...] = Field(
        default=(),
        max_length=4,
        description="Any of these colours; needed for e.g. a sparkling rose or a red port.",
    )
    sweetness: tuple[Sweetness, ...] = Field(
        default=(), max_length=6, description="Any of these sweetness levels."
    )
    bodies: tuple[Body, ...] = Field(default=(), max_length=5, description="Any of these bodies.")
    foods: tuple[Food, ...] = Field(
        default=(),
        max_length=6,
        description="Dishes, as canonical foods. Wines that suit any of them; more matches first.",
    )
    grapes: tuple[Text, ...] = Field(
        default=(), max_length=6, description="Any of these grapes, e.g. 'Syrah'."
    )
    countries: tuple[Text, ...] = Field(
        default=(), max_length=6, description="Any of these countries, in English."
    )
    regions: tuple[Text, ...] = Field(
        default=(), max_length=6, description="Any of these regions or appellations."
    )
    min_price: float | None = Field(default=None, ge=0, description="Lowest price per bottle.")
    max_price: float | None = Field(default=None, ge=0, description="Highest price per bottle.")
    currency: Currency = Field(
        default=Currency.EUR, description="Currency of min_price and max_price."
    )
    min_abv: float | None = Field(default=None, ge=0, le=25, description="Lowest alcohol, % vol.")
    max_abv: float | None = Field(default=None, ge=0, le=25, description="Highest alcohol, % vol.")
    without_allergens: tuple[Allergen, ...] = Field(
        default=(), max_length=4, description="Leave out wines that contain any of these."
    )
    without_styles: tuple[Style, ...] = Field(
        default=(), max_length=8, description="Leave out these styles; red, rose ... in any style."
    )
    without_grapes: tuple[Text, ...] = Field(
        default=(), max_length=12, description="Leave out wines with any of these grapes."
    )
    without_countries: tuple[Text, ...] = Field(
        default=(), max_length=12, description="Leave out wines from any of these countries."
    )
    without_regions: tuple[Text, ...] = Field(
        default=(), max_length=12, description="Leave out these regions or appellations."
    )
    in_stock_only: bool = Field(default=True, description="Only wines that are in stock.")
    text: str = Field(
        default="",
        max_length=300,
        description="Free text in English that ranks the results: 'smoky', a producer, a name.",
    )
    order: Order = Field(default="match", description="What comes first.")
    limit: int = Field(default=6, ge=1, le=12, description="How many wines to return at most.")

    @model_validator(mode="before")
    @classmethod
    def _as_models_write_it(cls, data: object) -> object:
        """Small models write null for "not given", one value for a list, "Rosé" for rose."""
        if not isinstance(data, Mapping):
            return data
        return {key: _listed(key, value) for key, value in data.items() if value is not None}

    @model_validator(mode="after")
    def _ranges_are_not_empty(self) -> "WineQuery":
        for low, high, what in (
            (self.min_price, self.max_price, "price"),
            (self.min_abv, self.max_abv, "abv"),
        ):
            if low is not None and high is not None and low > high:
                raise ValueError(f"min_{what} ({low:g}) is above max_{what} ({high:g})")
        return self


CANONICAL: Final = frozenset(
    {"styles", "colours", "sweetness", "bodies", "foods", "without_allergens", "without_styles"}
)
NAMES: Final = frozenset({"grapes", "countries", "regions"})
LISTS: Final = CANONICAL | NAMES | {f"without_{name}" for name in NAMES}


def _listed(key: str, value: object) -> object:
    if key == "order":
        return canonical(value)
    if key not in LISTS:
        return value
    values = value if isinstance(value, list | tuple) else [value]
    return [canonical(each) if key in CANONICAL else each for each in values]


def canonical(value: object) -> object:
    """A value as the vocabulary spells it: "Rosé" is rose, "Off-Dry" is off_dry."""
    if not isinstance(value, str):
        return value
    plain = unicodedata.normalize("NFKD", value.strip().casefold())
    letters = "".join(each for each in plain if not unicodedata.combining(each))
    return letters.replace(" ", "_").replace("-", "_")


class WineSearchResult(BaseModel):
    """What a search found. `relax` is only set when nothing was found.

    `relax` maps a filter's name to the number of wines found with that filter left out.
    """

    model_config = ConfigDict(frozen=True)

    wines: tuple[Wine, ...] = ()
    total: int = 0
    relax: Mapping[str, int] = Field(default_factory=dict)


class Catalogue(Protocol):
    """The wines that exist here. Nothing else may be recommended."""

    async def search(self, query: WineQuery) -> WineSearchResult:
        """Wines that pass every hard filter of `query`, best match first."""
        ...

    async def get(self, wine_ids: Sequence[str]) -> list[Wine]:
        """The wines with these ids, in the order asked; unknown ids are left out."""
        ...

    async def similar(self, wine_id: str, limit: int = 5) -> list[Wine]:
        """Wines in stock most like this one, most alike first; empty for an unknown id."""
        ...

    async def count(self) -> int:
        """How many wines the catalogue holds."""
        ...
