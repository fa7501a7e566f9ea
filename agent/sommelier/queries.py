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
from agent.sommelier.wine import NON_VEGAN_ALLERGENS, Wine
from agent.text import split_words

MAX_RESULTS: Final = 12
"""The most wines that a query of this module finds."""
MAX_UNKNOWN_WORDS: Final = 3
"""The most words of an unambiguous request that the tables of words do not have."""
MAX_QUERY_CHARS: Final = 300
"""The longest text of a query."""
MAX_NAME_CHARS: Final = 200
"""The longest name of a query, as `ShortText` allows."""
NAMED_FILTERS: Final = frozenset({"grapes", "regions", "countries", "offer"})
"""The filters whose values may be part of a wine's name, as in "Jadot Chablis magnum"."""
USUAL_OFFERS: Final = frozenset({"", OfferKind.BOTTLE})
"""The offers that need no filter: none is named, or a bottle, which a search finds anyway."""
MIN_MISSPELT_LETTERS: Final = 7
"""The minimum length of a word that may be a misspelt name."""
MAX_EXCLUDED_IDS: Final = 100
"""The most ids that a query may exclude, as `WineQuery.not_ids` allows."""
MAX_PAIRINGS_OF_DISH: Final = 2
"""The most pairings that one dish has, such as fish and barbecue of a grilled swordfish."""
MAX_FOODS: Final = 6
"""The most foods of the dishes in a request."""
USUALLY_SOFT: Final = frozenset({"bodies", "tannins", "acidities", "foods"})
"""The filters that are soft unless the caller makes them hard."""
SWEET_LEVELS: Final = frozenset({"sweet", "luscious"})
BRIDGE: Final = "bridge"
"""The pairing of dishes that have no style in common, such as meat and fish."""
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


def is_for_documents(request: Request) -> bool:
    """Return whether a message asks for knowledge or about the shop, and not for a wine."""
    if request.is_question:
        return True
    if request.filters:
        return False
    shop_topics = find_shop_topics([request.text])
    return bool(shop_topics)


def build_query(
    request: Request,
    *,
    excluded_ids: Sequence[str] = (),
    hard_filters: Sequence[str] = (),
) -> WineQuery:
    """Return the query for a request, with its hard and soft filters.

    The query does not find the wines with `excluded_ids`, and the `hard_filters` are not soft.
    """
    filters = _stated_filters(request)
    filters["not_ids"] = tuple(excluded_ids[:MAX_EXCLUDED_IDS])
    soft = USUALLY_SOFT & filters.keys()
    soft |= _add_pairing(filters, request)
    soft |= _add_profile(filters)
    soft -= set(hard_filters)
    if "order" in filters:
        # In an order by price, soft filters rank nothing: the cheapest wine has to suit the dish.
        soft -= {"foods"}
    return WineQuery.model_validate(filters | {"soft": sorted(soft)})


def _stated_filters(request: Request) -> dict[str, Any]:
    """Return the filters of a request by their names in a query."""
    filters = dict(request.filters)
    tastes = filters.pop("text", ())
    excluded_tastes = filters.pop("without_text", ())
    # Oak has a filter of its own. If a request both names and excludes oak, it is excluded.
    if OAKY in excluded_tastes:
        filters["oak"] = False
    elif OAKY in tastes:
        filters["oak"] = True
    if filters.get("currency") == UNKNOWN_CURRENCY:
        del filters["currency"]
    if filters.get("offer") in USUAL_OFFERS:
        del filters["offer"]
    words = [taste for taste in tastes if taste != OAKY]
    if request.name:
        # Such a name is uncertain. As text, it ranks wines and excludes none.
        words.insert(0, request.name)
    text = " ".join(words)
    filters["text"] = text[:MAX_QUERY_CHARS]
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
    pairing_name = get_pairing_name(request)
    pairing = dict(load_pairings().get(pairing_name, {}))
    has_grape_or_region = "grapes" in filters or "regions" in filters
    if has_grape_or_region:
        pairing.pop("styles", None)  # the grape or region decides on the style
    elif pairing and "styles" not in filters:
        filters["without_styles"] = _without_dessert(filters, pairing)
    for name, values in pairing.items():
        if name not in filters:
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


def get_pairing_name(request: Request) -> str:
    """Return the name of the pairing of a request's dishes, or an empty string.

    It is that of the first dish that has one. If no style suits all dishes, as with steak and
    salmon, it is `BRIDGE`, provided that a wine of that pairing comes near to each of them.
    """
    names = _list_pairing_names(request)
    if not names:
        return ""
    has_bridge = _may_bridge(names) and not _share_style(names)
    if has_bridge:
        return BRIDGE
    return names[0]


