"""The tools by which a model remembers, forgets, and keeps a person's cellar.

A tool changes nothing by itself: what it found is a `Change`, made with the commit that ends the
turn, told below the answer, and undone by a button there.
"""

from dataclasses import replace
from typing import Annotated, Any, Final, Literal
from zlib import crc32

from pydantic import BaseModel, ConfigDict, Field

from agent.care.concerns import ALLERGIES
from agent.engine.errors import ToolError
from agent.engine.run import Run
from agent.engine.tools import Tool, ToolOutput
from agent.fallback import query_for
from agent.memory.cellar import (
    MAX_BOTTLES,
    MAX_NAME,
    YEARS,
    bottles_of,
    guessed,
    owned,
    taken,
    window_of,
    wine_of,
)
from agent.memory.taste import MAX_NOTE, contradicted_by, facts_in, unknown_of
from agent.sommelier.safety import may_be_shown, person_in
from agent.sommelier.wine import Currency, record
from agent.sommelier.wine_tools import by_id
from agent.tables import Strict
from agent.text import words
from agent.turn import Bottles, Change, Fact, Person

REMEMBER: Final = (
    "Keep a lasting fact of the guest: hate (a wine they never drink), like, allergy, budget "
    "('up to 25 EUR' a bottle), or note (anything else, or of others: 'my wife: no eggs'). Short, "
    "in the guest's words. Not what is known or wanted just now."
)
FORGET: Final = "Forget a fact that is known of the guest, when they say that it holds no more."
CHANGE_CELLAR: Final = (
    "Change the guest's own cellar: add bottles that they say they bought, remove those that they "
    "drank or gave away. `wine` is its name with the vintage, or the wine_id that own_cellar "
    "returned; `price` is that of one bottle."
)
OWN_CELLAR: Final = (
    "The bottles that the guest owns at home. They are not for sale: call it when the guest asks "
    "what to drink of their own, and recommend these by their wine_id."
)
MAX_LISTED: Final = 60
NO_CELLAR: Final = "the guest has no bottles of their own here; search_wines finds ours"
NOT_READ: Final = "no grape, region, country, style or taste is known in this value; use kind note"
NOT_KNOWN: Final = "that is not among the known facts of the guest"
NOT_OWNED: Final = "the guest owns no wine that is called so; own_cellar lists theirs"
NOBODY_KNOWN: Final = "nothing is remembered of this guest here"

Kind = Literal["hate", "like", "allergy", "budget", "note"]
Value = Annotated[str, Field(min_length=2, max_length=MAX_NOTE)]


class Remember(Strict):
    """Arguments of remember."""

    kind: Kind
    value: Value


class Forget(Strict):
    """Arguments of forget."""

    kind: Kind
    value: Value


class ChangeCellar(Strict):
    """Arguments of change_cellar."""

    action: Literal["add", "remove"]
    wine: Annotated[str, Field(min_length=2, max_length=MAX_NAME)]
    count: Annotated[int, Field(ge=1, le=MAX_BOTTLES)] = 1
    price: Annotated[float | None, Field(gt=0, le=100_000)] = None
    currency: Currency = Currency.EUR


