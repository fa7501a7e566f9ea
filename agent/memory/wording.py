"""What guests ask of what is remembered, and what they are told of it in their language."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal

from agent.i18n import say_in
from agent.markdown import escape
from agent.memory.cellar import state_of, window_of, wine_of
from agent.person import Bottles, Fact
from agent.sommelier.taste import budget_of, read
from agent.sommelier.wine import Currency, money
from agent.tables import read_toml
from agent.text import Pattern, of_words, spaced, words

Asked = Literal["forget", "export", "privacy", "taste", "cellar", "agree"]
LONGEST: Final = 200
"""Characters of a message that asks for it and for nothing else."""
FAR: Final = 9999
"""The year until which a wine keeps of which nothing is known."""


def asked_of_memory(text: str) -> Asked | None:
    """Tell what a message, in any language, asks of what is remembered; None for any other."""
    if len(text) > LONGEST:
        return None
    said = spaced(words(text))
    return next((what for what, pattern in _patterns().items() if pattern.search(said)), None)


@cache
def _patterns() -> Mapping[Asked, Pattern]:
    written = read_toml(dict[Asked, list[str]], Path(__file__).with_name("asking.toml"))
    return {
        what: of_words("|".join(f"(?:{each})" for each in any_of))
        for what, any_of in written.items()
    }


def in_words(fact: Fact, language: str) -> str:
    """Say a fact in half a sentence: what it is about as who told it named it."""
    kind = "like" if fact.kind == "rated" else fact.kind
    about = spent_in_words(fact.value, language) if kind == "budget" else _about(fact)
    return say_in(language, f"memory_{kind}", what=about)


def spent_in_words(value: str, language: str) -> str:
    """Say what somebody usually spends, of the value of a budget."""
    low, high, currency = budget_of(value)
    name = "prices_to" if low is None else "prices_from" if high is None else "prices_between"
    ends = {"low": money(low or 0, currency), "high": money(high or 0, currency)}
    return say_in(language, name, **ends)


def _about(fact: Fact) -> str:
    if fact.kind == "rated" or not fact.said:
        return ", ".join(each for values in read(fact.value).values() for each in values)
    return fact.said


def told(facts: Iterable[Fact], name: str, language: str) -> str:
    """Say that facts are "learned" or "unlearned"; empty without any."""
    said = ", ".join(in_words(each, language) for each in facts)
    return say_in(language, f"memory_{name}", facts=said) if said else ""


def cellar(bottles: Iterable[Bottles], year: int, language: str, begins: str) -> str:
    """Say each of some bottles in a line of Markdown, below the sentence of that name."""
    lines = [line(each, year, language) for each in bottles]
    return "\n".join([say_in(language, begins), *lines])


def whole_cellar(bottles: Iterable[Bottles], year: int, language: str) -> str:
    """Say what a person owns, what has least time left first, and what they paid for it."""
    owned = [each for each in bottles if each.count]
    if not owned:
        return say_in(language, "cellar_none")
    owned.sort(key=lambda each: ((window_of(each) or (0, FAR))[1], each.key))
    count = str(sum(each.count for each in owned))
    said = [say_in(language, "cellar_all", count=count)]
    said += [line(each, year, language) for each in owned]
    paid = dict[Currency, float]()
    for each in owned:
        wine = wine_of(each)
        if wine.price is not None:
            paid[wine.currency] = paid.get(wine.currency, 0) + wine.price * each.count
    if paid:
        sums = ", ".join(money(amount, currency) for currency, amount in paid.items())
        said.append(say_in(language, "cellar_paid", paid=sums))
    return "\n".join(said)


def line(bottles: Bottles, year: int, language: str) -> str:
    """Say how many bottles of which wine, what each cost, when to drink them, what was noted."""
    wine, window, state = wine_of(bottles), window_of(bottles), state_of(bottles, year)
    if not bottles.count:
        gone = [f"**{escape(wine.label)}**", say_in(language, "cellar_gone")]
        return " · ".join([*gone, *_note(bottles, language)])
    facts = [f"{bottles.count} × **{escape(wine.label)}**"]
    if wine.price is not None:
        facts.append(say_in(language, "cellar_each", price=money(wine.price, wine.currency)))
    if window is not None and state != "unknown":
        ends = window[0] if state == "young" else window[1]
        facts.append(say_in(language, f"cellar_{state}", year=str(ends)))
    return " · ".join([*facts, *_note(bottles, language)])


def _note(bottles: Bottles, language: str) -> list[str]:
    return [say_in(language, "memory_note", what=escape(bottles.note))] if bottles.note else []
