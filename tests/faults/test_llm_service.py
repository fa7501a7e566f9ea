"""The model's service for others: a client of one's own, a second event loop."""

from typing import Any

from openai import AsyncOpenAI

from agent.engine.contract import OutputContract
from agent.engine.limits import Limits
from agent.engine.llm import LLMService
from agent.engine.loop import generate_agentic_response
from agent.engine.run import Run
from agent.sommelier.answer import SOMMELIER
from tests.doubles.model_server import ModelServer, answer, answer_json
from tests.faults.turns import INFORMATIONAL, service, turn

TEXT = OutputContract(str)
ONCE = Limits(model_tries=1)


async def said(llm: LLMService) -> str:
    response = await generate_agentic_response("Hi", run=Run([llm], limits=ONCE), contract=TEXT)
    return response.text or str(response.error)


async def test_a_client_of_ones_own_is_used_as_it_is_and_stays_open(
    model_server: ModelServer,
) -> None:
    model_server.script(answer("Hello"), answer("Hello again"))
    headers = {"X-Team": "cellar"}
    async with AsyncOpenAI(
        api_key="sk-own", base_url=model_server.base_url, default_headers=headers
    ) as client:
        for text in ("Hello", "Hello again"):
            body = {"reasoning_effort": "low"}
            llm = LLMService(model="gpt-4o", client=client, extra_body=body)
            assert await said(llm) == text
            await llm.close()
        assert not client.is_closed()
    sent = model_server.requests[-1].headers
    assert (sent["x-team"], sent["authorization"]) == ("cellar", "Bearer sk-own")
    assert model_server.requests[-1].json["reasoning_effort"] == "low"


async def test_a_server_that_is_down_is_named_without_its_password() -> None:
    llm = LLMService(model="qwen", base_url="http://me:secret@127.0.0.1:1/v1")
    reason = await said(llm)
    await llm.close()
    assert reason == (
        "qwen could not be reached (ConnectError); is the server at http://127.0.0.1:1/v1/ running?"
    )


async def test_the_schema_goes_out_once(model_server: ModelServer) -> None:
    def told(request: Any) -> int:
        return str(request.json["messages"]).count("off_topic")

    model_server.script(answer_json(INFORMATIONAL), answer_json(INFORMATIONAL))
    await turn(service(model_server, mode="json_schema"))
    await turn(service(model_server, mode="json_object"))
    by_format, by_prompt = model_server.requests
    schema = by_format.json["response_format"]["json_schema"]["schema"]
    assert "off_topic" in str(schema)
    assert told(by_format) < told(by_prompt)
    system = by_format.json["messages"][0]["content"]
    assert "(the schema SommelierResponse of the response format)" in system
    assert SOMMELIER.output.schema_text in by_prompt.json["messages"][0]["content"]
