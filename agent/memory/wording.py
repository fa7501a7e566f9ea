"""Sentences about a person's taste and cellar, and about the changes of them in a turn."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from agent.fallback import parse_query
from agent.i18n import translate
from agent.markdown import escape
from agent.memory.cellar import bottles_in_stock, drinking_window, state_of, wine_of
from agent.memory.taste import excluded, new_facts
from agent.sommelier.safety import budget_of, read
from agent.sommelier.wine import money
from agent.turn import Bottles, Change, Fact, Person, Reply, changed

MAX_READ: Final = 300
"""Characters of a message that is read for what it rules out."""

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


def added_note(facts: Iterable[Fact]) -> str:
    """Return the sentence that confirms facts; empty without any."""
    listed = _listed(facts)
    return translate("memory_learned", facts=listed) if listed else ""


def removed_note(facts: Iterable[Fact]) -> str:
    """Return the sentence that confirms forgotten facts; empty without any."""
    listed = _listed(facts)
    return translate("memory_unlearned", facts=listed) if listed else ""


def _listed(facts: Iterable[Fact]) -> str:
    return ", ".join(escape(in_words(fact)) for fact in facts)


def cellar(bottles: Iterable[Bottles], year: int, heading: str) -> str:
    """Return a line of Markdown for each wine, below a heading."""
    return "\n".join([heading, *(line(item, year) for item in bottles)])


def whole_cellar(bottles: Iterable[Bottles], year: int) -> str:
    """Return all that a person owns, the wines with least time left first."""
    found = bottles_in_stock([*bottles])
    if not found:
        return translate("cellar_none")
    found.sort(key=lambda item: ((drinking_window(item) or (0, UNKNOWN_WINDOW_END))[1], item.key))
    count = sum(item.count for item in found)
    return cellar(found, year, translate("cellar_all", count=str(count)))


def line(bottles: Bottles, year: int) -> str:
    """Return how many bottles there are of which wine, their price, and when to drink them."""
    wine, window, state = wine_of(bottles), drinking_window(bottles), state_of(bottles, year)
    name = f"**{escape(wine.label)}**"
    if bottles.count:
        facts = [f"{bottles.count} × {name}"]
        if wine.price is not None:
            facts.append(translate("cellar_each", price=money(wine.price, wine.currency)))
        if window is not None:
            end = window[0 if state == "young" else 1]
            facts.append(translate(f"cellar_{state}", year=str(end)))
    else:
        facts = [name, translate("cellar_gone")]
    if bottles.note:
        facts.append(translate("memory_note", what=escape(bottles.note)))
    return " · ".join(facts)


def with_change_notes(reply: Reply, person: Person, message: str, undo_id: int) -> Reply:
    """Return a reply that tells the changes of its turn, and what else might be remembered.

    Its changes are one, which can be undone under `undo_id` unless that is 0. What the message
    rules out is suggested as a fact.
    """
    if not person.user_id:
        return reply
    change = Change(
        user_id=person.user_id,
        added_facts=tuple(fact for made in reply.changes for fact in made.added_facts),
        removed_facts=tuple(fact for made in reply.changes for fact in made.removed_facts),
        bottles=tuple(item for made in reply.changes for item in made.bottles),
        undo_id=undo_id,
    )
    is_changed = bool(change.added_facts or change.removed_facts or change.bottles)
    is_read = bool(reply.wines) and len(message) <= MAX_READ
    facts = excluded(parse_query(message)) if is_read else ()
    return replace(
        reply,
        changes=(change,) if is_changed else (),
        notes=(*reply.notes, *change_notes(change, person)),
        suggested_facts=new_facts(facts, (*person.facts, *change.added_facts)),
    )


def change_notes(change: Change, person: Person) -> list[str]:
    """Return the sentences that confirm a change; those about bottles say how many there are."""
    after, keys = changed(person, change), {item.key for item in change.bottles}
    bottles = [item for item in after.bottles if item.key in keys]
    year = datetime.now(UTC).year
    parts = (
        added_note(change.added_facts),
        removed_note(change.removed_facts),
        cellar(bottles, year, translate("cellar_added")) if bottles else "",
    )
    return [part for part in parts if part]
