"""Tools with which the model stores and deletes facts about the user, and changes their cellar.

A tool changes nothing itself: it returns a `Change`, applied when the turn is committed. The reply
lists the change below its text, with a button that undoes it. In texts for the model, the user is
"the guest".
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from agent.cellar.index import IndexedItem, index_cellar
from agent.cellar.items import (
    MAX_BOTTLES,
    MAX_NAME_CHARS,
    YEARS,
    find_item_by_id,
    guess_wine,
    to_cellar_item,
    to_wine,
)
from agent.cellar.opened import MAX_NOTE_CHARS as MAX_OPENED_CHARS
from agent.cellar.opened import open_bottle
from agent.cellar.removal import Found, NotFound, TooFew, Unclear, find_item_to_remove
from agent.cellar.rows import (
    COLUMNS,
    MAX_NOTED_ROWS,
    describe_drink,
    describe_row,
    fit_rows,
    format_drunk,
    format_items,
    this_year,
)
from agent.cellar.search import CellarQuery, find_drinks, search_cellar
from agent.engine.errors import ToolError
from agent.engine.run import Run
from agent.engine.tools import Tool, ToolOutput
from agent.i18n import translate
from agent.memory.taste import (
    MAX_NOTE_CHARS,
    find_contradicted_facts,
    find_excluded_facts,
    find_new_facts,
    format_added_facts,
    format_budget,
    format_removed_facts,
)
from agent.safety.state import Allergy
from agent.sommelier.cards import asks_for_vegan
from agent.sommelier.filters import format_taste, mark_unknown_allergens, may_be_shown
from agent.sommelier.queries import Canonical, ListOf, NameList, ShortText
from agent.sommelier.vocabulary import OAKY, Body, Currency, Level, Style, Sweetness
from agent.sommelier.wine import Wine
from agent.sommelier.wine_tools import wines_by_id
from agent.tables import StrictModel
from agent.text import split_words
from agent.turn import (
    CellarItem,
    Change,
    Drink,
    Fact,
    ForgettableKind,
    Person,
    Reply,
    apply_change,
    get_person,
    has_stored_user,
)

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
CHANGE_CELLAR: Final = (
    "Change the guest's own cellar. Action add: bottles that they bought. Action drink: bottles "
    "that they opened, with their `rating` and `note` if they told any. Action remove: bottles "
    "that they gave away. Give the wine_id if own_cellar has returned it, otherwise `name`: the "
    "producer and name as the guest wrote them. `price` is the price of one bottle."
)
OWN_CELLAR: Final = (
    "Search the bottles that the guest owns, those that are readiest to drink first. Recommend "
    "them by their wine_id. `styles` and `foods` take the values of search_wines. `text` is text "
    "of the label. `regions` may hold countries too. `readiness`: now; soon, if it should be "
    "drunk by next year; past its best; wait, if it is too young. With `drunk` it returns what "
    "they have opened before, with their notes."
)
OWN_CELLAR_LINE: Final = (
    "If the guest owns bottles, they are at the guest's home and not for sale. Search them with "
    'own_cellar if the guest asks about their own wines ("which of mine goes with duck?"). If '
    "they ask what to drink tonight, search with both own_cellar and search_wines; name their own "
    "bottle first if one fits, and say that it is theirs."
)
CHANGE_NOTE: Final = "a fixed notice of this is shown below your answer; do not repeat it"
TASTE_FIELDS: Final = (
    *("styles", "sweetness", "bodies", "tannins", "acidities"),
    *("grapes", "countries", "regions"),
)
"""The arguments of remember that describe a wine, named as in `WineQuery`."""
MIN_NAME_CHARS: Final = 2
MAX_RATING_CHARS: Final = 10
MAX_ROWS: Final = 60
"""More rows never fit into a result."""
MIN_ITEMS_FOR_THREAD: Final = 300
"""A larger cellar is searched in a thread: what the tables say of its wines may not be cached."""
MAX_PARSED_CHARS: Final = 300
"""Longer messages are not searched for dislikes that could be suggested as facts."""


FactValue = Annotated[str, Field(min_length=2, max_length=MAX_NOTE_CHARS)]
BottlePrice = Annotated[float, Field(gt=0, le=100_000)]


def _check_names(names: Sequence[str]) -> Sequence[str]:
    """Reject the characters that separate the filters in the value of a fact."""
    if any(separator in name for name in names for separator in ";|="):
        raise ValueError("a name has none of the characters ; | =")
    return names


TasteNames = Annotated[NameList, AfterValidator(_check_names)]


class RememberArguments(StrictModel):
    """Arguments of remember: the fact in the guest's words, and what these words mean."""

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
    """Arguments of forget. A model can add an allergy, but never lift one."""

    kind: ForgettableKind
    value: FactValue


