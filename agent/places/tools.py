"""The tool that finds places: wine shops, bars, wineries."""

from dataclasses import asdict, replace
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from agent.engine.errors import ToolError
from agent.engine.limits import Limits
from agent.engine.run import Run
from agent.engine.tools import Tool, ToolOutput, tool
from agent.places import find
from agent.places.categories import categories, category_named
from agent.places.queries import QueryGenerationFailed

SHOWN_RESULTS: Final = 8
TOOL_LIMITS: Final = Limits(seconds=9)
SEARCH_SECONDS: Final = 5.0
"""With the time for the queries this stays below that of a tool, or nothing would be shown."""

Category = Annotated[
    str,
    AfterValidator(category_named),
    Field(json_schema_extra=lambda schema: schema.update(enum=list(categories()))),
]
Place = Annotated[
    str,
    Field(max_length=200, description="A town, district or region, as the guest named it."),
]


def find_places_tool(
    search: find.PlaceSearch | None = None, *, search_link: str = find.SEARCH_LINK
) -> Tool:
    """Make find_places over `search`; it asks the turn's models and counts in its ledger."""

    async def find_places(category: Category, place: Place, run: Run) -> ToolOutput:
        """Wine shops, wine bars, wineries, tastings, restaurants or courses in a place. Name only
        what it returns, with its link. It knows no opening hours and no ratings: neither do you.
        """
        try:
            found = await find.find_places(
                category,
                place,
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

    return tool(find_places)
