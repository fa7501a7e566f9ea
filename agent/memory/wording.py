"""Sentences about a person's taste and cellar, in the current language."""

from collections.abc import Iterable
from typing import Final

from agent.i18n import translate
from agent.markdown import escape
from agent.memory.cellar import bottles_in_stock, drinking_window, state_of, wine_of
from agent.sommelier.taste import budget_of, read
from agent.sommelier.wine import Currency, money
from agent.turn import Bottles, Fact

UNKNOWN_WINDOW_END: Final = 9999
"""Sorts a wine of which no best years are known behind all others."""


def in_words(fact: Fact) -> str:
    """Return half a sentence that says a fact, about what the person named it."""
    kind = "like" if fact.kind == "rated" else fact.kind
    if kind == "budget":
        return translate("memory_budget", what=price_range(fact.value))
    return translate(f"memory_{kind}", what=_subject(fact))


def price_range(value: str) -> str:
    """Return the words for the value of a budget."""
    low, high, currency = budget_of(value)
    name = "prices_to" if low is None else "prices_from" if high is None else "prices_between"
    return translate(name, low=money(low or 0, currency), high=money(high or 0, currency))


def _subject(fact: Fact) -> str:
    if fact.kind == "rated" or not fact.original_text:
        values = (value for listed in read(fact.value).values() for value in listed)
        return ", ".join(values) or fact.value
    return fact.original_text


def learned(facts: Iterable[Fact]) -> str:
    """Return the sentence that confirms facts; empty without any."""
    said = ", ".join(escape(in_words(fact)) for fact in facts)
    return translate("memory_learned", facts=said) if said else ""


def unlearned(facts: Iterable[Fact]) -> str:
    """Return the sentence that confirms forgotten facts; empty without any."""
    said = ", ".join(escape(in_words(fact)) for fact in facts)
    return translate("memory_unlearned", facts=said) if said else ""


def cellar(bottles: Iterable[Bottles], year: int, heading: str) -> str:
    """Return a line of Markdown for each wine, below a heading."""
    return "\n".join([heading, *(line(item, year) for item in bottles)])


def whole_cellar(bottles: Iterable[Bottles], year: int) -> str:
    """Return all that a person owns, the wines with least time left first, and its price."""
    found = bottles_in_stock([*bottles])
    if not found:
        return translate("cellar_none")
    found.sort(key=lambda item: ((drinking_window(item) or (0, UNKNOWN_WINDOW_END))[1], item.key))
    lines = [translate("cellar_all", count=str(sum(item.count for item in found)))]
    lines += [line(item, year) for item in found]
    paid = dict[Currency, float]()
    for item in found:
        wine = wine_of(item)
        if wine.price is not None:
            paid[wine.currency] = paid.get(wine.currency, 0) + wine.price * item.count
    if paid:
        sums = ", ".join(money(amount, currency) for currency, amount in paid.items())
        lines.append(translate("cellar_paid", paid=sums))
    return "\n".join(lines)


def line(bottles: Bottles, year: int) -> str:
    """Return how many bottles there are of which wine, their price, and when to drink them."""
    wine, window, state = wine_of(bottles), drinking_window(bottles), state_of(bottles, year)
    note = [translate("memory_note", what=escape(bottles.note))] if bottles.note else []
    if not bottles.count:
        return " · ".join([f"**{escape(wine.label)}**", translate("cellar_gone"), *note])
    facts = [f"{bottles.count} × **{escape(wine.label)}**"]
    if wine.price is not None:
        facts.append(translate("cellar_each", price=money(wine.price, wine.currency)))
    if window is not None and state != "unknown":
        facts.append(translate(f"cellar_{state}", year=str(window[0 if state == "young" else 1])))
    return " · ".join([*facts, *note])
