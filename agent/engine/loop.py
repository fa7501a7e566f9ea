"""One turn: tools first, then the structured answer, with retries around the answer only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Generic, Literal, TypeVar

from agent.engine.contract import Evidence, OutputContract
from agent.engine.conversation import Conversation
from agent.engine.drafts import Drafts
from agent.engine.errors import AgentError, DeadlinePassed, LimitReached, ModelError, Stopped
from agent.engine.limits import Ledger
from agent.engine.messages import LLMResponse, Message, OutputSchema, ToolCall
from agent.engine.models import ModelChain, Request
from agent.engine.parsing import ParseResult, parse_response, salvage, written_calls
from agent.engine.run import Run, aside, render
from agent.engine.span import Span
from agent.engine.tools import Tool, Toolbox

R = TypeVar("R")
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

UNGROUNDED: Final = frozenset({"grounding", "degenerate"})
UNGROUNDED_RETRIES: Final = 1
"""How often an answer is sent back for what nothing grounds, if it is as good without that."""
NEEDED_A_TOOL: Final = frozenset({"tool_call_as_text", "grounding", "semantic"})
WRONG_FORM: Final = frozenset({"invalid_json", "schema", "unparsed", "truncated", "too_long"})
"""Errors after which the answer alone is asked for: in the response format, without tools."""
SCHEMA_RULE: Final = (
    "Your final answer is one JSON value that matches this JSON Schema, and nothing else: "
    "no text around it, no Markdown fence.\n{{schema}}"
)
"""How a prompt asks for a structured answer."""


@dataclass(frozen=True, slots=True)
class AgenticResponse(Generic[T]):
    """The response of a turn. `text` is empty unless it is answered, salvaged or stopped halfway.

    `wine_ids` are the ids of what the text shows.

    `messages` is what the turn added to its history: the person's message, tool calls with their
    results, and the answer as the model should have written it, if there is one. `found` is what
    its tools found.
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
        """Whether there is a text for the person."""
        return bool(self.text.strip())


async def generate_agentic_response(
    message: str,
    *,
    run: Run,
    contract: OutputContract[T],
    tools: Sequence[Tool | Callable[..., object]] | Toolbox = (),
    images: Sequence[str] = (),
    first: Sequence[ToolCall] = (),
) -> AgenticResponse[T]:
    """Answer `message` within the limits of `run`, as `contract` wants it.

    The model sees `images`, data URLs, beside it. The calls of `first` are made before it is asked,
    as if it had wanted them. Runs the tool calls the model asks for, then parses its final
    response; an invalid one is shown to the model with what is wrong, up to
    `run.limits.structured_output_max_retries` times, with what the tools returned still in the
    messages. Further models of the run are asked when the first is down. When all attempts fail the
    text is empty, or what of an answer keeps every rule.

    Requests and tool calls are steps of the run's journal. Never raises, except when cancelled; the
    run's ledger is complete even then.

    Raises:
        TypeError: the run has no model, or what is given is no contract.
    """
    require_parts(run, contract)
    run, toolbox = run.begun(), tools if isinstance(tools, Toolbox) else Toolbox(tools)
    turn = _Turn(run, contract, toolbox, message, images)
    try:
        async with run.stop.listening():
            if first:
                await turn.call_tools(LLMResponse(tool_calls=tuple(first)))
            while len(turn.attempts) <= run.limits.structured_output_max_retries:
                reply, span = await turn.ask()
                if turn.calls_tools(reply):
                    await turn.call_tools(reply)
                    continue
                attempt = await turn.check(reply, span)
                if not attempt.result.retryable or await turn.is_to_be_cut():
                    break
                turn.chat.correct(reply, attempt.result, contract.correction)
        outcome, problem = outcome_of(turn.attempts[-1].result)
    except (LimitReached, ModelError) as error:
        outcome, problem = broken_off(error, run)
    return await turn.response(outcome, problem)


