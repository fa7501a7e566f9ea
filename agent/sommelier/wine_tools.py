"""The tools that search and read the catalogue."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from agent.engine.contract import Source
from agent.engine.errors import ToolError
from agent.engine.run import Run
from agent.engine.tools import Tool, ToolOutput
from agent.sommelier.filters import find_wines, get_wines
from agent.sommelier.queries import Catalogue, ShortText, WineQuery, WineSearchResult
from agent.sommelier.serving import drinking_years, serving_advice
from agent.sommelier.wine import Wine, wine_record
from agent.tables import StrictModel
from agent.turn import Lack, Looked, get_deps, get_person

SEARCH_DESCRIPTION = (
    "Search the wines of this house. Write all values in English. Of several values in a list a "
    "wine needs only one. Every filter leaves out the wines that do not meet it. In a search that "
    "was made for you, `soft` names filters that only rank the wines; a wine's `misses` names "
    "those that it does not meet: say so if you recommend it. `past` means that its best years "
    "are probably over. The facts of a wine do not mention what goes without saying: without "
    "`sweetness` it is dry, without `tannin` it has none, and `allergens` leaves out sulphites."
)
GET_DESCRIPTION = "Look up the facts of wines by their ids."
NO_WINE_ERROR = "there is no wine with these ids for this guest; search_wines finds ids"


def wines_by_id(wines: Iterable[Wine]) -> dict[str, Source]:
    """Return wines by id, which makes them evidence for an answer."""
    return {wine.id: wine for wine in wines}


class NoArguments(BaseModel):
    """The empty arguments of a tool."""


class GetWineArguments(StrictModel):
    """The arguments of get_wine."""

    wine_ids: Annotated[tuple[ShortText, ...], Field(min_length=1, max_length=12)]


def wine_tools(catalogue: Catalogue) -> list[Tool]:
    """Return the tools search_wines and get_wine for `catalogue`."""

    async def search_wines(query: WineQuery, run: Run) -> ToolOutput:
        if query.like and not await catalogue.get([query.like]):
            raise ToolError("there is no wine with the id of `like`; search without it")
        name = "retrieve.similar" if query.like else "retrieve.wines"
        filters = query.model_dump(mode="json", exclude_defaults=True)
        with run.span.child(name, "retriever", input=filters) as span:
            result = await find_wines(catalogue, query, get_person(run))
            ids = [wine.id for wine in result.wines]
            span.update(output=ids, metadata={"found": result.total})
        output = _search_output(result, get_deps(run).ids_given_to_model)
        return replace(output, effects=(_look(query, result),))

    async def get_wine(arguments: GetWineArguments, run: Run) -> ToolOutput:
        wines = await get_wines(catalogue, arguments.wine_ids, get_person(run))
        if not wines:
            raise ToolError(NO_WINE_ERROR)
        year = datetime.now(UTC).year
        content = {"year": year, "wines": [full_record(wine) for wine in wines]}
        return ToolOutput(content, wines_by_id(wines))

    return [
        Tool(
            "search_wines",
            SEARCH_DESCRIPTION,
            WineQuery,
            search_wines,
            progress_name="searching",
            is_offered=may_recommend_any_wine,
        ),
        Tool(
            "get_wine",
            GET_DESCRIPTION,
            GetWineArguments,
            get_wine,
            progress_name="looking",
            is_offered=may_recommend_any_wine,
        ),
    ]


def may_recommend_any_wine(run: Run) -> bool:
    """Return whether any wine may be recommended.

    If the guest has just sent a wine list, only its wines may be.
    """
    return not get_deps(run).answers_from_list


def full_record(wine: Wine) -> dict[str, Any]:
    """Return the facts of a wine, and how to serve it."""
    return wine_record(wine) | serving_advice(wine)


def _look(query: WineQuery, result: WineSearchResult) -> Looked:
    """Return what was searched for, and whether a wine in stock meets all of it."""
    kind = Lack.NAME if query.name else Lack.WINES
    for wine in result.wines:
        if wine.in_stock and wine.id not in result.unmet_filters:
            return Looked(kind, found=True)
    return Looked(kind, found=False)


def _search_output(
    result: WineSearchResult, ids_given_to_model: set[str]
) -> ToolOutput:
    """Return a search result for the model.

    A wine that the model has been given before in this turn has only its id.
    """
    rows: list[dict[str, Any]] = []
    for wine in result.wines:
        is_told = wine.id in ids_given_to_model and wine.id not in result.unmet_filters
        if is_told:
            row = {"wine_id": wine.id, "facts": "as returned before in this turn"}
        else:
            row = wine_record(wine) | _drawbacks(wine, result)
        rows.append(row)
        ids_given_to_model.add(wine.id)
    content: dict[str, Any] = {"found": result.total, "wines": rows}
    if result.relax or not result.wines:
        content["relax"] = dict(result.relax)
    sources = wines_by_id(result.wines)
    near = {
        "no_such_vintage_others": result.other_vintages,
        "no_such_name_perhaps": result.mentioned,
        "no_such_name_closest": result.closest,
    }
    for name, wines in near.items():
        if wines:
            content[name] = [wine_record(wine) for wine in wines]
            sources |= wines_by_id(wines)
    return ToolOutput(content, sources)


def _drawbacks(wine: Wine, result: WineSearchResult) -> dict[str, Any]:
    """Return the reasons against a wine.

    Reasons are that the wine is past its best, and the soft filters that it does not meet.
    """
    drawbacks: dict[str, Any] = {}
    years = drinking_years(wine)
    if years:
        _, last_year = years
        if last_year < datetime.now(UTC).year:
            drawbacks["past"] = f"usually best until {last_year}"
    unmet = result.unmet_filters.get(wine.id)
    if unmet:
        drawbacks["misses"] = list(unmet)
    return drawbacks
