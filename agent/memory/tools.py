"""The tools by which a model stores and forgets facts of a person, and changes their cellar.

A tool changes nothing by itself: it returns a `Change`. The commit that ends the turn applies it;
the reply lists it under the answer's text, with a button that undoes it. The model reads of the
person as "the guest".
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal
from zlib import crc32

from pydantic import Field

from agent.care import ALLERGIES
from agent.engine.errors import ToolError
from agent.engine.run import Run
from agent.engine.tools import Tool, ToolOutput
from agent.fallback.searching import parse_query
from agent.i18n import translate
from agent.memory.cellar import (
    MAX_BOTTLES,
    MAX_NAME,
    cellar,
    drinking_window,
    find_item_by_id,
    find_removal,
    guess_wine,
    items_in_stock,
    to_cellar_item,
    to_wine,
)
from agent.memory.taste import (
    MAX_NOTE,
    added_note,
    contradicted_facts,
    excluded_facts,
    new_facts,
    parse_facts,
    removed_note,
)
from agent.sommelier.safety import get_person, may_be_shown
from agent.sommelier.wine import Currency, wine_record
from agent.sommelier.wine_tools import NoArguments, wines_by_id
from agent.tables import StrictModel
from agent.text import split_words
from agent.turn import Change, Fact, Person, Reply, apply_change

REMEMBER: Final = (
    "Keep a lasting fact of the guest: hate (a wine they never drink), like, allergy, budget "
    "('up to 25 EUR' a bottle), or note (anything else, or about others: 'my wife: no eggs'). "
    "Short, in the guest's words. Do not keep what is known already or only wanted now."
)
FORGET: Final = "Forget a known fact of the guest, when they say that it is no longer true."
CHANGE_CELLAR: Final = (
    "Change the guest's own cellar: add bottles that they say they bought, remove those that they "
    "drank or gave away. `wine` is its name with the vintage, or the wine_id that own_cellar "
    "returned; `price` is that of one bottle."
)
OWN_CELLAR: Final = (
    "List the bottles that the guest owns at home. Call it when the guest asks what to drink of "
    "their own, and recommend these by their wine_id. They are not for sale."
)
MAX_LISTED: Final = 60
MAX_READ: Final = 300
"""Characters of a message that is read for what it rules out."""


class FactArguments(StrictModel):
    """Arguments of remember and forget."""

    kind: Literal["hate", "like", "allergy", "budget", "note"]
    value: Annotated[str, Field(min_length=2, max_length=MAX_NOTE)]


class CellarArguments(StrictModel):
    """Arguments of change_cellar."""

    action: Literal["add", "remove"]
    wine: Annotated[str, Field(min_length=2, max_length=MAX_NAME)]
    count: Annotated[int, Field(ge=1, le=MAX_BOTTLES)] = 1
    price: Annotated[float | None, Field(gt=0, le=100_000)] = None
    currency: Currency = Currency.EUR


def memory_tools() -> list[Tool]:
    """Return remember, forget, change_cellar and own_cellar."""
    return [
        Tool("remember", REMEMBER, FactArguments, remember),
        Tool("forget", FORGET, FactArguments, forget),
        Tool("change_cellar", CHANGE_CELLAR, CellarArguments, change_cellar),
        Tool("own_cellar", OWN_CELLAR, NoArguments, own_cellar),
    ]


async def remember(arguments: FactArguments, run: Run) -> ToolOutput:
    """Return a change that adds a fact and removes the facts that contradict it."""
    person = get_person(run)
    facts = new_facts(_parse_facts(arguments), person.facts)
    if not facts:
        return ToolOutput("this fact of the guest is known already")
    removed = tuple(old for fact in facts for old in contradicted_facts(fact, person.facts))
    return _change_output("remembered", person, added_facts=facts, removed_facts=removed)


async def forget(arguments: FactArguments, run: Run) -> ToolOutput:
    """Return a change that removes the facts of this kind that are most like the value."""
    person = get_person(run)
    named = set(split_words(arguments.value))

    def similarity(fact: Fact) -> int:
        """Return how many words the fact and the value have in common; a budget always matches."""
        known = set(split_words(f"{fact.original_text} {fact.value}"))
        return 1 if fact.kind == "budget" else len(named & known)

    scores = {fact: similarity(fact) for fact in person.facts if fact.kind == arguments.kind}
    best = max(scores.values(), default=0)
    if best == 0:
        raise ToolError("that is not among the known facts of the guest")
    removed = tuple(fact for fact, score in scores.items() if score == best)
    return _change_output("forgotten", person, removed_facts=removed)


async def change_cellar(arguments: CellarArguments, run: Run) -> ToolOutput:
    """Return a change that adds bottles to the person's cellar, or removes them.

    The count of its bottles is added to the stored one: it is negative if they are removed.
    """
    person, name = get_person(run), arguments.wine
    if arguments.action == "remove":
        added = find_removal(person.bottles, name, arguments.count)
        if added is None:
            raise ToolError("the guest owns no wine of this name; own_cellar lists theirs")
    elif owned := find_item_by_id(person.bottles, name):
        wine = dict(owned.wine)
        if arguments.price is not None:
            wine |= {"price": arguments.price, "currency": arguments.currency.value}
        added = replace(owned, count=arguments.count, wine=wine)
    else:
        wine_named = guess_wine(name, arguments.price, arguments.currency)
        added = to_cellar_item(wine_named, arguments.count)
    return _change_output("cellar changed", person, bottles=(added,))


async def own_cellar(arguments: NoArguments, run: Run) -> ToolOutput:
    """Return the wines that the person owns, how many bottles of each, and when to drink them."""
    person = get_person(run)
    # Without the facts, wines that the person hates are listed, too. Allergies are part of `care`
    # and still filter.
    person_without_facts = replace(person, facts=())
    owned = ((item, to_wine(item)) for item in items_in_stock(person.bottles))
    found = [(item, wine) for item, wine in owned if may_be_shown(wine, person_without_facts)]
    if not found:
        none = "the guest's cellar holds no bottles that they may drink"
        raise ToolError(f"{none}; search_wines finds wines for sale")
    records = [
        wine_record(wine)
        | {"bottles": item.count, "usually_best": drinking_window(item), "note": item.note}
        for item, wine in found[:MAX_LISTED]
    ]
    sources = wines_by_id(wine for _, wine in found[:MAX_LISTED])
    return ToolOutput({"owned_by_the_guest": records}, sources)


def _parse_facts(arguments: FactArguments) -> tuple[Fact, ...]:
    """Return the facts that a value names, one for each grape, region, allergen …

    Raises:
        ToolError: it names none.
    """
    value = arguments.value.strip()
    match arguments.kind:
        case "note":
            return (Fact("note", value, value),)
        case "hate":
            # "Chardonnay" alone parses as a like; the kind says that it is a hate.
            named = (fact for fact in parse_facts(value) if fact.kind in ("like", "hate"))
            facts = tuple(Fact("hate", fact.value, fact.original_text) for fact in named)
        case "allergy":
            # A word is read as an allergen only if the text speaks of an allergy.
            parsed = {str(name) for name in parse_query(f"allergy {value}").without_allergens}
            parsed |= {name for name in ALLERGIES if {name, f"{name}s"} & {*split_words(value)}}
            facts = tuple(Fact("allergy", allergen, value) for allergen in sorted(parsed))
        case "like" | "budget":
            if arguments.kind == "budget" and value.isdecimal():
                value = f"up to {value}"
            facts = tuple(fact for fact in parse_facts(value) if fact.kind == arguments.kind)
    if not facts:
        known = "grape, region, country, style or taste"
        raise ToolError(f"this value names no known {known}; use kind note")
    return facts


def _change_output(action: str, person: Person, **changes: Any) -> ToolOutput:
    """Return a change among the sources of an output: the turn takes its changes from there."""
    change = Change(user_id=person.user_id, **changes)
    content = {"done": action, "note": "the guest sees this below your answer; do not repeat it"}
    # Equal changes have the same key: a call that the model repeats is applied once.
    key = f"{action}:{crc32(repr(change).encode()):08x}"
    return ToolOutput(content, {key: change})


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
    facts = excluded_facts(parse_query(message)) if is_read else ()
    return replace(
        reply,
        changes=(change,) if is_changed else (),
        notes=(*reply.notes, *change_notes(change, person)),
        suggested_facts=new_facts(facts, (*person.facts, *change.added_facts)),
    )


def change_notes(change: Change, person: Person) -> list[str]:
    """Return the sentences that confirm a change; those about bottles say how many there are."""
    after, keys = apply_change(person, change), {item.key for item in change.bottles}
    bottles = [item for item in after.bottles if item.key in keys]
    year = datetime.now(UTC).year
    parts = (
        added_note(change.added_facts),
        removed_note(change.removed_facts),
        cellar(bottles, year, translate("cellar_added")) if bottles else "",
    )
    return [part for part in parts if part]
