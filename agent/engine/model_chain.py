"""The models of a turn, asked in order: bounded tries with jitter, then the next one."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypedDict, TypeVar

from agent.engine.echoes import as_sent
from agent.engine.errors import (
    AgentError,
    DeadlinePassed,
    LimitReached,
    ModelError,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
    ParameterDeclined,
)
from agent.engine.journal import NO_JOURNAL, Journal, step_seen
from agent.engine.limits import Ledger, Limits
from agent.engine.messages import LLM, LLMResponse, Message, OutputSchema, ToolSchema
from agent.engine.span import Span
from agent.engine.trace_records import Level, PromptRef

FIRST_WAIT_SECONDS: Final = 0.5
LONGEST_WAIT_SECONDS: Final = 20.0
REPLAYED: Final = {"replayed": True}
"""The metadata of a span whose step came from the journal, after an interruption of the turn."""
MAX_DECLINED: Final = 5
"""How often a model's server may decline a parameter in one request: once for each there is."""

R = TypeVar("R")
Sleep = Callable[[float], Awaitable[None]]


class Seen(TypedDict, total=False):
    """What a trace shows of a response beside what the server said; see `Span.update`."""

    name: str
    metadata: Mapping[str, Any]
    level: Level | None


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked; see `LLM.generate_with_tools`."""

    messages: Sequence[Message]
    tools: Sequence[ToolSchema] = ()
    output: OutputSchema | None = None
    max_tokens: int | None = None
    temperature: float | None = None


@dataclass(slots=True)
class Requests:
    """Every request of one turn goes through here: limits, ledger, trace, tries, fallback.

    A model that failed is not asked again in this turn. Each request is a step of the journal.
    `deadline` is in the event loop's time. `prompt` is what the messages begin with, if known.
    """

    models: Sequence[LLM]
    limits: Limits
    ledger: Ledger
    span: Span
    deadline: float
    journal: Journal = NO_JOURNAL
    prompt: PromptRef | None = None
    sleep: Sleep = asyncio.sleep
    step: int = 0
    _current: int = field(default=0)

    async def send(
        self, request: Request, *, attempt: int, read: Callable[[LLMResponse], tuple[R, Seen]]
    ) -> tuple[LLMResponse, R]:
        """One response, from the first model that gives one, and what `read` makes of it.

        `read` also says what a trace shows of the response; it is called while the span is open.

        Raises:
            LimitReached: the turn may make no further request, or its time is up.
            ModelError: no model of the turn could be asked.
        """
        tries = declined = 0
        while True:
            try:
                return await self._once(request, attempt, read)
            except ModelError as error:
                if isinstance(error, ParameterDeclined) and declined < MAX_DECLINED:
                    declined += 1
                    continue
                tries += 1
                wait = self._wait(error, tries)
                if wait is not None:
                    await self.sleep(wait)
                elif self._current + 1 < len(self.models):
                    self._current += 1
                    tries = declined = 0
                else:
                    raise

    async def _once(
        self, request: Request, attempt: int, read: Callable[[LLMResponse], tuple[R, Seen]]
    ) -> tuple[LLMResponse, R]:
        model = self.models[self._current]
        request = replace(request, messages=as_sent(request.messages, self._current))
        with self._generation(request, attempt, model) as span:
            response = self._signed(await self._ask(model, request, span))
            cost = self.ledger.add(response)
            result, seen = read(response)
            if span.recording:
                if response.mode:
                    span.update(metadata={"mode": response.mode})
                span.update(
                    model=response.model or None,
                    output=as_output(response),
                    usage=response.usage,
                    cost_usd=cost,
                    **seen,
                )
        return response, result

    def _generation(
        self, request: Request, attempt: int, model: LLM
    ) -> AbstractContextManager[Span]:
        if limit := self.ledger.exhausted(self.limits):
            raise LimitReached(f"this turn has used up its {limit}")
        self.step += 1
        recording = self.span.recording
        return self.span.child(
            "llm.plan",
            "generation",
            input=list(request.messages) if recording else None,
            metadata={"step": self.step, "attempt": attempt, "model": model.model},
        )

    async def _ask(self, model: LLM, request: Request, span: Span) -> LLMResponse:
        self.ledger.requests += 1
        span.update(model=model.model, model_parameters=parameters(request), prompt=self.prompt)
        ask = partial(
            model.generate_with_tools,
            request.messages,
            request.tools,
            output=request.output,
            max_tokens=request.max_tokens,
            temperature=request.temperature,
        )
        in_this_turn = partial(in_time, ask, self.deadline)
        response, ran = await step_seen(self.journal, "model", in_this_turn)
        if not ran:
            span.update(metadata=REPLAYED)
        if isinstance(response, AgentError):
            if isinstance(response, DeadlinePassed) and not response.asked:
                self.ledger.requests -= 1
            raise response
        return response

    def _signed(self, response: LLMResponse) -> LLMResponse:
        """A response whose echo says which model of the turn it may come back to."""
        if response.echo is None:
            return response
        return replace(response, echo=replace(response.echo, model=self._current))

    def _wait(self, error: ModelError, tries: int) -> float | None:
        """Seconds until the same model is asked again; None when it is not."""
        if isinstance(error, ModelRejected | ModelTimeout) or tries >= self.limits.model_tries:
            return None
        told = error.retry_after if isinstance(error, ModelUnavailable) else None
        wait = backoff(tries) if told is None else told
        left = self.deadline - asyncio.get_running_loop().time()
        return wait if wait <= LONGEST_WAIT_SECONDS and wait < left else None


def parameters(request: Request) -> Mapping[str, Any]:
    """What a model is told beside the messages, as a trace shows it."""
    told = {"max_tokens": request.max_tokens, "temperature": request.temperature}
    return {name: value for name, value in told.items() if value is not None}


async def in_time(
    ask: Callable[[], Awaitable[LLMResponse]], deadline: float
) -> LLMResponse | AgentError:
    """What a model answers by `deadline`; errors are returned, since a journal records values."""
    if asyncio.get_running_loop().time() >= deadline:
        return DeadlinePassed(asked=False)
    try:
        async with asyncio.timeout_at(deadline):
            return await ask()
    except ModelError as error:
        return error
    except TimeoutError:
        return DeadlinePassed()


def backoff(tries: int) -> float:
    """Seconds to wait after so many failed tries: doubled each time, with jitter of a half."""
    doubled = FIRST_WAIT_SECONDS * 2.0 ** (tries - 1)
    return doubled * random.uniform(0.5, 1.0)  # noqa: S311


def as_output(response: LLMResponse) -> object:
    """A response as an admin reads it in the trace; an invalid answer is kept raw."""
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