class OwnCellar(BaseModel):
    """Arguments of own_cellar: none."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def memory_tools() -> list[Tool]:
    """Return remember, forget, change_cellar and own_cellar."""
    return [
        Tool("remember", REMEMBER, Remember, remember),
        Tool("forget", FORGET, Forget, forget),
        Tool("change_cellar", CHANGE_CELLAR, ChangeCellar, change_cellar),
        Tool("own_cellar", OWN_CELLAR, OwnCellar, own_cellar),
    ]


async def remember(asked: Remember, run: Run) -> ToolOutput:
    """Return the change that learns a fact, in place of what contradicts it.

    Raises:
        ToolError: the value is no such fact, or nothing is remembered here.
    """
    person = _known(run)
    facts = unknown_of(_facts(asked), person.facts)
    gone = tuple(old for fact in facts for old in contradicted_by(fact, person.facts))
    return _changed("remembered", Change(user_id=person.user_id, learned=facts, unlearned=gone))


async def forget(asked: Forget, run: Run) -> ToolOutput:
    """Return the change that forgets facts of a kind which share a word with the value.

    Raises:
        ToolError: no such fact is known, or nothing is remembered here.
    """
    person, said = _known(run), {*words(asked.value)}
    gone = tuple(
        fact
        for fact in person.facts
        if fact.kind == asked.kind
        and (fact.kind == "budget" or said & {*words(f"{fact.said} {fact.value}")})
    )
    if not gone:
        raise ToolError(NOT_KNOWN)
    return _changed("forgotten", Change(user_id=person.user_id, unlearned=gone))


async def change_cellar(asked: ChangeCellar, run: Run) -> ToolOutput:
    """Return the change that adds bottles to the guest's cellar, or takes them out.

    Raises:
        ToolError: there is no such wine to take, or nothing is remembered here.
    """
    person = _known(run)
    if asked.action == "add":
        bottles: Bottles | None = _bought(asked)
    else:
        bottles = taken(person.bottles, asked.wine, asked.count)
    if bottles is None:
        raise ToolError(NOT_OWNED)
    return _changed("cellar changed", Change(user_id=person.user_id, bottles=(bottles,)))


async def own_cellar(asked: OwnCellar, run: Run) -> ToolOutput:
    """Return what the guest owns: how many bottles of which wine, and when to drink them.

    Raises:
        ToolError: no bottles are known, or none of them may be shown.
    """
    person = person_in(run)
    # What they say they never drink they may own all the same.
    safe = replace(person, facts=())
    found = [item for item in owned(person.bottles) if may_be_shown(wine_of(item), safe)]
    if not found:
        raise ToolError(NO_CELLAR)
    wines = [wine_of(item) for item in found[:MAX_LISTED]]
    facts = [
        record(wine) | {"bottles": item.count, "usually_best": window_of(item), "note": item.note}
        for item, wine in zip(found, wines, strict=False)
    ]
    return ToolOutput({"owned_by_the_guest": facts}, by_id(wines))


def _known(run: Run) -> Person:
    person = person_in(run)
    if not person.user_id:
        raise ToolError(NOBODY_KNOWN)
    return person


def _facts(asked: Remember) -> tuple[Fact, ...]:
    """Return a value of a kind as facts; hates and likes as the filters that it names.

    Raises:
        ToolError: the tables of the fallback find no such fact in it.
    """
    value = asked.value.strip()
    match asked.kind:
        case "note":
            return (Fact("note", value, value),)
        case "hate":
            named = (fact for fact in facts_in(value) if fact.kind in ("like", "hate"))
            facts = tuple(Fact("hate", fact.value, fact.said) for fact in named)
        case "allergy":
            said = {*words(value)}
            declared = {*map(str, query_for(f"allergy {value}").without_allergens)}
            facts = tuple(
                Fact("allergy", name, value)
                for name in ALLERGIES
                if name in declared or {name, f"{name}s"} & said
            )
        case kind:
            value = f"up to {value}" if kind == "budget" and value.isdecimal() else value
            facts = tuple(fact for fact in facts_in(value) if fact.kind == kind)
    if not facts:
        raise ToolError(NOT_READ)
    return facts


def _bought(asked: ChangeCellar) -> Bottles:
    said = asked.wine.split()
    year = next((int(word) for word in said if word.isdecimal() and int(word) in YEARS), None)
    name = " ".join(word for word in said if word != str(year)) or asked.wine
    return bottles_of(guessed(name, year, asked.price, asked.currency), asked.count)


def _changed(what: str, change: Change) -> ToolOutput:
    content: dict[str, Any] = {"done": what, "told_to_guest": "below your answer"}
    # The same call twice is one change.
    return ToolOutput(content, {f"{what}:{crc32(repr(change).encode()):08x}": change})
