"""Write a wine as a card: its name and facts, from the catalogue, in the language of the turn."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from agent.i18n import current_language, translate
from agent.markdown import escape
from agent.sommelier.read_wine import AnyWine, ReadWine
from agent.sommelier.wine import OWN, VEGAN, Wine, key, money
from agent.text import pattern, words

TITLE: Final = pattern(r"\A\*\*([0-9]{1,2}\. .+)\*\*\n")
"""The title of a card, with its number."""


def wine_text(
    wine: AnyWine, description: str, number: str = "", *, asked: Iterable[str] = ()
) -> str:
    """Write a wine as Markdown; say whether it is vegan if the user `asked` for such wines."""
    facts = facts_line(wine)
    if any(word.startswith(VEGAN) for text in asked for word in words(text)):
        facts = f"{facts} · {translate(f'vegan_{wine.facts.vegan}')}"
    return f"**{number}{escape(wine.label)}**\n{escape(facts)}\n{description}".strip()


def facts_line(wine: AnyWine) -> str:
    """Write where a wine comes from, what it costs, and that it is not in stock."""
    if isinstance(wine, ReadWine):
        return read_line(wine)
    place, country = wine.appellation or wine.region, country_name(wine.country)
    origin = ", ".join(filter(None, ("" if place == wine.country else place, country)))
    if wine.id.startswith(OWN):
        facts = [origin, translate("cellar_own")]
    else:
        facts = [origin, price_text(wine), "" if wine.in_stock else translate("not_in_stock")]
    return " · ".join(filter(None, facts))


def read_line(wine: ReadWine) -> str:
    """Write that a wine was read, what the list asks for it, and what it costs here."""
    facts = [translate("of_list" if wine.is_listed else "of_label")]
    if wine.sure != "certain":
        facts.append(translate(f"read_{wine.sure}"))
    facts.append(wine.region)
    if wine.price is not None:
        facts.append(money(wine.price, wine.currency))
    if wine.glass_price is not None:
        facts.append(translate("by_the_glass", price=money(wine.glass_price, wine.currency)))
    if wine.is_listed and wine.known and (ours := price_text(wine.known)):
        facts.append(translate("in_cellar", price=ours))
    return " · ".join(filter(None, facts))


def price_text(wine: Wine) -> str:
    """Write an indicative price, hence the sign: `≈ €18`; empty if none is known."""
    return "" if wine.price is None else f"≈ {money(wine.price, wine.currency)}"


def country_name(country: str) -> str:
    """Return the name of a country in the language of the turn; its own if it has none there."""
    if current_language() == "en":
        return country
    code = _codes().get(key("countries", country), "")
    return _territories(current_language()).get(code, country)


@cache
def _codes() -> Mapping[str, str]:
    """Return the codes of countries by their canonical names."""
    named = _territories("en").items()
    return {key("countries", label): code for code, label in named} | {"england": "GB"}


@cache
def _territories(language: str) -> Mapping[str, str]:
    from babel import Locale  # noqa: PLC0415 - 70 ms

    return dict(Locale.parse(language).territories)
