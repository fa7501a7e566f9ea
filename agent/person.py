"""What is known of who asks: care, what they told of themselves, what they own; and its changes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from agent.care import NO_CARE, Care

FactKind = Literal["allergy", "hate", "like", "budget", "note", "rated", "setting"]
"""What a fact is. `rated` is what verdicts say, `setting` what somebody chose."""
PRICES: Final = "prices"
TOLD: Final[tuple[FactKind, ...]] = ("allergy", "hate", "like", "budget", "note")
"""What people tell of themselves in words."""
UNDER_AGE: Final = "age=under"
"""The setting of who said that they are too young."""
SHARED: Final = "cellar in {}=shared"
"""The setting of who shows their cellar in a chat."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that is remembered of a person, in the words of the catalogue.

    The value of a taste is what `agent.sommelier.taste` writes, that of an allergy an allergen, of
    a budget from how much and up to how much (`40 EUR`, `15-30 EUR`, `60- EUR`). `said` are their
    own words, of what is `rated` "+" or "-".
    """

    kind: FactKind
    value: str
    said: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others."""
        return self.kind, self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottles:
    """Bottles of one wine that a person owns; `wine` are its facts, `key` its label, folded.

    `drink_from` and `drink_until` are years, as they were told.
    """

    key: str
    wine: Mapping[str, Any]
    count: int
    id: int = 0
    drink_from: int | None = None
    drink_until: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a turn changes of what is kept of a person, at its end.

    Of `bottles` the counts are added to those that there are. With `forget`, their hash in traces,
    all that is kept of them is deleted.
    """

    user_id: int
    learned: tuple[Fact, ...] = ()
    unlearned: tuple[Fact, ...] = ()
    bottles: tuple[Bottles, ...] = ()
    forget: str = ""


@dataclass(frozen=True, slots=True)
class Person:
    """What is known of who asks, and their own words in this turn; what they own is theirs alone.

    Nothing is remembered of whom has no `user_id`.
    """

    care: Care = NO_CARE
    facts: tuple[Fact, ...] = ()
    bottles: tuple[Bottles, ...] = ()
    user_id: int = 0
    words: str = ""


NOBODY: Final = Person()


def changed(person: Person, change: Change) -> Person:
    """Return a person as they are known after a change; of no wine there are less than none."""
    gone = {fact.key for fact in (*change.unlearned, *change.learned)}
    facts = (*(each for each in person.facts if each.key not in gone), *change.learned)
    owned = {each.key: each for each in person.bottles}
    for each in change.bottles:
        before = owned.pop(each.key, None) or replace(each, count=0, id=len(owned) + 1)
        count, note = max(0, before.count + each.count), each.note or before.note
        owned[each.key] = replace(before, wine=each.wine, count=count, note=note)
    return replace(person, facts=facts, bottles=tuple(owned.values()))


def settings_of(facts: Iterable[Fact]) -> dict[str, str]:
    """Return what a person chose, by the names of settings; `prices` is what they usually spend."""
    chosen = {}
    for fact in facts:
        if fact.kind == "budget":
            chosen[PRICES] = fact.value
        elif fact.kind == "setting":
            name, _, value = fact.value.partition("=")
            chosen[name] = value
    return chosen


def facts_of(settings: Mapping[str, str]) -> tuple[Fact, ...]:
    """Return the facts that `settings_of` reads so."""
    return tuple(
        Fact("budget", value) if name == PRICES else Fact("setting", f"{name}={value}")
        for name, value in settings.items()
        if value
    )
