"""Run one turn: first the tools, then the structured answer. Only the answer is retried."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

from agent.engine.contract import Evidence, OutputContract, Source
from agent.engine.current_draft import CurrentDraft
from agent.engine.errors import (
    LimitReached,
    ModelError,
    ResponseOutcome,
    ResponseProblem,
)
from agent.engine.messages import (
    Conversation,
    LLMRequest,
    LLMResponse,
    Message,
    ToolCall,
    Written,
)
from agent.engine.models import ModelChain
from agent.engine.parsing import (
    TERMINAL,
    ParseResult,
    find_valid_part,
    parse_final_response,
    parse_written,
)
from agent.engine.response_text import find_tool_calls, strip_thoughts
from agent.engine.run import Run, Span, Usage
from agent.engine.tools import Tool, Toolbox

T = TypeVar("T")

FORM_ERRORS: Final = frozenset(
    {
        ResponseProblem.INVALID_JSON,
        ResponseProblem.SCHEMA,
        ResponseProblem.UNPARSED,
        ResponseProblem.TRUNCATED,
        ResponseProblem.TOO_LONG,
    }
)
"""The errors in the form of an answer. A response format helps to avoid them."""
CUT_REASON: Final = "ungrounded text was cut; guard.output has it"
"""The reason in the trace if an answer was shown without some of its text."""
SCHEMA_RULE: Final = (
    "Your final answer is one JSON value that matches this JSON Schema, and nothing else: "
    "no text around it, no Markdown fence.\n"
)
"""The end of a prompt that asks for a structured answer. The schema follows it."""


@dataclass(frozen=True, slots=True)
class Prefetch:
    """The material that a turn has before the model is asked."""

    calls: Sequence[ToolCall] = ()
    """The tool calls to run as if the model had made them."""
    sources: Mapping[str, Source] = field(default_factory=dict)
    """Evidence, by id, like the sources that tools return."""


NOTHING_PREFETCHED: Final = Prefetch()


@dataclass(frozen=True, slots=True)
class AgenticResponse(Generic[T]):
    """The response of a turn."""

    text: str
    """The text for the user.

    It is empty unless the outcome is answered, salvaged, or stopped with a draft. It is also empty
    if `answer` ends the turn by itself (`OutputContract.ends_turn`).
    """
    outcome: ResponseOutcome
    usage: Usage
    answer: T | None = None
    """The typed answer, or None if there is none, as for a draft of plain text."""
    error: str | None = None
    """The reason why the turn ended, or the fault of the last attempt, or None."""
    error_types: tuple[str, ...] = ()
    """The types of the errors of all attempts, in order."""
    retry_count: int = 0
    messages: tuple[Message, ...] = ()
    """The messages that the turn adds to the history.

    They are the user's, tool calls with their results, and the valid answer as JSON.
    """
    sources: Mapping[str, Source] = field(default_factory=dict)
    """The evidence of the tools, by id."""
    effects: tuple[object, ...] = ()
    """The effects that tools ask for, in the order of their calls. Equal ones are listed once."""

    @property
    def has_text(self) -> bool:
        """Return whether there is a text, including a salvaged or stopped answer."""
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
    tools: Sequence[Tool] = (),
    images: Sequence[str] = (),
    prefetch: Prefetch = NOTHING_PREFETCHED,
) -> AgenticResponse[T]:
    """Answer `message` within the limits of `run`, as `contract` requires.

    Run the tool calls that the model asks for, then parse its final response. If that is invalid,
    show the model its response and the error, and ask again, up to
    `run.limits.structured_output_max_retries` times; the results of the tools stay in the messages.
    If a model is down, ask the next model of the run. If all attempts fail, return the valid part
    of an answer, or an empty text. `images` are data URLs that the model sees with the message.

    Errors of models and limits become outcomes. The usage of the run counts requests, calls, tokens
    and cost. The usage is complete even if this coroutine is cancelled.

    Raises:
        TypeError: `run` has no model.
    """
    if not isinstance(run, Run) or not run.models:
        raise TypeError(
            f"run must have a model, like Run([LLMService(model=...)]), not {run!r}"
        )
    instructions = write_system_prompt(str(run.instructions), contract)
    chat = Conversation(instructions, run.history, message, images)
    turn = _Turn(run.with_deadline(), contract, tools, chat)
    try:
        async with run.stop.watch():  # raises LimitReached when the user stops the turn
            await turn.prefetch(prefetch)
            attempts = 1 + max(0, run.limits.structured_output_max_retries)
            for _ in range(attempts):
                model_response, span = await turn.answer_after_tools()
                result = await turn.parse(model_response, span)
                if result.ok or not result.retryable:
                    break
                turn.add_feedback(model_response, result)
        return await turn.build_response(result.outcome, result.error)
    except (LimitReached, ModelError) as error:
        return await turn.build_response(error.outcome, str(error))


async def stream_agentic_response(
    message: str,
    *,
    run: Run,
    contract: OutputContract[T],
    tools: Sequence[Tool] = (),
    images: Sequence[str] = (),
    prefetch: Prefetch = NOTHING_PREFETCHED,
    interval_seconds: float = 0.2,
) -> AsyncIterator[Draft | AgenticResponse[T]]:
    """Yield a draft of the answer whenever its text has changed, then the response.

    The arguments are those of `generate_agentic_response`. If the caller stops iterating, the turn
    is cancelled.
    """
    draft = run.draft or CurrentDraft()
    turn = asyncio.create_task(
        generate_agentic_response(
            message,
            run=replace(run, draft=draft),
            contract=contract,
            tools=tools,
            images=images,
            prefetch=prefetch,
        )
    )
    try:
        async for text in draft.changes(turn, interval_seconds):
            yield Draft(text)
        yield await turn
    finally:
        turn.cancel()
        await asyncio.wait([turn])


class _Turn(Generic[T]):
    """A turn in progress, with its messages, evidence, effects and attempts."""

    def __init__(
        self,
        run: Run,
        contract: OutputContract[T],
        tools: Sequence[Tool],
        chat: Conversation,
    ) -> None:
        self.run = run
        self.contract = contract
        self.chat = chat
        self.toolbox = Toolbox(tools).offered_in(run)
        self.evidence = Evidence(
            user_texts=chat.texts_by("user"),
            assistant_texts=chat.texts_by("assistant"),
        )
        self.effects: list[object] = []
        self.model_chain = ModelChain(run)
        self.written = Written()
        """The text of the response that a model is writing."""
        self.max_tokens = run.limits.answer_tokens
        self.results: list[ParseResult[T]] = []
        """The results of the attempts so far."""

    async def prefetch(self, prefetch: Prefetch) -> None:
        """Add the sources and run the calls that precede the first request."""
        self.evidence.sources.update(prefetch.sources)
        if prefetch.calls:
            response = LLMResponse(tool_calls=tuple(prefetch.calls))
            await self.call_tools(response, is_prefetch=True)

    async def answer_after_tools(self) -> tuple[LLMResponse, Span]:
        """Ask the models, and run the tools they call, until there is a final answer.

        Return the answer and the span of its request.
        """
        while True:
            request = self._prepare_request()
            attempt = len(self.results)
            model_response, span = await self.model_chain.ask(
                self.chat, request, attempt=attempt
            )
            if model_response.finish_reason == "length":
                self._raise_token_limit()
            if not request.tools:  # without tools, every response is final
                return model_response, span
            if not model_response.tool_calls:
                model_response = self._read_calls_in_text(model_response)
            if not model_response.tool_calls:
                return model_response, span
            await self.call_tools(model_response)

    def _prepare_request(self) -> LLMRequest:
        """Return the next request. If a draft is shown, it follows the response to this request.

        Every kind of error is retried in the same way (R-007). The request only says whether the
        last answer had an error of form, for servers that do not take tools and a response format
        together (`Dialect`).
        """
        needs_form = False
        if self.results:
            needs_form = self.results[-1].error_type in FORM_ERRORS
        return LLMRequest(
            tools=[tool.openai_schema for tool in self._offered_tools()],
            output=self.contract.output_format(self.evidence),
            needs_form=needs_form,
            max_tokens=self.max_tokens,
            temperature=self.contract.temperature,
            written=self._begin_draft(),
        )

    def _offered_tools(self) -> Sequence[Tool]:
        """Return the tools, or none if the remaining requests are needed for answers.

        This attempt and each of its retries need one request.
        """
        limits = self.run.limits
        if self.run.usage.tool_calls >= limits.tool_calls:
            return ()
        retries_left = limits.structured_output_max_retries - len(self.results)
        needed_for_answers = 1 + retries_left
        if self.run.requests_left <= needed_for_answers:
            return ()
        return list(self.toolbox.tools.values())

    def _begin_draft(self) -> Written | None:
        """Let the draft follow the next response.

        Return the text that the model keeps up to date for the draft, or None if no draft is shown.
        """
        if self.run.draft is None or not self.contract.is_drafted:
            return None
        self.run.draft.follow(self.written, self.contract, self.evidence)
        return self.written

    def _raise_token_limit(self) -> None:
        """Double the token limit of the next response, up to the ceiling of the run."""
        doubled = 2 * self.max_tokens
        raised = min(doubled, self.run.limits.answer_tokens_ceiling)
        # A ceiling below the current limit does not lower it.
        self.max_tokens = max(self.max_tokens, raised)

    def _read_calls_in_text(self, model_response: LLMResponse) -> LLMResponse:
        """Return a response with the tool calls that its text consists of, or else unchanged."""
        calls = find_tool_calls(model_response.content, self.toolbox.tools)
        if not calls:
            return model_response
        return replace(model_response, content="", tool_calls=calls)

    async def call_tools(
        self, model_response: LLMResponse, *, is_prefetch: bool = False
    ) -> None:
        """Run the calls of a response, and collect their messages, evidence and effects.

        `is_prefetch` marks calls that are made before the model is asked.
        """
        calls = self.chat.give_unique_ids(model_response.tool_calls)
        self._show_progress(calls[0])
        coroutines = [
            self.toolbox.call(call, self.run, is_prefetch=is_prefetch) for call in calls
        ]
        results = await asyncio.gather(*coroutines)
        texts = [result.text for result in results]
        self.chat.add_results(model_response, calls, texts)
        for result in results:
            self.evidence.sources.update(result.sources)
            for effect in result.effects:
                if effect not in self.effects:
                    self.effects.append(effect)

    def _show_progress(self, call: ToolCall) -> None:
        """Show in the draft that a tool is at work."""
        if self.run.draft is None:
            return
        progress_name = ""
        if call.name in self.toolbox.tools:  # the model may have made the name up
            progress_name = self.toolbox.tools[call.name].progress_name
        self.run.draft.show_call(progress_name)

    async def parse(self, model_response: LLMResponse, span: Span) -> ParseResult[T]:
        """Parse a final answer, and record the result on the spans of its request and its check."""
        checked = model_response.output
        with self.run.span.child("guard.output", "guardrail", input=checked) as guard:
            result = await parse_final_response(
                model_response,
                self.contract,
                self.evidence,
                self.toolbox.tools,
                is_retry=bool(self.results),
            )
            _record_verdict(guard, result)
        self.results.append(result)
        span.update(name="llm.answer")
        if result.error_type:
            reason = result.error or CUT_REASON
            metadata = {"error_type": result.error_type, "reason": reason}
            span.update(metadata=metadata, level="WARNING")
        return result

    def add_feedback(self, model_response: LLMResponse, result: ParseResult[T]) -> None:
        """Show the model its invalid answer, however it ended, and what is wrong with it (R-002).

        The model's reasoning is left out, because servers drop or refuse it in earlier messages.
        """
        invalid_answer = strip_thoughts(model_response.content)
        feedback = self.contract.write_feedback(str(result.error))
        self.chat.add_feedback(model_response, invalid_answer, feedback)

    async def build_response(
        self, outcome: ResponseOutcome, error_text: str | None
    ) -> AgenticResponse[T]:
        """Return the response with the valid answer, or else with a valid part of an answer."""
        shown = await self._result_to_show(outcome)
        if shown.ok and outcome != "answered":
            self._record_cuts(shown)
            if outcome != "stopped":
                outcome = "salvaged"
        return AgenticResponse(
            text=shown.text,
            outcome=outcome,
            usage=self.run.usage,
            answer=shown.answer,
            error=error_text,
            error_types=self._error_types(shown),
            retry_count=max(0, len(self.results) - 1),
            messages=self._messages_to_store(shown),
            sources=self.evidence.sources,
            effects=tuple(self.effects),
        )

    async def _result_to_show(self, outcome: ResponseOutcome) -> ParseResult[T]:
        """Return the result to show to the user. Its text is empty if there is nothing to show."""
        contract = self.contract
        evidence = self.evidence
        if outcome == "answered":
            return self.results[-1]
        if outcome == "stopped":
            draft = parse_written(self.written, contract, evidence)
            if draft.ok:
                return draft
        if outcome in TERMINAL.values():
            return ParseResult("")  # after a refusal, no earlier answer is shown either
        for result in reversed(self.results):
            part = await find_valid_part(result.answer, contract, evidence)
            if part is not None:
                return part
        return ParseResult("")

    def _record_cuts(self, shown: ParseResult[T]) -> None:
        """Record what a salvaged or stopped answer lost, because no attempt has recorded it."""
        if shown.cuts:
            with self.run.span.child("guard.output", "guardrail") as guard:
                _record_verdict(guard, shown)

    def _error_types(self, shown: ParseResult[T]) -> tuple[str, ...]:
        """Return the types of the errors of all attempts, and of what is shown."""
        error_types = [result.error_type for result in self.results]
        if shown.error_type not in error_types:
            error_types.append(shown.error_type)
        return tuple(error_type for error_type in error_types if error_type)

    def _messages_to_store(self, shown: ParseResult[T]) -> tuple[Message, ...]:
        """Return the messages that the turn adds to the history. The answer is the last."""
        messages = self.chat.added
        if shown.ok:
            content = shown.text
            if shown.answer is not None:
                content = self.contract.write(shown.answer)
            messages.append({"role": "assistant", "content": content})
        return tuple(messages)


def _record_verdict(guard: Span, result: ParseResult[T]) -> None:
    """Record on the span of a check what the check found: nothing, an error, or texts to cut."""
    error_type = result.error_type
    if error_type is ResponseProblem.GROUNDING:
        guard.update(metadata={"error_type": error_type}, level="WARNING")
    if result.cuts:
        guard.update(output={"cut": list(result.cuts)})
    elif error_type is ResponseProblem.GROUNDING:
        guard.update(output=result.error)
    elif error_type:
        guard.update(output=f"there was no answer to check: {error_type}")
    else:
        guard.update(output="grounded")


def write_system_prompt(instructions: str, contract: OutputContract[T]) -> str:
    """Return the instructions with the schema of the answer, which they may contain already."""
    schema = contract.output.schema_text
    if contract.is_plain_text or schema in instructions:
        return instructions
    return f"{instructions}\n\n{SCHEMA_RULE}{schema}"
