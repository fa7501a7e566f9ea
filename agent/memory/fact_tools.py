"""The tools with which the model keeps and forgets facts about the user.

In texts for the model, the user is "the guest".
"""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from agent.engine.errors import ToolError
from agent.engine.run import Run
from agent.engine.tools import Tool, ToolOutput
from agent.memory.changes import change_output
from agent.memory.forgetting import find_meant_facts
from agent.memory.taste import (
    MAX_FACT_CHARS,
    find_contradicted_facts,
    find_new_facts,
    format_budget,
    split_taste,
)
from agent.safety.state import Allergy
from agent.sommelier.queries import Canonical, ListOf, NameList
from agent.sommelier.vocabulary import OAKY, Body, Currency, Level, Style, Sweetness
from agent.tables import StrictModel
from agent.turn import Fact, ForgettableKind, get_person, has_stored_user

REMEMBER: Final = (
    "Keep a lasting fact about the guest. Kind hate or like: wines that they never or gladly "
    "drink; describe these by styles, grapes and so on. Kind allergy: give the allergens. Kind "
    "budget: give the price of a bottle. Kind note: anything else, and what concerns other people "
    "('my wife: no eggs'). `value` is the fact in a few words of the guest. Do not keep what is "
    "known already, or what the guest only wants today."
)
REMEMBER_LINE: Final = (
    "If the guest tells a lasting fact about themselves, or asks you to note something, call "
    "remember together with your search. A fixed notice of it is shown below your answer, so do "
    "not mention it yourself."
)
FORGET: Final = (
    "Forget a known fact about the guest when they say that it is no longer true. An allergy "
    "cannot be removed in this way: if they want that, tell them to do it with the command "
    "/taste."
)
TASTE_FIELDS: Final = (
    "styles",
    "sweetness",
    "bodies",
    "tannins",
    "acidities",
    "grapes",
    "countries",
    "regions",
)
"""The arguments of remember that describe a wine. They have the same names in `WineQuery`."""
SEPARATORS: Final = frozenset(";|=")
"""The characters that separate the filters in the value of a fact."""
FactValue = Annotated[str, Field(min_length=2, max_length=MAX_FACT_CHARS)]
BottlePrice = Annotated[float, Field(gt=0, le=100_000)]


def _check_names(names: Sequence[str]) -> Sequence[str]:
    """Reject names with the separators of a fact's filters."""
    for name in names:
        if not SEPARATORS.isdisjoint(name):
            raise ValueError("a name has none of the characters ; | =")
    return names


TasteNames = Annotated[NameList, AfterValidator(_check_names)]


class RememberArguments(StrictModel):
    """The arguments of remember: the fact in the guest's words, and what these words mean."""

    kind: Literal["hate", "like", "allergy", "budget", "note"]
    value: FactValue
    styles: ListOf[Canonical[Style]] = Field((), max_length=8)
    sweetness: ListOf[Canonical[Sweetness]] = Field((), max_length=6)
    bodies: ListOf[Canonical[Body]] = Field((), max_length=5)
    tannins: ListOf[Canonical[Level]] = Field((), max_length=4)
    acidities: ListOf[Canonical[Level]] = Field((), max_length=4)
    grapes: TasteNames = ()
    countries: TasteNames = ()
    regions: TasteNames = ()
    oak: Annotated[bool, Field(description="true: it is about wines with oak.")] = False
    allergens: ListOf[Canonical[Allergy]] = Field((), max_length=5)
    min_price: BottlePrice | None = None
    max_price: BottlePrice | None = None
    currency: Currency = Currency.EUR


class ForgetArguments(StrictModel):
    """The arguments of forget. An allergy is not among the kinds: a model may not lift one."""

    kind: ForgettableKind
    value: FactValue


def fact_tools() -> list[Tool]:
    """Return the tools remember and forget."""
    return [
        Tool(
            "remember",
            REMEMBER,
            RememberArguments,
            remember,
            prompt_line=REMEMBER_LINE,
            is_offered=has_stored_user,
        ),
        Tool("forget", FORGET, ForgetArguments, forget, is_offered=has_stored_user),
    ]


async def remember(arguments: RememberArguments, run: Run) -> ToolOutput:
    """Return a change that adds a fact and removes the facts that contradict it."""
    person = get_person(run)
    stated_facts = _read_facts(arguments)
    facts = find_new_facts(stated_facts, person.facts)
    if not facts:
        return ToolOutput("this fact about the guest is known already")
    removed: list[Fact] = []
    for fact in facts:
        removed += find_contradicted_facts(fact, person.facts)
    return change_output(
        "remembered", person, added_facts=facts, removed_facts=tuple(removed)
    )


async def forget(arguments: ForgetArguments, run: Run) -> ToolOutput:
    """Return a change that removes the facts of this kind that the value means."""
    person = get_person(run)
    known = [fact for fact in person.facts if fact.kind == arguments.kind]
    removed = find_meant_facts(arguments.value, known)
    if not removed:
        raise ToolError("that is not among the known facts about the guest")
    return change_output("forgotten", person, removed_facts=removed)


def _read_facts(arguments: RememberArguments) -> list[Fact]:
    """Return the facts that the arguments state: one for each grape, region, allergen and so on.

    Raises:
        ToolError: the arguments state no fact of this kind.
    """
    kind = arguments.kind
    value = arguments.value.strip()
    match kind:
        case "note":
            return [Fact(kind, value, value)]
        case "allergy":
            facts = [Fact(kind, allergen, value) for allergen in arguments.allergens]
            needed = "allergens"
        case "budget":
            facts = _read_budget(arguments)
            needed = "min_price or max_price"
        case "hate" | "like":
            facts = [Fact(kind, taste, value) for taste in _list_tastes(arguments)]
            needed = "styles, grapes, countries, regions, oak or another taste"
    if not facts:
        raise ToolError(f"kind {kind} needs {needed}; use kind note for anything else")
    return facts


def _read_budget(arguments: RememberArguments) -> list[Fact]:
    """Return the fact of a budget, or nothing if there are no limits."""
    budget = format_budget(arguments.min_price, arguments.max_price, arguments.currency)
    if not budget:
        return []
    return [Fact("budget", budget)]


def _list_tastes(arguments: RememberArguments) -> list[str]:
    """Return the tastes that the arguments describe, as values of facts."""
    taste: dict[str, tuple[str, ...]] = {}
    for name in TASTE_FIELDS:
        values = getattr(arguments, name)
        if values:
            taste[name] = tuple(map(str, values))
    if arguments.oak:
        taste["text"] = (OAKY,)
    return split_taste(taste)