class _Turn(Generic[T]):
    """The turn that is under way: what is said in it, what its tools found, its attempts."""

    def __init__(
        self,
        run: Run,
        contract: OutputContract[T],
        toolbox: Toolbox,
        message: str,
        images: Sequence[str],
    ) -> None:
        instructions = system_prompt(run.instructions, contract)
        self.chat = chat = Conversation(instructions, run.history, message, images)
        self.attempts: list[Attempt[T]] = []
        self._run, self._contract, self._toolbox = run, contract, toolbox
        self._evidence = Evidence(
            {}, chat.said_by("user"), chat.said_by("assistant"), run.instructions
        )
        self._models, self._drafts = ModelChain(run), Drafts(run, contract, self._evidence)
        self._tokens, self._request = run.limits.answer_tokens, Request()

    async def ask(self) -> tuple[LLMResponse, Span]:
        """Ask the models; what an answer that was cut off may take is more the next time."""
        run, chat = self._run, self.chat
        output = self._contract.requested(self._evidence)
        request = next_request(run, output, self._toolbox, self.attempts, self._tokens)
        temperature, heard = self._contract.temperature, self._drafts.listener
        self._request = replace(request, temperature=temperature, heard=heard)
        reply, span = await self._models.ask(chat, self._request)
        if self._request.tools and not reply.tool_calls:
            calls = written_calls(reply.content, self._toolbox.names)
            reply = replace(reply, content="", tool_calls=calls) if calls else reply
        if reply.finish_reason == "length":
            self._tokens = run.limits.raised(self._tokens)
        return reply, span

    def calls_tools(self, reply: LLMResponse) -> bool:
        """Whether a response calls tools, and was offered some."""
        return bool(reply.tool_calls and self._request.tools)

    async def call_tools(self, reply: LLMResponse) -> None:
        """Run the calls of a response, and show the model what they came to."""
        calls, cut_off = self.chat.numbered(reply.tool_calls), reply.finish_reason == "length"
        self._run.tell(calls)
        results = await self._toolbox.call_all(
            calls, self._run, step=self._models.steps, cut_off=cut_off
        )
        self.chat.add_results(reply, calls, results)
        self._evidence.add_results(results)

    async def check(self, reply: LLMResponse, span: Span) -> "Attempt[T]":
        """Hold an answer against contract and evidence."""
        names = self._toolbox.names
        parse = partial(parse_response, reply, self._contract, self._evidence, names)
        with self._run.span.child("guard.output", "guardrail") as guard:
            result = await aside(len(reply.content), parse)
        attempt = Attempt.of(reply, result, self.attempts)
        attempt.record(span, guard)
        self.attempts.append(attempt)
        return attempt

    async def is_to_be_cut(self) -> bool:
        """Whether what nothing grounds was said again, and an answer without it is as good."""
        again = sum(each.result.error_type in UNGROUNDED for each in self.attempts)
        last = self.attempts[-1]
        if again <= UNGROUNDED_RETRIES or (answer := last.result.answer) is None:
            return False
        cut = partial(salvage, answer, self._contract, self._evidence)
        left = await aside(len(last.reply.content), cut)
        kept = left.answer if left else None
        return kept is not None and self._contract.as_good(answer, kept)

    async def response(self, outcome: Outcome, problem: str | None) -> AgenticResponse[T]:
        """Make the response: the valid answer, else what can be salvaged of the newest."""
        longest = max((len(each.reply.content) for each in self.attempts), default=0)
        found = await aside(longest, partial(self._found, outcome))
        if found and outcome not in {"answered", "stopped"}:
            outcome = "salvaged"
        errors = [each.result.error_type for each in self.attempts]
        return AgenticResponse(
            text=found.text if found else "",
            outcome=outcome,
            ledger=self._run.ledger,
            wine_ids=tuple(found.wine_ids) if found else (),
            answer=found.answer if found else None,
            error=problem,
            error_types=tuple(error for error in errors if error),
            retry_count=max(0, len(self.attempts) - 1),
            models=tuple(dict.fromkeys(each.reply.model for each in self.attempts)),
            messages=(*self.chat.added, *([_said(found, self._contract)] if found else [])),
            found=self._evidence.found,
        )

    def _found(self, outcome: Outcome) -> ParseResult[T] | None:
        """What there is to answer: of a refused question nothing, of a stopped one its draft."""
        if outcome == "answered":
            return self.attempts[-1].result
        if outcome == "stopped":
            return self._drafts.result()
        if outcome in {"refusal", "content_filter"}:
            return None
        answers = (each.result.answer for each in reversed(self.attempts))
        salvaged = (salvage(each, self._contract, self._evidence) for each in answers)
        return next((each for each in salvaged if each is not None), None)


