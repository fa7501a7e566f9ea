"""What a model is told it may search for."""

import json

import pytest

from agent.engine.tools import Tool
from agent.sommelier.tools import wine_tools
from agent.sommelier.wine import Style, WineQuery
from tests.fakes import FakeCatalogue

EXCLUSIONS = {
    "without_allergens",
    "without_styles",
    "without_grapes",
    "without_countries",
    "without_regions",
}


@pytest.fixture
def search() -> Tool:
    return wine_tools(FakeCatalogue())[0]


def test_a_model_is_offered_every_exclusion(search: Tool) -> None:
    properties = search.schema.parameters["properties"]
    assert {name for name in properties if name.startswith("without_")} == EXCLUSIONS
    assert all(properties[name]["description"] for name in properties)


def test_the_schema_holds_no_titles_and_no_empty_defaults(search: Tool) -> None:
    written = json.dumps(search.schema.parameters)
    assert '"title"' not in written
    assert '"default": []' not in written
    assert '"default": null' not in written
    assert '"default": "EUR"' in written
    assert len(written) < 5000


def test_exclusions_are_read_as_small_models_write_them() -> None:
    query = WineQuery.model_validate(
        {"without_styles": "Rosé", "without_grapes": "Merlot", "without_regions": None}
    )
    assert query == WineQuery(without_styles=(Style.ROSE,), without_grapes=("Merlot",))