class CellarArguments(StrictModel):
    """Arguments of change_cellar; the name of a wine to add implies what is not stated."""

    action: Literal["add", "drink", "remove"]
    wine_id: ShortText = ""
    name: Annotated[str, Field(max_length=MAX_NAME_CHARS)] = ""
    vintage: Annotated[int | None, Field(ge=YEARS.start, lt=YEARS.stop)] = None
    style: Canonical[Style] | None = None
    grapes: NameList = ()
    region: ShortText = ""
    country: ShortText = ""
    count: Annotated[int, Field(ge=1, le=MAX_BOTTLES)] = 1
    price: BottlePrice | None = None
    currency: Currency = Currency.EUR
    rating: Annotated[str, Field(max_length=MAX_RATING_CHARS)] = ""
    note: Annotated[str, Field(max_length=MAX_OPENED_CHARS)] = ""

    @model_validator(mode="after")
    def _check_wine(self) -> Self:
        if not self.wine_id and len(self.name) < MIN_NAME_CHARS:
            raise ValueError("a wine_id or a name must say which wine it is")
        return self

    @property
    def label(self) -> str:
        """Return the name and the vintage as they stand on the bottle."""
        return self.name if self.vintage is None else f"{self.name} {self.vintage}"


def memory_tools() -> list[Tool]:
    """Return remember, forget, change_cellar and own_cellar, for every stored user."""
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
        Tool(
            "change_cellar",
            CHANGE_CELLAR,
            CellarArguments,
            change_cellar,
            is_offered=has_stored_user,
        ),
        Tool(
            "own_cellar",
            OWN_CELLAR,
            CellarQuery,
            own_cellar,
            prompt_line=OWN_CELLAR_LINE,
            is_offered=has_stored_user,
        ),
    ]


async def remember(arguments: RememberArguments, run: Run) -> ToolOutput:
    """Return a change that adds a fact and removes the facts that contradict it."""
    person = get_person(run)
    facts = find_new_facts(_facts_from_arguments(arguments), person.facts)
    if not facts:
        return ToolOutput("this fact about the guest is known already")
    removed = tuple(old for fact in facts for old in find_contradicted_facts(fact, person.facts))
    return _change_output("remembered", person, added_facts=facts, removed_facts=removed)


async def forget(arguments: ForgetArguments, run: Run) -> ToolOutput:
    """Return a change that removes the facts of this kind that are most similar to the value."""
    person = get_person(run)
    value_words = set(split_words(arguments.value))

    def similarity(fact: Fact) -> int:
        """Return how many words the fact and the value have in common; a budget always matches."""
        fact_words = set(split_words(f"{fact.original_text} {fact.value}"))
        return 1 if fact.kind == "budget" else len(value_words & fact_words)

    scores = {fact: similarity(fact) for fact in person.facts if fact.kind == arguments.kind}
    best = max(scores.values(), default=0)
    if best == 0:
        raise ToolError("that is not among the known facts about the guest")
    removed = tuple(fact for fact, score in scores.items() if score == best)
    return _change_output("forgotten", person, removed_facts=removed)


async def change_cellar(arguments: CellarArguments, run: Run) -> ToolOutput:
    """Return a change that adds bottles to the user's cellar, or removes them."""
    person = get_person(run)
    if arguments.action == "add":
        return _change_output(
            "cellar changed", person, bottles=(_find_addition(arguments, person),)
        )
    item = _find_removal(arguments, person)
    if arguments.action == "remove":
        return _change_output("cellar changed", person, bottles=(item,))
    drinks = open_bottle(item, datetime.now(UTC), arguments.rating, arguments.note)
    return _change_output("opened", person, bottles=(item,), drinks=drinks)


