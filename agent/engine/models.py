"""The models of a turn, asked in order, a bounded number of times each."""

import asyncio
import json
from dataclasses import dataclass
from typing import Final

from agent.engine.errors import (
    ContextTooLong,
    DeadlinePassed,
    LimitReached,
    ModelError,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
    ParameterDeclined,
    log_failure,
)
from agent.engine.messages import (
    LLM,
    Conversation,
    LLMRequest,
    LLMResponse,
    Message,
    Text,
    Usage,
    without_images,
)
from agent.engine.run import Run, Span
from agent.retrying import BACKOFF

LONGEST_WAIT_SECONDS: Final = 20.0
TOKEN_CHARS: Final = 4
"""Characters of a token, about: a request that was cut off is counted so."""


@dataclass(slots=True)
class ModelChain:
    """Every request of one question goes through here: limits, ledger, trace, tries, next model.

    A model that failed is not asked again for this question.
    """

    run: Run
    written: Text = str
    """Returns what the model has written of the current response; listeners set it."""
    _current: int = 0

    async def ask(
        self, chat: Conversation, request: LLMRequest, *, attempt: int
    ) -> tuple[LLMResponse, Span]:
        """Return one response of the first model that gives one, and its span.

        Raises LimitReached, or the ModelError of the last model.
        """
        failures = 0
        while True:
            try:
                return await self._ask_once(chat.messages, request, attempt)
            except ModelError as error:
                is_shorter = isinstance(error, ContextTooLong) and chat.shorten()
                if is_shorter or isinstance(error, ParameterDeclined):
                    continue  # the next request leaves out what the server declined
                failures += 1
                if (wait := self._seconds_to_wait(error, failures)) is not None:
                    await asyncio.sleep(wait)
                elif self._current + 1 < len(self.run.models):
                    self._current, failures = self._current + 1, 0
                    chat.drop_echoes()
                else:
                    raise

    def _seconds_to_wait(self, error: ModelError, failures: int) -> float | None:
        """Return the wait before the same model is asked again; None if it is not."""
        seconds = worth_a_wait(error)
        if seconds is False or failures >= self.run.limits.model_tries:
            return None
        wait = BACKOFF.after(failures) if seconds is True else seconds
        return wait if wait < self.run.seconds_left else None

    async def _ask_once(
        self, messages: list[Message], request: LLMRequest, attempt: int
    ) -> tuple[LLMResponse, Span]:
        """Send one request on a span of its own, and count the response."""
        run, model = self.run, self.run.models[self._current]
        if run.seconds_left <= 0:
            raise DeadlinePassed("the time of this turn is used up")
        if limit := run.ledger.exhausted(run.limits):
            raise LimitReached(f"this turn has used up its {limit}")
        run.ledger.requests += 1
        self.written = str
        parameters = {"max_tokens": request.max_tokens, "temperature": request.temperature}
        with run.span.child(
            "llm.plan",
            "generation",
            input=[*map(without_images, messages)] if run.span.recording else None,
            metadata={"step": run.ledger.requests, "attempt": attempt, "model": model.model},
            model=model.model,
            model_parameters={k: v for k, v in parameters.items() if v is not None},
            prompt=getattr(run.instructions, "ref", None),
            tools=tuple(request.tools),
        ) as span:
            response = await self._send(model, messages, request, span)
            if request.on_text is not None and run.show_draft is not None:
                run.show_draft(lambda: "")  # The whole answer is parsed at once: no draft of it.
            self._count(response, span)
        return response, span

    async def _send(
        self, model: LLM, messages: list[Message], request: LLMRequest, span: Span
    ) -> LLMResponse:
        """Send a request; if it is cut off, count about what it took until then.

        Raises DeadlinePassed if there was no response in time, ModelError if the model failed.
        """
        try:
            async with asyncio.timeout_at(self.run.deadline):
                return await model.generate_with_tools(messages, request)
        except asyncio.CancelledError:
            if request.on_text is not None:
                written, sent = self.written(), json.dumps(messages, default=str)
                usage = Usage(len(sent) // TOKEN_CHARS, len(written) // TOKEN_CHARS)
                server = model.base_url
                cut_off = LLMResponse(written, usage=usage, model=model.model, base_url=server)
                self._count(cut_off, span)
            raise
        except ModelError:
            raise
        except TimeoutError:
            raise DeadlinePassed("the time of this turn is used up") from None
        except Exception as error:  # of a model that is no LLMService
            kind = log_failure("a model failed", error)
            raise ModelRejected(f"the model failed ({kind})") from None

    def _count(self, response: LLMResponse, span: Span) -> None:
        """Add a response to the ledger, and put it onto its span."""
        costs = self.run.ledger.add(response)
        span.update(
            model=response.model or None,
            output=response.output,
            usage=response.usage,
            cost_usd=sum(costs.values()),
            costs=costs,
            metadata={"mode": response.mode} if response.mode else None,
            first_token_ns=response.first_token_ns,
        )


def worth_a_wait(error: Exception) -> bool | float:
    """Tell whether to ask the same model again, and after how many seconds if its server said."""
    if not isinstance(error, ModelUnavailable) or isinstance(error, ModelTimeout):
        return False
    wait = error.retry_after
    return True if wait is None else wait <= LONGEST_WAIT_SECONDS and wait
