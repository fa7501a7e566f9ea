"""Servers like Ollama and llama.cpp, with nothing set but their address and a model."""

import pytest

from agent.engine.current_draft import CurrentDraft
from agent.engine.llm import LLMService
from agent.engine.loop import AgenticResponse, generate_agentic_response
from agent.engine.run import Limits, Run
from agent.sommelier.answer import SOMMELIER
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.wine_tools import wine_tools
from tests.doubles.local_model import SERVERS
from tests.doubles.model_server import ModelServer, answer, answer_json
from tests.fakes import CHINON, FakeCatalogue
from tests.faults.turns import INFORMATIONAL, QUESTION, SEARCH, named


async def asked(
    llm: LLMService, *, streamed: bool = False
) -> AgenticResponse[SommelierResponse]:
    run = Run(
        [llm], limits=Limits(seconds=10), draft=CurrentDraft() if streamed else None
    )
    tools = wine_tools(FakeCatalogue())
    return await generate_agentic_response(
        QUESTION, run=run, contract=SOMMELIER, tools=tools
    )


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("server", SERVERS)
async def test_ten_of_ten_turns_are_answered_with_a_wine_that_was_looked_up(
    server: str, streamed: bool, model_server: ModelServer
) -> None:
    model_server.default = SERVERS[server]("search_wines", SEARCH)
    llm = LLMService(model="qwen", base_url=model_server.base_url)
    turns = [await asked(llm, streamed=streamed) for _ in range(10)]
    await llm.close()
    assert [turn.outcome for turn in turns] == ["answered"] * 10
    assert [named(turn) for turn in turns] == [[CHINON.id]] * 10
    assert len(model_server.requests) <= 22
    both = {"tools", "response_format"}
    assert not [
        request for request in model_server.requests if both <= request.json.keys()
    ]
    assert model_server.violations == []


async def test_an_answer_in_prose_is_asked_for_again_without_tools_and_in_the_format(
    model_server: ModelServer,
) -> None:
    model_server.script(answer("Tannin dries the mouth."), answer_json(INFORMATIONAL))
    llm = LLMService(model="qwen", base_url=model_server.base_url)
    response = await asked(llm)
    await llm.close()
    assert (response.outcome, response.error_types) == ("answered", ("invalid_json",))
    first, second = (request.json for request in model_server.requests)
    assert ("tools" in first, "response_format" in first) == (True, False)
    assert ("tools" in second, "response_format" in second) == (False, True)
    assert first["max_tokens"] == 1500  # which every server knows
