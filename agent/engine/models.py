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
from decimal import Decimal
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
from agent.engine.run import MILLION, Price, Run, Span
from agent.servers import BACKOFF
from agent.text import pattern

log = logging.getLogger(__name__)

LONGEST_WAIT_SECONDS: Final = 20.0
"""The longest wait before the same model is asked again, because a user waits for the answer."""
HALF_HOUR_SECONDS: Final = 1800
TOKEN_CHARS: Final = 4
"""The usual length of a token, to estimate the tokens of a request that was cancelled."""
PRICED_COMPLETION_TOKENS: Final = 1000
"""The length of the answer for which a price is looked up."""
VERSION_SUFFIX: Final = pattern(r"(?s)(?:-(?:v?\d|latest).*)?")
"""The end of a model's name that does not change its price: a date, a version or nothing."""
LOCAL_DOMAINS: Final = (".local", ".internal", ".lan", ".home.arpa", ".localhost")
FREE: Final = Price(prompt=0, completion=0)
UNKNOWN_PRICE: Final = Price(prompt=5, completion=25)
"""The price that is assumed for an unknown model.

It is high, because a limit of cost that stops a turn too early is better than one that never does.
"""


@dataclass(slots=True)
class ModelChain:
    """The models of a turn, which are asked in order until one of them answers.

    Each request counts towards the limits of the turn, and has a span in its trace. A model that
    failed is not asked again in the turn.
    """

    run: Run
    _model_index: int = 0
    """The place in `run.models` of the model that is asked next."""

    async def ask(
        self,
        chat: Conversation,
        request: LLMRequest,
        *,
        attempt: int,
    ) -> tuple[LLMResponse, Span]:
        """Return a response and the span of its request.

        Raises:
            LimitReached: a limit of the turn forbids another request.
            ModelError: no model has answered. This is the error of the last one.
        """
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
                is_last = self._model_index + 1 == len(self.run.models)
                if is_last:
                    raise
                self._model_index += 1
                failures = 0
                chat.drop_echoes()

    def _seconds_to_wait(self, error: ModelError, failures: int) -> float | None:
        """Return the seconds until the same model is asked again, or None for the next model."""
        if failures >= self.run.limits.model_tries:
            return None
        if not is_worth_a_retry(error):
            return None
        wait = error.retry_after
        if wait is None:
            wait = BACKOFF.draw_wait(failures)
        if wait >= self.run.seconds_left:
            return None
        return wait

    async def _ask_once(
        self,
        messages: list[Message],
        request: LLMRequest,
        attempt: int,
    ) -> tuple[LLMResponse, Span]:
        """Send one request on a span of its own, and count the response."""
        model = self.run.models[self._model_index]
        self._check_limits()
        self.run.usage.requests += 1
        if request.written is not None:  # it may have the text of an earlier try
            request.written.clear()
        parameters = _recorded_parameters(request)
        with self._open_span(model, messages, request, attempt) as span:
            span.update(model_parameters=parameters)
            response = await self._send(model, messages, request, span)
            self._count(response, span)
            if response.mode in {"json_object", "json_schema"}:
                parameters["response_format"] = response.mode
                span.update(model_parameters=parameters)
        return response, span

    def _check_limits(self) -> None:
        """Raise LimitReached if the turn may make no further request."""
        if self.run.seconds_left <= 0:
            raise DeadlinePassed("the time of this turn is used up")
        limit = self.run.usage.find_exhausted_limit(self.run.limits)
        if limit is not None:
            raise LimitReached(f"this turn has used up its {limit}")

    def _open_span(
        self,
        model: LLM,
        messages: list[Message],
        request: LLMRequest,
        attempt: int,
    ) -> Span:
        """Open the span of a request.

        The name of the span says that the model plans. The name is changed when the response is a
        final answer.
        """
        recorded_messages = None
        if self.run.span.recording:
            recorded_messages = [without_images(message) for message in messages]
        metadata = {
            "step": self.run.usage.requests,
            "attempt": attempt,
            "model": model.model,
        }
        return self.run.span.child(
            "llm.plan",
            "generation",
            input=recorded_messages,
            metadata=metadata,
            model=model.model,
            prompt=getattr(self.run.instructions, "ref", None),
            tools=tuple(request.tools),
        )

    async def _send(
        self,
        model: LLM,
        messages: list[Message],
        request: LLMRequest,
        span: Span,
    ) -> LLMResponse:
        """Send a request, and return the response.

        If the request is cancelled, count what was written until then, and keep it on the span.
        """
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
            error_type = type(error).__name__
            raise ModelRejected(f"the model failed ({error_type})") from None

    def _count(
        self,
        response: LLMResponse,
        span: Span,
        *,
        is_answered: bool = True,
    ) -> None:
        """Add a response to the usage of the turn, and put it onto its span.

        Assumed costs count towards the limits, but are not sent to Langfuse: the admin may have set
        a price there.
        """
        price = find_price(response, self.run.usage.prices)
        is_known = price is not None
        if price is None:
            price = assume_price(response)
        costs = price.compute_costs(response.usage)
        self.run.usage.add(response.usage, costs, is_answered=is_answered)
        metadata = {"finish_reason": response.finish_reason}
        if response.mode:
            metadata["mode"] = response.mode
        span.update(
            model=response.model or None,
            output=response.output,
            usage=response.usage,
            cost_usd=sum(costs.values()),
            costs=costs if is_known else None,
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
    model: LLM,
    messages: list[Message],
    written: Written,
) -> LLMResponse:
    """Return the response that was cancelled, with an estimate of its tokens."""
    prompt_chars = len(json.dumps(messages, default=str))
    usage = TokenUsage(
        prompt_tokens=prompt_chars // TOKEN_CHARS,
        completion_tokens=len(written.text) // TOKEN_CHARS,
    )
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
    if not isinstance(error, ModelUnavailable):
        return False
    if isinstance(error, ModelTimeout):
        return False
    return error.retry_after is None or error.retry_after <= LONGEST_WAIT_SECONDS


