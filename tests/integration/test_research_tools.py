"""The tools over documents and places, within a turn: real client, scripted server."""

import json

from agent.documents.quotes import quote_documents_tool
from agent.engine.contract import OutputContract
from agent.engine.limits import Limits
from agent.engine.loop import generate_agentic_response
from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import Toolbox
from agent.places.find import find_places_tool
from agent.places.search import Place
from agent.sommelier.sommelier_prompts import SommelierResponse
from tests.doubles.model_server import ModelServer, answer_json, tool_call
from tests.fakes import root_span
from tests.library import TEN, FakeLibrary, open_model, place_search


async def test_a_tools_requests_count_in_the_ledger_and_trace_of_the_turn(
    model_server: ModelServer,
) -> None:
    model_server.script(
        tool_call("quote_documents", {"query": "What are lees?"}),
        answer_json({"snippets": [], "summary": "Nothing.", "noResults": True}),
        answer_json({"response_type": "informational", "intro": "Yeast."}),
    )
    root = root_span()
    async with open_model(model_server) as model:
        run = Run([model], limits=Limits(seconds=10), span=root)
        response = await generate_agentic_response(
            "What are lees?",
            run=run,
            contract=OutputContract(SommelierResponse),
            tools=[quote_documents_tool(FakeLibrary())],
        )
    assert response.outcome == "answered"
    assert run.ledger.requests == len(model_server.requests) == 3
    (tool,) = [child for child in root.children if child.kind == "tool"]
    assert tool.names == ["retrieve.documents", "llm.answer", "guard.output"]


async def test_a_good_models_ten_queries_are_searched_with_the_guests_wish(
    model_server: ModelServer,
) -> None:
    model_server.script(answer_json(TEN))
    tool = find_places_tool(place_search({}, [Place("Ardo", "https://ardo.example")]))
    asked = {"category": "WINE_BAR", "place": "Bilbao, Spain", "wish": "natural"}
    async with open_model(model_server) as model:
        run = Run([model], limits=Limits(tool_seconds=5))
        call = ToolCall("call_1", tool.name, json.dumps(asked))
        found = await Toolbox([tool]).call(call, run)
    (place,) = json.loads(found.text)["places"]
    assert place["queries"] == TEN
    assert model_server.requests[0].json["messages"][1]["content"].endswith('Wish: "natural".')
