"""What a `SommelierResponse` must keep to, and how it reaches a person."""

from typing import Final

from agent.contract import Evidence, OutputContract
from agent.grounding import grounded_part, shown_wines, ungrounded
from agent.money import Currency
from agent.sommelier_prompts import SommelierResponse, validate_semantic_content
from agent.wine import Wine

SYMBOLS: Final = {Currency.EUR: "€", Currency.USD: "$", Currency.GBP: "£"}


def render(response: SommelierResponse, evidence: Evidence) -> str:
    """An answer as Markdown: the model's words, beside facts that come from the catalogue."""
    said = {wine.wine_id: wine.description.strip() for wine in reversed(response.wines)}
    parts = [response.intro.strip()]
    for number, wine in enumerate(shown_wines(response.wines, evidence), start=1):
        parts.append(f"**{number}. {wine.label}**\n{facts_line(wine)}\n{said[wine.id]}".strip())
    parts.append(response.closing.strip())
    return "\n\n".join(part for part in parts if part)


def facts_line(wine: Wine) -> str:
    """Where a wine comes from and what it costs; the price is indicative, hence the sign."""
    place = wine.appellation or wine.region
    origin = f"{place}, {wine.country}" if place and place != wine.country else wine.country
    facts = [origin, price_text(wine), "" if wine.in_stock else "not in stock"]
    return " · ".join(fact for fact in facts if fact)


def price_text(wine: Wine) -> str:
    """An indicative price, e.g. `≈ €18`, `≈ CHF 20`; empty if none is known."""
    if wine.price is None:
        return ""
    amount = f"{wine.price:.2f}".removesuffix(".00")
    symbol = SYMBOLS.get(wine.currency)
    return f"≈ {symbol}{amount}" if symbol else f"≈ {wine.currency} {amount}"


def wine_ids(response: SommelierResponse) -> list[str]:
    """The ids of the wines shown, each once."""
    return list(dict.fromkeys(wine.wine_id for wine in response.wines))


SOMMELIER: Final = OutputContract(
    SommelierResponse,
    semantic=validate_semantic_content,
    grounding=ungrounded,
    render=render,
    ids=wine_ids,
    salvage=grounded_part,
)