def require_parts(run: Run, contract: OutputContract[T]) -> None:
    """Raise TypeError for what a turn cannot be made of."""
    if not isinstance(contract, OutputContract):
        raise TypeError(f"contract must be like OutputContract(str), not {contract!r}")
    if not isinstance(run, Run) or not run.models:
        raise TypeError(f"run must have a model, like Run([LLMService(model=...)]), not {run!r}")


def system_prompt(instructions: str, contract: OutputContract[T]) -> str:
    """Put the schema of the answer below the instructions, if they lack it and it is no text."""
    schema = contract.output.text
    if contract.any_text or schema in instructions:
        return instructions
    return f"{instructions}\n\n{render(SCHEMA_RULE, {'schema': schema})}"


@dataclass(frozen=True, slots=True)
class Attempt(Generic[T]):
    """One answer of the model, and what it came to."""

    reply: LLMResponse
    result: ParseResult[T]

    @classmethod
    def of(
        cls, reply: LLMResponse, result: ParseResult[T], earlier: "Sequence[Attempt[T]]"
    ) -> "Attempt[T]":
        """Make an attempt; one that repeats the invalid answer before it is called degenerate."""
        repeats = earlier and reply.content.strip() and earlier[-1].reply.content == reply.content
        if repeats and result.retryable:
            result = replace(result, error_type="degenerate")
        return cls(reply, result)

    def record(self, span: Span, guard: Span) -> None:
        """Say on the spans of its generation and of its check what the answer came to."""
        error = self.result.error_type
        if error == "grounding":
            guard.update(output=self.result.error, metadata={"error_type": error}, level="WARNING")
        metadata: dict[str, Any] = {"validation_path": self.result.path}
        if error:
            metadata |= {"error_type": error, "reason": self.result.error}
        span.update(name="llm.answer", metadata=metadata, level="WARNING" if error else None)


def next_request(
    run: Run,
    output: OutputSchema | None,
    toolbox: Toolbox,
    attempts: Sequence[Attempt[T]],
    tokens: int,
) -> Request:
    """Make the next request. Requests are kept back for this attempt and its retries.

    An answer of the wrong form is asked for again by itself, without tools. A model that should
    have called a tool, and did not, is asked without a format: some servers hold it to that.
    """
    limits, ledger, number = run.limits, run.ledger, len(attempts)
    kept_back = limits.structured_output_max_retries - number + 1
    may_call = (
        ledger.tool_calls < limits.tool_calls and ledger.requests + kept_back < limits.requests
    )
    errors = [attempt.result.error_type for attempt in reversed(attempts)]
    error = next((error for error in errors if error != "degenerate"), None)
    offered = toolbox.schemas if may_call and error not in WRONG_FORM else ()
    format_in_the_way = offered and error in NEEDED_A_TOOL and ledger.tool_calls == 0
    return Request(
        tools=offered,
        output=None if format_in_the_way else output,
        max_tokens=tokens,
        attempt=number,
    )


def outcome_of(result: ParseResult[T]) -> tuple[Outcome, str | None]:
    """Name what a turn came to whose attempts came to an end by themselves, and what was wrong."""
    if result.ok:
        return "answered", result.error
    if result.error_type == "refusal":
        return "refusal", result.error
    is_filtered = result.error_type == "content_filter"
    return "content_filter" if is_filtered else "exhausted", result.error


def broken_off(error: AgentError, run: Run) -> tuple[Outcome, str]:
    """Name what a turn came to that ended so, and say why."""
    if isinstance(error, DeadlinePassed):
        return "deadline", f"the turn took longer than {run.limits.seconds:g} s"
    if isinstance(error, Stopped):
        return "stopped", str(error)
    return "limit" if isinstance(error, LimitReached) else "model_error", str(error)


def _said(found: ParseResult[T], contract: OutputContract[T]) -> Message:
    """A valid answer as a message of the history of later turns."""
    written = "" if found.answer is None else contract.write(found.answer)
    return {"role": "assistant", "content": written or found.text}
