"""One turn: tools first, then the structured answer, with retries around the answer only."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Generic, Literal, TypeVar

from agent.engine.contract import Evidence, OutputContract
from agent.engine.conversation import Conversation
from agent.engine.drafts import Draft, Drafts, draft_of, settled
from agent.engine.errors import AgentError, DeadlinePassed, LimitReached, ModelError, Stopped
from agent.engine.limits import Ledger
from agent.engine.messages import LLMRequest, LLMResponse, Message, ToolCall
from agent.engine.models import ModelChain
from agent.engine.parsing import ParseResult, parse_final_response, valid_part
from agent.engine.reading import without_thoughts, written_calls
from agent.engine.run import Run
from agent.engine.span import Span
from agent.engine.tools import Tool, Toolbox

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
    "stopped",
]

Progress = Callable[[Sequence[ToolCall]], str]
"""Says what calls of tools do, for the user who waits for them."""

NEEDED_A_TOOL: Final = frozenset({"tool_call_as_text", "grounding", "semantic"})
WRONG_FORM: Final = frozenset({"invalid_json", "schema", "unparsed", "truncated", "too_long"})
"""Errors after which the answer alone is asked for: in the response format, without tools."""
SCHEMA_RULE: Final = (
    "Your final answer is one JSON value that matches this JSON Schema, and nothing else: "
    "no text around it, no Markdown fence.\n"
)
"""The end of a prompt that asks for a structured answer; the schema follows."""
DECLINED: Final[Mapping[str, Outcome]] = {
    "refusal": "refusal",
    "content_filter": "content_filter",
}
"""The outcomes of questions that the model declined, by the type of error."""
OUTCOMES: Final[Sequence[tuple[type[AgentError], Outcome]]] = (
    (DeadlinePassed, "deadline"),
    (Stopped, "stopped"),
    (LimitReached, "limit"),
    (ModelError, "model_error"),
)
"""The outcomes of turns that an error ended; the first that fits."""
SECONDS_BETWEEN: Final = 0.2


@dataclass(frozen=True, slots=True)
class AgenticResponse(Generic[T]):
    """The response of a turn. `text` is empty unless it is answered, salvaged or stopped halfway.

    `wine_ids` are the ids that the text shows. `messages` are those of the turn: the user's, tool
    calls with their results, and the valid answer as JSON, if there is one. `found` holds the
    results of its tools.
    """

    text: str
    outcome: Outcome
    ledger: Ledger
    wine_ids: tuple[str, ...] = ()
    answer: T | None = None
    error: str | None = None
    error_types: tuple[str, ...] = ()
    retry_count: int = 0
    models: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    found: Mapping[str, object] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Return True if there is a text for the user."""
        return bool(self.text.strip())


async def generate_agentic_response(
    message: str,
    *,
    run: Run,
    contract: OutputContract[T],
    tools: Sequence[Tool | Callable[..., object]] | Toolbox = (),
    images: Sequence[str] = (),
    first: Sequence[ToolCall] = (),
    found: Mapping[str, object] = MappingProxyType({}),
    progress: Progress | None = None,
) -> AgenticResponse[T]:
    """Answer `message` within the limits of `run`, as `contract` wants it.

    Run the tool calls that the model asks for, then parse its final response. An invalid response
    is shown to the model with what is wrong, up to `run.limits.structured_output_max_retries`
    times; the results of the tools stay in the messages. Further models of the run are asked when
    the first is down. When all attempts fail the text is empty, or the part of an answer that
    keeps every rule.

    The model sees `images`, data URLs, beside the message. The calls of `first` are made before it
    is asked, as if it had wanted them. `found` is evidence from outside of the turn. `progress`
    words a draft for calls of tools.

    Never raises, except when cancelled; the run's ledger is complete even then.

    Raises:
        TypeError: the run has no model, or what is given is no contract.
    """
    require_parts(run, contract)
    toolbox = tools if isinstance(tools, Toolbox) else Toolbox(tools)
    run = run.begun()
    turn = _Turn(run, contract, toolbox, message, images)
    turn.evidence.found.update(found)
    try:
        async with run.stop.listening():
            if first:
                await turn.call_tools(LLMResponse(tool_calls=tuple(first)), progress)
            for _ in range(run.limits.structured_output_max_retries + 1):
                reply, span = await turn.answer_after_tools(progress)
                result = await turn.parse(reply, span)
                if result.ok or not result.retryable:
                    break
                turn.chat.add_feedback(reply, result, contract.feedback)
        outcome = "answered" if result.ok else DECLINED.get(str(result.error_type), "exhausted")
        problem = result.error
    except (LimitReached, ModelError) as error:
        outcome = next(outcome for kind, outcome in OUTCOMES if isinstance(error, kind))
        problem = str(error)
    return await turn.response(outcome, problem)


