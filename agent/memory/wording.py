"""What is said of what is remembered: in the language of the guest, and in their own words."""

from collections.abc import Iterable

from agent.i18n import say_in
from agent.person import Fact
from agent.sommelier.taste import read
from agent.sommelier.wine import Currency, money


def in_words(fact: Fact, language: str) -> str:
    """Say a fact in half a sentence: what it is about as who told it named it."""
    kind = "like" if fact.kind == "rated" else fact.kind
    return say_in(language, f"memory_{kind}", what=_about(fact))


def _about(fact: Fact) -> str:
    if fact.kind == "budget":
        amount, _, currency = fact.value.partition(" ")
        return money(float(amount), Currency(currency))
    if fact.kind == "rated" or not fact.said:
        return ", ".join(each for values in read(fact.value).values() for each in values)
    return fact.said


def told(facts: Iterable[Fact], name: str, language: str) -> str:
    """Say that facts are "learned" or "unlearned"; empty without any."""
    said = ", ".join(in_words(each, language) for each in facts)
    return say_in(language, f"memory_{name}", facts=said) if said else ""
