"""Ask the models of a turn in order, each a limited number of times, and count what they cost."""

import asyncio
import ipaddress
import json
import logging
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeGuard
from urllib.parse import urlsplit

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
    TokenUsage,
    Written,
    without_images,
)
from agent.engine.run import Price, Run, Span
from agent.servers import BACKOFF
from agent.text import pattern

log = logging.getLogger(__name__)

LONGEST_WAIT_SECONDS: Final = 20.0
MILLION: Final = 1_000_000
HALF_HOUR_SECONDS: Final = 1800
TOKEN_CHARS: Final = 4  # the usual length of a token, for requests that were cut off
VERSION: Final = pattern(r"(?s)(?:-(?:v?\d|latest).*)?")
"""The rest of a name with which it is still the same model: nothing, a date or a version."""
LOCAL_HOSTS: Final = (".local", ".internal", ".lan", ".home.arpa", ".localhost")
FREE: Final = Price(prompt=0, completion=0)
UNKNOWN: Final = Price(prompt=5, completion=25)
"""The assumed price of an unknown model, which is high: a limit should stop early, not never."""


@dataclass(slots=True)
class ModelChain:
    """Sends the requests of a turn: limits, usage, trace, tries, and the next model.

    A model that failed is not asked again in this turn.
    """

    run: Run
    _current: int = 0

    async def ask(
        self, chat: Conversation, request: LLMRequest, *, attempt: int
    ) -> tuple[LLMResponse, Span]:
        """Return a response and its span, or raise LimitReached or the error of the last model."""
        failures = 0
        while True:
            try:
                return await self._ask_once(chat.messages, request, attempt)
            except ModelError as error:
                if isinstance(error, ContextTooLong) and chat.shorten():
                    continue  # the next request has less of the history
                if isinstance(error, ParameterDeclined):
                    continue  # the next request leaves out the parameter that the server declined
                failures += 1
                wait = self._seconds_to_wait(error, failures)
                if wait is not None:
                    await asyncio.sleep(wait)
                    continue
                if self._current + 1 == len(self.run.models):
                    raise
                self._current += 1
                failures = 0
                chat.drop_echoes()

    def _seconds_to_wait(self, error: ModelError, failures: int) -> float | None:
        """Return the seconds until the same model is asked again, or None if it is not asked."""
        if not is_worth_a_retry(error) or failures >= self.run.limits.model_tries:
            return None
        wait = error.retry_after
        if wait is None:
            wait = BACKOFF.draw_wait(failures)
        if wait >= self.run.seconds_left:
            return None
        return wait

    async def _ask_once(
        self, messages: list[Message], request: LLMRequest, attempt: int
    ) -> tuple[LLMResponse, Span]:
        """Send one request on a span of its own, and count the response."""
        run = self.run
        model = run.models[self._current]
        if run.seconds_left <= 0:
            raise DeadlinePassed("the time of this turn is used up")
        limit = run.usage.exhausted(run.limits)
        if limit is not None:
            raise LimitReached(f"this turn has used up its {limit}")
        run.usage.requests += 1
        if request.written is not None:  # the text is that of the try before
            request.written.clear()
        parameters = _recorded_parameters(request)
        recorded_messages = None
        if run.span.recording:
            recorded_messages = [without_images(message) for message in messages]
        metadata = {
            "step": run.usage.requests,
            "attempt": attempt,
            "model": model.model,
        }
        with run.span.child(
            "llm.plan",
            "generation",
            input=recorded_messages,
            metadata=metadata,
            model=model.model,
            model_parameters=parameters,
            prompt=getattr(run.instructions, "ref", None),
            tools=tuple(request.tools),
        ) as span:
            response = await self._send(model, messages, request, span)
            self._count(response, span)
            if response.mode in {"json_object", "json_schema"}:
                parameters["response_format"] = response.mode
                span.update(model_parameters=parameters)
        return response, span

    async def _send(
        self, model: LLM, messages: list[Message], request: LLMRequest, span: Span
    ) -> LLMResponse:
        """Send a request. If it is cancelled, keep and count what was written until then."""
        try:
            async with asyncio.timeout_at(self.run.deadline):
                return await model.generate_with_tools(messages, request)
        except asyncio.CancelledError:
            if request.written is not None:
                response = _estimate_response(model, messages, request.written)
                has_begun = bool(response.content)
                if has_begun:
                    span.update(name="llm.answer")
                self._count(response, span, is_answered=has_begun)
            raise
        except ModelError as error:
            span.update(metadata={"status": error.status, "cause": error.cause})
            raise
        except TimeoutError:
            raise DeadlinePassed("the time of this turn is used up") from None
        except Exception as error:  # a model of one's own may raise any error
            log_failure("a model failed", error)
            kind = type(error).__name__
            raise ModelRejected(f"the model failed ({kind})") from None

    def _count(
        self, response: LLMResponse, span: Span, *, is_answered: bool = True
    ) -> None:
        """Add a response to the usage of the turn, and put it onto its span.

        An assumed price counts in the usage only, because the admin may have set another in
        Langfuse.
        """
        known_price = find_price(response, self.run.usage.prices)
        price = known_price or assume_price(response)
        costs = price.costs(response.usage)
        self.run.usage.add(response.usage, costs, is_answered=is_answered)
        metadata = {"finish_reason": response.finish_reason}
        if response.mode:
            metadata["mode"] = response.mode
        span.update(
            model=response.model or None,
            output=response.output,
            usage=response.usage,
            cost_usd=sum(costs.values()),
            costs=costs if known_price else None,
            metadata=metadata,
            first_token_ns=response.first_token_ns,
        )


