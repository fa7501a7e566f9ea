"""The messages of a turn, and the models asked with them in order, a bounded number of times each.

Messages have a form that every server accepts: each call's id answered once. At most one pair of
invalid response and feedback travels: what attempt 5 sends is no longer than what attempt 2 sent.
What a server wants back beside a message of its own model's (an echo) travels within the turn
only, and only to the model that said it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, Final

from agent.engine.errors import (
    AgentError,
    ContextTooLong,
    DeadlinePassed,
    ModelError,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
    ParameterDeclined,
    log_failure,
    retry,
)
from agent.engine.feedback import feedback
from agent.engine.messages import (
    LLM,
    Echo,
    LLMResponse,
    Message,
    OutputSchema,
    ToolCall,
    ToolSchema,
    Usage,
    api_name,
    with_images,
)
from agent.engine.parsing import ParseResult, without_thoughts
from agent.engine.run import Run
from agent.engine.span import Span
from agent.engine.streaming import Heard, Text
from agent.engine.tools import ToolResult, json_object
from agent.text import pattern, truncate_at_boundary

ECHO: Final = "echo"
"""Where a message of a conversation keeps its echo; it is sent to nobody."""

DROPPED: Final = frozenset({"truncated", "interrupted"})
"""Errors of a response that the model is not shown again."""

SHORT_RESULT: Final = 400
"""Characters of a tool's result that are not cut further."""
TOKEN_BYTES: Final = 3
"""Bytes of a token, at least about: English has four, other languages and JSON fewer."""

CALL_ID: Final = pattern(r"[a-zA-Z0-9_.:-]{1,40}")
"""What OpenAI accepts as an id: no more than 40 characters."""