def find_only_suited_dish(request: Request) -> str:
    """Return the dish whose pairing the request has, if it does not suit the others, or "".

    "Steak and chocolate cake" gets wines for the steak.
    """
    names = _list_pairing_names(request)
    if not names or _share_style(names) or get_pairing_name(request) == BRIDGE:
        return ""
    for dish_name, dish in request.dishes.items():
        if dish.pairing == names[0]:
            return dish_name
    return ""


def _list_pairing_names(request: Request) -> list[str]:
    """Return the names of the pairings of the dishes, in the order of the message."""
    names: list[str] = []
    for dish in request.dishes.values():
        if dish.pairing in load_pairings():
            names.append(dish.pairing)
    return names


def _may_bridge(names: Sequence[str]) -> bool:
    """Return whether `BRIDGE` has a style of each of these pairings."""
    bridge_styles = _get_paired_styles(BRIDGE)
    for name in names:
        if bridge_styles.isdisjoint(_get_paired_styles(name)):
            return False
    return True


def _share_style(names: Sequence[str]) -> bool:
    """Return whether one style suits all of these pairings."""
    common_styles = _get_paired_styles(names[0])
    for name in names:
        common_styles &= _get_paired_styles(name)
    return bool(common_styles)


def _get_paired_styles(name: str) -> set[str]:
    """Return the styles that suit a pairing."""
    return set(load_pairings()[name].get("styles", ()))


def _add_profile(filters: dict[str, Any]) -> set[str]:
    """Add the typical styles and body of the requested grapes or regions. Return the soft filters.

    The body is a soft filter. The style is a hard one: if the catalogue has no wine of that grape
    or region, the search goes on without that filter, and then finds wines of the same style.
    """
    grapes = filters.get("grapes", ())
    regions = filters.get("regions", ())
    # A grape says more than a region: a Chardonnay from Burgundy is white.
    profiles = _find_profiles(grapes) or _find_profiles(regions)
    if not profiles:
        return set()
    sweetness = filters.get("sweetness", ())
    if not SWEET_LEVELS.isdisjoint(sweetness):
        return set()  # a sweet wine has a style of its own
    styles = tuple(dict.fromkeys(profile.style for profile in profiles))
    if "styles" not in filters and "colours" not in filters:
        filters["styles"] = styles
    if "bodies" in filters or len(styles) > 1:
        return set()
    filters["bodies"] = _bodies_near(Body(profiles[0].body))
    return {"bodies"}


def _find_profiles(names: Sequence[str]) -> list[Profile]:
    """Return the profiles of those grapes or regions that have one."""
    profiles: list[Profile] = []
    for name in names:
        profile = find_profile([name])
        if profile is not None:
            profiles.append(profile)
    return profiles


def _bodies_near(body: Body) -> tuple[Body, ...]:
    """Return a body, and those one step lighter and one step fuller."""
    bodies = list(Body)
    place = bodies.index(body)
    first = max(0, place - 1)
    last = place + 1
    return tuple(bodies[first : last + 1])


def parse_query(text: str, language: str = "en") -> WineQuery:
    """Return the query for a message. If no filter was recognised, the query has its text."""
    request = read_request(text, language)
    query = build_query(request)
    if request.describes_wine:
        return query
    beginning = text[: size_limits.PICTURE_NAME_CHARS]
    return query.model_copy(update={"text": beginning})


def parse_unambiguous_query(text: str, language: str) -> WineQuery | None:
    """Return the query for a first message that was understood almost completely, or None."""
    request = read_request(text, language)
    if request.is_question:
        return None
    if request.unknown_words:
        return None  # one of them may be a dish or a name
    if request.unknown_count > MAX_UNKNOWN_WORDS:
        return None
    if not request.inclusions and not request.dishes:
        return None
    pairings = {dish.pairing for dish in request.dishes.values()}
    if len(pairings) > MAX_PAIRINGS_OF_DISH:
        return None  # each course of a menu needs a search of its own
    # A query can express neither excluded tastes nor prices in an unknown currency.
    if "without_text" in request.filters:
        return None
    if request.filters.get("currency") == UNKNOWN_CURRENCY:
        return None
    query = build_query(request)
    if not request.allergies and NON_VEGAN_ALLERGENS.issubset(query.without_allergens):
        return query.model_copy(update={"vegan": True, "without_allergens": ()})
    return query