def _recorded_parameters(request: LLMRequest) -> dict[str, Any]:
    """Return the parameters of a request that the trace shows."""
    parameters: dict[str, Any] = {}
    if request.max_tokens is not None:
        parameters["max_tokens"] = request.max_tokens
    if request.temperature is not None:
        parameters["temperature"] = request.temperature
    return parameters


def _estimate_response(
    model: LLM, messages: list[Message], written: Written
) -> LLMResponse:
    """Return the response so far, with an estimate of its tokens."""
    prompt_chars = len(json.dumps(messages, default=str))
    usage = TokenUsage(prompt_chars // TOKEN_CHARS, len(written.text) // TOKEN_CHARS)
    return LLMResponse(
        written.text,
        finish_reason="cancelled",
        usage=usage,
        model=model.model,
        base_url=model.base_url,
        first_token_ns=written.began_ns,
    )


def is_worth_a_retry(error: Exception) -> TypeGuard[ModelUnavailable]:
    """Return whether the same model may answer after a wait that is short enough for a turn."""
    if not isinstance(error, ModelUnavailable) or isinstance(error, ModelTimeout):
        return False
    return error.retry_after is None or error.retry_after <= LONGEST_WAIT_SECONDS


def find_price(response: LLMResponse, own: Mapping[str, Price]) -> Price | None:
    """Return the price of a response among `own`, or else in genai-prices, or None.

    The first look-up takes 0.2 s.
    """
    if not response.usage.total_tokens:
        return FREE
    model = response.model
    for name in sorted(own, key=len, reverse=True):
        if model.startswith(name) and VERSION.fullmatch(model.removeprefix(name)):
            return own[name]
    prompt_thousands = math.ceil(response.usage.prompt_tokens / 1000)
    half_hour = int(time.time() // HALF_HOUR_SECONDS)
    return _published_price(model, response.base_url, prompt_thousands, half_hour)


def assume_price(response: LLMResponse) -> Price:
    """Return the price of an unknown model, which is free on a local server and high elsewhere."""
    if response.base_url is not None and is_local(response.base_url):
        return FREE
    _warn_of_unknown_price(response.model)
    return UNKNOWN


@lru_cache(1024)  # asking genai-prices takes 0.2 ms
def _published_price(
    model: str, server: str | None, prompt_thousands: int, half_hour: int
) -> Price | None:
    """Return the price that is published for a model of a server, or of the model's maker.

    Return None if no price is published. A price may depend on the length of the prompt and on the
    time of the day. So the cache keeps a price for each thousand tokens and each half hour.
    """
    from genai_prices import Usage as Tokens  # noqa: PLC0415 (0.2 s and 13 MB)
    from genai_prices import calc_price  # noqa: PLC0415

    prompt = max(1, prompt_thousands) * 1000
    tokens = Tokens(input_tokens=prompt, output_tokens=1000)
    all_cached = Tokens(
        input_tokens=prompt, cache_read_tokens=prompt, output_tokens=1000
    )
    without_maker = model.rpartition("/")[2]
    for name, url in ((model, server), (model, None), (without_maker, None)):
        with suppress(LookupError):
            costs = calc_price(tokens, name, provider_api_url=url)
            cached_costs = calc_price(all_cached, name, provider_api_url=url)
            return Price(
                prompt=float(costs.input_price) / prompt * MILLION,
                cached=float(cached_costs.input_price) / prompt * MILLION,
                completion=float(costs.output_price) / 1000 * MILLION,
            )
    return None


@lru_cache(256)
def _warn_of_unknown_price(model: str) -> None:
    log.warning(
        "The price of the model %.80r is not known, it counts as one of the dearest: %g and %g US "
        "dollars per million tokens read and written. LLM_PRICES may say what it costs.",
        model,
        UNKNOWN.prompt,
        UNKNOWN.completion,
    )


def is_local(base_url: str) -> bool:
    """Return whether a server is on this machine or in its own network, where models are free."""
    host = urlsplit(base_url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(LOCAL_HOSTS)
    return address.is_loopback or address.is_private
