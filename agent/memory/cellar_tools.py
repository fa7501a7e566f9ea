"""The tools with which the model searches and changes the user's own cellar.

In texts for the model, the user is "the guest".
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from agent.cellar.index import IndexedItem, index_cellar
from agent.cellar.items import (
    MAX_BOTTLES,
    MAX_NAME_CHARS,
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
    this_year,
)
from agent.cellar.search import CellarQuery, find_drinks, search_cellar
from agent.engine.errors import ToolError
from agent.engine.run import Run
from agent.engine.tools import Tool, ToolOutput
from agent.memory.changes import change_output
from agent.memory.fact_tools import BottlePrice
from agent.numerals import YEARS
from agent.sommelier.filters import mark_wine, may_be_shown
from agent.sommelier.queries import Canonical, NameList, ShortText
from agent.sommelier.vocabulary import Currency, Style
from agent.sommelier.wine import Wine
from agent.sommelier.wine_tools import wines_by_id
from agent.tables import StrictModel
from agent.turn import CellarItem, Drink, Person, get_person, has_stored_user

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
NO_SUCH_BOTTLES: Final = (
    "the guest's cellar holds no such bottles that they may drink; search without a filter, or "
    "search_wines for wines for sale"
)
MIN_NAME_CHARS: Final = 2
MAX_RATING_CHARS: Final = 10
MAX_ROWS: Final = 60
"""The most rows that could fit into a result."""
MIN_ITEMS_FOR_THREAD: Final = 300
"""A cellar of at least this size is searched in a thread, because it may not be cached yet."""


class CellarArguments(StrictModel):
    """The arguments of change_cellar. What they do not state of a wine is guessed by its name."""

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
        """Return the name and the vintage as on the label of the bottle."""
        if self.vintage is None:
            return self.name
        return f"{self.name} {self.vintage}"


def cellar_tools() -> list[Tool]:
    """Return the tools change_cellar and own_cellar."""
    return [
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


async def change_cellar(arguments: CellarArguments, run: Run) -> ToolOutput:
    """Return a change that adds bottles to the user's cellar, or removes them."""
    person = get_person(run)
    if arguments.action == "add":
        item = _find_addition(arguments, person)
    else:
        item = _find_removal(arguments, person)
    if arguments.action != "drink":
        return change_output("cellar changed", person, bottles=(item,))
    now = datetime.now(UTC)
    drink = open_bottle(item, now, arguments.rating, arguments.note)
    return change_output("opened", person, bottles=(item,), drinks=(drink,))


def _find_removal(arguments: CellarArguments, person: Person) -> CellarItem:
    """Return the item to remove bottles from, with a negative count.

    Raises:
        ToolError: no wine is clearly meant, or the user has fewer bottles of it than that.
    """
    wine = arguments.wine_id or arguments.label
    match find_item_to_remove(person.bottles, wine, arguments.count):
        case Found(item):
            return item
        case TooFew(item):
            owned = _describe_for_model(item)
            problem = (
                f"the guest has only {owned}; tell them so, and ask how many to remove"
            )
        case Unclear(items):
            listed = ", ".join(map(_describe_for_model, items))
            problem = (
                f"it is not clear which wine is meant. These may be: {listed}; "
                "ask the guest which one it is, then call this again with its wine_id"
            )
        case NotFound():
            problem = "not found: the guest owns no such wine; own_cellar lists theirs"
    raise ToolError(f"nothing was removed: {problem}")


def _find_addition(arguments: CellarArguments, person: Person) -> CellarItem:
    """Return the item to which bottles are added, with their count.

    Raises:
        ToolError: the wine is named by an id that is not in the cellar.
    """
    if not arguments.wine_id:
        wine = _guess_named_wine(arguments)
        return to_cellar_item(wine, arguments.count)
    owned = find_item_by_id(person.bottles, arguments.wine_id)
    if owned is None:
        raise ToolError("the guest owns no wine with this wine_id; add it by its name")
    fields = dict(owned.wine)
    if arguments.price is not None:
        fields["price"] = arguments.price
        fields["currency"] = arguments.currency.value
    return replace(owned, count=arguments.count, wine=fields)


def _guess_named_wine(arguments: CellarArguments) -> Wine:
    """Return the wine that the arguments name and describe."""
    stated_facts = arguments.model_dump(
        include={"grapes", "region", "country"}, exclude_defaults=True
    )
    return guess_wine(
        arguments.label,
        arguments.price,
        arguments.currency,
        arguments.style,
        **stated_facts,
    )


def _describe_for_model(item: CellarItem) -> str:
    wine = to_wine(item)
    return f"{wine.id} ({item.count} × {wine.label})"


async def own_cellar(query: CellarQuery, run: Run) -> ToolOutput:
    """Return the wines of the user's cellar that a query finds, or the bottles that were opened."""
    person = get_person(run)
    if query.drunk:
        return _list_drinks(query, person)
    if len(person.bottles) < MIN_ITEMS_FOR_THREAD:
        found = _find_own(query, person)
    else:
        found = await asyncio.to_thread(_find_own, query, person)
    if not found:
        raise ToolError(NO_SUCH_BOTTLES)
    return _describe_found(found, person)


def _describe_found(found: Sequence[IndexedItem], person: Person) -> ToolOutput:
    """Return the rows of the found items that fit into a result, with their wines as evidence."""
    is_noted = len(found) <= MAX_NOTED_ROWS
    rows = []
    for indexed in found[:MAX_ROWS]:
        row = describe_row(indexed, is_noted=is_noted)
        rows.append(row)
    # `fit_rows` only counts the rows that cannot fit, so they stay empty.
    hidden_count = len(found) - len(rows)
    rows += [""] * hidden_count
    bottle_count = sum(indexed.item.count for indexed in found)
    head = {
        "found": f"{len(found)} wines, {bottle_count} bottles, owned by the guest",
        "year": this_year(),
        "columns": COLUMNS,
    }
    content, shown_count = fit_rows(rows, head)
    wines = []
    for indexed in found[:shown_count]:
        wine = to_wine(indexed.item)
        wines.append(mark_wine(wine, person, person.safety.allergies))
    return ToolOutput(content, wines_by_id(wines))


def _find_own(query: CellarQuery, person: Person) -> list[IndexedItem]:
    """Return the items of the cellar that a query finds and the user may drink."""
    indexed_items = index_cellar(person.bottles, this_year())
    found = search_cellar(indexed_items, query)
    is_restricted = person.safety.allergies or person.safety.forbids_alcohol
    if not is_restricted:
        return found
    # Wines that the user hates are listed too. Allergies are in the safety state, so they still
    # apply.
    person_without_facts = replace(person, facts=())
    allowed = []
    for indexed in found:
        if may_be_shown(to_wine(indexed.item), person_without_facts):
            allowed.append(indexed)
    return allowed


def _list_drinks(query: CellarQuery, person: Person) -> ToolOutput:
    drinks = find_drinks(person.drinks, query.text)
    if not drinks:
        raise ToolError("the guest has told of no such bottle that they opened")
    rows = [describe_drink(drink) for drink in drinks]
    head = {"columns": "opened | name | rating | note"}
    content, shown_count = fit_rows(rows, head)
    sources: dict[str, DrunkBottle] = {}
    for number, drink in enumerate(drinks[:shown_count]):
        sources[f"drunk {number}"] = DrunkBottle(drink)
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
