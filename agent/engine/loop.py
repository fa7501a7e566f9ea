"""One turn: tools first, then the structured answer, of which only the answer is retried."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Generic, TypeVar, cast

from agent.engine.contract import Evidence, OutputContract, Source
from agent.engine.errors import LimitReached, ModelError, Outcome
from agent.engine.messages import Conversation, LLMRequest, LLMResponse, Message, ToolCall
from agent.engine.models import ModelChain
from agent.engine.parsing import (
    TERMINAL,
    ParseResult,
    parse_draft,
    parse_final_response,
    strip_thoughts,
    tool_calls_in_text,
    valid_part,
)
from agent.engine.run import Ledger, Run, Span
from agent.engine.tools import Tool, Toolbox
from agent.text import MAX_INLINE_CHARS

T = TypeVar("T")

Tools = Sequence[Tool | Callable[..., object]]
DescribeProgress = Callable[[Tool | None], str]
"""Returns the text that the waiting user reads, by the first called tool; None: it is unknown."""

ERRORS_A_TOOL_MAY_FIX: Final = frozenset({"tool_call_as_text", "grounding", "semantic"})
"""Types of errors after which the model may still have to call a tool."""
FORMAT_ERRORS: Final = frozenset({"invalid_json", "schema", "unparsed", "truncated", "too_long"})
"""Types of errors after which the next request has no tools, only the response format."""
CUT_OFF_ERRORS: Final = frozenset({"truncated", "interrupted"})
"""Types of errors after which the feedback leaves out the response."""
SCHEMA_RULE: Final = (
    "Your final answer is one JSON value that matches this JSON Schema, and nothing else: "
    "no text around it, no Markdown fence.\n"
)
"""The end of a prompt that asks for a structured answer; the schema follows."""


@dataclass(frozen=True, slots=True)
class AgenticResponse(Generic[T]):
    """The response of a turn.

    `text` is empty unless the outcome is answered, salvaged, or stopped with a draft; it is also
    empty if the contract lets `answer` end the turn by itself. `wine_ids`:
    the wines named in `text`. `messages` are those that the turn adds to the history: the user's,
    tool calls with results, and the valid answer as JSON. `sources`: the tools' evidence, by id.
    `effects`: what tools want done, in the order of the calls, equal ones once.
    """

    text: str
    outcome: Outcome
    ledger: Ledger
    wine_ids: tuple[str, ...] = ()
    answer: T | None = None
    error: str | None = None
    error_types: tuple[str, ...] = ()
    retry_count: int = 0
    messages: tuple[Message, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)
    effects: tuple[object, ...] = ()

    @property
    def has_text(self) -> bool:
        """Return True if there is a text, including a salvaged or stopped answer."""
        return bool(self.text.strip())


@dataclass(frozen=True, slots=True)
class Draft:
    """The grounded part of an answer that is still being written, in Markdown."""

    text: str


async def generate_agentic_response(
    message: str,
    *,
    run: Run,
    contract: OutputContract[T],
    tools: Tools = (),
    images: Sequence[str] = (),
    initial_calls: Sequence[ToolCall] = (),
    initial_sources: Mapping[str, Source] = MappingProxyType({}),
    progress: DescribeProgress | None = None,
) -> AgenticResponse[T]:
    """Answer `message` within the limits of `run`, as `contract` requires.

    Run the tool calls that the model asks for, then parse its final response. If that is invalid,
    show the model its response and the error, and ask again, up to
    `run.limits.structured_output_max_retries` times; the results of the tools stay in the messages.
    If a model is down, ask the next model of the run. If all attempts fail, return the valid part
    of an answer, or an empty text.

    `images` are data URLs that the model sees with the message. `initial_calls` are run as if the
    model had made them, and `initial_sources` may be used like those that tools return. `progress`
    returns the text that is shown while tools run.

    Errors of models and limits become outcomes. The run's ledger, which counts requests, calls,
    tokens and cost, is complete even if the call is cancelled. Raises TypeError if `run` has no
    model.
    """
    if not isinstance(run, Run) or not run.models:
        raise TypeError(f"run must have a model, like Run([LLMService(model=...)]), not {run!r}")
    instructions = system_prompt(str(run.instructions), contract)
    chat = Conversation(instructions, run.history, message, images)
    turn = _Turn(run.with_deadline(), contract, tools, chat, progress)
    turn.evidence.sources.update(initial_sources)
    outcome: Outcome = "exhausted"
    try:
        async with run.stop.watch():  # raises LimitReached when the user stops the turn
            if initial_calls:  # as if a response of the model had made them
                await turn.call_tools(
                    LLMResponse(tool_calls=tuple(initial_calls)), is_prefetch=True
                )
            for _ in range(1 + max(0, run.limits.structured_output_max_retries)):
                model_response, span = await turn.answer_after_tools()
                result = await turn.parse(model_response, span)
                if not result.retryable:
                    has_answer = result.is_valid or result.ends_turn
                    # These error types are also outcomes.
                    outcome = "answered" if has_answer else cast(Outcome, result.error_type)
                    break
                turn.add_feedback(model_response, result)
        error_text = turn.results[-1].error
    except (LimitReached, ModelError) as error:
        outcome, error_text = error.outcome, str(error)
    return await turn.build_response(outcome, error_text)


async def stream_agentic_response(
    message: str,
    *,
    run: Run,
    contract: OutputContract[T],
    tools: Tools = (),
    images: Sequence[str] = (),
    interval_seconds: float = 0.2,
) -> AsyncIterator[Draft | AgenticResponse[T]]:
    """Yield a draft of the answer whenever its text has changed, then the response.

    If the caller stops iterating, the turn is cancelled.
    """
    readers: list[Callable[[], str]] = [lambda: ""]  # the last one reads the current draft
    run = replace(run, show_draft=readers.append)
    turn = asyncio.create_task(
        generate_agentic_response(message, run=run, contract=contract, tools=tools, images=images)
    )
    shown = ""
    try:
        while not turn.done():
            await asyncio.wait([turn], timeout=interval_seconds)
            text = readers[-1]()
            if text not in {"", shown} and not turn.done():
                shown = text
                yield Draft(text)
        yield await turn
    finally:
        turn.cancel()
        await asyncio.wait([turn])


class _Turn(Generic[T]):
    """A turn in progress: its messages, its evidence, its effects, its attempts."""

    def __init__(
        self,
        run: Run,
        contract: OutputContract[T],
        tools: Tools,
        chat: Conversation,
        progress: DescribeProgress | None,
    ) -> None:
        self.run, self.contract, self.chat, self.progress = run, contract, chat, progress
        self.toolbox = Toolbox(tools).offered_in(run)
        self.evidence = Evidence({}, chat.texts_by("user"), chat.texts_by("assistant"))
        self.effects: list[object] = []
        self.models = ModelChain(run)
        self.max_tokens = run.limits.answer_tokens
        self.results: list[ParseResult[T]] = []

    async def answer_after_tools(self) -> tuple[LLMResponse, Span]:
        """Ask the models, and run the tools they call, until there is a final answer.

        If the answer was truncated, raise the token limit for the next one.
        """
        while True:
            request, attempt = self._next_request(), len(self.results)
            model_response, span = await self.models.ask(self.chat, request, attempt=attempt)
            if model_response.finish_reason == "length":
                # A ceiling below the current limit does not lower it.
                ceiling = max(self.max_tokens, self.run.limits.answer_tokens_ceiling)
                self.max_tokens = min(2 * self.max_tokens, ceiling)
            if not request.tools:  # without offered tools every response is final
                return model_response, span
            if not model_response.tool_calls:
                calls = tool_calls_in_text(model_response.content, self.toolbox.tools)
                if not calls:
                    return model_response, span
                model_response = replace(model_response, content="", tool_calls=calls)
            await self.call_tools(model_response)

    def _next_request(self) -> LLMRequest:
        """Return the next request: with tools, the response format, or both.

        Tools are offered while requests remain for this attempt and its retries, but not after a
        format error. The format is omitted after an error that a tool may fix, if none was called
        yet: some servers disable tools when a format is set.
        """
        limits, ledger, contract = self.run.limits, self.run.ledger, self.contract
        error = self.results[-1].error_type if self.results else None
        reserved_requests = limits.structured_output_max_retries - len(self.results) + 1
        may_call = (
            ledger.tool_calls < limits.tool_calls
            and ledger.requests + reserved_requests < limits.requests
        )
        offered = self.toolbox.tools.values() if may_call and error not in FORMAT_ERRORS else ()
        omit_format = bool(offered) and error in ERRORS_A_TOOL_MAY_FIX and ledger.tool_calls == 0
        is_drafted = self.run.show_draft is not None and contract.is_drafted
        return LLMRequest(
            tools=[tool.openai_schema for tool in offered],
            output=None if omit_format else contract.output_format(self.evidence),
            max_tokens=self.max_tokens,
            temperature=contract.temperature,
            on_text=self._show_drafts if is_drafted else None,
        )

    def _show_drafts(self, read_text: Callable[[], str]) -> None:
        self.models.begin_text(read_text)
        if self.run.show_draft is not None:
            self.run.show_draft(lambda: self.parse_current_draft().text)

    def parse_current_draft(self) -> ParseResult[T]:
        """Return the part of the current response that may be shown now."""
        text = self.models.read_text()[:MAX_INLINE_CHARS]  # parsing more would block the event loop
        return parse_draft(text, self.contract, self.evidence)

    async def call_tools(self, model_response: LLMResponse, *, is_prefetch: bool = False) -> None:
        """Run the calls of a response, and collect their messages, evidence and effects.

        A prefetch is made before the model is asked.
        """
        calls = self.chat.with_unique_ids(model_response.tool_calls)
        if self.run.show_draft is not None and self.progress is not None:
            text = self.progress(self.toolbox.tools.get(calls[0].name))
            self.run.show_draft(lambda: text)
        calling = [self.toolbox.call(call, self.run, is_prefetch=is_prefetch) for call in calls]
        results = await asyncio.gather(*calling)
        self.chat.add_results(model_response, calls, [result.text for result in results])
        for result in results:
            self.evidence.sources.update(result.sources)
            for effect in result.effects:
                if effect not in self.effects:
                    self.effects.append(effect)

    async def parse(self, model_response: LLMResponse, span: Span) -> ParseResult[T]:
        """Parse a final answer, and record the result on the spans of its request and its check."""
        checked = model_response.output
        with self.run.span.child("guard.output", "guardrail", input=checked) as guard:
            tools = self.toolbox.tools
            result = await parse_final_response(model_response, self.contract, self.evidence, tools)
            error = result.error_type
            if error == "grounding":  # only these errors are recorded on the guard span
                guard.update(output=result.error, metadata={"error_type": error}, level="WARNING")
        self.results.append(result)
        metadata = {"error_type": error, "reason": result.error} if error else None
        span.update(name="llm.answer", metadata=metadata, level="WARNING" if error else None)
        return result

    def add_feedback(self, model_response: LLMResponse, result: ParseResult[T]) -> None:
        """Show the model its invalid answer, unless it was cut off, and what is wrong with it."""
        raw = "" if result.error_type in CUT_OFF_ERRORS else strip_thoughts(model_response.content)
        self.chat.add_feedback(model_response, raw, self.contract.feedback(str(result.error)))

    async def build_response(self, outcome: Outcome, error_text: str | None) -> AgenticResponse[T]:
        """Return the response with the valid answer, else with the valid part of the last one."""
        shown = await self._result_to_show(outcome)
        if shown.is_valid and outcome not in {"answered", "stopped"}:
            outcome = "salvaged"
        answer_json = "" if shown.answer is None else self.contract.write(shown.answer)
        answer: Message = {"role": "assistant", "content": answer_json or shown.text}
        return AgenticResponse(
            text=shown.text,
            outcome=outcome,
            ledger=self.run.ledger,
            wine_ids=tuple(shown.wine_ids),
            answer=shown.answer,
            error=error_text,
            error_types=tuple(result.error_type for result in self.results if result.error_type),
            retry_count=max(0, len(self.results) - 1),
            messages=(*self.chat.added, *([answer] if shown.is_valid else [])),
            sources=self.evidence.sources,
            effects=tuple(self.effects),
        )

    async def _result_to_show(self, outcome: Outcome) -> ParseResult[T]:
        """Return the result to show to the user; its text is empty if there is nothing to show."""
        contract, evidence = self.contract, self.evidence
        if outcome == "answered":
            return self.results[-1]
        if outcome == "stopped" and (draft := self.parse_current_draft()).is_valid:
            return draft
        if outcome not in TERMINAL:
            for result in reversed(self.results):
                if part := await valid_part(contract.salvage, result.answer, contract, evidence):
                    return part
        return ParseResult("")


def system_prompt(instructions: str, contract: OutputContract[T]) -> str:
    """Append the schema of the answer to the instructions, unless they contain it already."""
    schema = contract.output.schema_text
    if contract.plain_text or schema in instructions:
        return instructions
    return f"{instructions}\n\n{SCHEMA_RULE}{schema}"
