"""Define a search of the catalogue, and build the query that a text asks for.

A hard filter excludes wines, a soft one only ranks them. Prices, allergens and exclusions are
always hard; body, tannin, acidity and the pairing of a dish are always soft.
"""

from collections.abc import Collection, Mapping, Sequence
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

from agent import size_limits
from agent.documents.shop import find_shop_topics
from agent.query_reading.asked_names import AskedName, read_asked_name
from agent.query_reading.prices import UNKNOWN_CURRENCY
from agent.query_reading.request import Request, read_request
from agent.query_reading.tables import (
    Profile,
    find_profile,
    load_pairings,
    load_profiles,
)
from agent.sommelier.vocabulary import (
    OAKY,
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
    normalize,
)
from agent.sommelier.wine import Wine
from agent.text import split_words

MAX_RESULTS: Final = 12
MAX_UNKNOWN_WORDS: Final = 3
"""The most unknown words of an unambiguous request."""
MAX_QUERY_CHARS: Final = 290
MAX_NAME_CHARS: Final = 200
NAMED_FILTERS: Final = frozenset({"grapes", "regions", "countries", "offer"})
"""The filters that the words of a name may stand for: grape, place, and size or glass."""
USUAL_OFFERS: Final = frozenset({"", OfferKind.BOTTLE})
"""No certain offer, and a bottle. Neither needs a filter, because a search finds bottles anyway."""
MIN_TYPED_LETTERS: Final = 7
"""The minimum length of a word that may be a misspelt name."""
MAX_EXCLUDED_IDS: Final = 100
MAX_FOODS: Final = 6
SOFT_FIELDS: Final = frozenset({"bodies", "tannins", "acidities", "foods"})
"""The filters that are always soft."""
SWEET_STEPS: Final = frozenset({"sweet", "luscious"})
DESSERT_STYLES: Final = (Style.SWEET, Style.FORTIFIED)
"""The styles that a dish excludes unless its pairing has them."""


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
    *("styles", "colours", "sweetness", "bodies", "tannins", "acidities", "foods"),
    *("grapes", "countries", "regions", "min_abv", "max_abv"),
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
    """A search of the catalogue; prices are per bottle, abv in % vol.

    A filter excludes wines, unless `soft` names it: then wines that meet it come first. `text` only
    ranks. `order` may rank by price instead, with wines without a price last. `like` is the id of a
    wine and finds other wines, the most similar first; an unknown id finds none. `name` finds wines
    by their names, sold out ones last. `offer` is what is wanted instead of a bottle: it must be in
    stock, and prices are its prices. With a `name` it excludes no wines: those with it come first.
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
        None, description="true: no wine that is known not to be vegan."
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
    text: str = Field(
        "",
        max_length=300,
        description="What no filter can say, such as 'smoky'. It only ranks.",
    )
    name: ShortText = Field(
        "",
        description="If the guest asks for a certain wine: its producer, name and vintage. Wines "
        "that are sold out are found too.",
    )
    order: Canonical[SearchOrder] = Field(
        "match", description="match: the best match first; the others sort by price."
    )
    like: ShortText = Field(
        "", description="The wine_id of a wine; finds others that are like it."
    )
    limit: int = Field(6, ge=1, le=12)
    soft: SkipJsonSchema[Annotated[tuple[str, ...], AfterValidator(_check_soft)]] = ()

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
        return self.min_price, self.max_price, self.below, self.around


class WineSearchResult(BaseModel):
    """The result of a search.

    `relax` maps the name of a filter to the number of wines that would be found without it. It is
    empty if at least three wines were found. `unmet_filters` maps the id of a wine to the names of
    the soft filters that it does not meet. If no wine has the name that is asked for, one of the
    following is set: `other_vintages`, which differ only in the vintage, or else the wines that are
    `mentioned` in a longer text, or else the `closest`, which have similar names.
    """

    model_config = ConfigDict(frozen=True)

    wines: tuple[Wine, ...] = ()
    total: int = 0
    relax: Mapping[str, int] = Field(default_factory=dict)
    unmet_filters: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    other_vintages: tuple[Wine, ...] = ()
    mentioned: tuple[Wine, ...] = ()
    closest: tuple[Wine, ...] = ()


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


def is_for_documents(request: Request) -> bool:
    """Return whether a message asks for knowledge or about the shop, and not for a wine."""
    is_about_shop = bool(find_shop_topics([request.text])) and not request.filters
    return request.is_question or is_about_shop


def build_query(
    request: Request,
    *,
    excluded_ids: Sequence[str] = (),
    hard_fields: Sequence[str] = (),
) -> WineQuery:
    """Return the query for a request, with its hard and soft filters.

    The query finds none of the wines `excluded_ids`. `hard_fields` are never soft.
    """
    filters = _stated_filters(request)
    filters["not_ids"] = tuple(excluded_ids[:MAX_EXCLUDED_IDS])
    soft = SOFT_FIELDS & filters.keys()
    soft |= _add_pairing(filters, request)
    soft |= _add_profile(filters)
    soft -= set(hard_fields)
    return WineQuery.model_validate(filters | {"soft": sorted(soft)})


def _stated_filters(request: Request) -> dict[str, Any]:
    """Return the filters of a request by their names in a query."""
    filters = dict(request.filters)
    tastes = filters.pop("text", ())
    excluded_tastes = filters.pop("without_text", ())
    # Oak has its own filter. If a request both names and excludes oak, it is excluded.
    if OAKY in tastes or OAKY in excluded_tastes:
        filters["oak"] = OAKY not in excluded_tastes
    if filters.get("currency") == UNKNOWN_CURRENCY:
        del filters["currency"]
    if filters.get("offer") in USUAL_OFFERS:
        del filters["offer"]
    texts = [taste for taste in tastes if taste != OAKY]
    if request.name:
        texts.insert(0, request.name)
    filters["text"] = " ".join(texts)[:MAX_QUERY_CHARS]
    filters["limit"] = MAX_RESULTS
    return filters


def _add_pairing(filters: dict[str, Any], request: Request) -> set[str]:
    """Add the foods of the dishes and their pairing to the filters. Return the soft ones."""
    if not request.dishes:
        return set()
    foods: list[str] = []
    for dish in request.dishes.values():
        foods += dish.foods
    distinct_foods = tuple(dict.fromkeys(foods))
    filters["foods"] = distinct_foods[:MAX_FOODS]
    soft = {"foods"}
    has_grape_or_region = not filters.keys().isdisjoint({"grapes", "regions"})
    pairing = load_pairings().get(get_pairing(request), {})
    if pairing and "styles" not in filters and not has_grape_or_region:
        filters["without_styles"] = _without_dessert(filters, pairing)
    for name, values in pairing.items():
        # The grape or region that the guest names decides on the style.
        is_decided_style = has_grape_or_region and name == "styles"
        if name not in filters and not is_decided_style:
            filters[name] = values
            soft.add(name)
    return soft


def _without_dessert(
    filters: Mapping[str, Any], pairing: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Return the styles that the request excludes, and the dessert styles not in the pairing."""
    paired = pairing.get("styles", ())
    excluded = [style for style in DESSERT_STYLES if style not in paired]
    excluded += filters.get("without_styles", ())
    return tuple(dict.fromkeys(excluded))


