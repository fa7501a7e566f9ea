"""One turn: tools first, then the structured answer, with retries around the answer only."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Generic, Literal, TypeVar

from agent.engine.contract import Evidence, OutputContract
from agent.engine.echoes import noted
from agent.engine.errors import DeadlinePassed, LimitReached, ModelError
from agent.engine.journal import NO_JOURNAL, Journal, step_seen
from agent.engine.limits import Ledger, Limits, current_ledger
from agent.engine.messages import LLM, LLMResponse, Message, OutputSchema, ToolCall
from agent.engine.model_chain import REPLAYED, Request, Requests, Seen
from agent.engine.parsing import ParseResult
from agent.engine.span import NO_SPAN, Span, current_span
from agent.engine.structured import Attempt, Attempts, Conversation, structured_answer
from agent.engine.templates import SCHEMA_RULE, render
from agent.engine.tool_calls import assistant_message, ids_in, is_whole, with_unique_ids
from agent.engine.tools import Tool, Toolbox, ToolResult
from agent.engine.trace_records import PromptRef

T = TypeVar("T")

Outcome = Literal[
    "answered",
    "salvaged",
    "refusal",
    "content_filter",
    "exhausted",
    "limit",
    "deadline",
    "model_error",
]

NEEDED_A_TOOL: Final = frozenset({"tool_call_as_text", "grounding", "semantic"})
CUT_OFF: Final = "this call was cut off at the token limit; call again with shorter arguments"
ENOUGH_CALLS: Final = "the limit of tool calls is reached; answer with what is known"


@dataclass(frozen=True, slots=True)
class AgenticResponse(Generic[T]):
    """What a turn came to. `text` is empty unless the outcome is answered or salvaged."""

    text: str
    wine_ids: list[str]
    outcome: Outcome
    ledger: Ledger
    answer: T | None = None
    error: str | None = None
    error_types: tuple[str, ...] = ()
    retry_count: int = 0
    models: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is a text for the person."""
        return bool(self.text.strip())


async def generate_agentic_response(
    message: str,
    *,
    llm: LLM | Sequence[LLM],
    contract: OutputContract[T],
    instructions: str = "You are a helpful assistant.",
    tools: Sequence[Tool | Callable[..., Awaitable[object]]] | Toolbox = (),
    history: Sequence[Message] = (),
    limits: Limits = Limits(),  # noqa: B008 - frozen
    ledger: Ledger | None = None,
    span: Span = NO_SPAN,
    journal: Journal = NO_JOURNAL,
    prompt: PromptRef | None = None,
) -> AgenticResponse[T]:
    """Answer `message` within `limits`, as `contract` wants it.

    Runs the tool calls the model asks for, then parses its final response; an invalid one is shown
    to the model with what is wrong, up to `limits.structured_output_max_retries` times, with what
    the tools returned still in the messages. Further models in `llm` are asked when the first is
    down. When all attempts fail the text is empty, or what of an answer keeps every rule.

    `instructions` open the conversation, with the contract's schema below them unless they hold it
    already; `prompt` says in the trace which prompt they were made of.

    Requests and tool calls are steps of `journal`. Never raises, except when cancelled; `ledger`
    is complete even then.

    Raises:
        TypeError: there is no model, or what is given is no model or no contract.
    """
    if not isinstance(contract, OutputContract):
        raise TypeError(f"contract must be like OutputContract(str), not {contract!r}")
    messages: list[Message] = [
        {"role": "system", "content": system_prompt(instructions, contract)},
        *history,
        {"role": "user", "content": message},
    ]
    ledger = ledger if ledger is not None else Ledger()
    deadline = asyncio.get_running_loop().time() + limits.seconds
    turn = _Turn(
        Requests(_models(llm), limits, ledger, span, deadline, journal, prompt),
        Attempts(contract, Evidence(texts=said_by_people(history, message))),
        Conversation(messages),
        tools if isinstance(tools, Toolbox) else Toolbox(tools),
        limits,
        ledger,
        span,
        ids_in(messages),
    )
    try:
        result = await structured_answer(turn.ask, turn.attempts, turn.conversation, limits)
    except DeadlinePassed:
        return turn.broken_off("deadline", f"the turn took longer than {limits.seconds:g} s")
    except LimitReached as error:
        return turn.broken_off("limit", str(error))
    except ModelError as error:
        return turn.broken_off("model_error", str(error))
    return turn.finished(result)


def _models(llm: LLM | Sequence[LLM]) -> Sequence[LLM]:
    models = llm if isinstance(llm, Sequence) else [llm]
    if not models or not all(hasattr(each, "model") for each in models):
        raise TypeError(f"llm must be a model or several, like LLMService(model=...), not {llm!r}")
    return models


def said_by_people(history: Sequence[Message], message: str) -> list[str]:
    """What people wrote in this conversation: an answer may repeat their names and numbers."""
    earlier = [str(each.get("content")) for each in history if each.get("role") == "user"]
    return [*earlier, message]


def system_prompt(instructions: str, contract: OutputContract[T]) -> str:
    """The instructions, and the schema of the final answer if they lack it and it is no text."""
    schema = schema_text(contract)
    if contract.any_text or schema in instructions:
        return instructions
    return f"{instructions}\n\n{render(SCHEMA_RULE, {'schema': schema})}"


def schema_text(contract: OutputContract[T]) -> str:
    """A contract's JSON Schema as it stands in prompts."""
    return json.dumps(contract.output.schema)


