"""The descriptions and schemas of the wine tools."""

import json
from enum import Enum

import pytest

from agent.documents.passages import search_documents_tool
from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import Tool, Toolbox, as_text, tool
from agent.memory.tools import memory_tools
from agent.prompts import built_in_prompts, join_research_rules, render
from agent.sommelier.answer import SOMMELIER
from agent.sommelier.wine_tools import wine_tools
from tests.fakes import CHINON, RIOJA, FakeCatalogue
from tests.library import FakeLibrary


@pytest.fixture
def tools() -> dict[str, Tool]:
    return {tool.name: tool for tool in wine_tools(FakeCatalogue())}


def test_the_fixed_text_of_a_request_is_short(tools: dict[str, Tool]) -> None:
    offered = [*tools.values(), search_documents_tool(FakeLibrary()), memory_tools()[0]]
    rules = join_research_rules([tool.name for tool in offered])
    prompt = render(
        built_in_prompts()["sommelier"], research_rules=rules, schema=SOMMELIER.output.schema_text
    )
    schemas = [
        [tool.name, tool.description, tool.openai_schema["function"]["parameters"]]
        for tool in offered
    ]
    assert "title" not in str(schemas)
    assert len(prompt.text) + len(as_text(schemas, 99_999)) < 7300


async def test_the_facts_of_a_wine_include_how_and_when_to_drink_it(tools: dict[str, Tool]) -> None:
    call = ToolCall("1", "get_wine", json.dumps({"wine_ids": [RIOJA.id]}))
    (wine,) = json.loads((await Toolbox(tools.values()).call(call, Run())).text)["wines"]
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


async def test_searches_for_similar_wines_accept_filters(tools: dict[str, Tool]) -> None:
    filters = json.dumps({"like": CHINON.id, "max_price": 25})
    result = await Toolbox(tools.values()).call(ToolCall("1", "search_wines", filters), Run())
    assert (result.error_type, list(result.sources)) == (None, [RIOJA.id])
