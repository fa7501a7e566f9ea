"""The tool that finds places: wine shops, bars, wineries."""

from dataclasses import asdict, replace
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agent.engine.errors import ToolError
from agent.engine.limits import Limits
from agent.engine.run import Run
from agent.engine.tools import Tool, ToolOutput
from agent.places.categories import categories, category_named
from agent.places.find import SEARCH_LINK, find_places
from agent.places.queries import QueryGenerationFailed
from agent.places.search import PlaceSearch

FIND: Final = (
    "Wine shops, wine bars, wineries, tastings, restaurants or courses in a place. Name only what "
    "it returns, with its link. It knows no opening hours and no ratings: neither do you."
)
SHOWN_RESULTS: Final = 8
TOOL_LIMITS: Final = Limits(seconds=9)
SEARCH_SECONDS: Final = 5.0
"""With the time for the queries this stays below that of a tool, or nothing would be shown."""


class FindPlaces(BaseModel):
    """Arguments of find_places."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    category: Annotated[str, AfterValidator(category_named)] = Field(
        json_schema_extra=lambda schema: schema.update(enum=list(categories()))
    )
    place: str = Field(
        max_length=200, description="A town, district or region, as the guest named it."
    )


def find_places_tool(search: PlaceSearch | None = None, *, search_link: str = SEARCH_LINK) -> Tool:
    """find_places over `search`; it asks the turn's models and counts in its ledger."""

    async def find(arguments: FindPlaces, run: Run) -> ToolOutput:
        try:
            found = await find_places(
                arguments.category,
                arguments.place,
                run=replace(run, limits=TOOL_LIMITS),
                search=search,
                search_link=search_link,
                search_seconds=SEARCH_SECONDS,
            )
        except (QueryGenerationFailed, ValueError) as error:
            raise ToolError(str(error)) from None
        shown = found.results[:SHOWN_RESULTS] or found.links
        key = "places" if found.results else "search_links"
        content: dict[str, Any] = {key: [asdict(each) for each in shown]}
        if found.note:
            content["note"] = found.note
        return ToolOutput(content, {each.url: each for each in shown})

    return Tool("find_places", FIND, FindPlaces, find)
