"""The models of a turn, asked in order: bounded tries with jitter, then the next one."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from agent.engine.conversation import TOKEN_BYTES, Conversation
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
from agent.engine.messages import LLM, LLMResponse, Message, OutputSchema, ToolSchema, Usage
from agent.engine.run import Run
from agent.engine.span import Span
from agent.engine.streaming import Heard, Text

LONGEST_WAIT_SECONDS: Final = 20.0
TOKEN_CHARS: Final = 4
"""Characters of a token, about: what was cut off is counted so."""
MAX_DECLINED: Final = 6
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
        {"name": call.name, "arguments": _arguments(call.arguments)} for call in response.tool_calls
    ]
    return {"content": response.content, "tool_calls": calls}


def _arguments(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
