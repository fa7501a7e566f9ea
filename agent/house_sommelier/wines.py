"""Wines: those that tools returned and which of them may be offered, those only named. Pure."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.house_sommelier.data import Pairing, dishes, load, pairings, profiles
from agent.house_sommelier.lexicon import parse, stem, stop_words, tokens
from agent.house_sommelier.state import State, ToolResult, concepts
from agent.sommelier.safety import MAX_ABV, MAX_ABV_IF_FORBIDDEN
from agent.sommelier.wine import Food, ReadWine, Style, Wine
from agent.text import fold

_NAMED: Final = ("regions", "grapes", "countries", "styles", "sweetness")
_TOLD: Final = ("bodies", "body"), ("tannins", "tannin"), ("acidities", "acidity")
"""What pairings say of wines, and what wines call it."""


class ListedWine(BaseModel):
    """A wine as a tool lists it; what is unknown is left out there and empty here."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    wine_id: str = Field(min_length=1)
    name: str = ""
    country: str = ""
    region: str = ""
    appellation: str = ""
    grapes: tuple[str, ...] = ()
    style: str = ""
    colour: str = ""
    sweetness: str = ""
    body: str = ""
    acidity: str = ""
    tannin: str = ""
    abv: float | None = None
    price: float | None = None
    currency: str = "EUR"
    foods: tuple[str, ...] = ()
    allergens: tuple[str, ...] = ()
    notes: str = ""
    in_stock: bool = True
    misses: tuple[str, ...] = ()


class Found(BaseModel):
    """One tool result: its wines, how many there are, what an empty search says of its limits."""

    model_config = ConfigDict(frozen=True)

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    total: int = 0
    listed: int = 0
    wines: tuple[ListedWine, ...] = ()
    relax: dict[str, int] = Field(default_factory=dict)


def read_result(result: ToolResult) -> Found | None:
    """A tool's JSON as data; None for an error or anything else that is not a list of wines."""
    data, arguments = _json(result.content), _json(result.arguments)
    if not isinstance(data, dict) or not isinstance(data.get("wines"), list):
        return None
    arguments = arguments if isinstance(arguments, dict) else {}
    unwanted = arguments.get("not_ids") or ()
    fresh = (wine for wine in map(_wine, data["wines"]) if wine and wine.wine_id not in unwanted)
    wines = {wine.wine_id: wine for wine in fresh}
    total, relax = data.get("found"), data.get("relax")
    return Found(
        tool=result.tool,
        arguments=arguments,
        total=total if isinstance(total, int) else 0,
        listed=len(data["wines"]),
        wines=tuple(wines.values()),
        relax={
            str(name): count
            for name, count in (relax.items() if isinstance(relax, dict) else ())
            if isinstance(count, int) and count > 0
        },
    )


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _wine(data: object) -> ListedWine | None:
    try:
        wine = ListedWine.model_validate(data)
    except ValidationError:
        return None
    return wine if wine.wine_id.strip() else None


def offered(wines: Sequence[ListedWine], state: State) -> list[ListedWine]:
    """The wines that nothing speaks against.

    Alcohol-free ones only for those who ask or should not drink, or when there is nothing else.
    """
    fit = [wine for wine in wines if is_allowed(wine, state)]
    if state.care or "alcohol_free" in state.wishes.styles:
        return fit
    return [wine for wine in fit if wine.style != Style.ALCOHOL_FREE] or fit


def is_allowed(wine: ListedWine, state: State) -> bool:
    """Whether a wine has no allergen, no alcohol where that matters, and nothing ruled out."""
    if set(state.allergens) & set(wine.allergens) or wine.wine_id in state.refused:
        return False
    sober = state.care or "alcohol_free" in state.wishes.styles
    has_too_much = (sober and has_alcohol(wine)) or (
        state.care and (wine.abv or 0) > MAX_ABV_IF_FORBIDDEN
    )
    return not has_too_much and not _is_excluded(wine, state)


def has_alcohol(wine: ListedWine) -> bool:
    """Whether a wine is no alcohol-free one."""
    return wine.style != Style.ALCOHOL_FREE or (wine.abv or 0) > MAX_ABV


