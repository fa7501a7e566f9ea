"""What is said of what is remembered: in the language of the guest, and in their own words."""

from collections.abc import Iterable

from agent.i18n import say_in
from agent.person import Fact
from agent.sommelier.taste import budget_of, read
from agent.sommelier.wine import money


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
