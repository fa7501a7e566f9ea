"""Evidence is what a source said: no argument of any tool grounds anything."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.engine.contract import Evidence
from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import Tool, Toolbox
from agent.places.find import Place, find_places_tool
from agent.sommelier.answer import grounding_problem
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.wine_tools import wine_tools
from bot.resources import research_tools
from tests.fakes import CHINON, RIOJA, FakeCatalogue
from tests.library import FakeLibrary, place_search

ARDO = Place("Ardo", "https://ardo.example/menu", "Txakoli.")


def all_tools() -> list[Tool]:
    found = research_tools(FakeLibrary(), place_search({}, [ARDO]))
    return [
        *wine_tools(FakeCatalogue()),
        *found,
        find_places_tool(),
    ]  # the last finds only links


def filled(name: str, schema: Mapping[str, Any], word: str, year: int) -> Any:
    """A value that holds the word or the year wherever the schema allows any text or number."""
    kind = schema.get("type") or schema.get("anyOf", [{}])[0].get("type")
    if name == "wine_id":
        return CHINON.id
    if "enum" in schema or "enum" in schema.get("items", {}):
        return None
    if kind == "array":
        return [word, CHINON.id, RIOJA.id] if name == "wine_ids" else [word]
    return {"string": f"lees {word} Chinon", "number": 1.5}.get(str(kind))


async def evidence_of(tool: Tool, word: str, year: int) -> Evidence:
    properties = tool.openai_schema["function"]["parameters"]["properties"]
    given = {name: filled(name, each, word, year) for name, each in properties.items()}
    arguments = {name: value for name, value in given.items() if value is not None}
    arguments |= {"category": "WINE_BAR"} if "category" in properties else {}
    if tool.name == "search_wines":
        arguments = {
            "text": f"{word} {year}",
            "without_grapes": [word],
            "not_ids": [word],
        }
    if tool.name == "quote_documents":
        # Without a model, only passages about most of the query are quoted.
        arguments = {"query": f"lees yeast cells texture {word}"}
    call = ToolCall("call_1", tool.name, json.dumps(arguments))
    result = await Toolbox([tool]).call(call, Run())
    assert result.error_type is None, result.text
    assert result.sources
    evidence = Evidence()
    evidence.sources.update(result.sources)
    return evidence


@pytest.mark.parametrize("tool", all_tools(), ids=lambda tool: tool.name)
@given(
    word=st.from_regex(r"[A-Z][a-z]{9,14}x", fullmatch=True),
    year=st.integers(1901, 1949),
)
async def test_no_argument_of_any_tool_grounds_anything(
    tool: Tool, word: str, year: int
) -> None:
    evidence = await evidence_of(tool, word, year)
    assert not any(word in said or str(year) in said for said in evidence.texts)
    for claim in (
        f"Take the {word} {year}.",
        f"It is €{year}.",
        f"It is {word}.example.",
    ):
        answer = SommelierResponse(response_type="informational", intro=claim)
        assert grounding_problem(answer, evidence), claim
