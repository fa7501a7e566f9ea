"""The tools over documents and places, within a turn: real client, scripted server."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agent.documents.passages import search_documents_tool
from agent.documents.quotes import quote_documents_tool
from agent.engine.contract import OutputContract
from agent.engine.limits import Ledger, Limits
from agent.engine.loop import AgenticResponse, generate_agentic_response
from agent.engine.messages import LLM, ToolCall
from agent.engine.run import Run
from agent.engine.span import Span
from agent.engine.tools import Tool, Toolbox, ToolResult
from agent.places.find import find_places_tool
from agent.places.search import PlaceHit
from agent.sommelier.sommelier_prompts import SommelierResponse
from tests.doubles.model_server import ModelServer, answer_json, tool_call
from tests.fakes import root_span
from tests.library import OYSTERS, SUR_LIE, FakeLibrary, open_model


async def run(tool: Tool, *models: LLM, **arguments: Any) -> ToolResult:
    wish = ToolCall("call_1", tool.name, json.dumps(arguments))
    return await Toolbox([tool]).call(wish, Run(models, limits=Limits(tool_seconds=5)))


async def turn(
    server: ModelServer, tools: Sequence[Tool], ledger: Ledger, span: Span
) -> AgenticResponse[SommelierResponse]:
    async with open_model(server) as model:
        return await generate_agentic_response(
            "What are lees?",
            run=Run([model], limits=Limits(seconds=10), ledger=ledger, span=span),
            contract=OutputContract(SommelierResponse),
            tools=tools,
        )


class TestDocuments:
    async def test_excerpts_stand_behind_their_paths_and_are_evidence(self) -> None:
        found = await run(search_documents_tool(FakeLibrary()), query="lees", limit=2)
        assert found.text.startswith(f"[{SUR_LIE.path}]: {SUR_LIE.text}")
        assert found.found[SUR_LIE.id] == SUR_LIE

    async def test_excerpts_far_below_the_best_score_are_left_out(self) -> None:
        near, far = replace(SUR_LIE, score=2.0), replace(OYSTERS, score=0.9)
        found = await run(search_documents_tool(FakeLibrary((near, far))), query="lees")
        assert list(found.found) == [near.id]

    async def test_quotes_are_verbatim_and_evidence(self, model_server: ModelServer) -> None:
        said = {
            "content": "lees are mostly dead yeast",
            "sourceId": SUR_LIE.document_id,
            "sourceTitle": SUR_LIE.title,
            "sourceLocation": "",
            "relevance": "A definition.",
        }
        model_server.script(
            answer_json({"snippets": [said], "summary": "Lees.", "noResults": False})
        )
        async with open_model(model_server) as model:
            found = await run(quote_documents_tool(FakeLibrary()), model, query="lees")
        assert json.loads(found.text)["quotes"][0]["content"] == "Lees are mostly dead   yeast"
        assert list(found.found) == [SUR_LIE.id]

    async def test_a_tools_requests_count_in_the_ledger_and_trace_of_the_turn(
        self, model_server: ModelServer
    ) -> None:
        none = {"snippets": [], "summary": "Nothing.", "noResults": True}
        model_server.script(
            tool_call("quote_documents", {"query": "What are lees?"}),
            answer_json(none),
            answer_json({"response_type": "informational", "intro": "Yeast."}),
        )
        ledger, root = Ledger(), root_span()
        tools = [quote_documents_tool(FakeLibrary())]
        response = await turn(model_server, tools, ledger, span=root)
        assert response.outcome == "answered"
        assert ledger.requests == len(model_server.requests) == 3
        (tool,) = [child for child in root.children if child.kind == "tool"]
        assert tool.names == ["retrieve.documents", "llm.answer", "guard.output"]


class FakeSearch:
    async def search(self, query: str, limit: int = 10, language: str = "") -> list[PlaceHit]:
        return [PlaceHit("Ardo", "https://ardo.example", "Txakoli.")]


class TestPlaces:
    async def test_places_are_evidence_by_their_address(self) -> None:
        tool = find_places_tool(search=FakeSearch())
        found = await run(tool, category="wine bar", place="Bilbao")
        (place,) = json.loads(found.text)["places"]
        assert (place["title"], place["url"]) == ("Ardo", "https://ardo.example")
        assert list(found.found) == ["https://ardo.example"]

    async def test_without_a_provider_there_are_links(self) -> None:
        found = await run(find_places_tool(), category="WINERY", place="Bilbao")
        content = json.loads(found.text)
        assert len(content["search_links"]) == 10
        assert "No place search is configured" in content["note"]

    async def test_an_unknown_category_comes_back_to_the_model(self) -> None:
        found = await run(find_places_tool(), category="casino", place="Bilbao")
        assert (found.error_type, "WINE_SHOP" in found.text) == ("invalid_arguments", True)

    async def test_a_failure_of_the_queries_comes_back_to_the_model(
        self, model_server: ModelServer
    ) -> None:
        model_server.script(answer_json([]), answer_json([]))
        async with open_model(model_server) as model:
            found = await run(find_places_tool(), model, category="WINERY", place="Bilbao")
        assert found.error_type == "tool_error"
        assert "no 10 distinct search queries" in found.text
