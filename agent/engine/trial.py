"""What a model behind a server can do, tried out with a few requests."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import BaseModel

from agent.engine.contract import Evidence, OutputContract
from agent.engine.errors import ModelRejected, ParameterDeclined
from agent.engine.loop import system_prompt
from agent.engine.messages import LLM, LLMResponse, Message, OutputSchema, ResponseMode, ToolSchema
from agent.engine.model_chain import MAX_DECLINED
from agent.engine.parsing import parse_response
from agent.engine.tools import json_object

MODES: Final[tuple[ResponseMode, ...]] = ("json_schema", "json_object", "prompt")
"""How an answer may be asked for, the strictest first."""
TRIES: Final = 2
"""A small model that calls a tool now and then is one that does."""
ANSWER_TOKENS: Final = 1000
REFUSED: Final = frozenset({400, 422, 501})


class Pairing(BaseModel):
    """What the model is asked for."""

    dish: str
    colour: Literal["red", "white"]
    serve_cold: bool


TRIAL: Final = OutputContract(Pairing)
TOOL: Final = ToolSchema(
    "count_bottles",
    "Count the bottles of a wine in the cellar.",
    {
        "type": "object",
        "properties": {"wine_id": {"type": "string"}},
        "required": ["wine_id"],
        "additionalProperties": False,
    },
)
USE_THE_TOOL: Final = "How many bottles of the wine w7 are in the cellar? Look it up with the tool."
ANSWER: Final = "Which wine goes with oysters: red or white, and is it served cold?"


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a model can: call tools, and answer as a schema says if it is asked in `mode`.

    Without a mode no answer was valid in any.
    """

    tools: bool
    mode: ResponseMode | None


async def try_model(model_in: Callable[[ResponseMode], LLM]) -> Abilities:
    """Try a model; `model_in` makes it for a response mode. Takes two to ten requests.

    Raises:
        ModelError: it cannot be asked at all.
    """
    tools = await calls_tools(model_in("prompt"))
    for mode in MODES:
        model = model_in(mode)
        # Some servers hold a model to the form of its answer so strictly that it calls no tool.
        spoken = await answers_in(model)
        if spoken and (spoken == "prompt" or not tools or await calls_tools(model, TRIAL.output)):
            return Abilities(tools, spoken)
    return Abilities(tools, None)


async def calls_tools(model: LLM, output: OutputSchema | None = None) -> bool:
    """Tell whether a model calls a tool when it is told to, asked for an answer of `output`."""
    for _ in range(TRIES):
        reply = await _asked(model, "Use your tools.", USE_THE_TOOL, [TOOL], output)
        for call in reply.tool_calls if reply else ():
            try:
                if call.name == TOOL.name and json_object(call.arguments).get("wine_id"):
                    return True
            except ValueError:
                continue
    return False


async def answers_in(model: LLM) -> ResponseMode | None:
    """Tell in which mode a model answers as a schema says: its own, or one it had to step down to.

    None if its answer is not valid.
    """
    reply = await _asked(model, system_prompt("", TRIAL).strip(), ANSWER, [], TRIAL.output)
    if reply is None or not parse_response(reply, TRIAL, Evidence()).ok:
        return None
    return next((mode for mode in MODES if mode == reply.mode), "prompt")


async def _asked(
    model: LLM,
    instructions: str,
    question: str,
    tools: list[ToolSchema],
    output: OutputSchema | None,
) -> LLMResponse | None:
    """What a model says; None where its server refuses such a request."""
    messages: list[Message] = [
        {"role": "system", "content": instructions},
        {"role": "user", "content": question},
    ]
    for _ in range(MAX_DECLINED):
        try:
            return await model.generate_with_tools(
                messages, tools, output=output, max_tokens=ANSWER_TOKENS
            )
        except ParameterDeclined:
            continue
        except ModelRejected as error:
            if tools or (output is not None and error.status in REFUSED):
                return None
            raise
    return None
