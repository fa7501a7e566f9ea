"""What a model is told it may search for."""

import json

import pytest

from agent.documents.passages import search_documents_tool
from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import Tool, Toolbox, as_text
from agent.memory.tools import memory_tools
from agent.prompts import REPOSITORY, render, research_rules
from agent.sommelier.answer import SOMMELIER
from agent.sommelier.wine import (
    Allergen,
    Food,
    Level,
    Style,
    Sweetness,
    WineQuery,
    WineSearchResult,
    record,
)
from agent.sommelier.wine_tools import found, wine_tools
from agent.turn import NOBODY
from tests.fakes import CHINON, RIOJA, SANCERRE, FakeCatalogue
from tests.library import FakeLibrary

EXCLUSIONS = {
    "without_allergens",
    "without_styles",
    "without_grapes",
    "without_countries",
    "without_regions",
}


HIDDEN = {"soft", "in_stock_only"}


@pytest.fixture
def tools() -> dict[str, Tool]:
    return {tool.name: tool for tool in wine_tools(FakeCatalogue())}


@pytest.fixture
def search(tools: dict[str, Tool]) -> Tool:
    return tools["search_wines"]


def test_a_model_is_offered_every_filter(search: Tool) -> None:
    properties = search.schema.parameters["properties"]
    assert set(properties) == (WineQuery.model_fields.keys() | {"like"}) - HIDDEN
    assert {name for name in properties if name.startswith("without_")} == EXCLUSIONS
    foods = {"items": {"enum": [*Food], "type": "string"}, "type": "array"}
    assert properties["foods"].items() >= foods.items()


def test_the_fixed_text_of_a_request_is_short(tools: dict[str, Tool]) -> None:
    offered = [*tools.values(), search_documents_tool(FakeLibrary()), memory_tools()[0]]
    rules = research_rules([tool.name for tool in offered])
    prompt = render(
        REPOSITORY.get("sommelier"), research_rules=rules, schema=SOMMELIER.output.schema_text
    )
    schemas = [[tool.name, tool.description, tool.schema.parameters] for tool in offered]
    assert "title" not in str(schemas)
    assert len(prompt.text) + len(as_text(schemas)) < 7300


async def test_similar_wines_take_the_filters_of_a_search(tools: dict[str, Tool]) -> None:
    filters = json.dumps({"like": CHINON.id, "max_price": 25})
    result = await Toolbox(tools.values()).call(ToolCall("1", "search_wines", filters), Run())
    assert (result.error_type, list(result.sources)) == (None, [RIOJA.id])
    for wrong in ({"like": "nowhere"}, {"like": CHINON.id, "colours": ["mauve"]}):
        call = ToolCall("2", "search_wines", json.dumps(wrong))
        assert (await Toolbox(tools.values()).call(call, Run())).error_type


def test_a_record_tells_each_fact_once_and_no_default() -> None:
    wine = SANCERRE.model_copy(
        update={
            "tannin": Level.NONE,
            "sweetness": Sweetness.DRY,
            "allergens": (Allergen.SULPHITES,),
        }
    )
    told = record(wine)
    assert told["from"] == "Sancerre, Loire Valley, France"
    assert told["price"] == "€29"
    assert not told.keys() & {"tannin", "sweetness", "in_stock", "allergens", "colour"}
    assert record(CHINON)["allergens"] == "unknown"
    assert record(wine.model_copy(update={"in_stock": False}))["in_stock"] is False


def test_what_a_wine_misses_of_the_soft_filters_is_said() -> None:
    result = WineSearchResult(wines=(CHINON, RIOJA), total=2, missed={RIOJA.id: ("countries",)})
    first, second = as_text(found(result, WineQuery(), NOBODY, set()).content).split(RIOJA.id)
    assert "misses" not in first
    assert '"misses":["countries"]' in second


def test_exclusions_are_read_as_small_models_write_them() -> None:
    query = WineQuery.model_validate(
        {"without_styles": "Rosé", "without_grapes": "Merlot", "without_regions": None}
    )
    assert query == WineQuery(without_styles=(Style.ROSE,), without_grapes=("Merlot",))


async def test_the_facts_of_a_wine_tell_when_to_drink_it_and_how_warm(
    tools: dict[str, Tool],
) -> None:
    call = ToolCall("1", "get_wine", json.dumps({"wine_ids": [RIOJA.id]}))
    (wine,) = json.loads((await Toolbox(tools.values()).call(call, Run())).text)["wines"]
    assert RIOJA.vintage
    begin, end = map(int, wine["usually_best"].split("-"))
    assert RIOJA.vintage <= begin < end
    assert wine["serve"].endswith("°C")