async def find_asked_query(
    catalogue: Catalogue, text: str, language: str
) -> WineQuery | None:
    """Return the query for a wine that a message asks for by its name, or None if it asks for none.

    "Do you have red Burgundy by Jadot?" is looked up as a name first. If no wine has this name, the
    known words become filters ("red", "Burgundy"), and the others the name ("Jadot"). A short
    message, such as "Jadot", is read as a name only if a wine has that name.
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
        query = _make_name_query(asked, name)
        result = await catalogue.search(query)
        if result.wines and _is_meant(asked, result.wines[0]):
            return query
    return None


async def _find_near_query(
    catalogue: Catalogue, asked: AskedName, request: Request
) -> WineQuery | None:
    """Return the query for a name that no wine has, or None if the message may be another wish.

    The query finds, in this order of preference: wines with a name near it; wines with its known
    words as filters and the others as the name; or no wine, which says that there is none.
    """
    query = _make_name_query(asked, asked.core)
    other_filters = request.filters.keys() - NAMED_FILTERS
    has_other_wish = bool(request.dishes or other_filters)
    result = await catalogue.search(query)
    near_wines = result.other_vintages
    if not near_wines and not has_other_wish:
        near_wines = result.mentioned
    if near_wines and _is_meant(asked, near_wines[0]):
        return query
    may_be_name = asked.asks_for_stock or asked.is_certain
    if not may_be_name or asked.is_kind:
        return None
    if request.inclusions:
        query_with_filters = _make_query_with_filters(asked, request)
        result = await catalogue.search(query_with_filters)
        if result.total:
            return query_with_filters
    if has_other_wish and not asked.is_certain:
        return None  # "do you have something bubbly without alcohol?" names no wine
    return query


def _make_query_with_filters(asked: AskedName, request: Request) -> WineQuery:
    """Return the query that has the known words as filters, and the others as the name."""
    name = asked.unknown[:MAX_NAME_CHARS]
    # The guest asks for this wine, so it is found although it may be sold out.
    changes = {"name": name, "text": "", "in_stock_only": False}
    return build_query(request).model_copy(update=changes)


def _make_name_query(asked: AskedName, name: str) -> WineQuery:
    """Return the query for the wines of a name, with the offer that is asked for."""
    offer = None
    if asked.offer not in USUAL_OFFERS:
        offer = OfferKind(asked.offer)
    return WineQuery(name=name[:MAX_NAME_CHARS], offer=offer, limit=MAX_RESULTS)


def _is_meant(asked: AskedName, wine: Wine) -> bool:
    """Return whether a message means the wine that its words find, and not a dish or a place."""
    if asked.asks_for_stock and not asked.has_dish:
        return True
    if asked.unknown:
        return _may_have_word_of(asked.unknown, wine)
    # "Mouton" alone is a dish, and "Chablis" alone is a place.
    if not asked.asks_for_stock:
        return False
    label_words = set(split_words(wine.label))
    return label_words.issuperset(split_words(asked.core))


def _may_have_word_of(name: str, wine: Wine) -> bool:
    """Return whether a wine that was found by a name has a word of it, perhaps misspelt."""
    wine_words = split_words(f"{wine.label} {wine.appellation} {wine.region}")
    for word in split_words(name):
        if word in wine_words:
            return True
        # The search compares a long word by its letters, so it may be a misspelt word of the wine.
        if len(word) >= MIN_MISSPELT_LETTERS:
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
    style_name = style or _implied_style(request, profile)
    if style_name is None:
        return None
    grapes = request.values("grapes")
    if profile is not None and not grapes:
        grapes = profile.grapes
    implied: dict[str, Any] = {
        "id": id,
        "producer": "",
        "name": name,
        "style": Style(style_name),
        "country": _first_value(request, "countries") or "",
        "region": _first_value(request, "regions") or "",
        "grapes": grapes,
        "sweetness": _first_value(request, "sweetness"),
    }
    if profile is not None and profile.style == style_name:
        implied["body"] = profile.body
        implied["tannin"] = profile.tannin
        implied["acidity"] = profile.acidity
    return Wine(**implied | attributes)


def _implied_style(request: Request, profile: Profile | None) -> str | None:
    """Return the style that a name states, or that is typical of its grape or region, or None."""
    stated_style = _first_value(request, "styles")
    if stated_style is None and profile is not None:
        return profile.style
    return stated_style


def _first_value(request: Request, name: str) -> str | None:
    """Return the first value of a list filter, or None if there is none."""
    values = request.values(name)
    if not values:
        return None
    return values[0]


def _find_profile_in(name: str, request: Request) -> Profile | None:
    """Return the profile of the region or the grape that a wine's name has, or None."""
    names = [*request.values("regions"), *request.values("grapes")]
    padded_name = f" {normalize(name)} "
    for profile_name in load_profiles():
        # The spaces keep a profile from being found within a word.
        if f" {normalize(profile_name)} " in padded_name:
            names.append(profile_name)
    return find_profile(names)