def _find_removal(arguments: CellarArguments, person: Person) -> CellarItem:
    """Return the item with the negative count that removes bottles.

    Raises:
        ToolError: no wine is clearly meant, or it has fewer bottles.
    """
    wine = arguments.wine_id or arguments.label
    match find_item_to_remove(person.bottles, wine, arguments.count):
        case Found(item):
            return item
        case TooFew(item):
            there = f"the guest has only {_describe_for_model(item)}"
            problem = f"{there}; tell them so, and ask how many to remove"
        case Unclear(items):
            listed = ", ".join(map(_describe_for_model, items))
            ask = "ask the guest which one it is, then call this again with its wine_id"
            problem = f"it is not clear which wine is meant. These may be: {listed}; {ask}"
        case NotFound():
            problem = "not found: the guest owns no such wine; own_cellar lists theirs"
    raise ToolError(f"nothing was removed: {problem}")


def _find_addition(arguments: CellarArguments, person: Person) -> CellarItem:
    """Return the item with the count that adds bottles.

    Raises:
        ToolError: the wine is named by an id that is not in the cellar.
    """
    if not arguments.wine_id:
        return to_cellar_item(_named_wine(arguments), arguments.count)
    owned = find_item_by_id(person.bottles, arguments.wine_id)
    if owned is None:
        raise ToolError("the guest owns no wine with this wine_id; add it by its name")
    fields = dict(owned.wine)
    if arguments.price is not None:
        fields |= {"price": arguments.price, "currency": arguments.currency.value}
    return replace(owned, count=arguments.count, wine=fields)


def _named_wine(arguments: CellarArguments) -> Wine:
    """Return the wine that the arguments name and describe."""
    stated = arguments.model_dump(include={"grapes", "region", "country"}, exclude_defaults=True)
    return guess_wine(
        arguments.label, arguments.price, arguments.currency, arguments.style, **stated
    )


def _describe_for_model(item: CellarItem) -> str:
    wine = to_wine(item)
    return f"{wine.id} ({item.count} × {wine.label})"


async def own_cellar(query: CellarQuery, run: Run) -> ToolOutput:
    """Return the wines in the user's cellar that a query finds, or the bottles they have opened."""
    person = get_person(run)
    if query.drunk:
        return _list_drinks(query, person)
    if len(person.bottles) < MIN_ITEMS_FOR_THREAD:
        found = _find_own(query, person)
    else:
        found = await asyncio.to_thread(_find_own, query, person)
    if not found:
        message = "the guest's cellar holds no such bottles that they may drink"
        raise ToolError(f"{message}; search without a filter, or search_wines for wines for sale")
    year, is_noted = this_year(), len(found) <= MAX_NOTED_ROWS
    rows = [describe_row(each, is_noted=is_noted) for each in found[:MAX_ROWS]]
    rows += [""] * (len(found) - len(rows))
    bottles = sum(each.item.count for each in found)
    total = f"{len(found)} wines, {bottles} bottles, owned by the guest"
    content, shown = fit_rows(rows, {"found": total, "year": year, "columns": COLUMNS})
    avoided = person.safety.allergies
    wines = [mark_unknown_allergens(to_wine(each.item), avoided) for each in found[:shown]]
    return ToolOutput(content, wines_by_id(wines))


def _find_own(query: CellarQuery, person: Person) -> list[IndexedItem]:
    """Return the found items that the user may drink."""
    found = search_cellar(index_cellar(person.bottles, this_year()), query)
    if not (person.safety.allergies or person.safety.forbids_alcohol):
        return found
    # List hated wines, too. Allergens come from the safety state, so they still apply.
    without_facts = replace(person, facts=())
    return [each for each in found if may_be_shown(to_wine(each.item), without_facts)]


def _list_drinks(query: CellarQuery, person: Person) -> ToolOutput:
    drinks = find_drinks(person.drinks, query.text)
    if not drinks:
        raise ToolError("the guest has told of no such bottle that they opened")
    columns = "opened | name | rating | note"
    content, shown = fit_rows([*map(describe_drink, drinks)], {"columns": columns})
    sources = {f"drunk {number}": DrunkBottle(drink) for number, drink in enumerate(drinks[:shown])}
    return ToolOutput(content, sources)