class Conversation:
    """Instructions, what was said before, a person's message, and what came of it."""

    def __init__(
        self,
        instructions: str,
        history: Sequence[Message],
        message: str,
        images: Sequence[str] = (),
    ) -> None:
        asked: Message = {"role": "user", "content": message}
        self.messages: list[Message] = [
            {"role": "system", "content": instructions},
            *history,
            asked,
        ]
        self._began, self._images = len(history) + 1, images
        self._pair_at: int | None = None
        self._ids = {call["id"] for each in self.messages for call in each.get("tool_calls") or ()}

    def said_by(self, role: str) -> list[str]:
        """List what was written in a role: an answer may repeat the names and numbers of people."""
        written = (each["content"] for each in self.messages if each.get("role") == role)
        return [str(each) for each in written if each]

    @property
    def added(self) -> list[Message]:
        """What the turn added: the person's message, tool calls and their results."""
        pair = range(self._pair_at, self._pair_at + 2) if self._pair_at is not None else ()
        kept = [
            each for at, each in enumerate(self.messages) if at >= self._began and at not in pair
        ]
        return [_plain(each) for each in kept]

    def as_sent(self, model: int) -> list[Message]:
        """Make the messages as the turn's model at this place is sent them, with the images."""
        sent = [_sent(each, model) if ECHO in each else each for each in self.messages]
        if self._images:
            sent[self._began] = with_images(sent[self._began], self._images)
        return sent

    def fit(self, tokens: int) -> None:
        """Leave out what was said longest ago until the messages take `tokens` at most, about.

        The instructions, the person's message and what came of it stay.
        """
        while self._began > 1 and sum(map(tokens_of, self.messages)) > tokens:
            self._without_oldest(1)

    def shorten(self) -> bool:
        """Leave out half of what was said before, else half of each tool result; False if none."""
        if self._began > 1:
            self._without_oldest((self._began + 1) // 2)
            return True
        long = [each for each in self.messages if each.get("role") == "tool"]
        long = [each for each in long if len(each["content"]) > SHORT_RESULT]
        for each in long:
            each["content"] = truncate_at_boundary(each["content"], len(each["content"]) // 2)
        return bool(long)

    def _without_oldest(self, count: int) -> None:
        """Drop messages behind the instructions; what follows begins with a person's."""
        count = min(count, self._began - 1)
        while count < self._began - 1 and self.messages[count + 1].get("role") != "user":
            count += 1
        del self.messages[1 : count + 1]
        self._began -= count
        if self._pair_at is not None:
            self._pair_at -= count

    def numbered(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        """Replace ids of calls that are odd or taken, so that each is answered exactly once."""
        unique = []
        for call in calls:
            usable = CALL_ID.fullmatch(call.id) and call.id not in self._ids
            name = call.id if usable else self._free_id()
            self._ids.add(name)
            unique.append(replace(call, id=name))
        return unique

    def _free_id(self) -> str:
        """An id that is not taken, of nine letters and digits: some servers accept no other."""
        ids = (f"call{number:05}" for number in count(len(self._ids)))
        return next(each for each in ids if each not in self._ids)

    def add_results(
        self, response: LLMResponse, calls: Sequence[ToolCall], results: Sequence[ToolResult]
    ) -> None:
        """Append a response that called tools, and what each of its calls came to, in order."""
        said = {
            "role": "assistant",
            "content": response.content,
            "tool_calls": [*map(_wire, calls)],
        }
        self.messages.append(_noted(said, response.echo))
        self.messages += [
            {"role": "tool", "tool_call_id": call.id, "content": result.text or "(no result)"}
            for call, result in zip(calls, results, strict=True)
        ]

    def correct(self, response: LLMResponse, result: ParseResult[Any], wording: str) -> None:
        """Show the model its invalid response and what is wrong with it, in place of the last.

        The echo goes back with it once tools were called: then its server may miss it.
        """
        if self._pair_at is not None:
            del self.messages[self._pair_at : self._pair_at + 2]
        self._pair_at = len(self.messages)
        said, told = feedback(
            "" if result.error_type in DROPPED else without_thoughts(response.content),
            result.error or "the answer is empty",
            repeated=result.error_type == "degenerate",
            wording=wording,
        )
        after_tools = any(each.get("role") == "tool" for each in self.messages)
        self.messages += [_noted(said, response.echo if after_tools else None), told]


def tokens_of(message: Message) -> int:
    """Estimate what a message takes of a model's context; rather too much than too little."""
    calls = json.dumps(message["tool_calls"]) if message.get("tool_calls") else ""
    return len(f"{message.get('content')}{calls}".encode("utf-8", "replace")) // TOKEN_BYTES + 4


def _noted(message: Message, echo: Echo | None) -> Message:
    return message | {ECHO: echo} if echo else message


def _plain(message: Message) -> Message:
    return {name: value for name, value in message.items() if name != ECHO}


def _sent(message: Message, model: int) -> Message:
    echo: Echo = message[ECHO]
    plain = _plain(message)
    if echo.model != model:
        return plain
    if calls := plain.get("tool_calls"):
        plain["tool_calls"] = [
            {**call, **more} for call, more in zip(calls, echo.calls, strict=True)
        ]
    return {**plain, **echo.message}


def _wire(call: ToolCall) -> dict[str, Any]:
    """A call as it goes back: a name or arguments that are none are a 400 with some servers."""
    function = {
        "name": api_name(call.name) or "unknown",
        "arguments": _arguments(call.arguments),
    }
    return {"id": call.id, "type": "function", "function": function}


def _arguments(text: str) -> str:
    try:
        return text if json_object(text) else "{}"
    except ValueError:
        return "{}"


LONGEST_WAIT_SECONDS: Final = 20.0
TOKEN_CHARS: Final = 4
"""Characters of a token, about: what was cut off is counted so."""
MAX_DECLINED: Final = 7
"""How often a model's server may decline a parameter in one request: once for each there is."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked beside the messages, see `LLM.generate_with_tools`; and for which attempt.

    With `heard` the answer is streamed by models that can.
    """

    tools: Sequence[ToolSchema] = ()
    output: OutputSchema | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    attempt: int = 0
    heard: Heard | None = None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What a model is told beside the messages, as a trace shows it."""
        told = {"max_tokens": self.max_tokens, "temperature": self.temperature}
        return {name: value for name, value in told.items() if value is not None}


@dataclass(slots=True)
class ModelChain:
    """Every request of one question goes through here: limits, ledger, trace, tries, next model.

    A model that failed is not asked again for this question. Each request is a step of the journal.
    """

    run: Run
    steps: int = 0
    _current: int = field(default=0)

    async def ask(self, chat: Conversation, request: Request) -> tuple[LLMResponse, Span]:
        """Get one response from the first model that gives one; its span may be added to.

        Raises:
            LimitReached: the turn may make no further request, or its time is up.
            ModelError: no model of the turn could be asked.
        """
        while True:
            try:
                return await retry(
                    partial(self._ask_current, chat, request),
                    tries=self.run.limits.model_tries,
                    on=worth_a_wait,
                    until=self.run.deadline,
                )
            except ModelError:
                if self._current + 1 == len(self.run.models):
                    raise
                self._current += 1

    async def _ask_current(self, chat: Conversation, request: Request) -> tuple[LLMResponse, Span]:
        """Ask the current model; what it declines is left out: a parameter, the oldest messages."""
        for _ in range(MAX_DECLINED):
            try:
                return await self._ask_once(chat, request)
            except ParameterDeclined:
                continue
            except ContextTooLong:
                if not chat.shorten():
                    raise
        return await self._ask_once(chat, request)

    async def _ask_once(self, chat: Conversation, request: Request) -> tuple[LLMResponse, Span]:
        run, model = self.run, self.run.models[self._current]
        run.require_request()
        self.steps += 1
        if room := getattr(model, "context_tokens", None):
            offered = json.dumps([each.wire for each in request.tools])
            chat.fit(room - (request.max_tokens or 0) - len(offered) // TOKEN_BYTES)
        messages = chat.as_sent(self._current)
        with run.span.child(
            "llm.plan",
            "generation",
            input=run.shown(messages) if run.span.recording else None,
            metadata={"step": self.steps, "attempt": request.attempt, "model": model.model},
        ) as span:
            run.ledger.requests += 1
            span.update(
                model=model.model,
                model_parameters=request.parameters,
                prompt=run.prompt,
                tools=tuple(each.wire for each in request.tools) if span.recording else (),
            )
            response = await self._step(messages, request, span)
            self._count(response, span)
        return self._signed(response), span

    def _count(self, response: LLMResponse, span: Span) -> None:
        """Put what a request brought back, and took, into the ledger and onto its span."""
        costs = self.run.ledger.add(response)
        if span.recording:
            span.update(
                model=response.model or None,
                output=as_output(response),
                usage=response.usage,
                cost_usd=sum(costs.values()),
                costs=costs,
                metadata={"mode": response.mode} if response.mode else None,
                first_token_ns=response.first_token_ns,
            )

    async def _step(self, messages: Sequence[Message], request: Request, span: Span) -> LLMResponse:
        """Send a request, which is a step of the journal; an error that is recorded is raised."""
        model, written = self.run.models[self._current], Written(request.heard)
        send = partial(
            model.generate_with_tools,
            messages,
            request.tools,
            output=request.output,
            max_tokens=request.max_tokens,
            temperature=request.temperature,
            **(
                {"heard": written.begun}
                if request.heard and getattr(model, "streams", False)
                else {}
            ),
        )

        async def answered() -> LLMResponse | AgentError:
            answer = await answered_by(self.run.deadline, send)
            if request.heard and self.run.show is not None:
                self.run.show(lambda: "")  # What is whole is judged at once: no draft of it.
            return answer

        try:
            response = await self.run.step("model", answered, span)
        except asyncio.CancelledError:
            if request.heard:
                self._count(written.cut_off(messages, model), span)
            raise
        if isinstance(response, DeadlinePassed) and not response.asked:
            self.run.ledger.requests -= 1
        if isinstance(response, AgentError):
            raise response
        return response

    def _signed(self, response: LLMResponse) -> LLMResponse:
        """A response whose echo says which model of the turn it may come back to."""
        if response.echo is None:
            return response
        return replace(response, echo=replace(response.echo, model=self._current))


@dataclass(slots=True)
class Written:
    """What a model has written of an answer that may be cut off; handed on to `heard`."""

    heard: Heard | None
    text: Text = lambda: ""

    def begun(self, text: Text) -> None:
        """Hear what a model begins to write."""
        self.text = text
        if self.heard is not None:
            self.heard(text)

    def cut_off(self, messages: Sequence[Message], model: LLM) -> LLMResponse:
        """Make the response of a request that was cut off; its server says not what it took."""
        asked, written = json.dumps(messages, default=str), self.text()
        used = Usage(len(asked) // TOKEN_CHARS, len(written) // TOKEN_CHARS)
        return LLMResponse(
            written,
            finish_reason="cut_off",
            usage=used,
            model=model.model,
            base_url=getattr(model, "base_url", None),
        )


def worth_a_wait(error: Exception) -> bool | float:
    """Tell whether to ask the same model again, and after how many seconds if its server said."""
    if not isinstance(error, ModelError) or isinstance(error, ModelRejected | ModelTimeout):
        return False
    told = error.retry_after if isinstance(error, ModelUnavailable) else None
    return True if told is None else told <= LONGEST_WAIT_SECONDS and told


async def answered_by(
    deadline: float | None, send: Callable[[], Awaitable[LLMResponse]]
) -> LLMResponse | AgentError:
    """Return what a model answers by `deadline`, errors too: a journal records values."""
    if deadline is not None and asyncio.get_running_loop().time() >= deadline:
        return DeadlinePassed(asked=False)
    try:
        async with asyncio.timeout_at(deadline):
            return await send()
    except ModelError as error:
        return error
    except TimeoutError:
        return DeadlinePassed()
    except Exception as error:  # a model of somebody else's
        kind = log_failure("a model failed", error)
        return ModelRejected(f"the model failed ({kind})")


def as_output(response: LLMResponse) -> object:
    """Show a response as an admin reads it in the trace; an invalid answer is kept raw."""
    if not response.tool_calls:
        return response.refusal if response.refusal is not None else response.content
    calls = [
        {"name": call.name, "arguments": _read_arguments(call.arguments)}
        for call in response.tool_calls
    ]
    return {"content": response.content, "tool_calls": calls}


def _read_arguments(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