def get_pairing(request: Request) -> str:
    """Return the name of the pairing of the first dish that has one, or an empty string."""
    for dish in request.dishes.values():
        if dish.pairing in load_pairings():
            return dish.pairing
    return ""


def _add_profile(filters: dict[str, Any]) -> set[str]:
    """Add the typical style and body of the requested grape or region. Return the soft filters.

    These rank similar wines first if the catalogue has no wine of that grape or region.
    """
    profile = find_profile((*filters.get("grapes", ()), *filters.get("regions", ())))
    is_sweet = not SWEET_STEPS.isdisjoint(filters.get("sweetness", ()))
    if profile is None or is_sweet:
        return set()
    if filters.keys().isdisjoint({"styles", "colours"}):
        filters["styles"] = (profile.style,)
    if "bodies" in filters:
        return set()
    bodies = list(Body)
    index = bodies.index(Body(profile.body))
    # The typical body, and one step to each side.
    filters["bodies"] = tuple(bodies[max(0, index - 1) : index + 2])
    return {"bodies"}


def parse_query(text: str, language: str = "en") -> WineQuery:
    """Return the query for a message. If no filter was recognised, it searches for the text."""
    request = read_request(text, language)
    query = build_query(request)
    if request.describes_wine:
        return query
    return query.model_copy(update={"text": text[: size_limits.PICTURE_NAME_CHARS]})


def parse_unambiguous_query(text: str, language: str) -> WineQuery | None:
    """Return the query for a first message that was understood almost completely, or None."""
    request = read_request(text, language)
    if request.is_question or request.unknown_words:
        return None
    if request.unknown_count > MAX_UNKNOWN_WORDS:
        return None
    if not request.inclusions and not request.dishes:
        return None
    # A query can express neither excluded tastes nor prices in an unknown currency.
    is_unknown_currency = request.filters.get("currency") == UNKNOWN_CURRENCY
    if "without_text" in request.filters or is_unknown_currency:
        return None
    return build_query(request)


async def find_asked_query(
    catalogue: Catalogue, text: str, language: str
) -> WineQuery | None:
    """Return the query for a wine that a message asks for by its name, or None if it asks for none.

    "Habt ihr roten Burgunder von Jadot?" is looked up as a name first. If no wine is named so, the
    known words are filters ("red", "Burgundy") and the others the name. A short message that does
    not ask whether there is a wine is a name only if a wine has it.
    """
    asked = read_asked_name(text, language)
    if asked is None:
        return None
    query = await _find_named_query(catalogue, asked)
    if query is not None:
        return query
    return await _find_near_query(catalogue, asked, read_request(text, language))


