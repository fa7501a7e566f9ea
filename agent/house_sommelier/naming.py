"""What a wine is by its name alone: by the grape or the region in it, and their build. Pure."""

from functools import cache
from typing import Any, Final

from agent.house_sommelier.data import Pairing, dishes, pairings, profiles
from agent.house_sommelier.lexicon import parse
from agent.sommelier.wine import Food, ReadWine, Style, Wine

_NAMED: Final = ("regions", "grapes", "countries", "styles", "sweetness")
_TOLD: Final = ("bodies", "body"), ("tannins", "tannin"), ("acidities", "acidity")
"""What pairings say of wines, and what wines call it."""


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