@dataclass(frozen=True, slots=True)
class DrunkBottle:
    """A bottle that the user has opened, as evidence: an answer may repeat rating and note."""

    drink: Drink
    links: tuple[str, ...] = ()

    @property
    def source_text(self) -> str:
        """Return the date, the wine, the rating and the note."""
        return describe_drink(self.drink)


def _facts_from_arguments(arguments: RememberArguments) -> list[Fact]:
    """Return the facts that the arguments state: one for each grape, region, allergen and so on.

    Raises:
        ToolError: they state none of this kind.
    """
    value = arguments.value.strip()
    match arguments.kind:
        case "note":
            return [Fact("note", value, value)]
        case "allergy":
            facts = [Fact("allergy", allergen, value) for allergen in arguments.allergens]
            needed = "allergens"
        case "budget":
            facts = _budget_facts(arguments)
            needed = "min_price or max_price"
        case "hate" | "like" as kind:
            facts = [Fact(kind, taste, value) for taste in _tastes(arguments)]
            needed = "styles, grapes, countries, regions, oak or another taste"
    if not facts:
        raise ToolError(f"kind {arguments.kind} needs {needed}; use kind note for anything else")
    return facts


def _budget_facts(arguments: RememberArguments) -> list[Fact]:
    budget = format_budget(arguments.min_price, arguments.max_price, arguments.currency)
    return [Fact("budget", budget)] if budget else []


def _tastes(arguments: RememberArguments) -> list[str]:
    """Return the tastes as facts have them: "Merlot, Syrah" are two, "full-bodied red" is one."""
    taste: dict[str, tuple[str, ...]] = {}
    for name in TASTE_FIELDS:
        if values := getattr(arguments, name):
            taste[name] = tuple(map(str, values))
    if arguments.oak:
        taste["text"] = (OAKY,)
    if len(taste) != 1:
        return [format_taste(taste)] if taste else []
    ((name, values),) = taste.items()
    return [format_taste({name: (value,)}) for value in values]


def _change_output(action: str, person: Person, **changes: Any) -> ToolOutput:
    """Return an output with a change as its effect."""
    change = Change(user_id=person.user_id, **changes)
    content = {"done": action, "note": CHANGE_NOTE}
    return ToolOutput(content, effects=(change,))


def with_change_notes(reply: Reply, person: Person, message: str, undo_id: int) -> Reply:
    """Return the reply with its changes merged, described in notes, and with suggested facts.

    `undo_id` 0 means that the change cannot be undone. The dislikes in `message` are suggested.
    """
    if not person.user_id:
        return reply
    change = Change(
        user_id=person.user_id,
        added_facts=tuple(fact for part in reply.changes for fact in part.added_facts),
        removed_facts=tuple(fact for part in reply.changes for fact in part.removed_facts),
        bottles=tuple(item for part in reply.changes for item in part.bottles),
        drinks=tuple(drink for part in reply.changes for drink in part.drinks),
        undo_id=undo_id,
    )
    has_changes = bool(change.added_facts or change.removed_facts or change.bottles)
    facts = _suggest_facts(message) if reply.wines else ()
    if not (has_changes or facts):
        return replace(reply, changes=())
    return replace(
        reply,
        changes=(change,) if has_changes else (),
        notes=(*reply.notes, *format_change(change, person)),
        suggested_facts=find_new_facts(facts, (*person.facts, *change.added_facts)),
    )


def _suggest_facts(message: str) -> tuple[Fact, ...]:
    """Return the dislikes of a message that could be stored: who asks for vegan has no allergy."""
    if len(message) > MAX_PARSED_CHARS:
        return ()
    facts = tuple(find_excluded_facts(message))
    if asks_for_vegan(message):
        return tuple(fact for fact in facts if fact.kind != "allergy")
    return facts


def format_change(change: Change, person: Person) -> list[str]:
    """Return the texts that confirm a change; `person` is the user before it."""
    changed_keys = {item.key for item in change.bottles}
    items = [item for item in apply_change(person, change).bottles if item.key in changed_keys]
    texts = (
        format_added_facts(change.added_facts),
        format_removed_facts(change.removed_facts),
        format_drunk(change.drinks),
        format_items(items, this_year(), translate("cellar_added")) if items else "",
    )
    return [text for text in texts if text]