async def _find_named_query(catalogue: Catalogue, asked: AskedName) -> WineQuery | None:
    """Return the query for wines that have the name: all of its words, or those of one clause."""
    names = [asked.name, asked.core]
    if asked.asks_for_stock:
        names += asked.clauses
    for name in names:
        query = _name_query(asked, name)
        result = await catalogue.search(query)
        if result.wines and _is_meant(asked, result.wines[0]):
            return query
    return None


async def _find_near_query(
    catalogue: Catalogue, asked: AskedName, request: Request
) -> WineQuery | None:
    """Return the query for a name that no wine has, or None if the message may be another wish."""
    by_core = _name_query(asked, asked.core)
    is_other_wish = bool(request.dishes or request.filters.keys() - NAMED_FILTERS)
    result = await catalogue.search(by_core)
    near_wines = result.other_vintages
    if not near_wines and not is_other_wish:
        near_wines = result.mentioned
    if near_wines and _is_meant(asked, near_wines[0]):
        return by_core
    is_only_a_wish = not asked.asks_for_stock and not asked.is_certain
    if is_only_a_wish or asked.is_kind:
        return None
    if request.inclusions:
        name = asked.unknown[:MAX_NAME_CHARS]
        changes = {"name": name, "text": "", "in_stock_only": False}
        by_filters = build_query(request).model_copy(update=changes)
        result_of_filters = await catalogue.search(by_filters)
        if result_of_filters.total:
            return by_filters
    if is_other_wish and not asked.is_certain:
        return None  # "do you have something bubbly without alcohol?" names no wine
    return by_core


def _name_query(asked: AskedName, name: str) -> WineQuery:
    """Return the query for the wines of a name, with the offer that is asked for."""
    offer = None
    if asked.offer not in USUAL_OFFERS:
        offer = OfferKind(asked.offer)
    return WineQuery(name=name[:MAX_NAME_CHARS], offer=offer, limit=MAX_RESULTS)


def _is_meant(asked: AskedName, wine: Wine) -> bool:
    """Return whether a message means the wine that its words find, and not a dish."""
    if asked.asks_for_stock and not asked.has_dish:
        return True
    if asked.unknown:
        return _is_named_so(wine, asked.unknown)
    # "Mouton" alone is a dish, and "Chablis" alone is a place.
    return asked.asks_for_stock and _has_all_words(wine, asked.core)


def _has_all_words(wine: Wine, name: str) -> bool:
    return set(split_words(name)) <= set(split_words(wine.label))


def _is_named_so(wine: Wine, name: str) -> bool:
    """Return whether a wine that was found by a name has a word of it, perhaps misspelt."""
    wine_words = split_words(f"{wine.label} {wine.appellation} {wine.region}")
    for word in split_words(name):
        # The search compares a long word by its letters, so it may be a misspelt word of the wine.
        if word in wine_words or len(word) >= MIN_TYPED_LETTERS:
            return True
    return False


def wine_from_name(
    name: str, id: str, style: Style | None = None, **attributes: Any
) -> Wine | None:
    """Return a wine with the attributes that its name implies, or None if its style is unknown.

    `style` and `attributes` override what the name implies.
    """
    request = read_request(name)
    profile = _find_profile_in(name, request)
    style_value: str | None = style or _first_value(request, "styles")
    if style_value is None and profile is not None:
        style_value = profile.style
    if style_value is None:
        return None
    implied: dict[str, Any] = {
        "id": id,
        "producer": "",
        "name": name,
        "style": Style(style_value),
        "country": _first_value(request, "countries") or "",
        "region": _first_value(request, "regions") or "",
        "grapes": request.values("grapes"),
        "sweetness": _first_value(request, "sweetness"),
    }
    if profile and not implied["grapes"]:
        implied["grapes"] = profile.grapes
    if profile and profile.style == style_value:
        implied["body"] = profile.body
        implied["tannin"] = profile.tannin
        implied["acidity"] = profile.acidity
    return Wine(**implied | attributes)


def _first_value(request: Request, name: str) -> str | None:
    """Return the first value of a list filter, or None if there is none."""
    values = request.values(name)
    if not values:
        return None
    return values[0]


def _find_profile_in(name: str, request: Request) -> Profile | None:
    """Return the profile of the region or the grape that a wine's name has, or None."""
    names = [*request.values("regions"), *request.values("grapes")]
    label = f" {normalize(name)} "
    for profile_name in load_profiles():
        if f" {normalize(profile_name)} " in label:
            names.append(profile_name)
    return find_profile(names)