def find_price(response: LLMResponse, prices: Mapping[str, Price]) -> Price | None:
    """Return the price of the model that wrote a response, or None if the price is not known.

    `prices` are those that the admin has set, by the name of the model. These prices come before
    those of genai-prices, where the first look-up takes 0.2 s.
    """
    if not response.usage.total_tokens:
        return FREE
    model = response.model
    longest_first = sorted(prices, key=len, reverse=True)
    for name in longest_first:
        if model.startswith(name):
            suffix = model.removeprefix(name)
            if VERSION_SUFFIX.fullmatch(suffix):
                return prices[name]
    prompt_thousands = math.ceil(response.usage.prompt_tokens / 1000)
    half_hour = int(time.time() // HALF_HOUR_SECONDS)
    return _published_price(model, response.base_url, prompt_thousands, half_hour)


@lru_cache(1024)  # asking genai-prices takes 0.2 ms
def _published_price(
    model: str,
    server: str | None,
    prompt_thousands: int,
    half_hour: int,
) -> Price | None:
    """Return the published price of a model, or None.

    The price of the server comes first, then that of the model's maker. A price may depend on the
    length of the prompt and on the time of the day. Therefore the cache keeps one for each thousand
    tokens and each half hour.
    """
    prompt_tokens = 1000 * max(1, prompt_thousands)
    without_maker = model.rpartition("/")[2]
    look_ups = [(model, server), (model, None), (without_maker, None)]
    for name, url in look_ups:
        with suppress(LookupError):
            return _look_up_price(name, url, prompt_tokens)
    return None


def _look_up_price(
    model: str,
    server: str | None,
    prompt_tokens: int,
) -> Price:
    """Return the price that genai-prices has for a prompt of this length.

    Raises:
        LookupError: the model is not known there.
    """
    from genai_prices import Usage as Tokens  # noqa: PLC0415 (0.2 s and 13 MB)
    from genai_prices import calc_price  # noqa: PLC0415

    tokens = Tokens(input_tokens=prompt_tokens, output_tokens=PRICED_COMPLETION_TOKENS)
    all_cached = Tokens(
        input_tokens=prompt_tokens,
        cache_read_tokens=prompt_tokens,
        output_tokens=PRICED_COMPLETION_TOKENS,
    )
    costs = calc_price(tokens, model, provider_api_url=server)
    cached_costs = calc_price(all_cached, model, provider_api_url=server)
    return Price(
        prompt=_per_million(costs.input_price, prompt_tokens),
        cached=_per_million(cached_costs.input_price, prompt_tokens),
        completion=_per_million(costs.output_price, PRICED_COMPLETION_TOKENS),
    )


def _per_million(cost: Decimal, tokens: int) -> float:
    """Return the price of a million tokens, if `tokens` tokens cost `cost`."""
    return float(cost) / tokens * MILLION


def assume_price(response: LLMResponse) -> Price:
    """Return a price for a model without a known one: free on a local server, high elsewhere."""
    if response.base_url is not None and is_local(response.base_url):
        return FREE
    _warn_of_unknown_price(response.model)
    return UNKNOWN_PRICE


@lru_cache(256)  # warns once of each model
def _warn_of_unknown_price(model: str) -> None:
    log.warning(
        "The price of the model %.80r is not known, it counts as one of the dearest: %g and %g US "
        "dollars per million tokens read and written. LLM_PRICES may say what it costs.",
        model,
        UNKNOWN_PRICE.prompt,
        UNKNOWN_PRICE.completion,
    )


def is_local(base_url: str) -> bool:
    """Return whether a server is on this machine or in its own network, where models are free."""
    host = urlsplit(base_url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        has_no_domain = "." not in host
        return has_no_domain or host.endswith(LOCAL_DOMAINS)
    return address.is_loopback or address.is_private
