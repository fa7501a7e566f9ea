"""What a model is told it may search for."""

import json

import pytest

from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import Tool, Toolbox, as_text
from agent.sommelier.wine import Food, Style, WineQuery, WineSearchResult
from agent.sommelier.wine_tools import found, wine_tools
from tests.fakes import CHINON, RIOJA, FakeCatalogue

EXCLUSIONS = {
    "without_allergens",
    "without_styles",
    "without_grapes",
    "without_countries",
    "without_regions",
}


HIDDEN = {"soft"}


@pytest.fixture
def tools() -> dict[str, Tool]:
    return {tool.name: tool for tool in wine_tools(FakeCatalogue())}


@pytest.fixture
def search(tools: dict[str, Tool]) -> Tool:
    return tools["search_wines"]


def test_a_model_is_offered_every_filter(search: Tool) -> None:
    properties = search.schema.parameters["properties"]
    assert set(properties) == WineQuery.model_fields.keys() - HIDDEN
    assert {name for name in properties if name.startswith("without_")} == EXCLUSIONS
    foods = {"items": {"enum": [*Food], "type": "string"}, "type": "array"}
    assert properties["foods"].items() >= foods.items()


def test_the_schemas_cost_few_tokens(tools: dict[str, Tool]) -> None:
    written = json.dumps([tool.schema.parameters for tool in tools.values()])
    assert "title" not in written
    assert "null" not in written
    assert '"default": []' not in written
    assert '"default": "EUR"' in written
    assert len(written) < 3200


async def test_similar_wines_take_the_filters_of_a_search(tools: dict[str, Tool]) -> None:
    filters = json.dumps({"wine_id": CHINON.id, "max_price": 25})
    call = ToolCall("1", "find_similar_wines", filters)
    result = await Toolbox(tools.values()).call(call, Run())
    assert (result.error_type, list(result.found)) == (None, [RIOJA.id])
    wrong = ToolCall("2", "find_similar_wines", '{"wine_id": "x", "colours": ["mauve"]}')
    assert (await Toolbox(tools.values()).call(wrong, Run())).error_type


def test_what_a_wine_misses_of_the_soft_filters_is_said() -> None:
    result = WineSearchResult(wines=(CHINON, RIOJA), total=2, missed={RIOJA.id: ("countries",)})
    first, second = as_text(found(result).content).split(RIOJA.id)
    assert "misses" not in first
    assert '"misses":["countries"]' in second


def test_exclusions_are_read_as_small_models_write_them() -> None:
    query = WineQuery.model_validate(
        {"without_styles": "Rosé", "without_grapes": "Merlot", "without_regions": None}
    )
    assert query == WineQuery(without_styles=(Style.ROSE,), without_grapes=("Merlot",))
