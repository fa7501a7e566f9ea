"""The tools that search and read the catalogue."""

from collections.abc import Collection, Iterable
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
from agent.turn import Lack, SearchEffect, get_deps, get_person

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
NO_SIMILAR_ERROR = "there is no wine with the id of `like`; search without it"
KNOWN_FACTS = "as returned before in this turn"
"""The facts of a wine that the model has already been given."""


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
        return await _search_wines(catalogue, query, run)

    async def get_wine(arguments: GetWineArguments, run: Run) -> ToolOutput:
        wines = await get_wines(catalogue, arguments.wine_ids, get_person(run))
        if not wines:
            raise ToolError(NO_WINE_ERROR)
        records = [full_record(wine) for wine in wines]
        content = {"year": datetime.now(UTC).year, "wines": records}
        return ToolOutput(content, wines_by_id(wines))

    search_tool = Tool(
        "search_wines",
        SEARCH_DESCRIPTION,
        WineQuery,
        search_wines,
        progress_name="searching",
        is_offered=may_recommend_any_wine,
    )
    get_tool = Tool(
        "get_wine",
        GET_DESCRIPTION,
        GetWineArguments,
        get_wine,
        progress_name="looking",
        is_offered=may_recommend_any_wine,
    )
    return [search_tool, get_tool]


def may_recommend_any_wine(run: Run) -> bool:
    """Return whether any wine may be recommended.

    If the guest has just sent a wine list, only its wines may be.
    """
    return not get_deps(run).answers_from_list


def full_record(wine: Wine) -> dict[str, Any]:
    """Return the facts of a wine, and how to serve it."""
    return wine_record(wine) | serving_advice(wine)


async def _search_wines(catalogue: Catalogue, query: WineQuery, run: Run) -> ToolOutput:
    """Return the result of a search for the model, and whether it has found what was wanted."""
    span_name = "retrieve.wines"
    if query.like:
        if not await catalogue.get([query.like]):
            raise ToolError(NO_SIMILAR_ERROR)
        span_name = "retrieve.similar"
    filters = query.model_dump(mode="json", exclude_defaults=True)
    with run.span.child(span_name, "retriever", input=filters) as span:
        result = await find_wines(catalogue, query, get_person(run))
        ids = [wine.id for wine in result.wines]
        span.update(output=ids, metadata={"found": result.total})
    output = _describe_result(result, get_deps(run).ids_given_to_model)
    search = _make_effect(query, result)
    return replace(output, effects=(search,))


def _make_effect(query: WineQuery, result: WineSearchResult) -> SearchEffect:
    """Return what was searched for, and whether a wine in stock meets all of it."""
    possible_lack = Lack.WINES
    if query.name:
        possible_lack = Lack.NAME
    for wine in result.wines:
        if wine.in_stock and wine.id not in result.unmet_filters:
            return SearchEffect(possible_lack, has_found=True)
    return SearchEffect(possible_lack, has_found=False)


def _describe_result(
    result: WineSearchResult, ids_given_to_model: set[str]
) -> ToolOutput:
    """Return a search result for the model, and add its wines to `ids_given_to_model`."""
    records = _describe_wines(result, ids_given_to_model)
    ids_given_to_model.update(wine.id for wine in result.wines)
    content: dict[str, Any] = {"found": result.total, "wines": records}
    if result.relax or not result.wines:
        content["relax"] = dict(result.relax)
    sources = wines_by_id(result.wines)
    similar_wines = {
        "no_such_vintage_others": result.other_vintages,
        "no_such_name_perhaps": result.mentioned,
        "no_such_name_closest": result.closest,
    }
    for key, wines in similar_wines.items():
        if wines:
            content[key] = [wine_record(wine) for wine in wines]
            sources |= wines_by_id(wines)
    return ToolOutput(content, sources)


def _describe_wines(
    result: WineSearchResult, known_ids: Collection[str]
) -> list[dict[str, Any]]:
    """Return the wines of a search result, with only the id of a wine that the model knows."""
    records: list[dict[str, Any]] = []
    for wine in result.wines:
        meets_all_filters = wine.id not in result.unmet_filters
        if wine.id in known_ids and meets_all_filters:
            record = {"wine_id": wine.id, "facts": KNOWN_FACTS}
        else:
            record = wine_record(wine) | _drawbacks(wine, result)
        records.append(record)
    return records


def _drawbacks(wine: Wine, result: WineSearchResult) -> dict[str, Any]:
    """Return the reasons against a wine: it is past its best, or does not meet a soft filter."""
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
