"""The tools that look into the catalogue."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from agent.engine.errors import ToolError
from agent.engine.run import Run
from agent.engine.span import Span
from agent.engine.tools import Tool, ToolOutput
from agent.sommelier.safety import find_wines, get_wines, note, person_in
from agent.sommelier.wine import Catalogue, Text, Wine, WineQuery, WineSearchResult, record
from agent.tables import Strict
from agent.turn import NOBODY, Person

SEARCH = (
    "Search the wines that exist here. Give filters for everything the person asked for, whatever "
    "their language; names in English. A list means any of these. `text` ranks only: what no "
    "filter says, in English. When nothing is found, `relax` says how many wines there are with "
    "that filter left out."
)
GET = "All facts of wines by id, e.g. of wines shown earlier in the conversation."
SIMILAR = (
    "Wines most like a given one, most alike first. Takes all filters of search_wines as well: "
    "'like that, but Portuguese, under 15'."
)
NO_WINE = "there is no wine with these ids; use search_wines to find ids; {why}"


def by_id(wines: Iterable[Wine]) -> dict[str, object]:
    """Return wines as evidence."""
    return {wine.id: wine for wine in wines}


AsEvidence = Callable[[Iterable[Wine]], dict[str, object]]
"""Makes wines evidence, by their ids."""


class GetWine(Strict):
    """Arguments of get_wine."""

    wine_ids: Annotated[tuple[Text, ...], Field(min_length=1, max_length=12)]


def _only_what_differs(schema: dict[str, Any]) -> None:
    """Leave the filters out of a schema: their values stand in that of search_wines already."""
    schema["properties"] = {"wine_id": schema["properties"]["wine_id"]}
    schema["additionalProperties"] = True
    schema.pop("$defs", None)


class FindSimilarWines(WineQuery):
    """Arguments of find_similar_wines."""

    model_config = ConfigDict(json_schema_extra=_only_what_differs)

    wine_id: Text


def wine_tools(catalogue: Catalogue, *, evidence: AsEvidence = by_id) -> list[Tool]:
    """Make search_wines, get_wine and find_similar_wines over `catalogue`.

    A `small` model has the first two, and fewer filters. Wines are `evidence` as they are, or as
    that makes of them.
    """

    async def search_wines(query: WineQuery, run: Run) -> ToolOutput:
        with retrieving("retrieve.wines", query, run) as span:
            result = await find_wines(catalogue, query, person_in(run))
            span.update(output=list(by_id(result.wines)), metadata={"found": result.total})
        return found(result, person_in(run), evidence)

    async def get_wine(arguments: GetWine, run: Run) -> ToolOutput:
        wines = await get_wines(catalogue, arguments.wine_ids, person_in(run))
        unknown = set(arguments.wine_ids) - {wine.id for wine in wines}
        if not wines:
            raise ToolError(NO_WINE.format(why=note(person_in(run))).rstrip("; "))
        content: dict[str, Any] = {"wines": [record(wine) for wine in wines]}
        if unknown:
            content["unknown"] = len(unknown)  # not the ids: a model's own words ground nothing
        return ToolOutput(content, evidence(wines))

    async def find_similar_wines(arguments: FindSimilarWines, run: Run) -> ToolOutput:
        if not await catalogue.get([arguments.wine_id]):
            raise ToolError("there is no wine with this id; use search_wines to find ids")
        with retrieving("retrieve.similar", arguments, run) as span:
            result = await find_wines(catalogue, arguments, person_in(run), like=arguments.wine_id)
            span.update(output=list(by_id(result.wines)), metadata={"found": result.total})
        return found(result, person_in(run), evidence)

    return [
        Tool("search_wines", SEARCH, WineQuery, search_wines),
        Tool("get_wine", GET, GetWine, get_wine),
        Tool("find_similar_wines", SIMILAR, FindSimilarWines, find_similar_wines),
    ]


def retrieving(name: str, query: BaseModel, run: Run) -> AbstractContextManager[Span]:
    """Open a retriever's span below that of the tool that runs."""
    asked = query.model_dump(mode="json", exclude_defaults=True)
    return run.span.child(name, "retriever", input=asked)


def found(
    result: WineSearchResult, person: Person = NOBODY, grounds: AsEvidence = by_id
) -> ToolOutput:
    """Tell a model what a search found, which soft filters each wine misses, what was left out."""
    wines = [record(wine) for wine in result.wines]
    for wine in wines:
        if missed := result.missed.get(wine["wine_id"]):
            wine["misses"] = list(missed)
    content: dict[str, Any] = {"found": result.total, "wines": wines}
    if why := note(person):
        content["note"] = why
    if not wines:
        content["relax"] = dict(result.relax)
    return ToolOutput(content, grounds(result.wines))
