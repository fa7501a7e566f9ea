"""Facts of a person's taste: read from short words by the tables of the fallback, and said."""

from collections.abc import Iterable, Iterator
from typing import Final

from agent.care import ALLERGIES
from agent.fallback.request import read_request
from agent.fallback.searching import parse_query
from agent.i18n import translate
from agent.markdown import escape
from agent.sommelier.safety import EXCLUDABLE_FILTERS, format_taste, parse_budget, parse_taste
from agent.sommelier.wine import SOFT_FILTERS, WineQuery, format_money
from agent.turn import Fact

MAX_NOTE: Final = 200
"""Characters of a note, which is kept letter for letter."""


def parse_facts(text: str) -> tuple[Fact, ...]:
    """Return what a person says of their taste; a note of it, word for word, if nothing is read.

    With a colon it is a note always: "my wife: no eggs" is about somebody else.
    """
    text = text.strip()[:MAX_NOTE]
    query = parse_query(text)
    facts = () if ":" in text else (*excluded_facts(query), *_likes(text), *_budget(query))
    return facts or ((Fact("note", text, text),) if text else ())


def excluded_facts(query: WineQuery) -> Iterator[Fact]:
    """Yield what a request rules out, as facts that may be remembered."""
    for field in EXCLUDABLE_FILTERS:
        for value in getattr(query, f"without_{field}"):
            yield Fact("hate", format_taste({field: (value,)}), _plain(value))
    for allergen in query.without_allergens:
        if allergen in ALLERGIES:
            yield Fact("allergy", str(allergen), _plain(allergen))


def new_facts(facts: Iterable[Fact], known: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return the facts that are not known already."""
    keys = {fact.key for fact in known}
    return tuple({fact.key: fact for fact in facts if fact.key not in keys}.values())


def contradicted_facts(fact: Fact, known: Iterable[Fact]) -> Iterator[Fact]:
    """Yield the known facts that are no longer true once `fact` is added."""
    for old in known:
        is_other_budget = fact.kind == old.kind == "budget" and fact.value != old.value
        is_opposite = {fact.kind, old.kind} == {"hate", "like"} and fact.value == old.value
        if is_other_budget or is_opposite:
            yield old


def _likes(text: str) -> Iterator[Fact]:
    named = read_request(text).inclusions
    wanted = {name: values for name, values in named.items() if name in SOFT_FILTERS}
    if wanted:
        yield Fact("like", format_taste(wanted), text)


def _budget(query: WineQuery) -> Iterator[Fact]:
    low, high = query.min_price, query.max_price
    if low is None and high is None:
        return
    ends = f"{high:g}" if low is None else f"{low:g}-" if high is None else f"{low:g}-{high:g}"
    yield Fact("budget", f"{ends} {query.currency}")


def _plain(value: object) -> str:
    return str(value).replace("_", " ")


def parse_suggested_fact(kind: str, value: str) -> Fact | None:
    """Return a fact as a button carries it; None if it is none that may be suggested."""
    if kind == "allergy" and value in ALLERGIES:
        return Fact("allergy", value, value)
    wanted = parse_taste(value)
    if kind == "hate" and wanted:
        text = ", ".join(_plain(value) for values in wanted.values() for value in values)
        return Fact("hate", format_taste(wanted), text)
    return None


def describe_fact(fact: Fact) -> str:
    """Return half a sentence that says a fact, about what the person named it."""
    if fact.kind == "budget":
        low, high, currency = parse_budget(fact.value)
        name = "prices_to" if low is None else "prices_from" if high is None else "prices_between"
        limits = {
            "low": format_money(low or 0, currency),
            "high": format_money(high or 0, currency),
        }
        return translate("memory_budget", what=translate(name, **limits))
    what = fact.original_text
    if fact.kind == "rated" or not what:
        values = (value for listed in parse_taste(fact.value).values() for value in listed)
        what = ", ".join(values) or fact.value
    return translate(f"memory_{'like' if fact.kind == 'rated' else fact.kind}", what=what)


def added_note(facts: Iterable[Fact]) -> str:
    """Return the sentence that confirms facts; empty without any."""
    listed = ", ".join(escape(describe_fact(fact)) for fact in facts)
    return translate("memory_learned", facts=listed) if listed else ""


def removed_note(facts: Iterable[Fact]) -> str:
    """Return the sentence that confirms forgotten facts; empty without any."""
    listed = ", ".join(escape(describe_fact(fact)) for fact in facts)
    return translate("memory_unlearned", facts=listed) if listed else ""