@dataclass(slots=True)
class _Turn(Generic[T]):
    """The state of one turn."""

    requests: Requests
    attempts: Attempts[T]
    conversation: Conversation
    toolbox: Toolbox
    limits: Limits
    ledger: Ledger
    span: Span
    call_ids: set[str]

    @property
    def output(self) -> OutputSchema | None:
        return self.attempts.contract.requested

    async def ask(self, number: int, max_tokens: int) -> Attempt[T]:
        """One attempt: whatever tools the model wants first, then its answer."""
        while True:
            offered = self.toolbox.schemas if self._may_call_tools(number) else ()
            request = Request(
                self.conversation.messages,
                offered,
                output=None if offered and self._format_in_the_way() else self.output,
                max_tokens=max_tokens,
                temperature=self.attempts.contract.temperature,
            )
            response, attempt = await self.requests.send(
                request, attempt=number, read=partial(self._read, offered=bool(offered))
            )
            if attempt is not None:
                return attempt
            await self._run_tools(response)
            if response.finish_reason == "length":
                max_tokens = self.limits.raised(max_tokens)

    def _format_in_the_way(self) -> bool:
        """Whether to do without a response format beside tools.

        Some servers hold a model to the format so strictly that it cannot call a tool; one that
        should have called a tool, and did not, is given the chance.
        """
        last = self.attempts.last
        return last is not None and last.error_type in NEEDED_A_TOOL and self.ledger.tool_calls == 0

    def _may_call_tools(self, number: int) -> bool:
        """Whether tools are offered: requests are kept back for this attempt and its retries."""
        kept_back = self.limits.structured_output_max_retries - number + 1
        return (
            self.ledger.tool_calls < self.limits.tool_calls
            and self.ledger.requests + kept_back < self.limits.requests
        )

    def _read(self, response: LLMResponse, *, offered: bool) -> tuple[Attempt[T] | None, Seen]:
        """The response as an attempt; None when it asks for tools it was offered."""
        if response.tool_calls and offered:
            return None, {}
        attempt = self.attempts.read(response, self.toolbox.names)
        metadata = {"validation_path": attempt.result.path}
        if attempt.result.error_type is None:
            return attempt, {"name": "llm.answer", "metadata": metadata}
        metadata["error_type"] = attempt.result.error_type
        return attempt, {"name": "llm.answer", "metadata": metadata, "level": "WARNING"}

    async def _run_tools(self, response: LLMResponse) -> None:
        """Run a response's tool calls side by side; answer each id exactly once, in order."""
        calls = with_unique_ids(response.tool_calls, self.call_ids)
        allowed = max(0, self.limits.tool_calls - self.ledger.tool_calls)
        self.ledger.tool_calls += min(allowed, len(calls))
        cut_off = calls[-1] if response.finish_reason == "length" else None
        results = await asyncio.gather(
            *(self._run_tool(call, last=call is cut_off) for call in calls[:allowed]),
        )
        results += [ToolResult(f"Error: {ENOUGH_CALLS}", error_type="limit")] * len(calls[allowed:])
        self.conversation.add(noted(assistant_message(response.content, calls), response.echo))
        for call, result in zip(calls, results, strict=True):
            if result.error_type is None:  # an error may repeat what the model made up
                self.attempts.evidence.add(result.text, result.found)
            self.conversation.add(
                {"role": "tool", "tool_call_id": call.id, "content": result.text or "(no result)"}
            )

    async def _run_tool(self, call: ToolCall, *, last: bool) -> ToolResult:
        metadata = {"step": self.requests.step, "call_id": call.id}
        name = call.name if call.name in self.toolbox.names else "unknown"
        with self.span.child(
            f"tool.{name}", "tool", input=call.arguments, metadata=metadata
        ) as span:
            current_span.set(span)
            current_ledger.set(self.ledger)
            run = partial(self._call_tool, call, last=last)
            result, ran = await step_seen(self.requests.journal, "tool", run)
            span.update(output=result.text, metadata=None if ran else REPLAYED)
            if result.error_type:
                self.ledger.tool_errors += 1
                span.update(level="ERROR", metadata={"error_type": result.error_type})
        return result

    async def _call_tool(self, call: ToolCall, *, last: bool) -> ToolResult:
        """Run a call, unless it is the `last` of a response that was cut off, and within it."""
        if last and not is_whole(call):
            return ToolResult(f"Error: {CUT_OFF}", error_type="truncated")
        left = self.requests.deadline - asyncio.get_running_loop().time()
        seconds = max(0.0, min(self.limits.tool_seconds, left))
        return await self.toolbox.call(call, seconds=seconds, max_chars=self.limits.result_chars)

    def finished(self, result: ParseResult[T]) -> AgenticResponse[T]:
        """The attempts came to an end by themselves."""
        if result.ok:
            return self._response(result, "answered")
        if result.error_type == "refusal":
            return self.broken_off("refusal", result.error)
        if result.error_type == "content_filter":
            return self.broken_off("content_filter", result.error)
        return self.broken_off("exhausted", result.error)

    def broken_off(self, outcome: Outcome, error: str | None) -> AgenticResponse[T]:
        """No valid answer: what can be salvaged of the attempts, or an empty text."""
        refused = outcome in {"refusal", "content_filter"}
        if not refused and (salvaged := self.attempts.salvage()):
            return replace(self._response(salvaged, "salvaged"), error=error)
        return replace(self._response(ParseResult("", []), outcome), error=error)

    def _response(self, result: ParseResult[T], outcome: Outcome) -> AgenticResponse[T]:
        return AgenticResponse(
            text=result.text,
            wine_ids=list(result.wine_ids),
            outcome=outcome,
            ledger=self.ledger,
            answer=result.answer,
            error_types=tuple(self.attempts.error_types),
            retry_count=max(0, len(self.attempts.made) - 1),
            models=tuple(dict.fromkeys(made.response.model for made in self.attempts.made)),
        )
