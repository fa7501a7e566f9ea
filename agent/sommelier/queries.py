"""Define a search of the catalogue: its query, its result, and who searches.

A hard filter excludes wines, a soft one only ranks them. Prices, allergens and exclusions are
always hard; body, tannin, acidity and the pairing of a dish are always soft.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Final, Literal, Protocol, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from agent.sommelier.vocabulary import (
    Allergen,
    Body,
    Colour,
    Currency,
    Food,
    Level,
    OfferKind,
    Style,
    Sweetness,
    canonicalize,
)
from agent.sommelier.wine import Wine

MAX_RESULTS: Final = 12
"""The most wines that a search finds."""
MAX_QUERY_CHARS: Final = 300
"""The longest text of a query."""
MAX_NAME_CHARS: Final = 200
"""The longest name of a query, as `ShortText` allows."""


def _to_list(value: object) -> object:
    if isinstance(value, list | tuple):
        return value
    return [value]


T = TypeVar("T")
Canonical = Annotated[T, BeforeValidator(canonicalize)]
ListOf = Annotated[tuple[T, ...], BeforeValidator(_to_list)]
"""A list of values. Small models write a single value for a list of one."""
ShortText = Annotated[str, Field(max_length=200)]
NameList = Annotated[ListOf[ShortText], Field(max_length=12)]
SearchOrder = Literal["match", "cheapest", "dearest"]
"""The order of the wines in a search result."""

SOFT_FILTERS: Final = (
    "styles",
    "colours",
    "sweetness",
    "bodies",
    "tannins",
    "acidities",
    "foods",
    "grapes",
    "countries",
    "regions",
    "min_abv",
    "max_abv",
)
"""The filters that may rank wines instead of excluding them. Others can only exclude."""


def _check_soft(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of filters unchanged.

    Raises:
        ValueError: one of the filters can only exclude.
    """
    for name in names:
        if name not in SOFT_FILTERS:
            raise ValueError(f"{name} cannot be soft: it can only exclude wines")
    return names


class WineQuery(BaseModel):
    """A search of the catalogue.

    Prices are per bottle, or per `offer` if there is one. The strength (abv) is in % vol. A filter
    excludes wines, unless `soft` names it: then wines that meet it come first.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    styles: ListOf[Canonical[Style]] = Field((), max_length=8)
    alcohol_free: bool | None = Field(
        None, description="true: only wines without alcohol."
    )
    colours: ListOf[Canonical[Colour]] = Field(
        (),
        max_length=4,
        description="For styles of several colours: rose for pink bubbles.",
    )
    sweetness: ListOf[Canonical[Sweetness]] = Field((), max_length=6)
    bodies: ListOf[Canonical[Body]] = Field((), max_length=5)
    tannins: ListOf[Canonical[Level]] = Field((), max_length=4)
    acidities: ListOf[Canonical[Level]] = Field((), max_length=4)
    foods: ListOf[Canonical[Food]] = Field(
        (),
        max_length=12,
        description="The dishes. Wines that suit more of them come first.",
    )
    grapes: NameList = ()
    countries: NameList = ()
    regions: NameList = Field((), description="Regions or appellations.")
    min_price: float | None = None
    max_price: float | None = Field(
        None, description="The price may be this, or lower."
    )
    below: float | None = Field(None, description="The price must be lower than this.")
    around: float | None = Field(
        None, description="The price is to be about this, as for a gift."
    )
    currency: Currency = Currency.EUR
    min_abv: float | None = None
    max_abv: float | None = None
    oak: bool | None = Field(None, description="true: with oak; false: without.")
    vegan: bool | None = Field(
        None, description="true: leave out wines that are known not to be vegan."
    )
    without_allergens: ListOf[Canonical[Allergen]] = Field((), max_length=4)
    without_styles: ListOf[Canonical[Style]] = Field((), max_length=8)
    without_grapes: NameList = ()
    without_countries: NameList = ()
    without_regions: NameList = ()
    not_ids: ListOf[ShortText] = Field(
        (), max_length=100, description="Ids of wines to leave out."
    )
    in_stock_only: SkipJsonSchema[bool] = True
    offer: Canonical[OfferKind] | None = Field(
        None,
        description="If the guest wants something else than a bottle, such as a glass.",
    )
    """The offer that wines must have in stock.

    If the query has a `name`, the wines with this offer come first, and the others are found, too.
    """
    text: str = Field(
        "",
        max_length=MAX_QUERY_CHARS,
        description="What no filter can say, such as 'smoky'. It only ranks.",
    )
    name: ShortText = Field(
        "",
        description="If the guest asks for a certain wine: its producer, name and vintage. Wines "
        "that are sold out are found too.",
    )
    """The name that wines must have. Those that are sold out come last."""
    order: Canonical[SearchOrder] = Field(
        "match", description="match: the best match first; the others sort by price."
    )
    """The order of the wines. In an order by price, wines without a price come last."""
    like: ShortText = Field(
        "", description="The wine_id of a wine; finds others that are like it."
    )
    """The id of a wine. The most similar wines come first. An unknown id finds none."""
    limit: int = Field(6, ge=1, le=12)
    soft: SkipJsonSchema[Annotated[tuple[str, ...], AfterValidator(_check_soft)]] = ()
    """The names of the filters that only rank wines."""

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, data: object) -> object:
        """Remove nulls, which small models write for absent filters."""
        if not isinstance(data, Mapping):
            return data
        return {name: value for name, value in data.items() if value is not None}

    @property
    def price_limits(self) -> tuple[float | None, ...]:
        """Return the limits of the price. A limit that is not set is None."""
        return (self.min_price, self.max_price, self.below, self.around)


class WineSearchResult(BaseModel):
    """The result of a search.

    If no wine has the name that is asked for, one of `other_vintages`, `mentioned` and `closest` is
    set, in this order of preference.
    """

    model_config = ConfigDict(frozen=True)

    wines: tuple[Wine, ...] = ()
    total: int = 0
    """The number of wines that were found, including those above the limit of the query."""
    relax: Mapping[str, int] = Field(default_factory=dict)
    """The number of wines that would be found without a filter, by the name of the filter.

    It is empty if at least three wines were found.
    """
    unmet_filters: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """The names of the soft filters that a wine does not meet, by the id of the wine."""
    other_vintages: tuple[Wine, ...] = ()
    """Wines that differ from the name only in the vintage."""
    mentioned: tuple[Wine, ...] = ()
    """Wines whose own names stand within the name that is asked for."""
    closest: tuple[Wine, ...] = ()
    """Wines with similar names."""


class WineNames(Protocol):
    """The names of the wines of a catalogue."""

    def has_wine_with(self, words: Collection[str]) -> bool:
        """Return whether a wine has all of these folded words in its name, place or grapes."""


class Catalogue(Protocol):
    """The wines that may be recommended."""

    async def search(self, query: WineQuery) -> WineSearchResult:
        """Return the wines that pass every filter of `query`, the best match first."""

    async def get(self, wine_ids: Sequence[str]) -> list[Wine]:
        """Return the wines with these ids, in the order of the ids. Unknown ids are left out."""

    async def load_names(self) -> WineNames:
        """Return the names of all wines, in which names can be looked up."""
