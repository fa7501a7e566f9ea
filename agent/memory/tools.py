"""The tool by which a model has something of a person be remembered, in their own words alone."""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.care import ALLERGIES
from agent.engine.errors import ToolError
from agent.engine.run import Run
from agent.engine.tools import Tool, ToolOutput
from agent.house_sommelier.lexicon import parse
from agent.memory.cellar import window_of, wine_of
from agent.memory.reading import (
    LARGEST_BUDGET,
    LONGEST_SAID,
    is_of_others,
    may_be_noted,
    objects,
    own_words,
)
from agent.person import Change, Fact, Person
from agent.sommelier.caring import may_be_shown, person_in
from agent.sommelier.taste import written
from agent.sommelier.tools import by_id, wine_facts
from agent.sommelier.wine import Currency
from agent.tables import Strict
from agent.text import words

REMEMBER: Final = (
    "Keep a lasting fact that the guest told of themselves in this message: what they never drink "
    "(hate), like, do not tolerate (allergy), usually spend (budget), or asked to note. `words` "
    "are their own, letter for letter, and name what it is about. Not what they want just now, "
    "and nothing of other people. With `forget` such a fact is dropped again."
)
OWNED: Final = (
    "The bottles that the guest owns at home. They are not for sale: call it when the guest asks "
    "what to drink of their own, and recommend these by their wine_id."
)
MOST_OWNED: Final = 60
NO_CELLAR: Final = "the guest has told of no bottles of their own; search_wines finds ours"
NOT_SAID: Final = "these are not the guest's words of this message; copy them letter for letter"
OF_OTHERS: Final = "that is about somebody else; only what guests tell of themselves is kept"
NO_NAME: Final = "these words name no grape, region, country, style or taste; keep it as a note"


class Remember(Strict):
    """Arguments of remember."""

    kind: Literal["hate", "like", "allergy", "budget", "note"]
    words: Annotated[str, Field(min_length=2, max_length=LONGEST_SAID)]
    amount: Annotated[float | None, Field(gt=0, le=LARGEST_BUDGET)] = None
    currency: Currency = Currency.EUR
    forget: bool = False


async def remember(asked: Remember, run: Run) -> ToolOutput:
    """Make the change of a fact that a person told in these words; it is kept with the turn.

    Raises:
        ToolError: they did not say so, or it is no such fact.
    """
    person = person_in(run)
    own = f" {' '.join(words(own_words(person.words)))} "
    if f" {' '.join(words(asked.words))} " not in own or not words(asked.words):
        raise ToolError(NOT_SAID)
    if is_of_others(asked.words):
        raise ToolError(OF_OTHERS)
    facts = _facts(asked, own)
    if not facts:
        raise ToolError(NO_NAME)
    change = _change(person, facts, forget=asked.forget)
    content = {"remembered": not asked.forget, "told_to_guest": "below your answer"}
    return ToolOutput(content, {f"remembered:{facts[0].kind}:{facts[0].value}": change})


def _change(person: Person, facts: tuple[Fact, ...], *, forget: bool) -> Change:
    if forget:
        known = {fact.key: fact for fact in person.facts}
        gone = tuple(known[each.key] for each in facts if each.key in known)
        return Change(user_id=person.user_id, unlearned=gone)
    return Change(user_id=person.user_id, learned=facts)


def _facts(asked: Remember, own: str) -> tuple[Fact, ...]:
    match asked.kind:
        case "note":
            noted = may_be_noted(asked.words)
            return (Fact("note", asked.words, asked.words),) if noted else ()
        case "budget":
            said = asked.amount is not None and f" {asked.amount:g} " in own
            value = f"{asked.amount:g} {asked.currency}"
            return (Fact("budget", value, asked.words),) if said else ()
        case "allergy":
            spans = parse(asked.words).spans
            named = {value for each in spans for value in each.values("allergen")}
            return tuple(Fact("allergy", each, asked.words) for each in ALLERGIES if each in named)
        case _:
            named_ = objects(asked.words)
            return tuple(Fact(asked.kind, written(wanted), said) for wanted, said in named_)


class OwnCellar(BaseModel):
    """Arguments of own_cellar: none."""

    model_config = ConfigDict(extra="ignore", frozen=True)


async def own_cellar(asked: OwnCellar, run: Run) -> ToolOutput:
    """Tell what the guest owns: how many bottles of which wine, and when to drink them.

    Raises:
        ToolError: nothing is known of any, or they are not to be offered alcohol.
    """
    person = person_in(run)
    owned = [
        each for each in person.bottles if each.count and may_be_shown(wine_of(each), person.care)
    ]
    if not owned:
        raise ToolError(NO_CELLAR)
    wines = {wine.id: wine for wine in map(wine_of, owned[:MOST_OWNED])}
    facts = [
        wine_facts(wine) | {"bottles": each.count, "drink": window_of(each), "note": each.note}
        for each, wine in zip(owned, wines.values(), strict=False)
    ]
    return ToolOutput({"owned_by_the_guest": facts}, by_id(wines.values()))


def memory_tools() -> list[Tool]:
    """Make the tools remember and own_cellar."""
    return [
        Tool("remember", REMEMBER, Remember, remember),
        Tool("own_cellar", OWNED, OwnCellar, own_cellar),
    ]
