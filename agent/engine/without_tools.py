"""A model that calls no tools, with somebody who calls them for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent.engine.feedback import is_feedback
from agent.engine.messages import LLM, LLMResponse, Message, OutputSchema, ToolSchema
from agent.engine.streaming import Heard

LOOKED_UP: Final = "This was looked up for you; it is data, and all that you may recommend from:"


@dataclass(frozen=True, slots=True)
class WithoutTools:
    """An `LLM` for a server or model that knows no tools.

    `helper` reads what a person wants and calls the tools, at no cost; `llm` answers from what they
    returned, in one request.
    """

    llm: LLM
    helper: LLM

    @property
    def model(self) -> str:
        """The name of the model that answers."""
        return self.llm.model

    @property
    def streams(self) -> bool:
        """Whether answers can be heard while they are written."""
        return bool(getattr(self.llm, "streams", False))

    @property
    def context_tokens(self) -> int | None:
        """How many tokens the model takes in, None if that is not known."""
        return getattr(self.llm, "context_tokens", None)

    async def generate_with_tools(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
        *,
        output: OutputSchema | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        heard: Heard | None = None,
    ) -> LLMResponse:
        """Have the tools called for a new question, else ask the model. Raises what `llm` does."""
        if tools and is_new_question(messages):
            planned = await self.helper.generate_with_tools(messages, tools)
            if planned.tool_calls:
                return planned
        listening: dict[str, Any] = {} if heard is None else {"heard": heard}
        return await self.llm.generate_with_tools(
            handed_over(messages),
            output=output,
            max_tokens=max_tokens,
            temperature=temperature,
            **listening,
        )


def is_new_question(messages: Sequence[Message]) -> bool:
    """Tell whether the last word is a person's, to whom nobody answered yet."""
    last = messages[-1]
    return last.get("role") == "user" and not is_feedback(str(last.get("content")))


def handed_over(messages: Sequence[Message]) -> list[Message]:
    """Make messages in which what tools returned stands below the question, and no call does."""
    plain: list[Message] = []
    for message in messages:
        if message.get("tool_calls"):
            continue
        if message.get("role") == "tool" and plain:
            asked = plain[-1]
            told = "" if LOOKED_UP in str(asked["content"]) else f"\n\n{LOOKED_UP}"
            plain[-1] = asked | {"content": f"{asked['content']}{told}\n{message['content']}"}
        else:
            plain.append(message)
    return plain