def _is_excluded(wine: ListedWine, state: State) -> bool:
    """Whether a wine has something that was ruled out: a grape, a place, a name, a taste."""
    if not state.denied:
        return False
    words = {token.stem for token in tokens(f"{wine.notes} {wine.name}")}
    label = " / ".join((wine.country, wine.region, wine.appellation, *wine.grapes, wine.name))
    is_so = concepts(label) | {("grapes", grape) for grape in wine.grapes}
    is_so |= {("hue", wine.style), ("hue", wine.colour), ("styles", wine.style)}
    is_so |= {("name", token.stem) for token in tokens(label)}
    return bool(state.denied & is_so) or any(
        words & _tasted(value) for field, value in state.denied if field == "text"
    )


def _tasted(taste: str) -> set[str]:
    """The words of a note that tell of a taste somebody does not want."""
    first = taste.split(maxsplit=1)[0]
    tables = load("unwanted_tastes")["taste"]
    known = (each["words"] for each in tables if first in each["called"].split())
    return {stem(fold(word)) for word in next(known, taste).split()}


def named(wines: Sequence[ListedWine], name: str) -> tuple[Sequence[ListedWine], bool]:
    """The wines whose label or place holds most words of `name`, and whether it holds all.

    Less than half of the telling words is another wine: "2019" and "Château" stand on many labels.
    Without a name, no wines.
    """
    wanted = _stems(name)
    if not wanted:
        return [], True
    telling = {word for word in wanted - stop_words("houses") if not word.isdecimal()} or wanted
    labels = [
        _stems(" ".join((each.name, each.country, each.region, each.appellation, *each.grapes)))
        for each in wines
    ]
    most = max((len(telling & label) for label in labels), default=0)
    if most * 2 < len(telling):
        return [], False
    hits = [(len(telling & label) == most) * len(wanted & label) for label in labels]
    best = max(hits, default=0)
    kept = [wine for wine, hit in zip(wines, hits, strict=True) if hit == best]
    return kept, best == len(wanted)


def _stems(text: str) -> frozenset[str]:
    return frozenset(token.stem for token in tokens(text) if token.is_word)


def wine_called(said: str, id: str, style: Style | None = None, /, **told: Any) -> Wine | None:
    """Return a wine as far as its name tells; None if that, and `style`, tell not even its kind."""
    named = dict[str, tuple[str, ...]]()
    for span in parse(said).spans:
        fields = [each for each in _NAMED if each in span.fields and "$" not in span.values(each)]
        for field in fields[:1]:
            named[field] = (*named.get(field, ()), *span.values(field))
    places = (*named.get("regions", ()), *named.get("grapes", ()))
    known = next((profiles()[each] for each in places if each in profiles()), None)
    build = known.profile if known else None
    kind = style or next(iter(named.get("styles", ())), build.colour if build else None)
    if kind is None:
        return None
    build = build if build and build.colour == kind else None
    facts = {
        "country": next(iter(named.get("countries", ())), ""),
        "region": next(iter(named.get("regions", ())), ""),
        "grapes": named.get("grapes") or (known.of if known else ()),
        "sweetness": next(iter(named.get("sweetness", ())), None),
        "body": build and build.body,
        "tannin": build and build.tannin,
        "acidity": build and build.acidity,
    }
    own = {"id": id, "producer": "", "name": said, "style": Style(kind)}
    return Wine(**{**own, **facts, **told})


def wine_listed(read: ReadWine) -> Wine | None:
    """Return a wine of a list at its price there, as we know it or as its line tells; else None."""
    price = read.glass_price if read.price is None else read.price
    own = {"price": price, "currency": read.currency, "vintage": read.vintage}
    if read.known is not None:
        return read.known.model_copy(update={"id": read.id, "in_stock": True, **own})
    names = {"producer": read.producer, "name": read.name or read.producer}
    wine = wine_called(f"{read.name} {read.region}", read.id, read.style, **names, **own)
    wine = wine or wine_called(read.line, read.id, read.style, **names, **own)
    return wine and wine.model_copy(update={"foods": foods_of(wine)})


def foods_of(wine: Wine) -> tuple[Food, ...]:
    """Return what a wine suits by its kind and build."""
    return tuple(food for food, pairing in _by_food().items() if _suits(wine, pairing))


def _suits(wine: Wine, pairing: Pairing) -> bool:
    builds = ((getattr(pairing, asked), getattr(wine, of)) for asked, of in _TOLD)
    is_built_so = all(not asked or value in asked for asked, value in builds)
    return wine.style in pairing.styles and is_built_so


@cache
def _by_food() -> dict[Food, Pairing]:
    """The pairing that each food goes by itself."""
    named = {dish.foods[0]: dish.pairing for dish in reversed(dishes()) if len(dish.foods) == 1}
    return {Food(food): pairings()[named[food]] for food in map(str, Food) if food in named}
