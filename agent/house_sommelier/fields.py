"""From what was said to the filters of a search. Pure."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from agent.house_sommelier.lexicon import Match, Token
from agent.house_sommelier.prices import Numbers
from agent.house_sommelier.wishes import EITHER, Said
from agent.sommelier.wine import Body, Sweetness

_HUES: Final = ("red", "white", "rose", "orange")
_WITH_OWN_COLOUR: Final = frozenset({"sparkling", "fortified", "sweet", "alcohol_free"})
_LISTS: Final = ("foods", "grapes", "countries", "regions")
_SCALES: Final = {"sweetness": tuple(Sweetness), "bodies": tuple(Body)}
_MOST_VALUES: Final = 6


def said_fields(said: Said, either_colour: bool) -> dict[str, object]:
    """The filters that words ask for."""
    fields: dict[str, object] = {
        name: values[:_MOST_VALUES] for name in _LISTS if (values := said.values(name))
    }
    for name, scale in _SCALES.items():
        if values := _on_scale(said.values(name), said.denied_values(name), scale):
            fields[name] = values
    if order := said.values("order"):
        fields["order"] = order[0]
    allergens = [*said.values("without_allergens"), *said.denied_values("allergen")]
    if allergens:
        fields["without_allergens"] = list(dict.fromkeys(allergens))
    return {**_kind_fields(said, either_colour), **fields}


def _on_scale(wanted: list[str], denied: list[str], scale: Sequence[str]) -> list[str]:
    """The wanted steps of a scale without the denied ones; all others if none is wanted."""
    if not denied:
        return wanted
    return [str(step) for step in wanted or scale if step not in denied]


def either_colour(words: Sequence[Token], matches: Sequence[Match]) -> bool:
    """Whether a colour and a style are alternatives ("white or sparkling"), not one wine."""
    kinds = [match for match in matches if _is_kind(match)]
    return any(
        first.meanings[0].field != second.meanings[0].field
        and any(word.stem in EITHER for word in words[first.end : second.start])
        for first, second in pairwise(kinds)
    )


def _is_kind(match: Match) -> bool:
    return match.meanings[0].field in ("hue", "styles")


def _kind_fields(said: Said, either_colour: bool) -> dict[str, object]:
    """A colour is a style of its own, unless it qualifies another: red, but sparkling and red."""
    hues, styles = said.values("hue"), said.values("styles")
    if "alcohol_free" in styles:
        return {"styles": ["alcohol_free"], **({"colours": hues} if hues else {})}
    is_quality = bool(_WITH_OWN_COLOUR & set(styles)) or "luscious" in said.values("sweetness")
    if hues and is_quality and not either_colour:
        return {"styles": styles, "colours": hues} if styles else {"colours": hues}
    denied = said.denied_values("hue")
    if denied and not (hues or styles):
        styles = [style for style in (*_HUES, "sparkling") if style not in denied]
    return {"styles": [*hues, *styles]} if hues or styles else {}


def number_fields(numbers: Numbers, said: Said) -> dict[str, object]:
    """The limits of price and alcohol; "cheap" is a limit where no number is given."""
    limits: dict[str, object] = {
        "min_price": numbers.min_price,
        "max_price": numbers.max_price,
        "min_abv": numbers.min_abv,
        "max_abv": numbers.max_abv,
    }
    fields = {name: limit for name, limit in limits.items() if limit is not None}
    if numbers.currency and (fields.keys() & {"min_price", "max_price"}):
        fields["currency"] = numbers.currency
    if not fields.keys() & {"min_price", "max_price"} and (caps := said.values("cap")):
        fields["max_price"] = min(map(float, caps))
    if not fields.keys() & {"min_abv", "max_abv"} and (weak := said.values("max_abv")):
        fields["max_abv"] = float(weak[0])
    return fields
