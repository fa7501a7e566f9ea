"""The model's service for others: a client of one's own, a second event loop."""

from openai import AsyncOpenAI

from agent.engine.contract import OutputContract
from agent.engine.llm import LLMService
from agent.engine.loop import generate_agentic_response
from agent.engine.run import Limits, Run
from tests.doubles.model_server import ModelServer, answer

TEXT = OutputContract(str)
ONCE = Limits(model_tries=1)


async def said(llm: LLMService) -> str:
    response = await generate_agentic_response(
        "Hi", run=Run([llm], limits=ONCE), contract=TEXT
    )
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
