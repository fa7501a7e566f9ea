"""Talking to the house sommelier in tests: messages in, the calls or the answer out."""

import json
from typing import Any

from agent.engine.messages import LLMResponse, Message, ToolSchema
from agent.house_sommelier import HouseSommelier
from agent.sommelier.sommelier_prompts import SommelierResponse, validate_semantic_content

NAMES = ("search_wines", "get_wine", "find_similar_wines", "search_documents")
TOOLS = tuple(ToolSchema(name, "", {}) for name in NAMES)

SHOWN = (
    "Voilà.\n\n"
    "**1. Domaine Landron Amphibolite 2022**\nMuscadet, France · ≈ €24\nSaline.\n\n"
    "**2. Gramona Imperial NV**\nPenedès, Spain · ≈ €15.50\nFennel.\n\n"
    "**3. Auguste Clape Cornas 2019**\nCornas, France · ≈ €40\nSmoky.\n\n"
    "[wine ids: landron, gramona, clape]"
)


def conversation(*said: str, reply: str = SHOWN) -> list[Message]:
    """All but the last message were answered with `reply`."""
    before: list[Message] = []
    for text in said[:-1]:
        before += [{"role": "user", "content": text}, {"role": "assistant", "content": reply}]
    return [*before, {"role": "user", "content": said[-1]}]


async def ask(messages: list[Message]) -> LLMResponse:
    """What the house does about a conversation."""
    return await HouseSommelier().generate_with_tools(messages, TOOLS)


async def called(*said: str) -> tuple[str, dict[str, Any]]:
    """The one tool that a conversation leads to, with its arguments."""
    (call,) = (await ask(conversation(*said))).tool_calls
    return call.name, json.loads(call.arguments)


async def filters(*said: str) -> dict[str, Any]:
    """The search that a conversation leads to."""
    tool, arguments = await called(*said)
    assert tool == "search_wines"
    return arguments


async def spoken(*said: str) -> SommelierResponse:
    """The answer to a conversation that needs no tool."""
    return answer_of(await ask(conversation(*said)))


async def answered(
    *said: str, wines: list[dict[str, Any]], found: int | None = None
) -> SommelierResponse:
    """The answer when the tool returns these wines, of `found` that there are."""
    return answer_of(await after_results(*said, wines=wines, found=found))


async def after_results(
    *said: str,
    wines: list[dict[str, Any]],
    found: int | None = None,
    relax: dict[str, int] | None = None,
) -> LLMResponse:
    """What the house does once the tool has returned these wines."""
    messages = conversation(*said)
    asked = await ask(messages)
    total = len(wines) if found is None else found
    content = json.dumps({"found": total, "wines": wines, "relax": relax or {}})
    return await ask([*messages, *exchange(asked, content)])


def exchange(asked: LLMResponse, content: str) -> list[Message]:
    """The messages of tool calls and their results, the same for each."""
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in asked.tool_calls
    ]
    results: list[Message] = [
        {"role": "tool", "tool_call_id": call.id, "content": content} for call in asked.tool_calls
    ]
    return [{"role": "assistant", "content": "", "tool_calls": calls}, *results]


def answer_of(response: LLMResponse) -> SommelierResponse:
    """The answer in a response that calls no tool."""
    assert response.tool_calls == ()
    answer = SommelierResponse.model_validate_json(response.content)
    assert validate_semantic_content(answer) is None
    return answer


def ids(answer: SommelierResponse) -> list[str]:
    """The wines of an answer, in order."""
    return [wine.wine_id for wine in answer.wines]


FREE = frozenset({"limit", "soft", "not_ids", "without_styles"})
"""What a search may say besides what was asked for."""


def allows(asked: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Whether a search asks for just this; what the house prefers besides must only rank."""
    soft = FREE | set(asked.get("soft", ()))
    musts = {"tannins", "sweetness"} if "foods" in asked else set()
    return all(asked.get(name) == value for name, value in expected.items()) and not (
        asked.keys() - expected.keys() - soft - musts - {"currency"}
    )
