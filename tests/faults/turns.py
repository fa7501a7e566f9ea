"""One sommelier turn against the scripted model server, for the tests of the loop."""

from collections.abc import Sequence
from typing import Any

from agent.documents.passages import DocumentStore, search_documents_tool
from agent.engine.llm import LLMService
from agent.engine.loop import AgenticResponse, generate_agentic_response
from agent.engine.messages import Message
from agent.engine.run import NO_SPAN, Limits, Run, Span, Usage
from agent.engine.tools import Tool
from agent.engine.wire import Dialect
from agent.fallback.answering import Fallback
from agent.prompts import built_in_prompts, render
from agent.sommelier.answer import SOMMELIER, wine_ids
from agent.sommelier.service import Sommelier
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.wine import Wine
from agent.sommelier.wine_tools import wine_tools
from agent.tracing.records import TraceRecord
from agent.turn import Deps, Reply, StoredMessage
from tests.doubles.model_server import ModelServer, Step, answer_json, tool_call
from tests.fakes import CHINON, RIOJA, SANCERRE, FakeCatalogue, asked, root_span

QUESTION = "A red for lamb under 25 euros, please"
SEARCH = {"styles": ["red"], "foods": ["lamb"], "max_price": 25}

VALID: dict[str, Any] = {
    "response_type": "recommendation",
    "intro": "For your lamb:",
    "wines": [
        {"wine_id": CHINON.id, "description": "Fresh, with fine tannin for the meat."}
    ],
    "closing": "",
}
INFORMATIONAL: dict[str, Any] = {
    "response_type": "informational",
    "intro": "Tannin is what dries the mouth.",
}
INVENTED: dict[str, Any] = VALID | {
    "wines": [{"wine_id": "chateau-nowhere-2019", "description": "Grand."}]
}


def search(id: str | None = None) -> Step:
    return tool_call("search_wines", SEARCH, id)


def valid() -> Step:
    return answer_json(VALID)


def service(server: ModelServer, **settings: Any) -> LLMService:
    """The real client, pointed at the scripted server, which behaves as OpenAI's."""
    defaults: dict[str, Any] = {
        "model": "gpt-4o",
        "api_key": "test",
        "base_url": server.base_url,
    }
    defaults["dialect"] = Dialect.of_openai()
    return LLMService(**(defaults | settings))


def named(response: AgenticResponse[SommelierResponse]) -> list[str]:
    return wine_ids(response.answer) if response.answer else []


async def turn(
    *services: LLMService,
    message: str = QUESTION,
    catalogue: FakeCatalogue | None = None,
    history: Sequence[Message] = (),
    limits: Limits | None = None,
    usage: Usage | None = None,
    span: Span = NO_SPAN,
) -> AgenticResponse[SommelierResponse]:
    try:
        return await generate_agentic_response(
            message,
            run=Run(
                services,
                instructions=render(
                    built_in_prompts()["sommelier"],
                    tool_rules="",
                    guest_rules="",
                    schema=SOMMELIER.output.schema_text,
                ),
                history=history,
                limits=limits or Limits(seconds=10),
                usage=usage or Usage(),
                span=span,
            ),
            contract=SOMMELIER,
            tools=wine_tools(catalogue or FakeCatalogue()),
        )
    finally:
        for llm in services:
            await llm.close()


async def reply_to(
    *said: str,
    server: ModelServer | None = None,
    wines: Sequence[Wine] = (CHINON, RIOJA, SANCERRE),
    library: DocumentStore | None = None,
    tools: Sequence[Tool] = (),
    history: Sequence[StoredMessage] = (),
    limits: Limits | None = None,
    **deps: Any,
) -> tuple[Reply, TraceRecord]:
    """Have the sommelier answer the last of these messages; return the reply and its trace."""
    root, catalogue = root_span(), FakeCatalogue(wines)
    models = [service(server)] if server else []
    sommelier = Sommelier(
        catalogue=catalogue,
        fallback=Fallback(catalogue=catalogue, documents=library),
        research_tools=[*tools, *([search_documents_tool(library)] if library else ())],
    )
    earlier = [*(StoredMessage("user", text) for text in said[:-1]), *history]
    run = Run(
        models,
        limits=limits or Limits(),
        span=root,
        deps=Deps(**deps),
    )
    with root:
        reply = await asked(sommelier, said[-1], run, earlier)
    for model in models:
        await model.close()
    return reply, root.trace
