"""The descriptions and schemas of the wine tools."""

import json
from enum import Enum

import pytest

from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import Tool, Toolbox, tool
from agent.sommelier.wine_tools import wine_tools
from tests.fakes import CHINON, RIOJA, FakeCatalogue


@pytest.fixture
def tools() -> dict[str, Tool]:
    return {tool.name: tool for tool in wine_tools(FakeCatalogue())}


async def test_the_facts_of_a_wine_include_how_and_when_to_drink_it(
    tools: dict[str, Tool],
) -> None:
    call = ToolCall("1", "get_wine", json.dumps({"wine_ids": [RIOJA.id]}))
    (wine,) = json.loads((await Toolbox([*tools.values()]).call(call, Run())).text)[
        "wines"
    ]
    assert RIOJA.vintage
    begin, end = map(int, wine["usually_best"].split("-"))
    assert RIOJA.vintage <= begin < end
    assert wine["serve"].endswith("°C")


def test_the_schema_of_a_tool_may_have_mixed_choices_and_leaves_null_out() -> None:
    class Size(Enum):
        SMALL = "small"
        FIFTY = 50

    def pour(size: Size, unit: int | str | None = None) -> str:
        """Pour a wine."""
        return f"{size} {unit}"

    properties = tool(pour).openai_schema["function"]["parameters"]["properties"]
    assert properties["size"] == {"enum": ["small", 50]}
    assert properties["unit"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}


async def test_searches_for_similar_wines_accept_filters(
    tools: dict[str, Tool],
) -> None:
    filters = json.dumps({"like": CHINON.id, "max_price": 25})
    result = await Toolbox([*tools.values()]).call(
        ToolCall("1", "search_wines", filters), Run()
    )
    assert (result.error_type, list(result.sources)) == (None, [RIOJA.id])