async def stream_agentic_response(
    message: str,
    *,
    run: Run,
    contract: OutputContract[T],
    tools: Sequence[Tool | Callable[..., object]] | Toolbox = (),
    images: Sequence[str] = (),
    seconds_between: float = SECONDS_BETWEEN,
) -> AsyncIterator[Draft | AgenticResponse[T]]:
    """Yield drafts of the answer, each longer or other than the one before, then the response.

    Takes what `generate_agentic_response` takes. A caller that stops listening cancels the turn.
    """
    make: Callable[[], str] = str

    def show(draft: Callable[[], str]) -> None:
        nonlocal make
        make = draft

    turn = asyncio.create_task(
        generate_agentic_response(
            message, run=replace(run, show=show), contract=contract, tools=tools, images=images
        )
    )
    shown = ""
    try:
        while not turn.done():
            await asyncio.wait([turn], timeout=seconds_between)
            if not turn.done() and (text := make()) and text != shown:
                shown = text
                yield Draft(text)
        yield await turn
    finally:
        turn.cancel()


class _Turn(Generic[T]):
    """A turn in progress: its messages, its evidence, its attempts."""

    def __init__(
        self,
        run: Run,
        contract: OutputContract[T],
        toolbox: Toolbox,
        message: str,
        images: Sequence[str],
    ) -> None:
        self.run, self.contract, self.toolbox = run, contract, toolbox
        instructions = system_prompt(str(run.instructions), contract)
        self.chat = Conversation(instructions, run.history, message, images)
        self.evidence = Evidence(
            asked=self.chat.said_by("user"), answered=self.chat.said_by("assistant")
        )
        self.models = ModelChain(run)
        self.drafts = Drafts(run, contract, self.evidence)
        self.max_tokens = run.limits.answer_tokens
        self.replies: list[LLMResponse] = []
        self.results: list[ParseResult[T]] = []

    async def answer_after_tools(self, progress: Progress | None) -> tuple[LLMResponse, Span]:
        """Ask the models, and run the tools they call, until there is a final answer.

        If an answer was truncated, the token limit is raised for the next one.
        """
        while True:
            request = self._next_request()
            reply, span = await self.models.ask(self.chat, request, attempt=len(self.results))
            if reply.finish_reason == "length":
                self.max_tokens = self.run.limits.raised(self.max_tokens)
            if not request.tools:
                return reply, span
            if not reply.tool_calls and (calls := written_calls(reply.content, self.toolbox.names)):
                reply = replace(reply, content="", tool_calls=calls)
            if not reply.tool_calls:
                return reply, span
            await self.call_tools(reply, progress)

    def _next_request(self) -> LLMRequest:
        """Return the next request. Requests are kept back for this attempt and its retries.

        After an answer of the wrong form the next request has no tools. After an answer that should
        have been a tool call it has no format: some servers hold the model to that.
        """
        limits, ledger = self.run.limits, self.run.ledger
        kept_back = limits.structured_output_max_retries - len(self.results) + 1
        may_call = (
            ledger.tool_calls < limits.tool_calls and ledger.requests + kept_back < limits.requests
        )
        errors = (result.error_type for result in reversed(self.results))
        error = next((error for error in errors if error != "degenerate"), None)
        tools = self.toolbox.schemas if may_call and error not in WRONG_FORM else ()
        format_in_the_way = tools and error in NEEDED_A_TOOL and ledger.tool_calls == 0
        return LLMRequest(
            tools=tools,
            output=None if format_in_the_way else self.contract.requested(self.evidence),
            max_tokens=self.max_tokens,
            temperature=self.contract.temperature,
            heard=self.drafts.listener,
        )

    async def call_tools(self, reply: LLMResponse, progress: Progress | None) -> None:
        """Run the calls of a response, and show the model their results."""
        calls, cut_off = self.chat.numbered(reply.tool_calls), reply.finish_reason == "length"
        if self.run.show is not None and progress is not None:
            draft = progress(calls)
            self.run.show(lambda: draft)
        results = await self.toolbox.call_all(
            calls, self.run, step=self.models.steps, cut_off=cut_off
        )
        self.chat.add_results(reply, calls, results)
        for result in results:
            self.evidence.found.update(result.found)

    async def parse(self, reply: LLMResponse, span: Span) -> ParseResult[T]:
        """Parse a final answer, and record the result on the spans of its request and its check.

        An answer that repeats the invalid one before it is degenerate.
        """
        with self.run.span.child("guard.output", "guardrail") as guard:
            names = self.toolbox.names
            result = await parse_final_response(reply, self.contract, self.evidence, names)
        before = self.replies[-1].content if self.replies else ""
        if result.retryable and before.strip() and reply.content == before:
            result = replace(result, error_type="degenerate")
        self.replies.append(reply)
        self.results.append(result)
        error = result.error_type
        if error == "grounding":
            guard.update(output=result.error, metadata={"error_type": error}, level="WARNING")
        metadata: dict[str, Any] = {"validation_path": result.path}
        if error:
            metadata |= {"error_type": error, "reason": result.error}
        span.update(name="llm.answer", metadata=metadata, level="WARNING" if error else None)
        return result

    async def response(self, outcome: Outcome, problem: str | None) -> AgenticResponse[T]:
        """Make the response: the valid answer, else the part of the newest that is valid."""
        found = await self._usable(outcome)
        if found and outcome not in {"answered", "stopped"}:
            outcome = "salvaged"
        errors = (result.error_type for result in self.results)
        answers = [_as_message(found, self.contract)] if found else []
        return AgenticResponse(
            text=found.text if found else "",
            outcome=outcome,
            ledger=self.run.ledger,
            wine_ids=tuple(found.wine_ids) if found else (),
            answer=found.answer if found else None,
            error=problem,
            error_types=tuple(error for error in errors if error),
            retry_count=max(0, len(self.results) - 1),
            models=tuple(dict.fromkeys(reply.model for reply in self.replies)),
            messages=(*self.chat.added, *answers),
            found=self.evidence.found,
        )

    async def _usable(self, outcome: Outcome) -> ParseResult[T] | None:
        """Return the result to show: none of a refused question, the draft of a stopped one."""
        if outcome == "answered":
            return self.results[-1]
        if outcome == "stopped":
            return self.drafts.result()
        if outcome in {"refusal", "content_filter"}:
            return None
        for reply, result in zip(reversed(self.replies), reversed(self.results), strict=True):
            answer, keep = self._answer_in(reply, result), self.contract.salvage
            if kept := await valid_part(keep, answer, self.contract, self.evidence):
                return kept
        return None

    def _answer_in(self, reply: LLMResponse, result: ParseResult[T]) -> T | None:
        """Return the answer of an attempt; of one that was cut off the part that is whole."""
        if result.error_type != "truncated":
            return result.answer
        begun = settled(without_thoughts(reply.content))
        draft = draft_of(begun, self.contract, self.evidence)
        return draft.answer if draft else None


def require_parts(run: Run, contract: OutputContract[T]) -> None:
    """Raise TypeError for a run without a model, or for no contract."""
    if not isinstance(contract, OutputContract):
        raise TypeError(f"contract must be like OutputContract(str), not {contract!r}")
    if not isinstance(run, Run) or not run.models:
        raise TypeError(f"run must have a model, like Run([LLMService(model=...)]), not {run!r}")


def system_prompt(instructions: str, contract: OutputContract[T]) -> str:
    """Put the schema of the answer below the instructions, if they lack it and it is no text."""
    schema = contract.output.text
    if contract.any_text or schema in instructions:
        return instructions
    return f"{instructions}\n\n{SCHEMA_RULE}{schema}"


def _as_message(found: ParseResult[T], contract: OutputContract[T]) -> Message:
    """Return a valid answer as a message of the history of later turns."""
    written = "" if found.answer is None else contract.write(found.answer)
    return {"role": "assistant", "content": written or found.text}
