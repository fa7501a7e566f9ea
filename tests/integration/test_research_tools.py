"""The tools over documents and places, within a turn: real client, scripted server."""

import json
from collections.abc import Sequence
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
from agent.places.search import Place
from agent.sommelier.sommelier_prompts import SommelierResponse
from tests.doubles.model_server import ModelServer, answer_json, tool_call
from tests.fakes import root_span
from tests.library import SUR_LIE, TEN, FakeLibrary, open_model, place_search


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
        found = await run(search_documents_tool(FakeLibrary()), query="lees")
        assert found.text.startswith(f"[{SUR_LIE.path}]: {SUR_LIE.text}")
        assert found.sources[SUR_LIE.id] == SUR_LIE

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


class TestPlaces:
    async def test_without_a_provider_there_are_links(self) -> None:
        found = await run(find_places_tool(), category="WINERY", place="Bilbao", wish="txakoli")
        content = json.loads(found.text)
        assert len(content["search_links"]) == 3
        assert all("txakoli Bilbao" in link["query"] for link in content["search_links"])
        assert "No place search is configured" in content["note"]

    async def test_a_good_models_ten_queries_are_searched_with_the_guests_wish(
        self, model_server: ModelServer
    ) -> None:
        model_server.script(answer_json(TEN))
        tool = find_places_tool(place_search({}, [Place("Ardo", "https://ardo.example")]))
        asked = {"category": "WINE_BAR", "place": "Bilbao, Spain", "wish": "natural"}
        async with open_model(model_server) as model:
            found = await run(tool, model, **asked)
        (place,) = json.loads(found.text)["places"]
        assert place["queries"] == TEN
        assert model_server.requests[0].json["messages"][1]["content"].endswith('Wish: "natural".')
